#!/bin/bash
# Peers in processes of their own: the bits of threads, and a death that every process is told of.
. "$(dirname "$0")/job.sh"
program=$(dirname "$SOUNDER")/sounder_test
value() { python3 -c 'import json,sys; print(json.load(open(sys.argv[1])).get(sys.argv[2]))' "$1" "$2"; }
"$program" generate sparse-classification "$work/data.svm" --rows 600 --features 30 --nnz 6 --seed 4 --quiet >/dev/null
ring="train $work/data.svm --sync ring-sum --batch 10 --epochs 2 --l2 1e-3 --json --quiet"

job() { local n=$1; shift; timeout 250 mpirun --oversubscribe --bind-to none -n "$n" "$program" "$@"; }
for n in 1 2 3 4 "2 --workers 5"; do
    set -- $n
    "$program" $ring --workers "${3:-$1}" >"$work/one.json" || complain "threads, $n"
    job "$1" $ring --transport mpi --workers "${3:-$1}" >"$work/many.json" || complain "$n processes"
    for what in model_hash updates train_loss; do
        [ "$(value "$work/many.json" $what)" = "$(value "$work/one.json" $what)" ] || complain "$n processes: another $what"
    done
    # Beyond the last update peers may have begun with the next one.
    python3 -c 'import sys; a, b = map(float, sys.argv[1:]); sys.exit(not abs(a - b) < 0.05 * b)' \
        "$(value "$work/many.json" bytes_sent)" "$(value "$work/one.json" bytes_sent)" || complain "$n processes: not all bytes are counted"
done

# Large messages stay in the sender's memory, or MPI copies them: the same bits.
for sync in allreduce:bucket=8K bsp average:every=3; do
    large="train $work/data.svm --model mlp:hidden=200-50 --sync $sync --batch 30 --epochs 2 --json --quiet"
    job 3 $large --transport mpi >"$work/stay.json" || complain "$sync"
    job 3 $large --transport mpi:share=no >"$work/copied.json" || complain "$sync, mpi:share=no"
    [ "$(value "$work/stay.json" model_hash)" = "$(value "$work/copied.json" model_hash)" ] || complain "$sync, mpi:share=no: another model"
    [ "$(value "$work/stay.json" bytes_sent)" -gt 1000000 ] || complain "$sync: no large messages"
done

# Sums by MPI itself: another order, the same numbers.
sums="train $work/data.svm --model mlp:hidden=50-20 --sync allreduce:bucket=2K,tree=0,check=5 --transport mpi --batch 30 --epochs 3 --json --quiet"
job 3 $sums >"$work/ring.json" || complain "allreduce"
job 3 ${sums/check=5/check=5,by=mpi} >"$work/mpi.json" || complain "allreduce:by=mpi"
python3 -c 'import sys; a, b = map(float, sys.argv[1:]); sys.exit(not abs(a - b) < 1e-4 * b)' \
    "$(value "$work/mpi.json" train_loss)" "$(value "$work/ring.json" train_loss)" || complain "allreduce:by=mpi: another loss"
timeout 100 mpirun --oversubscribe --bind-to none -n 2 "$program" compare "$work/data.svm" --sync allreduce:by=mpi --seeds 3 --epochs 2 --batch 30 \
    --transport mpi --quiet >/dev/null || complain "allreduce:by=mpi, three runs one after the other: $?"
job 2 train "$work/data.svm" --sync allreduce:by=mpi --transport mpi --workers 3 --quiet 2>"$work/err" && complain "by=mpi with two workers in a process"
grep -q "one worker in every process" "$work/err" || complain "by=mpi with two workers in a process: $(cat "$work/err")"

# One of three processes, with two of five nodes, kills itself.
dying="-enable-recovery --mca pml ob1 --mca btl tcp,self --oversubscribe --bind-to none"
timeout 250 mpirun $dying -n 3 "$(dirname "$SOUNDER")/test_links" deaths >"$work/out" 2>&1
[ "$(grep -c "was told of all deaths" "$work/out")" = 3 ] || complain "a death is not told to all: $(cat "$work/out")"

# A ring that is broken ends everywhere with exit code 6 and goes on from its checkpoint to the bits of an unbroken one.
ring="$ring --epochs 6"
"$program" $ring --workers 4 >"$work/one.json" || complain "threads, 6 epochs"
ring="$ring --delay exp:mean=0.03 --run $work/run"
timeout 600 mpirun -x work $dying -n 4 "$work/member" "$program" $ring --transport mpi:silence=3 >"$work/out" 2>"$work/err" &
job=$!
kill_in_training 2 "$work/run"
wait $job || complain "the job did not end ($?)"
grep -q "worker 2 was lost.*--resume" "$work/err" || complain "the lost worker is not named: $(tail -n 3 "$work/err")"
for p in 0 1 3; do
    [ "$(cat "$work/code.$p" 2>/dev/null)" = 6 ] || complain "process $p ended with $(cat "$work/code.$p"), not 6"
done
job 4 $ring --transport mpi:silence=3 --resume >"$work/many.json" || complain "does not go on: $(tail -n 2 "$work/err")"
[ "$(value "$work/many.json" model_hash)" = "$(value "$work/one.json" model_hash)" ] || complain "resumed to other bits"
exit $failed
