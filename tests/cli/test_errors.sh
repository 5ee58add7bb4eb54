#!/bin/bash
# Laws of failing: one sentence, the right exit code, nothing half-written.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
small_data data.svm
mkdir folder

# 2: what the user typed.
refuses 2 'no command'
refuses 2 "did you mean 'train'" trian data.svm
refuses 2 "did you mean 'eval'" evaluate m data.svm
refuses 2 "see 'sounder --help'" xyzzy
refuses 2 'command comes first' --lr 0.1 train data.svm
refuses 2 'argument is missing' train
refuses 2 'argument is missing' predict m
refuses 2 'argument is missing' eval m
refuses 2 'argument is missing' inspect
refuses 2 'argument is missing' convert data.sdc
refuses 2 'argument is missing' generate sparse-classification
refuses 2 'too many' generate sparse-classification a.svm b.svm
refuses 2 'too many' list model sync
refuses 2 'empty' train ''
refuses 2 '--epochs' train data.svm --epoch 3
refuses 2 '--json' train data.svm --jsn
refuses 2 '--quiet' train data.svm --quite
refuses 2 '--out' train data.svm --output m
refuses 2 '--optimizer' train data.svm --optimiser adam
refuses 2 'qwertyuiop' train data.svm --qwertyuiop
refuses 2 "no option -o" train data.svm -o m
refuses 2 "'--=3'" train data.svm --=3
refuses 2 '--epochs needs a value' train data.svm --epochs
refuses 2 '--epochs needs a value' train data.svm --epochs --json
refuses 2 '--out needs a value' train data.svm --out
refuses 2 '--out needs' train data.svm --out=
refuses 2 '--json is yes or no' train data.svm --json=perhaps
refuses 2 'epochs.*many' train data.svm --epochs many
refuses 2 'epochs' train data.svm --epochs -3
refuses 2 'lr' train data.svm --lr nan
refuses 2 'lr' train data.svm --lr ''
refuses 2 'logistic' train data.svm --model logistik
refuses 2 'adam' train data.svm --optimizer adm
refuses 2 'beta1' train data.svm --optimizer adam:beta7=1
refuses 2 'beta1' train data.svm --optimizer adam:beta1=x
refuses 2 'libsvm' train data.svm --format libsmv
refuses 2 "optimizer" list optimiser
refuses 2 'sparse-classification' generate sparse-clasification x.svm --rows 5
holds "nothing was generated" test ! -e x.svm

# A slip among numbers is refused wherever it stands; few words do not make categories.
{ echo 'a,b,y'; for i in $(seq 40); do echo "$i,2.5,$((i % 2))"; done; } >numbers.csv
sed '5s/^[^,]*/abc/' numbers.csv >slip.csv
refuses 3 "slip.csv:5:1: column 'a' should be a number, not 'abc' .--categories a" train slip.csv --label y
succeeds train numbers.csv --label y --out numbers.model --epochs 1
refuses 3 "slip.csv:5:1: column 'a' should be a number, not 'abc'$" predict numbers.model slip.csv
refuses 2 "no column 'z' for --label" eval numbers.model numbers.csv --label z
refuses 2 'trained without weights' eval numbers.model numbers.csv --weight b
refuses 2 'does not take --ignore' predict numbers.model numbers.csv --ignore b
tail -n +2 numbers.csv >headless.csv
succeeds eval numbers.model headless.csv
holds "columns taken by their order are said to be" grep -q 'no header line' err.txt

# Values that the model does not know are counted, not passed over in silence.
printf '1 1:1 9:1\n-1 2:1 8:1\n' >wide.svm
succeeds train data.svm --out narrow.model --epochs 1
succeeds predict narrow.model wide.svm
holds "unseen features are told" grep -Eq '[0-9]+ values of features that training did not see' err.txt

# Packings that are not read are named; options are checked before anything is read.
printf '\3757zXZ\0rest' >data.xz
refuses 3 'xzcat' train data.xz

