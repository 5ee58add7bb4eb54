#!/bin/bash
# A worker's process is killed while it trains. Strategies that can do without it go on and reach their loss; bsp ends
# with exit code 6 and a checkpoint. In both cases the process is named, and nobody is left hanging.
# ROUNDS=20 does it more often.
set -u
command -v mpirun >/dev/null || { echo "skipped: there is no mpirun"; exit 77; }
[ -e "$(dirname "$SOUNDER")/sounder-mpi.so" ] || { echo "skipped: built without MPI"; exit 77; }
[ -z "${SOUNDER_SANITIZE:-}" ] || { echo "skipped: MPI is not made for sanitizers"; exit 77; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
WORK=$(mktemp -d)
export WORK
trap 'rm -rf "$WORK"' EXIT
failed=0
complain() { echo "FAILED: $*"; failed=1; }

"$SOUNDER" generate sparse-classification "$WORK/data.svm" --rows 3000 --features 400 --nnz 12 --seed 4 --quiet
serial=$("$SOUNDER" train "$WORK/data.svm" --epochs 10 --json --quiet | python3 -c 'import json,sys; print(json.load(sys.stdin)["train_loss"])')

# Writes down the id of the process and how it ended: mpirun forgets both when processes may die.
cat >"$WORK/member" <<'X'
#!/bin/bash
"$@" &
echo $! >"$WORK/pid.$OMPI_COMM_WORLD_RANK"
wait $!
echo $? >"$WORK/code.$OMPI_COMM_WORLD_RANK"
X
chmod +x "$WORK/member"

kill_one() { # sync victim
    rm -rf "$WORK"/pid.* "$WORK"/code.* "$WORK/run"
    timeout 60 mpirun -x WORK -enable-recovery --mca pml ob1 --mca btl tcp,self --oversubscribe --bind-to none -n 4 \
        "$WORK/member" "$SOUNDER" train "$WORK/data.svm" --transport mpi:silence=1 --sync "$1" --batch 16 --epochs 10 \
        --delay exp:mean=0.002 --run "$WORK/run" --json >"$WORK/out" 2>"$WORK/err" &
    local job=$!
    for _ in $(seq 200); do
        [ -s "$WORK/pid.$2" ] && [ -s "$WORK/run/metrics.jsonl" ] && break
        sleep 0.05
    done
    kill -9 "$(cat "$WORK/pid.$2")"
    wait $job || complain "$1: the job did not end ($?)"
    grep -q "worker $2 is gone: process $2 was silent" "$WORK/err" || complain "$1: process $2 is not named: $(tail -n 3 "$WORK/err")"
}

goes_on() {
    kill_one "$1" "$2"
    for p in 0 1 2 3; do
        [ $p = "$2" ] || [ "$(cat "$WORK/code.$p" 2>/dev/null)" = 0 ] || complain "$1: process $p ended with $(cat "$WORK/code.$p")"
    done
    python3 - "$WORK/out" "$serial" "$1" <<'X' || complain "$1: does not reach its loss"
import json, sys
seen = json.load(open(sys.argv[1]))
print("%s: loss %.4f (serial %s), %d updates, gradients %s" % (
    sys.argv[3], seen["train_loss"], sys.argv[2], seen["updates"], [w["gradients"] for w in seen["workers_detail"]]))
sys.exit(not (seen["train_loss"] < 1.15 * float(sys.argv[2]) and seen["epochs"] == 10))
X
}

ends() {
    kill_one "$1" "$2"
    for p in 0 1 2 3; do
        [ $p = "$2" ] || [ "$(cat "$WORK/code.$p" 2>/dev/null)" = 6 ] || complain "$1: process $p ended with $(cat "$WORK/code.$p"), not 6"
    done
    ls "$WORK"/run/checkpoint-* >/dev/null 2>&1 || complain "$1: there is no checkpoint"
    grep -q "worker $2 was lost.*--resume" "$WORK/err" || complain "$1: says $(tail -n 3 "$WORK/err")"
    timeout 60 mpirun --oversubscribe --bind-to none -n 4 "$SOUNDER" train "$WORK/data.svm" --transport mpi:silence=1 --sync "$1" --batch 16 \
        --epochs 10 --delay exp:mean=0.002 --run "$WORK/run" --resume --json --quiet >"$WORK/out" 2>"$WORK/err" || complain "$1: does not go on: $(tail -n 2 "$WORK/err")"
    grep -q '"epochs":10' "$WORK/out" || complain "$1: did not go on to the end"
    echo "$1: ended with 6, and went on from its checkpoint"
}

for round in $(seq "${ROUNDS:-1}"); do
    goes_on async 2
    goes_on ssp:2 $((round % 3 + 1))
    goes_on k-sync:2 3
    ends bsp 1
done
[ $failed = 0 ] && echo "all $((4 * ${ROUNDS:-1})) went as they should"
exit $failed
