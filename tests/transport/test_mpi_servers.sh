#!/bin/bash
# Servers in several processes. Wherever they live, the run is the same to the bit: losses, curves, early stopping, the
# model file, a run that was interrupted and resumed. A process holds its share of the parameters and their state. A
# server that dies ends the run, which goes on from its checkpoint.
. "$(dirname "$0")/job.sh"

"$SOUNDER" generate sparse-classification "$work/words.svm" --rows 1500 --features 1000 --nnz 15 --seed 4 --quiet
"$SOUNDER" generate sparse-classification "$work/other.svm" --rows 300 --features 1000 --nnz 15 --seed 5 --quiet
python3 -c 'import random; random.seed(4); [print(1, "%d:1 %d:1" % tuple(sorted(random.sample(range(1, 200), 2)))) for _ in range(900)]' >"$work/edges.svm"
"$SOUNDER" generate dense-classification "$work/dense.csv" --rows 600 --features 12 --classes 3 --seed 4 --quiet
"$SOUNDER" generate ratings "$work/stars.triples" --rows 3000 --features 600 --seed 4 --quiet
"$SOUNDER" generate clusters "$work/points.csv" --rows 700 --features 6 --classes 4 --seed 4 --quiet
# Rows of random features, enough of them that workers hold what their batch touches alone; then 40 million values.
python3 - "$work" <<'X'
import random, sys
random.seed(4)
for name, rows, features, classes in (("wide", 2000, 30000, 40), ("huge", 5000, 400000, 100), ("tiny", 5000, 400, 100)):
    with open("%s/%s.svm" % (sys.argv[1], name), "w") as file:
        for i in range(rows):
            index = sorted(random.sample(range(1, features), 19)) + [features]
            file.write("%d %s\n" % (i % classes, " ".join("%d:%.3f" % (j, random.random() + 0.1) for j in index)))
X

job() { # PROCESSES options …
    local processes=$1
    shift
    timeout 250 mpirun --oversubscribe --bind-to none -n "$processes" "$SOUNDER" train "$@" --transport mpi \
        --json --quiet >"$work/out" 2>"$work/err"
}
result() { python3 -c '
import json, sys
seen = json.load(open(sys.argv[1]))
print([seen.get(key) for key in ("model_hash", "train_loss", "valid_loss", "epochs", "updates", "weights_nonzero")])' "$1"; }

# ---- the same bits ----
same() { # options …: on threads, and in jobs that place the servers differently
    "$SOUNDER" train "$@" --workers 4 --servers 5 --json --quiet --out "$work/threads.model" >"$work/threads" 2>"$work/err" ||
        { complain "threads, $*: $(cat "$work/err")"; return; }
    for place in "4 --servers 4" "2 --servers 5" "3 --servers 2 --dedicated-servers" "2 --servers 3 --dedicated-servers"; do
        # shellcheck disable=SC2086
        job ${place%% *} "$@" ${place#* } --workers 4 --out "$work/job.model" || complain "$place, $*: $(cat "$work/err")"
        [ "$(result "$work/out")" = "$(result "$work/threads")" ] ||
            complain "$place, $*: $(result "$work/out"), threads $(result "$work/threads")"
        cmp -s "$work/job.model" "$work/threads.model" || complain "$place, $*: another model file"
    done
}
same "$work/words.svm" --sync bsp --batch 32 --epochs 3 --valid-fraction 0.2 --l2 1e-4 --evaluate-every 7
same "$work/words.svm" --sync bsp --batch 32 --epochs 9 --valid-fraction 0.2 --early-stop 1 --optimizer nesterov
same "$work/words.svm" --sync bsp --batch 32 --epochs 3 --optimizer adam --l1 1e-4 --target 0.3
same "$work/dense.csv" --label label --sync bsp --batch 32 --epochs 3 --valid-fraction 0.2
same "$work/stars.triples" --sync bsp --batch 64 --epochs 3 --deterministic --valid-fraction 0.1
same "$work/points.csv" --label label --model kmeans:4 --sync bsp --batch 64 --epochs 3
same "$work/words.svm" --sync bsp --batch 32 --epochs 2 --valid "$work/other.svm"
same "$work/edges.svm" --model graph-cut --sync bsp --batch 32 --epochs 2
same "$work/wide.svm" --sync bsp --batch 64 --epochs 2 --l2 1e-5 --valid-fraction 0.2

# ---- strategies whose order of updates is not fixed ----
serial=$("$SOUNDER" train "$work/words.svm" --batch 32 --epochs 5 --json --quiet | python3 -c 'import json,sys; print(json.load(sys.stdin)["train_loss"])')
for sync in async k-async:2 k-batch-sync:2 backup:2 ssp:2; do
    job 3 "$work/words.svm" --sync $sync --servers 3 --batch 32 --epochs 5 || { complain "$sync: $(cat "$work/err")"; continue; }
    python3 - "$work/out" "$serial" $sync <<'X' || complain "$sync does not learn"
import json, sys
seen, serial = json.load(open(sys.argv[1])), float(sys.argv[2])
print("%s, 3 servers in 3 processes: loss %.4f (serial %.4f)" % (sys.argv[3], seen["train_loss"], serial))
sys.exit(not (seen["epochs"] == 5 and seen["train_loss"] < 1.3 * serial))
X
done
job 3 "$work/words.svm" --sync async --servers 3 --batch 32 --epochs 5 --optimizer sgd --lr 1e6 --restarts 9 --schedule constant
case $? in 0 | 4) ;; *) complain "restarts: $(cat "$work/err")" ;; esac