# Labels that floats cannot tell apart, whole or not, are no classes and no targets; apart they are.
far_labels() { awk -v step="$1" 'BEGIN { for (i = 0; i < 60; i++) printf "%.1f 1:%d\n", 100000001 + i % 4 * step, i % 4 }' >far.svm; }
far_labels 1
refuses 3 'about 1e.08, differ by too little' train far.svm
far_labels 0.3
refuses 3 'about 1e.08, differ by too little' train far.svm
far_labels 10000000
succeeds train far.svm
refuses 1 'nowhere' train missing.svm --valid nowhere
refuses 2 'early-stop' train missing.svm --early-stop 2
refuses 1 'no checkpoint' train data.svm --run nothing-here --resume
holds "a run that is not there is not made" test ! -e nothing-here
succeeds train data.svm --run planned --epochs 2
refuses 2 'planned for 2 epochs .*, not 3' train data.svm --run planned --epochs 3 --resume
tail -n +2 data.svm >other.svm
refuses 2 'differs is data' train other.svm --run planned --epochs 2 --l2 1 --resume
refuses 2 'differs is l2' train data.svm --run planned --epochs 2 --l2 1 --resume
succeeds train data.svm --run scaled --epochs 2 --lr 0.1 --lr-batch 2 --quiet
refuses 2 'differs is lr-batch' train data.svm --run scaled --epochs 2 --lr 0.1 --lr-batch 4 --resume

# Options belong to commands.
refuses 2 "sounder predict does not take --lr; see 'sounder predict --help'" predict m data.svm --lr 1
refuses 2 'does not take --proba' train data.svm --proba
refuses 2 'does not take --epochs' eval m data.svm --epochs 3
refuses 2 'does not take --out' eval m data.svm --out x
refuses 2 'does not take --rows' train data.svm --rows 3
refuses 2 'does not take --json' list --json
refuses 2 'exclude each other' predict m data.svm --proba --scores

# Output that cannot be written is found before the work: not even the input is looked at.
refuses 1 'nodir' train missing.svm --out nodir/m
refuses 1 'not a folder|Not a directory' train missing.svm --out data.svm/m
refuses 2 'folder' train missing.svm --out folder
refuses 2 'folder' train missing.svm --out folder/
refuses 2 'not a regular file' train missing.svm --out /dev/null
refuses 2 'overwrite' train data.svm --out ./data.svm
refuses 2 'overwrite' train data.svm --valid data.svm --out data.svm
refuses 2 'overwrite' train 'dat*.svm' --out data.svm
cp data.svm valid.svm
refuses 2 'overwrite' train data.svm --valid 'val*.svm' --out valid.svm
cp data.svm part.sdc
refuses 2 'overwrite' convert 'par*.sdc' part.sdc
refuses 2 'given twice' train - -
refuses 2 'given twice' train - --valid -
refuses 2 'a share from 0 to 1' generate dense-classification x.svm --rows 5 --noise 5
refuses 2 '--label does nothing for libsvm data' train data.svm --label y
refuses 1 'nodir' predict m data.svm --out nodir/p
refuses 2 '\.sdc' convert data.svm data2.svm
refuses 1 'nodir' convert data.svm nodir/x.sdc
refuses 1 'nodir' generate sparse-classification nodir/x.svm --rows 5
holds "the input is untouched" test "$(wc -l <data.svm)" = 200

# 1: what is not there.
refuses 1 'missing\.svm' train missing.svm
refuses 1 'nothing-\*' train 'nothing-*.svm'
refuses 1 'missing\.svm' train data.svm --valid missing.svm
refuses 1 'missing\.config' train data.svm --config missing.config
refuses 1 'missing\.model' predict missing.model data.svm
refuses 1 'missing' inspect missing
refuses 1 'folder' train folder
if [ -e /dev/full ]; then
    "$sounder" train data.svm --epochs 1 --quiet --out m >/dev/full 2>err.txt
    status=$?
    : >out.txt
    refused 1 'standard output' 'train >/dev/full'
    holds "the model was saved before" test -s m
    rm -f m
fi

# A config file is read like flags.
echo 'epocs = 3' >bad.config
refuses 2 'epochs' train data.svm --config bad.config
echo 'epochs' >bad.config
refuses 2 'bad\.config' train data.svm --config bad.config

