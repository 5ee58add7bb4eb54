#!/bin/bash
# Over MPI too every model keeps its bits: see tests/sync/test_hashes.py.
. "$(dirname "$0")/job.sh"
export SOUNDER_LAUNCH="timeout 250 mpirun --oversubscribe --bind-to none -n 3"
python=$(command -v /usr/bin/python3 || command -v python3)
"$python" -B "$(dirname "$0")/../sync/test_hashes.py" mpi "$@" || complain "models have other bits than recorded"
exit $failed
