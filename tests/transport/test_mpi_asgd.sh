#!/bin/bash
# ASGD between processes: the special cases that have the bits of threads, states that are really exchanged, and a process that is
# killed, which changes nothing for the others.
. "$(dirname "$0")/job.sh"
value() { python3 -c 'import json,sys; print(json.loads(open(sys.argv[1]).read().strip().splitlines()[-1]).get(sys.argv[2]))' "$1" "$2"; }
holds() { python3 -c 'import sys; sys.exit(not eval(sys.argv[1]))' "$1"; }
"$SOUNDER" generate clusters "$work/points.csv" --rows 20000 --features 10 --classes 10 --seed 5 --quiet >/dev/null
points="train $work/points.csv --label label --model kmeans:10 --batch 50 --epochs 3 --seed 1 --json --quiet"
job() { local n=$1; shift; timeout 250 mpirun --oversubscribe --bind-to none -n "$n" "$SOUNDER" "$@"; }
"$SOUNDER" $points --sync serial >"$work/one.json" || complain "one worker"
for n in 2 3 "2 --workers 5"; do
    set -- $n
    "$SOUNDER" $points --sync average --workers "${3:-$1}" >"$work/mean.json" || complain "average, $n"
    for share in yes no; do
        job "$1" $points --sync asgd:window=closed,final=average,every=3 --transport mpi:share=$share --workers "${3:-$1}" >"$work/many.json" ||
            complain "$n processes, share=$share"
        [ "$(value "$work/many.json" model_hash)" = "$(value "$work/mean.json" model_hash)" ] || complain "$n processes, share=$share: not the mean"
        # Batches of a millisecond at least: a process that shares its core with others would be done before it hears of them.
        job "$1" $points --sync asgd:every=3 --delay const:0.001 --transport mpi:share=$share --workers "${3:-$1}" >"$work/many.json" ||
            complain "$n, share=$share"
        sent=$(value "$work/many.json" states_sent) taken=$(value "$work/many.json" states_accepted)
        holds "$sent >= 10 and 0 < $taken <= $sent" || complain "$n processes, share=$share: $sent states sent, $taken accepted"
        holds "$(value "$work/many.json" train_loss) < 1.05 * $(value "$work/one.json" train_loss)" || complain "$n processes, share=$share: a poor model"
    done
done

# One of four is killed.
rm -f "$work"/pid.* "$work"/code.*
timeout 250 mpirun -x work -enable-recovery --mca pml ob1 --mca btl tcp,self --oversubscribe --bind-to none -n 4 "$work/member" "$SOUNDER" $points \
    --epochs 40 --delay exp:mean=0.001 --sync asgd:every=3 --transport mpi:silence=2 --run "$work/run" >"$work/many.json" 2>"$work/err" &
job=$!
kill_in_training 2 "$work/run"
wait $job || complain "the job did not end ($?)"
for p in 0 1 3; do
    [ "$(cat "$work/code.$p" 2>/dev/null)" = 0 ] || complain "process $p ended with $(cat "$work/code.$p"), not 0: $(tail -n 3 "$work/err")"
done
holds "$(value "$work/many.json" workers_lost) == 1 and $(value "$work/many.json" epochs) == 40" || complain "not all epochs: $(tail -n 2 "$work/many.json")"
holds "$(value "$work/many.json" train_loss) < 1.05 * $(value "$work/one.json" train_loss)" || complain "a poor model after a death"
exit $failed
