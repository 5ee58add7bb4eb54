#!/bin/bash
# examples/slurm: srun trains, a preempted job goes on from its checkpoint, and nothing of Slurm is left, not
# even when the example is interrupted.
set -u
PATH=$PATH:/usr/sbin
command -v slurmctld >/dev/null || { echo "skipped: there is no slurmctld (scripts/deps slurm)"; exit 77; }
[ -e "$(dirname "$SOUNDER")/sounder-mpi.so" ] || { echo "skipped: built without MPI"; exit 77; }
[ -z "${SOUNDER_SANITIZE:-}" ] || { echo "skipped: MPI is not made for sanitizers"; exit 77; }
work=$(mktemp -d /tmp/slurm.XXXXXX)
chmod 711 "$work"
trap 'rm -rf "$work"' EXIT
failed=0
complain() { echo "FAILED: $*"; failed=1; }
# An interrupt must reach it though it runs in the background.
example=(env --default-signal=INT TMPDIR="$work" "$SOUNDER_SOURCE/examples/slurm/one_machine")
# Everything that the example starts works in its folder; what has ended works nowhere.
clean() {
    [ -z "$(ls -d "$work"/sounder-slurm.* 2>/dev/null)" ] || complain "$1: a folder is left"
    ! readlink /proc/[0-9]*/cwd | grep -q "^$work" || complain "$1: processes are left"
}

"${example[@]}" >"$work/out" 2>&1 || complain "srun: $(tail -n 3 "$work/out")"
grep -q "4 workers" "$work/out" || complain "srun: not 4 workers"
clean srun
"${example[@]}" --job >"$work/out" 2>&1 || complain "sbatch: $(tail -n 3 "$work/out")"
grep -q "resumed at update" "$work/out" || complain "sbatch: not resumed"
clean sbatch

# interrupted LINE: with SIGINT, once the output has LINE.
interrupted() {
    : >"$work/out"
    "${example[@]}" --job >"$work/out" 2>&1 &
    local id=$! end=$((SECONDS + 600))
    until grep -q "$1" "$work/out"; do
        [ $SECONDS -lt $end ] || { complain "'$1' does not come"; break; }
        sleep 0.05
    done
    kill -INT $id
    wait $id
    local code=$?
    [ $code = 130 ] || complain "interrupted after '$1': ended with $code"
    clean "interrupted after '$1'"
}
interrupted sinfo
interrupted sbatch
interrupted urgent
[ $failed = 0 ] && echo "srun, sbatch and three interrupts: as they should be"
exit $failed
