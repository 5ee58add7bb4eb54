#!/bin/bash
# The mpirun commands of the README and of docs/ work as written: see tests/cli/pages.py.
. "$(dirname "$0")/job.sh"
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none TMPDIR=$work
python3 -B "$(dirname "$0")/../cli/pages.py" mpi || complain "a command of a page does not work"
exit $failed
