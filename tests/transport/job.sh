# For tests of MPI jobs, which begin with it: ends them where there is no MPI; a folder $work, complaints in $failed.
set -u
command -v mpirun >/dev/null || { echo "skipped: there is no mpirun"; exit 77; }
[ -e "$(dirname "$SOUNDER")/sounder-mpi.so" ] || { echo "skipped: built without MPI"; exit 77; }
[ -z "${SOUNDER_SANITIZE:-}" ] || { echo "skipped: MPI is not made for sanitizers"; exit 77; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
work=$(mktemp -d)
export work
trap 'rm -rf "$work"' EXIT
failed=0
complain() { echo "FAILED: $*"; failed=1; }
