#!/bin/bash
# Laws of tables: lines of any length, headers without rows, numbers that are not written as numbers,
# names of columns, and notes about columns that are rarely meant as features.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# ---- wide ----
# wide COLUMNS: 24 rows of 0 … 6 in COLUMNS named columns, of which the first fifty tell two labels
# apart, as wide.csv; the same with the columns in reverse as turned.csv; the labels as labels.txt.
wide() {
    python3 - "$1" <<'PYTHON'
import random, sys
n = int(sys.argv[1])
random.seed(n)
names = [f"measured_{j}" for j in range(1, n + 1)]
rows = [("yes" if i % 2 else "no",
         [min(6, random.randrange(4) + (i % 2 and j < 50) * 3) for j in range(n)]) for i in range(24)]
with open("wide.csv", "w") as wide, open("turned.csv", "w") as turned:
    print(*names, "outcome", sep=",", file=wide)
    print("outcome", *names[::-1], sep=",", file=turned)
    for label, x in rows:
        print(*x, label, sep=",", file=wide)
        print(label, *x[::-1], sep=",", file=turned)
open("labels.txt", "w").writelines(label + "\n" for label, x in rows)
open("nonzeros.txt", "w").write(str(sum(v != 0 for label, x in rows for v in x)))
PYTHON
}
for columns in 11000 100000; do
    wide $columns
    succeeds train wide.csv --label outcome --epochs 5 --json --quiet --out wide.model
    hash=$(key model_hash <out.txt)
    holds "$columns columns: all are features" test "$(key features <out.txt)" = $columns
    holds "$columns columns: every cell is read" test "$(key nonzeros <out.txt)" = "$(cat nonzeros.txt)"
    succeeds predict wide.model wide.csv
    holds "$columns columns: predictions" cmp -s out.txt labels.txt
    succeeds predict wide.model turned.csv
    holds "$columns columns in another order: predictions" cmp -s out.txt labels.txt
    succeeds eval wide.model turned.csv --json --quiet
    holds "$columns columns in another order: accuracy" test "$(key accuracy <out.txt)" = 1.0
    gzip -c wide.csv | "$sounder" train - --format csv --label outcome --epochs 5 --json \
        --quiet >out.txt 2>err.txt
    holds "$columns columns through a pipe, compressed" test "$(key model_hash <out.txt)" = "$hash"
    succeeds train wide.csv --label outcome --ignore "measured_2,measured_$columns,c3" --epochs 1 \
        --json --quiet
    holds "$columns columns: three ignored" test "$(key features <out.txt)" = $((columns - 3))
    refuses 2 "did you mean 'outcome'" train wide.csv --label outcom
done
refuses 3 'wide\.csv:1: the first line exceeds a quarter of --memory \(0.1 MB\); raise --memory, or look for an unclosed quote' \
    train wide.csv --label outcome --memory 100k
succeeds inspect wide.model
# A quoted newline beyond the first 64 KB is still within the header.
{ awk 'BEGIN { for (j = 1; j <= 11000; j++) printf "measured_%d,", j; printf "\"two\nlines\",y\n" }'
  for i in $(seq 20); do awk -v i="$i" 'BEGIN { for (j = 1; j <= 11001; j++) printf "%d,", (i + j) % 3; print i % 2 }'; done
} >lines.csv
succeeds train lines.csv --label y --ignore $'two\nlines' --epochs 1 --json --quiet
holds "a name of two lines" test "$(key features <out.txt)" = 11000
# Types are guessed from whole rows: words in the last of many columns are categories.
awk 'BEGIN { for (i = 0; i < 24; i++) {
        for (j = 1; j <= 11000; j++) printf i ? "%d," : "measured_%d,", i ? (i * j) % 5 : j
        print i ? (i % 3 ? "red" : "blue") "," i % 2 : "colour,y" } }' >words.csv
succeeds train words.csv --label y --epochs 1 --json --quiet
holds "two colours are two features" test "$(key features <out.txt)" = 11002

