#!/bin/bash
# Where no ports can be taken, tests of MPI say so and end; afterwards no folder of ports is left.
[ -e "$(dirname "$SOUNDER")/sounder-mpi.so" ] && command -v mpirun >/dev/null || { echo "skipped: there is no MPI"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
touch "$folder/file"
here=$(dirname "$0")
said=$(PORTS_FOLDER=$folder/file/ports PORTS_TRIES=3 timeout 60 bash -c ". '$here/job.sh'; echo went on")
code=$?
[ -z "${SOUNDER_SANITIZE:-}" ] || { echo "$said"; exit $code; }
[ $code = 77 ] && [[ $said == skipped:*"is not writable"* ]] || { echo "FAILED: ended with $code: $said"; exit 1; }
PORTS_FOLDER=$folder/ports bash -c ". '$here/job.sh'; [ -e \$ports/\$slot ]" || { echo "FAILED: no ports were taken"; exit 1; }
[ ! -e "$folder/ports" ] || { echo "FAILED: the folder of ports is left"; exit 1; }
