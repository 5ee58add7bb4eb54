#!/bin/bash
# Real processes: the same bits as threads, every strategy learns, and a job that cannot start ends.
. "$(dirname "$0")/job.sh"
job() { local n=$1; shift; timeout 250 mpirun --oversubscribe --bind-to none -n "$n" "$SOUNDER" "$@"; }
value() { python3 -c 'import json,sys; print(json.load(open(sys.argv[1])).get(sys.argv[2]))' "$1" "$2"; }

"$SOUNDER" generate sparse-classification "$work/data.svm" --rows 3000 --features 400 --nnz 12 --seed 4 --quiet
deterministic="train $work/data.svm --sync bsp --deterministic --batch 300 --epochs 2 --l2 1e-4 --json --quiet"
"$SOUNDER" $deterministic --workers 1 >"$work/one.json" || complain "threads"
hash=$(value "$work/one.json" model_hash)
for n in 1 2 3 4; do
    for servers in 1 2; do
        job $n $deterministic --transport mpi --servers $servers >"$work/many.json" || complain "$n processes"
        [ "$(value "$work/many.json" model_hash)" = "$hash" ] || complain "$n processes, $servers servers: other bits"
    done
done
for servers in 1 2; do
    job 2 $deterministic --transport mpi --workers 8 --servers $servers >"$work/many.json" || complain "8 workers in 2 processes"
    [ "$(value "$work/many.json" model_hash)" = "$hash" ] || complain "8 workers in 2 processes, $servers servers: other bits"
done

# A program that is found by PATH finds its module too.
PATH=$(dirname "$SOUNDER"):$PATH timeout 250 mpirun --oversubscribe --bind-to none -n 2 "$(basename "$SOUNDER")" $deterministic \
    --transport mpi >"$work/many.json" || complain "found by PATH"
[ "$(value "$work/many.json" model_hash)" = "$hash" ] || complain "found by PATH: other bits"

# Every strategy reaches the loss of one worker that makes updates of as many rows, bsp its bits; those that are never
# without a gradient of each worker have a staleness that does not depend on who is slow.
while read -r sync gradients staleness; do
    "$SOUNDER" train "$work/data.svm" --batch $((4 * gradients)) --epochs 5 --json --quiet >"$work/serial.json"
    job 4 train "$work/data.svm" --transport mpi --sync $sync --batch 4 --epochs 5 --json --quiet </dev/null \
        --out "$work/$sync.model" --slow 2:2x --delay exp:mean=0.0001 >"$work/$sync.json" || complain "$sync"
    python3 - "$sync" "$staleness" "$work/$sync.json" "$work/serial.json" <<'X' || complain "$sync"
import json, sys
sync, staleness = sys.argv[1:3]
many, one = (json.load(open(path)) for path in sys.argv[3:])
print("%s: loss %.5f, serial %.5f, staleness %.4f" % (sync, many["train_loss"], one["train_loss"], many["staleness_mean"]))
sys.exit(not (many["train_loss"] < 1.01 * one["train_loss"] and many["workers"] == 4 and
              (staleness == "any" or abs(many["staleness_mean"] - float(staleness)) < 0.01) and
              (sync != "bsp" or many["model_hash"] == one["model_hash"])))
X
    "$SOUNDER" eval "$work/$sync.model" "$work/data.svm" --quiet >/dev/null || complain "$sync: no model"
done <<'X'
bsp 4 0
k-sync:2 2 0
backup:3 3 0
k-batch-sync:4 4 0
k-async:2 2 1
k-batch-async:3 3 1
async 1 3
ssp:2 1 any
essp:2 1 any
X

# Large messages that are under way when the run ends, and a run directory that the first process alone writes.
for i in 1 2 3 4 5; do
    job 3 train "$work/data.svm" --transport mpi --sync async --batch 3000 --updates $((i + 20)) --delay uniform:0-0.002 \
        --seed $i --json --quiet --run "$work/run$i" >"$work/many.json" || complain "large messages, run $i"
    [ "$(value "$work/many.json" updates)" = $((i + 20)) ] || complain "large messages: not all updates"