# ---- interrupted and resumed ----
train="$work/words.svm --sync bsp --batch 32 --workers 4 --servers 3 --l2 1e-4 --valid-fraction 0.2 --early-stop 50 --schedule constant"
# shellcheck disable=SC2086
job 3 $train --epochs 6 || complain "unbroken: $(cat "$work/err")"
unbroken=$(result "$work/out")
# shellcheck disable=SC2086
job 3 $train --epochs 6 --updates 20 --run "$work/run" || complain "first part: $(cat "$work/err")"
# shellcheck disable=SC2086
job 2 $train --epochs 6 --run "$work/run" --resume || complain "resumed: $(cat "$work/err")"
[ "$(result "$work/out")" = "$unbroken" ] || complain "resumed: $(result "$work/out"), unbroken $unbroken"
# shellcheck disable=SC2086
job 3 $train --epochs 6 --run "$work/run" --resume || complain "resumed when it was over: $(cat "$work/err")"
[ "$(result "$work/out")" = "$unbroken" ] || complain "resumed when it was over: $(result "$work/out"), unbroken $unbroken"

# ---- a server dies ----
rm -rf "$work/run"
# shellcheck disable=SC2086
timeout 250 mpirun -x work -enable-recovery --mca pml ob1 --mca btl tcp,self --oversubscribe --bind-to none -n 3 \
    "$work/member" "$SOUNDER" train $train --epochs 60 --transport mpi:silence=5 --delay exp:mean=0.02 --checkpoint-every 5u \
    --run "$work/run" --json >"$work/out" 2>"$work/err" &
running=$!
for _ in $(seq 4000); do
    ls "$work"/run/checkpoint-*.safetensors >/dev/null 2>&1 && [ -s "$work/pid.2" ] && break
    sleep 0.05
done
kill -9 "$(cat "$work/pid.2")"
wait $running || complain "the job of a dead server did not end ($?)"
for p in 0 1; do
    [ "$(cat "$work/code.$p" 2>/dev/null)" = 6 ] || complain "process $p ended with $(cat "$work/code.$p" 2>/dev/null), not 6"
done
grep -q "server 2 was lost with its part of the parameters: process 2 was silent.*--resume" "$work/err" ||
    complain "a dead server: $(tail -n 3 "$work/err")"