# ---- a header without rows ----
printf 'a,b,label\n' >empty.csv
printf 'a,b,label\n1,2,x\n2,3,y\n3,3,x\n' >few.csv
refuses 3 'empty\.csv: no rows below the header' train empty.csv
refuses 3 'empty\.csv: no rows below the header' train empty.csv --label label
refuses 3 'empty\.csv: no rows below the header' train few.csv --valid empty.csv
succeeds train few.csv --quiet --out few.model
succeeds predict few.model empty.csv
holds "no predictions for no rows" test ! -s out.txt
"$sounder" predict few.model - --proba >out.txt 2>err.txt < <(cat empty.csv)
status=$?
holds "no rows through a pipe: exit code" test $status = 0
holds "no rows through a pipe: the names of the classes alone" test "$(cat out.txt)" = 'labels x y'
succeeds predict few.model empty.csv --out predictions.txt
holds "a file of no predictions" test -e predictions.txt -a ! -s predictions.txt
refuses 3 'no rows to evaluate' eval few.model empty.csv

# ---- numbers that are not written as numbers ----
printf 'a,label\n"12,095",yes\n"1,200",no\n' >thousands.csv
refuses 3 "column 'a', \"12,095\": thousands separators are not read; write 12095" train thousands.csv
printf 'a;b;y\n1,5;2;1\n2,25;3;0\n' >decimal.csv
refuses 3 "column 'a' has decimal commas" train decimal.csv
printf 'a,b,label\n"2,000",2,x\n' >late.csv
refuses 3 "late\.csv:2:1: column 'a' has thousands separators, '2,000'" predict few.model late.csv
for price in '$%d' '%d €' '%d.50 USD' '$%d,000'; do
    { echo 'x,price'; for i in $(seq 40); do printf "%d,\"$price\"\n" $((i * i % 17)) $((100 + 7 * i)); done; } >price.csv
    refuses 3 "the label column 'price' has 40 different texts such as" train price.csv
    holds "$price: what to do is told" prints err.txt 'write plain numbers \(or use --categories price'
done
succeeds train price.csv --categories price --epochs 1
awk 'BEGIN { print "x,rate"; for (i = 0; i < 40; i++) print (i * i) % 17 "," 10 * (i % 3) "%" }' >rate.csv
succeeds train rate.csv --epochs 1

# ---- names ----
printf 'living area,price in k,"expensive, or not",y\n1,2,3,4\n2,3,4,5\n' >names.csv
refuses 2 "no column 'prize' for --label; its 4 columns are 'living area', 'price in k', 'expensive, or not', 'y'" \
    train names.csv --label prize
# The first column of a table that pandas wrote has no name: it gets one that is free.
printf ',c1,c1_,y\n0,5,1,1\n1,6,2,0\n2,7,1,1\n' >index.csv
succeeds train index.csv --epochs 1 --quiet --out index.model
succeeds inspect index.model
holds "a column without a name" prints out.txt '^ *c1__ '
succeeds predict index.model index.csv
printf 'a,b,y\r1,2,0\r2,3,1\r' >returns.csv
refuses 3 'returns.csv:1: lines end with CR; convert them to LF' train returns.csv
# Names that begin like those of ratings, and numbers with fractions, are an ordinary table.
awk 'BEGIN { print "user_age,item_price,rating,label"; for (i = 0; i < 40; i++) print 20 + i % 9 "," i % 7 "," i % 5 "," i % 2 }' >ages.csv
succeeds train ages.csv --epochs 1
holds "the label is the column called so" prints err.txt "label: column 'label'"
holds "no ratings" prints err.txt 'model logistic'
awk 'BEGIN { for (i = 0; i < 40; i++) print i / 41, (i * 7 % 40) / 41, i % 2 }' >measured.txt
refuses 3 'the format is not recognised; name it with --format' train measured.txt
for list in 'expensive, or not' '"expensive, or not"' 'c3' '3'; do
    succeeds train names.csv --label y --ignore "$list" --json --quiet
    holds "--ignore $list" test "$(key features <out.txt)" = 2
done
succeeds train names.csv --label y --ignore 'living area,"expensive, or not"' --json --quiet
holds "--ignore with a quoted name among others" test "$(key features <out.txt)" = 1
refuses 2 'a quote in .* is not closed' train names.csv --label y --ignore '"expensive, or not'
succeeds train names.csv --label 2 --model squared --quiet --out second.model
succeeds inspect second.model
holds "a label by its place" prints out.txt 'price in k +label'