done
job 2 train "$work/data.svm" --transport mpi --sync async --run "$work/run1" >"$work/out" 2>&1
[ $? = 2 ] && grep -q -e "--resume" "$work/out" || complain "a folder that holds a run: $(head -n 3 "$work/out")"

# What a transport promises, between processes.
for n in 2 3; do
    for laws in test_transport test_links test_slots; do
        timeout 250 mpirun --oversubscribe --bind-to none -n $n "$(dirname "$SOUNDER")/$laws" >"$work/out" 2>&1 || {
            complain "laws of transports, $laws, $n processes"
            grep -v -e " RUN " -e " OK " "$work/out"
        }
    done
done

# Processes that do not mean the same do not train together.
timeout 250 mpirun --oversubscribe --bind-to none -n 1 "$SOUNDER" train "$work/data.svm" --transport mpi --sync async --epochs 1 --seed 1 \
    : -n 1 "$SOUNDER" train "$work/data.svm" --transport mpi --sync async --epochs 1 --seed 2 >"$work/out" 2>&1 &&
    complain "two seeds in one job, and no error"
grep -q "process 1 has a different --seed than process 0" "$work/out" || complain "two seeds: $(head -n 3 "$work/out")"
head -n 1000 "$work/data.svm" >"$work/less.svm"
timeout 250 mpirun --oversubscribe --bind-to none -n 1 "$SOUNDER" train "$work/data.svm" --transport mpi --sync async --epochs 1 --lr 0.1 \
    : -n 1 "$SOUNDER" train "$work/less.svm" --transport mpi --sync async --epochs 1 --lr 0.1 >"$work/out" 2>&1 &&
    complain "two data sets in one job, and no error"
grep -q "process 1 has different data than process 0" "$work/out" || complain "two data sets: $(head -n 3 "$work/out")"
# Not either where the options' text is long, and the difference is at its end.
long=$(printf '1:2x,%.0s' $(seq 2500))0:1x
one_each() { # PROGRAM0 DATA0 PROGRAM1 DATA1 options …
    local program0=$1 data0=$2 program1=$3 data1=$4
    shift 4
    timeout 250 mpirun --oversubscribe --bind-to none -n 1 "$program0" train "$data0" --transport mpi --sync async --epochs 1 "$@" \
        : -n 1 "$program1" train "$data1" --transport mpi --sync async --epochs 1 "$@" >"$work/out" 2>&1
}
one_each "$SOUNDER" "$work/data.svm" "$SOUNDER" "$work/less.svm" --slow "$long" && complain "long options, two data sets, and no error"
grep -q "process 1 has different data than process 0" "$work/out" || complain "long options, two data sets: $(head -c 300 "$work/out")"
timeout 250 mpirun --oversubscribe --bind-to none -n 1 "$SOUNDER" train "$work/data.svm" --transport mpi --sync async --epochs 1 --slow "$long" \
    : -n 1 "$SOUNDER" train "$work/data.svm" --transport mpi --sync async --epochs 1 --slow "$long,1:3x" >"$work/out" 2>&1 &&
    complain "long options that differ at their end, and no error"
