# For tests of MPI jobs, which begin with it: ends them where there is no MPI; a folder $work, complaints in $failed.
set -u
command -v mpirun >/dev/null || { echo "skipped: there is no mpirun"; exit 77; }
[ -e "$(dirname "$SOUNDER")/sounder-mpi.so" ] || { echo "skipped: built without MPI"; exit 77; }
[ -z "${SOUNDER_SANITIZE:-}" ] || { echo "skipped: MPI is not made for sanitizers"; exit 77; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
work=$(mktemp -d)
export work
# Open MPI takes the first free ports from 1024 on. The port of a process that was killed then goes to a process of the
# next job, and survivors of the first job connect to that. So every test has 50 ports for itself: it holds the lock on
# the file with their number. scripts/soak_mpi does the same.
ports=${PORTS_FOLDER:-/tmp/sounder-ports-$UID}
take_ports() {
    mkdir -p "$ports" && [ -d "$ports" ] || return
    for slot in $(seq 0 199); do
        exec {ports_lock}>"$ports/$slot"
        flock -n $ports_lock && [ "$ports/$slot" -ef /proc/self/fd/$ports_lock ] && return
        exec {ports_lock}>&-
    done
    false
}
tries=0
until take_ports 2>/dev/null; do
    ((++tries < ${PORTS_TRIES:-300})) || { rm -rf "$work"; echo "skipped: no ports for MPI are free, or $ports is not writable"; exit 77; }
    sleep 0.1
done
export OMPI_MCA_btl_tcp_port_min_v4=$((20000 + 50 * slot)) OMPI_MCA_btl_tcp_port_range_v4=50 OMPI_MCA_orte_tmpdir_base=$work
trap 'rm -rf "$work" "$ports/$slot"; rmdir "$ports" 2>/dev/null' EXIT
failed=0
complain() { echo "FAILED: $*"; failed=1; }
# "$work/member" PROGRAM … writes down the id of the process and how it ended: mpirun forgets both when processes may die.
cat >"$work/member" <<'X'
#!/bin/bash
"$@" &
echo $! >"$work/pid.$OMPI_COMM_WORLD_RANK"
wait $!
echo $? >"$work/code.$OMPI_COMM_WORLD_RANK"
X
chmod +x "$work/member"
# kill_in_training RANK FOLDER: kills that process of "$work/member", once the run in the folder has ended an epoch.
kill_in_training() {
    for _ in $(seq 15000); do
        [ -s "$work/pid.$1" ] && [ -s "$2/metrics.jsonl" ] && break
        sleep 0.02
    done
    kill -9 "$(cat "$work/pid.$1")"
}
