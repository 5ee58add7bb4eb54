#!/bin/bash
# Laws of stopping a team: SIGTERM in the middle, exit code 75, and --resume: to the same bits where the
# strategy has bits of its own, to a model as good where it has not.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"
"$sounder" generate sparse-classification data.svm --rows 20000 --features 2000 --nnz 20 --seed 4 >/dev/null 2>&1
"$sounder" generate ratings ratings.triples --rows 60000 --features 2000 --seed 4 >/dev/null 2>&1
"$sounder" convert data.svm data.sdc >/dev/null 2>&1

# value KEY: of the results in out.txt.
value() { grep -o "\"$1\": *\"\\?[-0-9a-f.e+]*" out.txt | sed 's/.*[":]//'; }

# each_epoch_once FILE: epochs are told in their order, none twice.
each_epoch_once() { grep -o '"epoch":[0-9]*' "$1" | cut -d: -f2 | sort -n -u -c 2>/dev/null; }

for sync in 'hogwild --deterministic' 'hogwild --deterministic --optimizer ftrl --l1 1e-4 --scale none' 'bsp --deterministic --batch 64' cyclades 'average --workers 2' \
    'average:every=700 --workers 3 --l2 1e-4 --l1 1e-5' hogwild 'locked --workers 2' 'round-robin --workers 3' \
    'rotation --model mf:rank=4'; do
    # shellcheck disable=SC2086
    set -- $sync
    epochs=40
    case $sync in locked* | round*) epochs=6 ;; esac
    data=data.sdc
    [ "${1}" = rotation ] && data=ratings.triples
    options=(train $data --epochs $epochs --json --sync "$@")
    succeeds "${options[@]}"
    unbroken=$(value model_hash) loss=$(value train_loss) updates=$(value updates)
    # Where the signal comes too late the run is over with 0, and another one is started.
    stopped=0
    for _ in $(seq 50); do
        [ $stopped = 0 ] || break
        rm -rf run
        "$sounder" "${options[@]}" --run run --checkpoint-every 100000000u >out.txt 2>err.txt </dev/null &
        pid=$!
        wait_for grep -qs '^{.*"epoch":[1-9]' run/metrics.jsonl
        kill -TERM $pid 2>/dev/null
        wait $pid
        stopped=$?
    done
    holds "$sync: stopped in the middle, with a checkpoint" test $stopped = 75
    cp run/metrics.jsonl before.txt
    succeeds "${options[@]}" --run run --resume
    holds "$sync: what was told stays" cmp -s -n "$(stat -c %s before.txt)" before.txt run/metrics.jsonl
    holds "$sync: goes on, and does not begin again" each_epoch_once run/metrics.jsonl
    holds "$sync: all updates were made" test "$(value updates)" = "$updates"
    case $sync in
    hogwild | locked*)
        holds "$sync: a resumed model is as good" python3 -c "import sys
a, b = float('$loss'), float('$(value train_loss)')
sys.exit(abs(a - b) > 0.02 * a)"
        ;;
    *) holds "$sync: a resumed model has the same bits" test "$(value model_hash)" = "$unbroken" ;;
    esac
done
finish
