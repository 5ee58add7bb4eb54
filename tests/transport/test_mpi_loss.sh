#!/bin/bash
# A worker's process is killed while it trains. Strategies that can do without it go on and reach their loss; bsp ends
# with exit code 6 and a checkpoint. In both cases the process is named, and nobody is left hanging. At the end deaths
# at other moments. ROUNDS=20 does it more often, scripts/soak_mpi at random moments.
. "$(dirname "$0")/job.sh"

"$SOUNDER" generate sparse-classification "$work/data.svm" --rows 3000 --features 400 --nnz 12 --seed 4 --quiet
serial=$("$SOUNDER" train "$work/data.svm" --batch 200 --epochs 20 --json --quiet | python3 -c 'import json,sys; print(json.load(sys.stdin)["train_loss"])')


kill_one() { # sync victim option...
    rm -rf "$work"/pid.* "$work"/code.* "$work/run"
    timeout 600 mpirun -x work -enable-recovery --mca pml ob1 --mca btl tcp,self --oversubscribe --bind-to none -n 4 \
        "$work/member" "$SOUNDER" train "$work/data.svm" --transport mpi:silence=5 --sync "$1" --batch 200 --epochs 20 \
        --delay exp:mean=0.03 --run "$work/run" --json "${@:3}" >"$work/out" 2>"$work/err" &
    local job=$!
    for _ in $(seq 6000); do
        [ -s "$work/pid.$2" ] && [ -s "$work/run/metrics.jsonl" ] && break
        sleep 0.05
    done
    kill -9 "$(cat "$work/pid.$2")"
    wait $job || complain "$1: the job did not end ($?)"
    grep -Eq "process $2 was (silent|lost)" "$work/err" || complain "$1: process $2 is not named: $(tail -n 3 "$work/err")"
}

goes_on() {
    kill_one "$1" "$2"
    for p in 0 1 2 3; do
        [ $p = "$2" ] || [ "$(cat "$work/code.$p" 2>/dev/null)" = 0 ] || complain "$1: process $p ended with $(cat "$work/code.$p")"
    done
    python3 - "$work/out" "$serial" "$1" <<'X' || complain "$1: does not reach its loss"
import json, sys
seen = json.load(open(sys.argv[1]))
print("%s: loss %.4f (serial %s), %d updates, gradients %s" % (
    sys.argv[3], seen["train_loss"], sys.argv[2], seen["updates"], [w["gradients"] for w in seen["workers_detail"]]))
sys.exit(not (seen["train_loss"] < 1.15 * float(sys.argv[2]) and seen["epochs"] == 20))
X
}

ends() {
    kill_one "$@"
    for p in 0 1 2 3; do
        [ $p = "$2" ] || [ "$(cat "$work/code.$p" 2>/dev/null)" = 6 ] || complain "$1: process $p ended with $(cat "$work/code.$p"), not 6"
    done
    ls "$work"/run/checkpoint-* >/dev/null 2>&1 || complain "$1: there is no checkpoint"
    grep -q "worker $2 was lost.*--resume" "$work/err" || complain "$1: says $(tail -n 3 "$work/err")"
    timeout 600 mpirun --oversubscribe --bind-to none -n 4 "$SOUNDER" train "$work/data.svm" --transport mpi:silence=5 --sync "$1" --batch 200 \
        --epochs 20 --delay exp:mean=0.03 --run "$work/run" --resume --json --quiet >"$work/out" 2>"$work/err" || complain "$1: does not go on: $(tail -n 2 "$work/err")"
    grep -q '"epochs":20' "$work/out" || complain "$1: did not go on to the end"
    echo "$1: ended with 6, and went on from its checkpoint"
}

for round in $(seq "${ROUNDS:-1}"); do
    goes_on async 2
    goes_on ssp:2 $((round % 3 + 1))
    goes_on k-sync:2 3
    goes_on allreduce $((round % 3 + 1))
    goes_on allreduce:overlap=yes $((round % 3 + 1))
    ends bsp 1
    ends allreduce:by=mpi 2
    ends average:every=2 1 --checkpoint-every 1u
done
# While data is read, in the last moments, while the model is written; process 0 and others.
"$SOUNDER_SOURCE/scripts/soak_mpi" --program "$SOUNDER" --seed 1 --parallel 3 \
    --cases async/read/2,bsp/read/0,async/end/3,k-sync:2/train/0,ssp:2/write/1 >"$work/soak" 2>&1 ||
    complain "a death at another moment: $(cat "$work/soak")"
cat "$work/soak"
[ $failed = 0 ] && echo "all $((4 * ${ROUNDS:-1})) went as they should"
exit $failed
