#!/bin/bash
# Processes read what they work on: of a cache file the first process reads everything, the others the rows of their
# batches, which they check; and where text is kept in a cache, one process parses it.
. "$(dirname "$0")/job.sh"

# one DATA0 DATA1 options …: process 0 reads DATA0, process 1 DATA1; $only0 and $only1 are options of one of them
one() {
    local first=$1 second=$2
    shift 2
    timeout 250 mpirun --oversubscribe --bind-to none -n 1 "$SOUNDER" train "$first" --transport mpi "$@" ${only0:-} \
        : -n 1 "$SOUNDER" train "$second" --transport mpi "$@" ${only1:-} >"$work/out" 2>"$work/err"
}

"$SOUNDER" generate sparse-classification "$work/large.svm" --rows 150000 --features 30000 --nnz 80 --seed 4 --quiet >/dev/null
"$SOUNDER" convert "$work/large.svm" "$work/large.sdc" --quiet || complain "convert"
head -n 4000 "$work/large.svm" >"$work/data.svm"
"$SOUNDER" convert "$work/data.svm" "$work/data.sdc" --quiet || complain "convert"
# Pages of a mapped file that a process has read are in its memory: how much more it needs for a large file than for
# a small one is how much of the file it has read, whatever the file system keeps.
cat >"$work/measured" <<'PYTHON'
import os, sys
child = os.spawnv(os.P_NOWAIT, sys.argv[2], sys.argv[2:])
_, status, usage = os.wait4(child, 0)
with open(sys.argv[1], "w") as file:
    file.write(str(usage.ru_maxrss))
sys.exit(os.waitstatus_to_exitcode(status))
PYTHON
for name in data large; do
    cp "$work/$name.sdc" "$work/other.sdc"
    train="--transport mpi --sync async --batch 16 --updates 100 --quiet"
    timeout 250 mpirun --oversubscribe --bind-to none \
        -n 1 python3 "$work/measured" "$work/$name.first" "$SOUNDER" train "$work/$name.sdc" $train \
        : -n 1 python3 "$work/measured" "$work/$name.second" "$SOUNDER" train "$work/other.sdc" $train >"$work/out" 2>"$work/err" ||
        complain "$name: $(cat "$work/err")"
done
share() { # PROCESS: the percentage of the large file that it has read
    echo $((100 * ($(cat "$work/large.$1") - $(cat "$work/data.$1")) * 1024 / $(stat -c %s "$work/large.sdc")))
}
echo "the first process has read $(share first) % of its file, the second $(share second) %"
[ "$(share first)" -ge 90 ] || complain "the first process has not read its file: nothing can be told"
[ "$(share second)" -le 40 ] || complain "the second process has read more than its part"

# The same results from text, from a cache file, and from a cache that the first process makes while the other waits.
hash() { python3 -c 'import json,sys; print(json.load(sys.stdin)["model_hash"])' <"$work/out"; }
bits="--sync bsp --deterministic --batch 200 --epochs 2 --quiet --json"
for model in logistic kmeans:5 squared-hinge; do
    "$SOUNDER" train "$work/data.svm" --model $model $bits --workers 1 >"$work/out" || complain "$model"
    wanted=$(hash)
    for try in "data.svm" "data.sdc" "data.svm --cache $work/cache-$model" "data.svm --cache $work/cache-$model"; do
        set -- $try
        name=$1
        shift
        one "$work/$name" "$work/$name" --model $model $bits "$@" || complain "$model $try: $(cat "$work/err")"
        [ "$(hash)" = "$wanted" ] || complain "$model, $try: other bits"
    done
    [ "$(ls "$work/cache-$model" | wc -l)" = 1 ] || complain "not one cache file: $(ls "$work/cache-$model")"
done
one "$work/data.svm" "$work/data.svm" --cache "$work/nowhere/at/all" --sync async --epochs 1 --quiet --json ||
    complain "a new cache folder: $(cat "$work/err")"

# Folders of their own for the cache, or none: nobody waits for what will not come.
"$SOUNDER" train "$work/data.svm" $bits --workers 1 >"$work/out" || complain "threads"
wanted=$(hash)
for who in 0 1 01 01; do
    only0= only1=
    case $who in 0*) only0="--cache $work/cache0-$who" ;; esac
    case $who in *1) only1="--cache $work/cache1-$who" ;; esac
    one "$work/data.svm" "$work/data.svm" $bits --servers 3 || complain "[$only0] [$only1]: $(cat "$work/err")"
    [ "$(hash)" = "$wanted" ] || complain "[$only0] [$only1]: other bits"
done
only0= only1=

# Data that differs in one value, between those that the short key looks at.
sed '2000s/:[0-9.e-]* *$/:0.123/' "$work/data.svm" >"$work/else.svm"
cmp -s "$work/data.svm" "$work/else.svm" && complain "the same data"
one "$work/data.svm" "$work/else.svm" --sync async --epochs 1 && complain "a changed value was trained on"
grep -q "process 1 has different data than process 0" "$work/err" || complain "a changed value: $(cat "$work/err")"

# A copy of the file that has gone bad where its header does not tell: the row is named when it is worked on.
cat >"$work/spoil" <<'PYTHON'
import struct, sys
with open(sys.argv[1], "r+b") as file:
    head = file.read(4096)
    # sections of 48 bytes behind magic, version, width, 6 counts and the key: the third is the values
    at = 8 + 4 + 4 + 8 * 6 + 64 + 48 * 2
    offset, size = struct.unpack_from("<QQ", head, at)
    count = size // 4  # 64 of them are compared at the start: those stay
    file.seek(offset + (count // 63 * 20 + count // 630) * 4)
    file.write(b"\xff" * (count // 63 * 4 // 5 * 4))
PYTHON
cp "$work/data.sdc" "$work/bad.sdc"
python3 "$work/spoil" "$work/bad.sdc"
one "$work/data.sdc" "$work/bad.sdc" --sync async --batch 100 --epochs 2 && complain "a damaged row was trained on"
grep -q "bad.sdc: the cache file is damaged (row [0-9]*)" "$work/err" || complain "damaged: $(cat "$work/err")"
one "$work/bad.sdc" "$work/bad.sdc" --sync async --epochs 1 && complain "a damaged file was trained on"
grep -q "damaged (value)" "$work/err" || complain "damaged in the first process: $(cat "$work/err")"
one "$work/data.sdc" "$work/large.sdc" --sync async --epochs 1 && complain "two data sets in one job"
grep -q "process 1 has different data than process 0" "$work/err" || complain "two data sets: $(cat "$work/err")"
cached=$(ls "$work"/cache1-01/*.sdc)
python3 "$work/spoil" "$cached"
only0="--cache $work/cache0-01" only1="--cache $work/cache1-01"
one "$work/data.svm" "$work/data.svm" $bits --batch 100 && complain "a damaged cache was trained on"
grep -q "$cached: the cache file is damaged (row [0-9]*): it was removed" "$work/err" || complain "damaged cache: $(cat "$work/err")"
one "$work/data.svm" "$work/data.svm" $bits || complain "the cache is not made anew: $(cat "$work/err")"
[ -e "$cached" ] || complain "no cache again"
exit $failed
