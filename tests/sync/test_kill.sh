#!/bin/bash
# Laws of interruption: killed, stopped or out of space, a run leaves whole files and goes on to the same bits.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"
: "${SOUNDER_SOURCE:?SOUNDER_SOURCE must be the folder of the sources}"

# kill −9, at random and within checkpoints; make soak does it more often.
holds "killed runs resume to the same bits" python3 -B "$SOUNDER_SOURCE/scripts/soak" 8 --program "$sounder" \
    --seconds 60
# Disks that fill up at a random byte, likewise.
holds "no model is lost on a disk that fills up" python3 -B "$SOUNDER_SOURCE/scripts/soak_disk" 6 --program "$sounder"

succeeds generate sparse-classification data.svm --rows 20000 --features 3000 --nnz 20
hash_of() { key model_hash <out.txt; }
# The run these laws are about. Without --updates it does not end: whenever a signal comes, it comes in the middle.
# A shell's background job is deaf to SIGINT; this one is not.
endless=(python3 -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$sounder" train data.svm --sync serial --optimizer adagrad --schedule constant --threads 1
    --epochs 1000000000 --json)
# start OPTIONS...: in the background. It listens to signals once it reports an epoch.
start() {
    : >err.txt # which has the reports of the run before
    "${endless[@]}" "$@" >out.txt 2>err.txt </dev/null &
    pid=$!
    wait_for grep -q '^epoch' err.txt
}
stop() { # stop SIGNAL: and wait until it has ended
    kill -"$1" $pid
    wait $pid
    status=$?
    refused 75 'go on with --resume' "train under SIG$1"
}
# goes_on FOLDER: resumed for 30000 updates more, the stopped run arrives at the model of one that nobody stopped.
goes_on() {
    local newest updates hash
    newest=$(compgen -G "$1/checkpoint-*.safetensors" | sort | tail -n 1 | grep -o '[0-9]*\.safe' | tr -d .a-z)
    updates=$((10#$newest + 30000))
    "${endless[@]}" --run "$1" --resume --updates $updates >out.txt 2>err.txt </dev/null
    status=$?
    holds "a stopped run can be resumed" test $status = 0
    hash=$(hash_of)
    "${endless[@]}" --run "$1" --resume --updates $updates >out.txt 2>err.txt </dev/null
    holds "resuming a finished run changes nothing" test "$(hash_of)" = "$hash"
    holds "status.json says that it is done" grep -q '"state":"done"' "$1/status.json"
    "${endless[@]}" --updates $updates >out.txt 2>err.txt </dev/null
    holds "a stopped run resumes to the same bits" test "$(hash_of)" = "$hash"
}

# SIGTERM and SIGINT: a checkpoint, exit code 75, the same bits after --resume; again and again.
resume=
for signal in TERM INT TERM; do
    start --run stopped --checkpoint-every 100000u $resume
    stop $signal
    holds "a checkpoint is there" some 'stopped/checkpoint-*.safetensors'
    resume=--resume
done
goes_on stopped

# SIGUSR1: a checkpoint, and on it goes.
start --run asked --checkpoint-every 1000000000u
holds "no checkpoint unless asked" test -z "$(compgen -G 'asked/checkpoint-*')"
kill -USR1 $pid
holds "SIGUSR1 writes a checkpoint" wait_for some 'asked/checkpoint-*.safetensors'
holds "SIGUSR1 does not stop the run" kill -0 $pid
stop TERM
goes_on asked

# inspect tells a run that trains from one that was killed and could not say so.
state() { "$sounder" inspect "$1" --json | key state; }
start --run shot
wait_for grep -qs training shot/status.json
holds "a run that trains is training" test "$(state shot)" = training
holds "its first status counts seconds from its start" test "$("$sounder" inspect shot --json | key seconds | cut -d. -f1)" -lt 60
kill -KILL $pid
wait $pid 2>/dev/null
holds "a run that was killed is not" test "$(state shot)" = interrupted

# A new run in the folder of an old one: its checkpoints are the ones that count.
succeeds train data.svm --optimizer sgd --epochs 3 --run again --quiet
for path in again/checkpoint-*.safetensors; do # as if it had gone on for longer than the new one will
    mv "$path" "again/checkpoint-00009${path#again/checkpoint-?????}"
done
"$sounder" train data.svm --optimizer adagrad --epochs 2 --run again >out.txt 2>err.txt </dev/null
status=$?
refused 2 'again' 'train in the folder of an old run'

# Checkpoints by updates come at multiples of their number, also in a run that was resumed.
steps() { succeeds train data.svm --sync serial --schedule constant --checkpoint-every 10u --run steps --quiet "$@"; }
steps --updates 25
steps --updates 167 --resume
holds "checkpoints come at multiples after a resume" test -e steps/checkpoint-00000000000000000160.safetensors
holds "and at the end" test -e steps/checkpoint-00000000000000000167.safetensors

# A damaged newest checkpoint: the one before it is taken.
damaged=(--run damaged --checkpoint-every 25000u --updates 120000)
"${endless[@]}" "${damaged[@]}" >out.txt 2>err.txt </dev/null
unbroken=$(hash_of)
newest=$(printf '%s\n' damaged/checkpoint-*.safetensors | tail -n 1)
head -c 1000 "$newest" >cut
mv cut "$newest"
"${endless[@]}" "${damaged[@]}" --resume >out.txt 2>err.txt </dev/null
status=$?
holds "a damaged checkpoint is passed over" test $status = 0
holds "and the one before it leads to the same bits" test "$(hash_of)" = "$unbroken"

# No space left: one sentence, the old file intact, nothing beside it.
small=$work/small
mkdir "$small"
if [ "$(id -u)" = 0 ] && mount -t tmpfs -o size=96k,nr_inodes=64 tmpfs "$small" 2>/dev/null; then
    trap 'umount "$small"; rm -rf "$work"' EXIT
    limited() { "$sounder" "$@" >out.txt 2>err.txt </dev/null; }
else
    # A limit on the size of files; ignored signals stay ignored, so that write(2) fails as on a full disk.
    limited() { (trap '' XFSZ; ulimit -f 4; exec "$sounder" "$@") >out.txt 2>err.txt </dev/null; }
fi
full() { # full NAME ARGUMENTS...: there is no room for what this writes to $small/NAME
    local name=$1
    shift
    limited "$@"
    status=$?
    refused 1 'No space left|too large' "$*"
    holds "no temporary file is left by $1 on a full disk" test -z "$(find "$small" -name '*.tmp-*')"
}
echo old >"$small/model"
succeeds generate dense-classification wide.csv --rows 300 --features 3000
full model train wide.csv --model softmax --epochs 1 --quiet --threads 1 --out "$small/model"
holds "the old model is intact" test "$(cat "$small/model")" = old
rm "$small/model"
full run train wide.csv --epochs 3 --checkpoint-every 1u --quiet --threads 1 --optimizer adam --run "$small/run"
holds "no checkpoint is cut off" python3 - "$small" <<'END'
import glob, struct, sys
for path in glob.glob(sys.argv[1] + "/run/checkpoint-*"):
    content = open(path, "rb").read()
    assert len(content) > 8 + struct.unpack("<Q", content[:8])[0]
END
rm -rf "$small/run"
echo old >"$small/data.sdc"
full data.sdc convert wide.csv "$small/data.sdc"
holds "the old cache is intact" test "$(cat "$small/data.sdc")" = old
rm "$small/data.sdc"
full data.svm generate sparse-classification "$small/data.svm" --rows 20000
holds "no data file is cut off" test ! -e "$small/data.svm"
succeeds train data.svm --epochs 1 --quiet --out good.model
full predictions predict good.model data.svm --proba --out "$small/predictions"
holds "no predictions are cut off" test ! -e "$small/predictions"
# A cache folder is a convenience: a full one may cost time, not the run.
limited train wide.csv --epochs 1 --quiet --threads 1 --cache "$small/cache"
status=$?
holds "a cache that cannot be written does not stop the run, or says so in one line" \
    test $status = 0 -o "$(grep -c '^sounder: ' err.txt)" = 1
holds "no cache is cut off" test -z "$(find "$small" -name '*.tmp-*' -o -name '*.sdc')"
finish
