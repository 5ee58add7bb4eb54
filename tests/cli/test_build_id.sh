#!/bin/bash
# The build id, which processes of a job compare, is of the sources, the compiler and its flags.
command -v cmake >/dev/null || { echo "skipped: there is no cmake"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/src" "$work/include"
echo 'int a;' >"$work/src/a.c"
id() { # COMPILER
    cmake -DSOURCE="$work" -DOUTPUT="$work/id.c" -DCOMPILER="$1" -P "$SOUNDER_SOURCE/cmake/build_id.cmake" && grep -o 'sources-[0-9a-f]*' "$work/id.c"
}
failed=0
complain() { echo "FAILED: $*"; failed=1; }
first=$(id "GNU 12.2.0 -O3")
[ -n "$first" ] || complain "no id"
[ "$(id "GNU 12.2.0 -O3")" = "$first" ] || complain "the same build has two ids"
[ "$(id "GNU 12.2.0 -O2")" != "$first" ] || complain "other flags, the same id"
[ "$(id "GNU 13.1.0 -O3")" != "$first" ] || complain "another compiler, the same id"
echo 'int b;' >"$work/src/a.c"
[ "$(id "GNU 12.2.0 -O3")" != "$first" ] || complain "other sources, the same id"
exit $failed
