#!/bin/bash
# Strategies keep their contract as processes too: see tests/conform/test_strategies.py.
. "$(dirname "$0")/job.sh"
export SOUNDER_LAUNCH="timeout 900 mpirun --oversubscribe --bind-to none -n 3"
python=$(command -v /usr/bin/python3 || command -v python3)
"$python" -B "$(dirname "$0")/../conform/test_strategies.py" mpi || complain "a strategy breaks its contract"
exit $failed
