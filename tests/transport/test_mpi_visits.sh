#!/bin/bash
# Over MPI too every row is trained on once an epoch: see tests/sync/test_visits.py.
. "$(dirname "$0")/job.sh"
export SOUNDER_LAUNCH="timeout 250 mpirun --oversubscribe --bind-to none -n 3"
python=$(command -v /usr/bin/python3 || command -v python3)
"$python" -B "$(dirname "$0")/../sync/test_visits.py" mpi || complain "rows are not trained on once an epoch"
exit $failed
