#!/bin/bash
# The README and the pages of docs/ are right: every command works as written, prints the words that are shown, and what is
# named exists. See pages.py; mpirun commands are run by transport/test_mpi_readme.sh.
set -eu
exec python3 -B "$(dirname "$0")/pages.py"