# 3: what stands in the data, with its place; and no model.
bad_data() {
    # shellcheck disable=SC2059
    printf "$2" >"$1"
    refuses 3 "^sounder: (.*/)?$1:${3:-[0-9]+}" train "$1" --out m
    holds "$1 leaves no model" test ! -e m
}
bad_data nan.svm '1 1:0.5\n-1 1:nan\n' 2:
bad_data inf.svm '1 1:0.5\n-1 1:inf\n' 2:
bad_data huge.svm '1 1:0.5\n-1 1:1e99\n' 2:
bad_data half.svm '1 1:0.5\n-1 2\n' 2:
bad_data novalue.svm '1 1:0.5\n-1 2:\n' 2:
bad_data negative.svm '1 1:0.5\n-1 -4:2\n' 2:
bad_data big.svm '1 99999999999999999999:1\n-1 1:1\n' 1:
bad_data word.svm '1 1:0.5\nfoo 1:x\n' 2:
bad_data binary.svm '\x00\x01\x02\xff'
bad_data nolabel.svm '1:2 2:3\n1 1:1\n' 1:
bad_data twice.svm '1 5:1 5:2\n-1 1:1\n' 1:
bad_data empty.svm '' ''
bad_data blank.svm '\n\n\n' ''
bad_data short.csv 'a,b,label\n1,2,x\n1,y\n' 3:
bad_data quote.csv 'a,b,label\n1,2,x\n"1,2,y\n'
printf '+1 1:1\n-1 1:inf\n' >valid.svm
refuses 3 'valid\.svm:2:' train data.svm --valid valid.svm --out m
holds "bad validation data leaves no model" test ! -e m

# 5: model files that are none, or not whole.
succeeds train data.svm --epochs 1 --quiet --out good.model
refuses 5 'data\.svm' predict data.svm data.svm
: >empty.model
refuses 5 'empty\.model' predict empty.model data.svm
size=$(wc -c <good.model)
for keep in 4 20 $((size / 2)) $((size - 1)); do
    head -c "$keep" good.model >cut.model
    refuses 5 'cut\.model' eval cut.model data.svm
done
cp good.model damaged.model
printf '\377\377' | dd of=damaged.model bs=1 seek=$((size - 2)) conv=notrunc 2>/dev/null
refuses 5 'damaged\.model' predict damaged.model data.svm
cp cut.model cut.safetensors
refuses 5 'cut\.safetensors' inspect cut.safetensors
succeeds convert data.svm good.sdc
head -c 100 good.sdc >cut.sdc
refuses 5 'cut\.sdc' train cut.sdc

# Arguments that were exchanged are known by what the files are.
succeeds train data.svm --epochs 1 --quiet --run crossed --checkpoint-every 1u
gzip -c data.svm >data.svm.gz
for file in data.svm data.svm.gz numbers.csv good.sdc; do
    refuses 5 "$file is data .*, not a model: sounder eval MODEL DATA" eval "$file" good.model
    refuses 5 "$file is data .*, not a model: sounder predict MODEL DATA" predict "$file" good.model
done
refuses 3 'good\.model is a model file or a checkpoint, not data' train data.svm good.model --out m
refuses 3 'good\.model is a model file or a checkpoint, not data' eval good.model good.model
refuses 3 'good\.model is a model file or a checkpoint, not data' train data.svm --valid good.model
refuses 3 'good\.model is a model file or a checkpoint, not data' inspect data.svm good.model
for file in crossed/checkpoint-*.safetensors; do
    refuses 5 'is a checkpoint, not a model' eval "$file" data.svm
done

# Names never steer a terminal, and the sentence stays one line.
refuses 1 'line\?two' train $'line\ntwo'
holds "no escape sequence passes" test -z "$(run train $'\033[1mx'; grep $'\033' err.txt)"

# 4: a step far too large. The model of the last good epoch is kept, and the sentence says where.
succeeds generate dense-regression big.csv --rows 500 --features 5
for lr in 0.4 0.5 1e6; do
    rm -f diverged.model
    run train big.csv --model squared --optimizer sgd --scale none --lr $lr --schedule constant \
        --epochs 100 --out diverged.model
    refused 4 'diverged' "train --lr $lr"
    if [ -e diverged.model ]; then
        holds "the sentence names the model" prints err.txt "last good model .*diverged\.model"
        succeeds inspect diverged.model
    else
        holds "the sentence says that there is none" prints err.txt 'no model was written'
    fi
done

# The same in the middle of an epoch, with a loss that is 0 where the score is not a number.
succeeds generate sparse-classification far.svm --rows 1401 --features 90000 --nnz 20
for end in '--updates 300' '--evaluate-every 300 --target 0.1 --epochs 5'; do
    run train far.svm --model squared-hinge --optimizer sgd --lr 10 --schedule constant --sync serial $end
    refused 4 'diverged' "train $end"
done

