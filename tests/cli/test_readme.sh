#!/bin/bash
# The README's examples work as written: every shell block is run, from top to bottom.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/build"
ln -s "$SOUNDER" "$tmp/build/sounder"
awk '/^```sh$/{on=1; next} /^```$/{on=0} on' "$SOUNDER_SOURCE/README.md" | grep -v '^make' >"$tmp/script"
cd "$tmp"
bash -eu script >out 2>&1 || { tail -n 20 out; echo "a README example failed"; exit 1; }
echo "$(grep -c sounder script) README commands work"
