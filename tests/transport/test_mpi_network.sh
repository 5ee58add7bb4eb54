#!/bin/bash
# Over MPI too a model that the library does not have is trained: see tests/conform/test_network.py.
. "$(dirname "$0")/job.sh"
export SOUNDER_LAUNCH="timeout 250 mpirun --oversubscribe --bind-to none -n 3"
python=$(command -v /usr/bin/python3 || command -v python3)
"$python" -B "$(dirname "$0")/../conform/test_network.py" mpi || complain "the network does not learn over MPI"
exit $failed
