#!/bin/bash
# Laws of standard input: "-" is a file like any other, plain or compressed, in every command.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
small_data data.svm
gzip -k data.svm

succeeds train data.svm --epochs 2 --seed 5 --json --quiet --out m
hash=$(key model_hash <out.txt)

same_model() {
    laws=$((laws + 1))
    "$sounder" train - --format libsvm --epochs 2 --seed 5 --json --quiet >out.txt 2>err.txt
    [ "$(key model_hash <out.txt)" = "$hash" ] || complain "$1 gives another model"
}
same_model "a file as standard input" <data.svm
same_model "a pipe" < <(cat data.svm)
same_model "a compressed file as standard input" <data.svm.gz
same_model "a pipe that stops for a while" < <(head -c 1000 data.svm; sleep 0.3; tail -c +1001 data.svm)
"$sounder" train - --epochs 2 --seed 5 --json >out.txt 2>err.txt <data.svm
holds "the format is guessed from the content" test "$(key model_hash <out.txt)" = "$hash"
holds "and the guess is told" prints err.txt '^sounder: note: .*libsvm'

"$sounder" predict m - --format libsvm --quiet >out.txt 2>err.txt <data.svm
cp out.txt piped.txt
succeeds predict m data.svm --quiet
holds "predict reads standard input" cmp -s out.txt piped.txt
"$sounder" eval m - --format libsvm --json --quiet >out.txt 2>err.txt <data.svm.gz
holds "eval reads standard input" test "$(key accuracy <out.txt)" != missing
"$sounder" inspect - --format libsvm --json --quiet >out.txt 2>err.txt <data.svm
holds "inspect reads standard input" test "$(key rows <out.txt)" = 200
"$sounder" convert - piped.sdc --format libsvm --quiet >out.txt 2>err.txt <data.svm
succeeds inspect piped.sdc --json
holds "convert reads standard input" test "$(key rows <out.txt)" = 200

printf '1 1:0.5\n-1 1:nan\n' | "$sounder" train - --format libsvm --out bad >out.txt 2>err.txt
status=${PIPESTATUS[1]}
refused 3 ':2:' 'train - with a nan'
holds "no model" test ! -e bad
"$sounder" train - --format libsvm >out.txt 2>err.txt </dev/null
status=$?
refused 3 '^sounder: <stdin>:1:1: no rows$' 'train - with nothing in it'
finish
