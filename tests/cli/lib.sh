# shellcheck shell=bash
# Shared by the tests of the program: a folder of their own, a way to run it, and what to expect.
# A test sources this file, states its laws with the functions below, and ends with `finish`.
set -u
sounder=${SOUNDER:?SOUNDER must be the path of the program}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
laws=0
broken=0

# complain TEXT...: a law does not hold; says what the program answered.
complain() {
    broken=$((broken + 1))
    echo "FAILED: $*" >&2
    head -n 2 out.txt 2>/dev/null | cut -c 1-200 | sed 's/^/  stdout: /' >&2
    tail -n 2 err.txt 2>/dev/null | cut -c 1-200 | sed 's/^/  stderr: /' >&2
}

# run ARGUMENTS...: runs the program without input; status in $status, texts in out.txt and err.txt.
run() {
    "$sounder" "$@" >out.txt 2>err.txt </dev/null
    status=$?
}

# holds NAME COMMAND...: the command succeeds.
holds() {
    local name=$1
    shift
    laws=$((laws + 1))
    "$@" || complain "$name"
}

# succeeds ARGUMENTS...: the program ends with 0.
succeeds() {
    laws=$((laws + 1))
    run "$@"
    [ "$status" = 0 ] || complain "sounder $* ended with $status, not 0"
}

# refuses CODE PATTERN ARGUMENTS...: the program ends with CODE, prints nothing on standard output and
# exactly one line "sounder: ..." on standard error (notes and progress aside) that matches PATTERN.
refuses() {
    local code=$1 pattern=$2
    shift 2
    run "$@"
    refused "$code" "$pattern" "$*"
}

# refused CODE PATTERN WHAT: the same about a run that has been made by hand.
refused() {
    local lines
    laws=$((laws + 1))
    [ "$status" = "$1" ] || { complain "sounder $3 ended with $status, not $1"; return; }
    [ -s out.txt ] && { complain "sounder $3 failed but wrote to standard output"; return; }
    lines=$(grep '^sounder: ' err.txt | grep -cv '^sounder: note: ')
    [ "$lines" = 1 ] || { complain "sounder $3 printed $lines sentences, not 1"; return; }
    tail -n 1 err.txt | grep -q '^sounder: ' || { complain "sounder $3: the sentence is not last"; return; }
    tail -n 1 err.txt | grep -Eq -- "$2" || complain "sounder $3: the sentence does not match $2"
}

# key NAME: the value of a key of the JSON object on standard input, which must be one line.
key() {
    python3 -c 'import json, sys
lines = sys.stdin.read().splitlines()
assert len(lines) == 1, "not one line"
print(json.loads(lines[0]).get(sys.argv[1], "missing"))' "$1"
}

# wait_for COMMAND...: until the command succeeds, or the process $pid has ended; gives up after ten minutes, far
# longer than a busy machine takes.
wait_for() {
    local end=$((SECONDS + 600))
    until "$@"; do
        kill -0 "$pid" 2>/dev/null || { "$@"; return; }
        [ $SECONDS -lt $end ] || return 1
        sleep 0.02
    done
}

# some PATTERN: there is a file with such a name.
some() { compgen -G "$1" >/dev/null; }

# prints FILE PATTERN: a line of the file matches.
prints() {
    grep -Eq -- "$2" "$1"
}

# needs_data NAME: skips the test where the real data sets are not there; else sets $data.
needs_data() {
    data=${SOUNDER_DATA:-}
    if [ -z "$data" ] || [ ! -e "$data/$1" ]; then
        echo "skipped: SOUNDER_DATA does not point to a folder with $1"
        exit 77
    fi
}

# small_data FILE: 200 rows of two classes, -1 and +1, that column 1 tells apart.
small_data() {
    local i
    for i in $(seq 200); do
        if [ $((i % 2)) = 0 ]; then echo "+1 1:0.$((i % 9 + 1)) 3:1"; else echo "-1 2:0.$((i % 9 + 1)) 3:1"; fi
    done >"$1"
}

finish() {
    echo "$((laws - broken)) of $laws laws hold"
    [ "$broken" = 0 ]
    exit
}