grep -q "process 1 has a different --slow than process 0" "$work/out" || complain "long options: $(head -c 300 "$work/out")"
# A semicolon in a value is no end of it.
differ() { # NAME VALUE0 VALUE1 options …: the option of this name is told
    local name=$1 value0=$2 value1=$3
    shift 3
    timeout 250 mpirun --oversubscribe --bind-to none -n 1 "$SOUNDER" train "$@" --transport mpi --sync async --epochs 1 --"$name" "$value0" \
        : -n 1 "$SOUNDER" train "$@" --transport mpi --sync async --epochs 1 --"$name" "$value1" >"$work/out" 2>&1 &&
        complain "two values of --$name, and no error"
    grep -q "process 1 has a different --$name than process 0" "$work/out" || complain "two values of --$name: $(head -n 3 "$work/out")"
}
printf 'x,y\n1,a;l1=0\n2,b\n3,a;l1=0\n4,b\n' >"$work/semicolon.csv"
differ class-weight 'a;l1=0=1' 'a;l1=0=2' "$work/semicolon.csv" --label y
# Validation data, which process 0 alone reads, is told apart by its name and size; folders may differ.
differ valid "$work/data.svm" "$work/less.svm" "$work/data.svm"
mkdir "$work/node1"
cp "$work/data.svm" "$work/node1"
mkdir "$work/node1/less"
cp "$work/less.svm" "$work/node1/less/data.svm"
timeout 250 mpirun --oversubscribe --bind-to none -n 1 "$SOUNDER" train "$work/data.svm" --transport mpi --sync async --epochs 1 --valid "$work/data.svm" \
    : -n 1 "$SOUNDER" train "$work/data.svm" --transport mpi --sync async --epochs 1 --valid "$work/node1/data.svm" >"$work/out" 2>&1 ||
    complain "validation data in two folders: $(head -n 3 "$work/out")"
differ valid "$work/data.svm" "$work/node1/less/data.svm" "$work/data.svm"
# A program of the same version from other sources is another build.
mkdir "$work/other"
cp "$(dirname "$SOUNDER")/sounder-mpi.so" "$work/other"
python3 - "$SOUNDER" "$work/other/sounder" <<'X' || complain "the program has no build id"
import re, sys
program = open(sys.argv[1], "rb").read()
program, count = re.subn(rb"sources-[0-9a-f]{32}", b"sources-" + b"0" * 32, program)
open(sys.argv[2], "wb").write(program)
sys.exit(count == 0)
X
chmod +x "$work/other/sounder"
one_each "$SOUNDER" "$work/data.svm" "$work/other/sounder" "$work/data.svm" && complain "two builds in one job, and no error"
grep -q "process 1 is another build of sounder" "$work/out" || complain "two builds: $(head -n 3 "$work/out")"
# One that is alive, but not there in time, is named: its data does not come. Three jobs at a time, for they wait.
mkfifo "$work/late.svm"
exec 7<>"$work/late.svm"
late() { # NAME DATA0 DATA1 options …
    local name=$1 data0=$2 data1=$3
    shift 3
    timeout 250 mpirun --oversubscribe --bind-to none -n 1 "$SOUNDER" train "$data0" --transport mpi:deadline=15 --sync async --epochs 1 "$@" \
        : -n 1 "$SOUNDER" train "$data1" --transport mpi:deadline=15 --sync async --epochs 1 "$@" >"$work/late.$name" 2>&1
    echo $? >"$work/late.$name.code"
}
was_late() { # NAME SENTENCE
    [ "$(cat "$work/late.$1.code")" = 6 ] || complain "late, $1: ended with $(cat "$work/late.$1.code"), not 6"
    grep -q "$2 within 1[0-9.]* seconds" "$work/late.$1" || complain "late, $1: $(head -n 3 "$work/late.$1")"
}
late worker "$work/data.svm" "$work/late.svm" & jobs=($!)
late first "$work/late.svm" "$work/data.svm" & jobs+=($!)
late valid "$work/data.svm" "$work/data.svm" --valid "$work/late.svm" & jobs+=($!)
wait "${jobs[@]}"
was_late worker "process 1 is alive, but did not start"
was_late first "process 0 is alive, but has not read its data"
was_late valid "process 0 is alive, but has not read its data"
exec 7>&-
job 2 train "$work/nothing.svm" --transport mpi --sync bsp >"$work/out" 2>&1 && complain "no data, and no error"
grep -q "nothing.svm" "$work/out" || complain "the missing file is not named"
job 2 train "$work/data.svm" --transport mpi --sync hogwild >"$work/out" 2>&1 && complain "hogwild by messages"
grep -q "share memory" "$work/out" || complain "hogwild by messages: no reason given"
exit $failed