# ---- notes ----
# table NAMES AWK-EXPRESSION: 200 rows; i is the row, u a number that no rule foresees, y a label of two
# classes that goes by u.
table() {
    awk -v names="$1" 'BEGIN { print names; srand(7); for (i = 1; i <= 200; i++) {
        u = int(rand() * 100); y = u * 7 % 13 < 6; print '"$2"' } }' >table.csv
}
notes() { # PATTERN ARGUMENTS...: exactly one note about columns, and it matches
    local pattern=$1
    shift
    run train table.csv --label y --epochs 1 "$@"
    grep -E "^sounder: note: (constant )?columns?[: ]" err.txt >notes.txt
    holds "one note '$pattern' (exit $status)" test "$status $(wc -l <notes.txt)" = '0 1'
    holds "note '$pattern', not '$(cat notes.txt)'" prints notes.txt "$pattern"
}
silent() {
    run train table.csv --label y --epochs 1 "$@"
    holds "no note but '$(grep column err.txt)' (exit $status)" test \
        "$status $(grep -cE '^sounder: note: (constant )?columns?[: ]' err.txt)" = '0 0'
}
table 'id,x,y' 'sprintf("cust%05d", i) "," rand() "," y'
notes "column 'id': 200 different texts in 200 rows; --ignore id$"
silent --ignore id
silent --quiet
table '"id, new",x,y' 'sprintf("cust%05d", i) "," rand() "," y'
notes "--ignore '\"id, new\"'$"
table 'row,x,y' 'i "," rand() "," y'
notes "column 'row' counts the rows; --ignore row if it is a row number$"
table 'row,x,y' 'i - 1 "," rand() "," y'
notes "column 'row' counts the rows; --ignore row if it is a row number$"
# Years and hours count too, but not from 0 or 1; what a number to be predicted goes by is no row number.
table 'year,x,y' '1900 + i "," rand() "," y'
silent
table 'hour,x,y' 'i "," rand() "," 3 * i + 100 * rand()'
silent
table 'row,x,y' 'i "," rand() "," 100 * rand() + 0.5'
notes "column 'row' counts the rows; --ignore row if it is a row number$"
table 'row,x,y' 'i "," rand() "," (i > 100)'
notes "column 'row' counts the rows; --ignore row if it is a row number$"
table "it's,x,y" 'sprintf("cust%05d", i) "," rand() "," y'
notes "--ignore 'it'\\\\''s'$"
eval "succeeds train table.csv --label y --epochs 1 $(grep -o -- "--ignore .*" notes.txt)"
table 'id,key,x,y' 'sprintf("cust%05d,k%05d", i, i) "," rand() "," y'
notes "columns 'id', 'key': almost every row has its own text; probably ids: --ignore id,key$"
table 'a,b,c,x,y' '5 ",0,k," rand() "," y'
notes "constant columns: 'a', 'b', 'c'$"
table 'a1,a2,a3,a4,a5,a6,a7,x,y' '"1,2,3,4,5,6,7," rand() "," y'
notes "constant columns: 'a1', 'a2', 'a3', 'a4', 'a5' and 2 more$"
for leak in y 1-y 3+y '5*y+(i%2)/8' '(y?"red":i%3?"blue":"green")' '(y?"yes":"no")'; do
    table 'leak,x,y' "$leak \",\" rand() \",\" y"
    notes "column 'leak' determines the label; --ignore leak if it would not be known when predicting$"
done
table 'leak,x,y' 'u / 3 "," rand() "," u / 3'
notes "column 'leak' determines the label"
table 'price,x,y' '"$" 100 + 7 * i "," rand() "," y'
notes "column 'price': 200 different texts such as '[$][0-9]*' in 200 rows; write plain numbers, or --ignore price"
# One row that disagrees is enough to be an ordinary column.
table 'a,b,c,d,x,y' '(i == 199) "," (i == 3 ? 4 : i) "," (i == 198 ? 1 - y : y) "," (i == 150 ? "odd" : "even") "," rand() "," y'
silent
table 'city,size,score,x,y' '(i * i % 7 < 3 ? "oslo" : "lima") "," i % 4 "," u "," rand() "," y'
silent
run train <(head -5 table.csv) --format csv --label y --epochs 1
holds "four rows prove nothing" test "$(grep -c "note: column" err.txt)" = 0
finish