# Signals: SIGUSR1 writes a checkpoint and goes on; SIGTERM writes one and stops.
start() { # returns once the run has reported an epoch: by then it listens to signals
    : >err.txt
    "$sounder" train "$@" --epochs 1000000000 >out.txt 2>err.txt </dev/null &
    pid=$!
    wait_for prints err.txt '^epoch'
}
ended() { # waits for the program that was asked to end; one that does not listen must not hang the test
    wait_for false
    kill -KILL "$pid" 2>/dev/null
    wait "$pid"
    status=$?
}
stop() {
    kill -TERM "$pid"
    ended
}
succeeds generate sparse-classification many.svm --rows 5000
start many.svm --run run --out stopped.model --schedule constant --checkpoint-every 1000000000u
kill -USR1 $pid
holds "SIGUSR1 writes a checkpoint" wait_for some 'run/checkpoint-*.safetensors'
holds "SIGUSR1 does not end the program" kill -0 $pid
stop
refused 75 '--resume' 'train --run under SIGTERM'
holds "a run to be resumed has no model yet" test ! -e stopped.model
succeeds train many.svm --run run --resume --schedule constant --updates 1 --epochs 1000000000 --out resumed.model
holds "a resumed run ends with a model" test -s resumed.model
start many.svm --out stopped.model
stop
refused 1 "stopped\.model" 'train --out under SIGTERM'
holds "without a run directory the model so far is kept" test -s stopped.model
succeeds eval stopped.model many.svm
start data.svm
stop
refused 1 'stopped' 'train on little data under SIGTERM'
# Before there is anything to keep: one sentence, exit code 75, and no file that was not there before. Data that
# comes through a pipe is waited for, so that the program is reading when the signal comes.
succeeds train many.svm --epochs 1 --out whole.model
listens() { # the program runs (not the shell before it) and catches SIGTERM (bit 14), the last one it asks for
    local caught
    [ "$(readlink "/proc/$pid/exe")" = "$(readlink -f "$sounder")" ] || return 1
    caught=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$pid/status" 2>/dev/null)
    [ -n "$caught" ] && [ $((0x$caught >> 14 & 1)) = 1 ]
}
mkfifo slow nobody
# A pipe that nobody writes to yet: the program waits for its bytes, not for the writer, and listens meanwhile.
for command in 'train nobody' 'predict nobody many.svm' 'inspect nobody'; do
    # shellcheck disable=SC2086
    "$sounder" $command --quiet >out.txt 2>err.txt </dev/null &
    pid=$!
    wait_for listens
    stop
    refused 75 'stopped by a signal while reading; nothing was written' "$command under SIGTERM"
done
# Looking whether it is a model takes nothing from a pipe, and what is no model ends with a sentence.
run inspect <(cat many.svm) --format libsvm --json
holds "every row of a pipe is there" test "$(key rows <out.txt)" = 5000
head -c 100 many.svm >nobody &
run predict nobody many.svm
refused 5 'not a readable model' 'predict with data for a model, through a pipe'
touch before
exec 9<>slow
for signal in TERM INT; do
    for command in 'train - --format libsvm --out new.file --run new.run --cache . --memory 10K' 'eval whole.model -' \
        'predict whole.model - --out new.file' 'convert - new.sdc --format libsvm' 'inspect - --format libsvm' 'compare - --format libsvm --sync serial'; do
        head -c 20000 many.svm >&9
        # A shell's background job is deaf to SIGINT; this one is not.
        python3 -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$sounder" $command --quiet >out.txt 2>err.txt <slow &
        pid=$!
        wait_for listens
        kill -$signal $pid
        ended
        refused 75 'stopped by a signal while reading; nothing was written' "$command under SIG$signal"
    done
done
exec 9>&-
holds "what was stopped while reading leaves no files" test -z "$(find . -newer before ! -name slow ! -name out.txt ! -name err.txt ! -name .)"
# What a run prints and what its folder tells are the same figures under the same names.
succeeds train many.svm --epochs 3 --valid many.svm --run figures --json
mv out.txt printed.json
succeeds inspect figures --json
holds "inspect and the results agree" python3 -c '
import json
told, printed = json.load(open("out.txt")), json.load(open("printed.json"))
both = set(told) & set(printed) - {"seconds", "rows", "workers"}
assert {"train_loss", "train_accuracy", "objective", "valid_loss", "updates"} <= both, both
assert all(told[key] == printed[key] for key in both), {key: (told[key], printed[key]) for key in both}
assert told["running_loss"] != told["train_loss"]
'
finish
