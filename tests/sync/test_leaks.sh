#!/bin/bash
# Laws of memory: valgrind sees no leak, no wrong access, no value used before it is set, in whole commands.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"
if [ -n "${SOUNDER_SANITIZE:-}" ]; then
    echo "skipped: the sanitizer looks already"
    exit 77
fi
if ! command -v valgrind >/dev/null; then
    echo "skipped: valgrind is missing"
    exit 77
fi

# clean CODE ARGUMENTS...: ends with CODE, and valgrind has nothing to say.
clean() {
    local code=$1
    shift
    laws=$((laws + 1))
    valgrind --quiet --leak-check=full --show-leak-kinds=definite,indirect,possible --errors-for-leak-kinds=definite,possible \
        --error-exitcode=99 --log-file=valgrind.txt "$sounder" "$@" --threads 2 >out.txt 2>err.txt </dev/null
    status=$?
    [ "$status" = "$code" ] && [ ! -s valgrind.txt ] && return
    complain "sounder $* ended with $status, not $code, under valgrind"
    head -n 30 valgrind.txt >&2
}

run generate sparse-classification data.svm --rows 300 --features 200 --nnz 10
{
    echo 'size,colour,width,kind'
    for i in $(seq 300); do
        echo "$((i % 11)),$(cut -d, -f$((i % 3 + 1)) <<<red,green,blue),0.$((i % 7)),$(cut -d, -f$((i % 4 + 1)) <<<a,b,c,d)"
    done
} >data.csv

clean 0 train data.svm --optimizer sgd --epochs 2 --out sgd.model
clean 0 train data.svm --epochs 2 --batch 16 --l1 0.001 --average 1 --valid-fraction 0.2 --early-stop 2 --run run \
    --checkpoint-every 30u --out adagrad.model
clean 0 train data.svm --epochs 3 --batch 16 --l1 0.001 --average 1 --valid-fraction 0.2 --early-stop 2 --run run2 \
    --checkpoint-every 30u --json
clean 0 train data.svm --epochs 3 --batch 16 --l1 0.001 --average 1 --valid-fraction 0.2 --early-stop 2 --run run2 \
    --checkpoint-every 30u --resume --json
clean 0 train data.svm --sync batch --l2 0.01 --epochs 5 --out batch.model
clean 0 train data.csv --label kind --optimizer adam --epochs 2 --cache cache --out csv.model
clean 0 train data.csv --label kind --optimizer adam --epochs 2 --cache cache --out csv.model
clean 0 train data.csv --label width --model huber --optimizer ftrl --epochs 2 --out regression.model
clean 0 predict sgd.model data.svm --out predictions
clean 0 predict csv.model data.csv --proba --out probabilities
clean 0 eval batch.model data.svm --json
clean 0 inspect csv.model --json
clean 0 convert data.csv data.sdc --label kind

# Several workers, and messages: bodies have owners on either side, in threads and in virtual time.
head -n 100 data.svm >few.svm
for i in $(seq 150); do echo "u$((i * 5 % 13)) i$((i * 3 % 7)) $((i % 5 + 1))"; done >stars.triples
sim='--transport sim:latency=0.3 --compute exp:rate=1 --workers 3 --batch 8 --epochs 2'
clean 0 train few.svm --sync hogwild --workers 2 --epochs 2 --record record
clean 0 train few.svm --sync hogwild --epochs 2 --replay record
clean 0 train stars.triples --model mf:rank=3 --sync rotation --workers 2 --epochs 2 --run rotated --checkpoint-every 100u
clean 0 train few.svm --model kmeans:3 --sync async --workers 2 --batch 8 --epochs 2
clean 0 train few.svm --sync bsp --servers 2 --workers 2 --batch 8 --epochs 2 --run served --checkpoint-every 4u
# shellcheck disable=SC2086
{
    clean 0 train few.svm --sync k-sync:2 $sim --servers 2
    clean 0 train stars.triples --model mf:rank=3 --sync k-batch-async:2 $sim --servers 2
    clean 0 train few.svm --sync async $sim --schedule constant --lr 0.1 --updates 9 --run cut
    clean 0 train few.svm --sync async $sim --schedule constant --lr 0.1 --run cut --resume
    clean 0 train few.svm --sync async:push=2,fetch=4 $sim --servers 2
    clean 0 train few.svm --sync ssp:1 $sim --servers 2
    clean 0 train few.svm --sync essp:staleness=1,budget=500 $sim
    clean 0 train few.svm --sync backup:2 $sim --transport sim:dies=1@3
    clean 6 train few.svm --sync bsp $sim --transport sim:dies=1@3 --run lost
    clean 6 train few.svm --sync essp:1 $sim --transport sim:dies=0@1+1@2+2@2
}

# Failing leaks no more than success does.
printf '1 1:0.5\n-1 1:nan\n' >bad.svm
clean 3 train bad.svm
head -c 200 sgd.model >cut.model
clean 5 predict cut.model data.svm
clean 2 train data.svm --optimizer adam:beta7=1
clean 3 predict csv.model bad.svm
finish
