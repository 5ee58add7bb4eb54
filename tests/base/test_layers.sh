#!/bin/bash
# Laws of the house: which folder includes which, and what a library never does.
set -u
cd "${SOUNDER_SOURCE:?SOUNDER_SOURCE must be the folder of the sources}" || exit 1
broken=0
complain() {
    broken=$((broken + 1))
    echo "FAILED: $*" >&2
}

# may FOLDER PATTERN: files of the folder include, of our own headers, only those that match.
may() {
    local folder=$1 pattern=$2 file header
    [ -d "$folder" ] || return
    while IFS=: read -r file header; do
        [[ $header =~ ^($pattern)$ ]] || complain "$file includes $header, which is not below it"
    done < <(grep -rHoE '^ *# *include *"[^"]+"' --include='*.[ch]' "$folder" |
        sed -E 's/: *# *include *"([^"]+)"/:\1/')
}
may src/base 'base/[^/]+|sounder/sounder\.h'
may src/kind '(base|kind)/[^/]+'
may src/kernel '(base|kernel)/[^/]+'
may src/data '(base|data|kernel|kind)/[^/]+|run/registry\.h'
may src/model '(base|kernel|model)/[^/]+|kind/model\.h'
may src/optimizer '(base|kernel|optimizer)/[^/]+|kind/(optimizer|rate_schedule)\.h'
may src/schedule '(base|schedule)/[^/]+|kind/rows\.h'
may src/update '(base|kernel|update)/[^/]+|kind/(optimizer|codec|rows)\.h'
may src/sync '(base|sync)/[^/]+|kind/strategy\.h|(team|server|peer)/role\.h'
# The loops of one role do not see what belongs to another.
while read -r file; do
    roles=$(grep -oE '"(team|server|peer)/role\.h"' "$file" | sort -u | wc -l)
    [ "$roles" -le 1 ] || complain "$file has loops of two roles"
done < <(grep -lE '"(team|server|peer)/role\.h"' src/sync/*.c src/sync/*.h)
may src/peer '(base|kind|peer|update)/[^/]+|team/(accounting|node|role)\.h|server/(message|network|placement|sampler|slots|traffic)\.h|run/(checkpoint|job|order|point|run)\.h'
may tests/plugins '(base|kernel|kind)/[^/]+|sync/ring\.h|model/linear\.h|(team|server|peer)/role\.h|server/(message|network|traffic|placement)\.h|run/run\.h'
may src/codec '(base|codec)/[^/]+|kind/codec\.h'
may src/aggregate '(base|aggregate)/[^/]+|kind/aggregate\.h'
may src/transport '(base|transport)/[^/]+|transport/mpi/shim\.h|kind/transport\.h|team/node\.h|server/(compute_times|membership|message|network|placement)\.h|run/(job|run)\.h'
may cli '(cli|compare)\.h|sounder/sounder\.h'
may examples 'sounder/sounder\.h'
may include 'sounder/sounder\.h'

# System headers stand in <>, ours in "".
while read -r line; do complain "$line: ours are included in quotes"; done < <(
    grep -rnE '^ *# *include *<(base|kernel|data|model|optimizer|schedule|sync|transport|update|team|server|peer|run|trained|kind|codec|aggregate|sounder)/' --include='*.[ch]' src cli fuzz)
for folder in cli examples; do
    while IFS=: read -r file header; do
        case $header in
        sounder/*) ;;
        */*) [ -e "/usr/include/$header" ] || compgen -G "/usr/include/*/$header" >/dev/null ||
            complain "$file includes <$header>, which is no header of the system" ;;
        esac
    done < <(grep -rHoE '^ *# *include *<[^>]+>' --include='*.[ch]' "$folder" |
        sed -E 's/: *# *include *<([^>]+)>/:\1/')
done

while read -r file; do
    # A file says what it is, or begins with what it needs.
    head -n 1 "$file" | grep -qE '^(/\*|#include|#define _|#ifndef SDR_|#!)' ||
        complain "$file begins with neither a comment nor an include"
    [ -z "$(tail -c 1 "$file")" ] || complain "$file does not end with a newline"
    grep -q $'\t' "$file" && complain "$file has tabs"
    grep -qE ' +$' "$file" && complain "$file has blanks at the end of a line"
done < <(find src cli include examples fuzz tests -name '*.[ch]')

# The library never prints, exits, aborts or reads the environment. (Comments and texts aside.)
code() { # code FILE: without comments and string constants
    sed -E 's/"([^"\\]|\\.)*"/""/g; s#/\*[^*]*\*+([^/*][^*]*\*+)*/##g' "$1" |
        awk '{ while (1) { if (inside) { i = index($0, "*/"); if (!i) { $0 = ""; break }
               $0 = substr($0, i + 2); inside = 0 } i = index($0, "/*"); if (!i) break
               rest = substr($0, i + 2); printf "%s", substr($0, 1, i - 1); $0 = rest; inside = 1 }
               print }'
}
while read -r file; do
    calls=$(code "$file" | grep -nE \
        '(^|[^_[:alnum:]])(printf|fprintf|vprintf|vfprintf|puts|fputs|putchar|putc|perror|exit|_exit|_Exit|quick_exit|abort|assert|getenv|secure_getenv|system|popen|signal|sigaction|setlocale|srand|rand|random|strtok|sleep) *\(' |
        grep -vE 'format *\(printf')
    [ -z "$calls" ] || complain "$file: the library does not do this: $calls"
    code "$file" | grep -qE '(^|[^_[:alnum:]])(stdout|stderr|stdin|environ)([^_[:alnum:]]|$)' &&
        complain "$file: the library has no standard streams and no environment"
done < <(find src -name '*.[ch]')

# Only sounder.h is exported, and everything it declares is there.
if command -v nm >/dev/null && [ -e "${SOUNDER_LIBRARY:-}" ] && [ -z "${SOUNDER_SANITIZE:-}" ]; then
    declared=$(sed -nE '/SDR_API/,/;/s/.*[ *](sdr_[a-z0-9_]+)\(.*/\1/p' include/sounder/sounder.h | sort -u)
    exported=$(nm -D --defined-only "$SOUNDER_LIBRARY" | awk '$2 ~ /[TDBRV]/ {print $3}' |
        grep -vE '^_(init|fini)$' | sort -u)
    [ "$declared" = "$exported" ] ||
        complain "exported and declared differ: $(comm -3 <(echo "$declared") <(echo "$exported") | xargs)"
fi

# Nothing knows this machine.
while read -r line; do complain "$line: a name of one machine"; done < <(
    grep -rnE '/(home|root|Users|mnt|work|media)/[a-z]' --include='*' src cli include examples tests fuzz/*.[ch] \
        cmake scripts bench docs CMakeLists.txt Makefile README.md 2>/dev/null | grep -v 'tests/base/test_layers.sh' |
        cut -c 1-160)

[ "$broken" = 0 ] && echo "all laws hold"
[ "$broken" = 0 ]
