#!/bin/bash
# Laws of what is chosen where the user has not: the model by the labels, with the reason, and how good it is.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# labels NAME EXPRESSION: a table of 2000 rows whose label is an awk expression of the row i and of x.
labels() {
    awk "BEGIN { srand(3); print \"x,z,label\"
        for (i = 0; i < 2000; i++) { x = rand() * 10 - 5; print x \",\" rand() \",\" $2 } }" >"$1"
}
# noted PATTERN: the last run said so in a note.
noted() { grep -Eq -- "^sounder: note: .*$1" err.txt; }

labels ages.csv '(20 + int(4 * (x + 5) + 12 * rand()))'
ages=$(tail -n +2 ages.csv | cut -d, -f3 | sort -u | wc -l)
holds "there are many ages" test "$ages" -gt 30
succeeds train ages.csv --epochs 2
holds "many whole numbers are regression, and are counted" noted "model squared: $ages different whole numbers .*--model softmax"
holds "regression has an r2" grep -q '^ *r2 0\.[89]' out.txt
succeeds train ages.csv --epochs 2 --model softmax
labels digits.csv '(i % 7)'
succeeds train digits.csv --epochs 2
holds "few whole numbers are classes" noted 'model softmax: 7 different whole numbers .*--model squared'
labels two.csv '(x > 0)'
succeeds train two.csv --epochs 2
holds "two labels are classes" noted 'model logistic: two different labels; --model squared'
labels words.csv 'substr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJ", i % 36 + 1, 1) "x"'
succeeds train words.csv --epochs 2
holds "texts are classes, however many" noted 'model softmax: 36 different texts'
labels prices.csv '"$" (100 + i % 5)'
succeeds train prices.csv --epochs 2
holds "texts that are nearly numbers are quoted" noted "model softmax: 5 different texts .*'.100' as a plain number"
labels values.csv '(3 * x + rand())'
succeeds train values.csv --epochs 2
holds "other numbers are regression" noted 'model squared: [0-9]* different numbers'
refuses 3 "$ages different labels, but the model 'logistic' takes two .try --model squared." train ages.csv --model logistic
refuses 3 "different labels in 2000 rows: .*try --model squared" train values.csv --model logistic
refuses 3 "7 different labels, but the model 'logistic' takes two .try --model softmax." train digits.csv --model logistic
succeeds train values.csv --help
holds "the rule is in the help" grep -q 'up to 30 distinct integers' out.txt
printf 'a b 3\nc b 4\na d 2\nc d 5\n' >stars.triples
succeeds train stars.triples
holds "ratings are factorised" noted 'model mf: every row is a user, an item and a rating'
# Processes of a launcher that are not told to be one job.
alone() { OMPI_COMM_WORLD_SIZE=$1 OMPI_COMM_WORLD_RANK=$2 "$SOUNDER" train two.csv --epochs 1 >out.txt 2>err.txt && noted "one of $1 processes, and trains alone; --transport mpi --sync bsp"; }
holds "the first of two processes says that it trains alone" alone 2 0
for started in "2 1" "1 0" "two 0"; do
    # shellcheck disable=SC2086
    holds "other processes ($started) are silent" eval '! alone $started'
done
# Full batches are computed by threads; the simulator's rows a second are not real.
succeeds train two.csv --sync batch --threads 2
holds "full batches tell their threads" grep -q '^trained .*, 2 threads$' out.txt
succeeds train two.csv --sync async --transport sim --workers 2 --epochs 1
holds "virtual time has no rows a second" eval '! grep -q "virtual s.*rows/s" err.txt'
finish