# shellcheck disable=SC2086
job 3 $train --epochs 6 --delay exp:mean=0.02 --run "$work/run" --resume || complain "after the death: $(cat "$work/err")"
[ "$(result "$work/out")" = "$unbroken" ] || complain "after the death: $(result "$work/out"), unbroken $unbroken"

# While checkpoints are written after every update, and while points of the curve are evaluated: the loss is not forgotten.
for more in "--run $work/often --checkpoint-every 1u" "--evaluate-every 1"; do
    rm -rf "$work"/pid.* "$work"/code.* "$work/often"
    # shellcheck disable=SC2086
    timeout 250 mpirun -x work -enable-recovery --mca pml ob1 --mca btl tcp,self --oversubscribe --bind-to none -n 3 \
        "$work/member" "$SOUNDER" train "$work/words.svm" --sync async --batch 8 --servers 2 --epochs 1000 --l2 1e-4 \
        --transport mpi:silence=3 $more >"$work/out" 2>"$work/err" &
    running=$!
    for _ in $(seq 4000); do
        [ -s "$work/pid.1" ] && grep -q "epoch 1/" "$work/err" && break
        sleep 0.05
    done
    kill -9 "$(cat "$work/pid.1")"
    wait $running || complain "$more: the job of a dead server did not end ($?)"
    [ "$(cat "$work/code.0" 2>/dev/null)" = 6 ] || complain "$more: process 0 ended with $(cat "$work/code.0" 2>/dev/null), not 6"
    grep -q "server 1 was lost" "$work/err" || complain "$more: $(tail -n 3 "$work/err")"
done

# ---- memory ----
cat >"$work/measured" <<'X'
import os, sys
child = os.spawnv(os.P_NOWAIT, sys.argv[2], sys.argv[2:])
_, status, usage = os.wait4(child, 0)
with open(sys.argv[1] + os.environ.get("OMPI_COMM_WORLD_RANK", ""), "w") as file:
    file.write(str(usage.ru_maxrss // 1024))
sys.exit(os.waitstatus_to_exitcode(status))
X
bits="--model softmax --sync bsp --batch 512 --epochs 1 --deterministic --workers 4 --servers 4 --json --quiet"
for name in tiny huge; do
    # shellcheck disable=SC2086
    python3 "$work/measured" "$work/$name.whole" "$SOUNDER" train "$work/$name.svm" $bits --out "$work/threads.model" >"$work/threads" ||
        complain "$name on threads"
    # shellcheck disable=SC2086
    timeout 250 mpirun --oversubscribe --bind-to none -n 4 python3 "$work/measured" "$work/$name.part" "$SOUNDER" train \
        "$work/$name.svm" $bits --transport mpi --out "$work/job.model" >"$work/out" 2>"$work/err" || complain "$name: $(cat "$work/err")"
    [ "$(result "$work/out")" = "$(result "$work/threads")" ] || complain "$name: other bits than on threads"
    cmp -s "$work/job.model" "$work/threads.model" || complain "$name: another model file"
done
whole=$(($(cat "$work/huge.whole") - $(cat "$work/tiny.whole")))
echo "40 million parameters take $whole MB on threads"
[ $whole -gt 400 ] || complain "$whole MB: nothing can be told"
for p in 0 1 2 3; do
    part=$(($(cat "$work/huge.part$p") - $(cat "$work/tiny.part$p")))
    echo "process $p of 4 holds $part MB of them: $((100 * part / whole)) %"
    [ $((100 * part)) -le $((35 * whole)) ] || complain "process $p holds more than 35 % of the parameters and their state"
done

# ---- refused ----
"$SOUNDER" train "$work/words.svm" --sync bsp --servers 2 --dedicated-servers >"$work/out" 2>"$work/err" && complain "dedicated servers in one process"
grep -q -- "--dedicated-servers needs two processes" "$work/err" || complain "dedicated: $(cat "$work/err")"
[ $failed = 0 ] && echo "servers are where they were put"
exit $failed
