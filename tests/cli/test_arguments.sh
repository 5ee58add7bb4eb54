#!/bin/bash
# Laws of the command line: help, version, the ways to write an option, where output goes.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
small_data data.svm
commands="train compare predict eval inspect convert generate list"

# Help goes to standard output, wherever --help stands, however wrong the rest is.
succeeds --version
holds "the version is a number" prints out.txt '^sounder [0-9]+\.[0-9]+'
succeeds --help
for c in $commands; do
    holds "--help names $c" prints out.txt "^  $c "
done
for c in $commands; do
    succeeds "$c" --help
    holds "$c --help says how to use it" prints out.txt "^usage: sounder $c "
    holds "$c --help has an example" prints out.txt "^  sounder $c |sounder $c "
    holds "$c --help writes no error" test ! -s err.txt
    holds "no line of $c --help is wider than 100" test -z "$(LC_ALL=C.UTF-8 grep -E '^.{101}' out.txt)"
    cp out.txt help.txt
    succeeds help "$c"
    holds "help $c is $c --help" cmp -s out.txt help.txt
done
succeeds train --no-such-option --help
for option in lr epochs seed valid model; do
    succeeds train --help
    holds "train --help tells --$option" prints out.txt "--$option"
done
for option in out json config print-config quiet; do
    holds "train --help tells --$option" prints out.txt "--$option"
done

# --help has the common options, --help all has all of them, by topic: those that --print-config knows, and more.
cp out.txt help.txt
holds "train --help is not all" test "$(grep -c '^  --' help.txt)" -lt 25
holds "train --help names the longer help" prints help.txt 'train --help all'
succeeds train --help all
cp out.txt all.txt
holds "train --help all has topics" test "$(grep -cE '^[a-z, ]+:$' all.txt)" -ge 6
holds "no line of train --help all is wider than 100" test -z "$(LC_ALL=C.UTF-8 grep -E '^.{101}' all.txt)"
succeeds train --print-config
for option in $(sed -E 's/ =.*//' out.txt) valid early-stop record; do
    holds "train --help all tells --$option" test "$(grep -cE -- "^  --$option( |\$)" all.txt)" = 1
done
for option in $(sed -nE 's/^  --([a-z0-9-]+).*/\1/p' help.txt); do
    holds "--$option of the short help is in the long one" prints all.txt "^  --$option"
done
succeeds help train all
holds "help train all is train --help all" cmp -s out.txt all.txt
succeeds train --help=all
holds "--help=all is --help all" cmp -s out.txt all.txt
succeeds predict --help
cp out.txt help.txt
succeeds predict --help all
holds "the help of a command with few options is all" cmp -s out.txt help.txt

# The ways to write an option are one.
succeeds train data.svm --epochs 2 --seed 5 --json
hash=$(key model_hash <out.txt)
holds "there is a hash" test "$hash" != missing
succeeds train --epochs=2 --seed=5 --json data.svm
holds "--name=value is --name value" test "$(key model_hash <out.txt)" = "$hash"
succeeds train --json --epochs 2 data.svm --seed 7 --seed 5
holds "the last of two wins" test "$(key model_hash <out.txt)" = "$hash"
succeeds train --json=yes --epochs 2 --seed 5 -- data.svm
holds "-- ends the options" test "$(key model_hash <out.txt)" = "$hash"
cp data.svm ./--odd.svm
succeeds train --json --epochs 2 --seed 5 -- --odd.svm
holds "a name may start with dashes behind --" test "$(key model_hash <out.txt)" = "$hash"
succeeds train data.svm --json --no-json --epochs 2
holds "--no-json takes --json back" prints out.txt '^model +not written'

# Flags win over the file, whatever the order; what is printed can be read again.
printf '# made by a test\nepochs = 3\nseed = 5\n' >run.config
succeeds train --print-config --config run.config --epochs 2
holds "the flag wins" prints out.txt '^epochs *= *2$'
holds "the file is read" prints out.txt '^seed *= *5$'
succeeds train --epochs 2 --print-config --config run.config
holds "in either order" prints out.txt '^epochs *= *2$'
cp out.txt again.config
succeeds train --config again.config --print-config
holds "what is printed reads back as the same" cmp -s out.txt again.config
succeeds train data.svm --config again.config --json
holds "and trains the same" test "$(key model_hash <out.txt)" = "$hash"

# Results on standard output, the rest on standard error.
succeeds train data.svm --epochs 2 --quiet --out m
holds "--quiet leaves standard error empty" test ! -s err.txt
holds "the result names the model" prints out.txt '^model +m'
holds "the model is there" test -s m
holds "no temporary is left" test -z "$(find . -name '*tmp*')"
succeeds train data.svm --epochs 2
holds "every epoch is a line" prints err.txt '^epoch 2/2 '
holds "no escape sequences outside a terminal" test -z "$(grep -l $'[\r\033]' err.txt)"
holds "no model, and the result says so" prints out.txt '^model +not written'
succeeds train data.svm --epochs 2 --json
holds "--json keeps progress" prints err.txt '^epoch 2/2 '
for name in rows features nonzeros workers epochs updates seconds_read seconds_train seconds_total \
    train_loss model_hash peak_rss_bytes; do
    holds "the summary has $name" test "$(key $name <out.txt)" != missing
done

# Lists are one plug-in a line.
succeeds list
for kind in model optimizer schedule sync format generate; do
    holds "list names the kind $kind" prints out.txt "^ *$kind"
    cp out.txt kinds.txt
    succeeds list "$kind"
    holds "list $kind is not empty" test -s out.txt
    cp kinds.txt out.txt
done
succeeds list optimizer
holds "a plug-in starts its line" prints out.txt '^adam '
short=$(wc -l <out.txt)
succeeds list optimizer --verbose
holds "--verbose tells more" test "$(wc -l <out.txt)" -gt "$short"

# What the other commands say.
succeeds eval m data.svm
holds "eval prints accuracy" prints out.txt '^accuracy +[01]'
succeeds eval m data.svm --json
holds "eval --json is an object" test "$(key accuracy <out.txt)" != missing
succeeds inspect m --json
cp out.txt model.json
succeeds inspect data.svm --json
holds "inspect tells data" test "$(key rows <out.txt)" = 200
holds "inspect tells models from data" test "$(key rows <model.json)" = missing
succeeds inspect m
succeeds inspect data.svm
holds "inspect is aligned for people" prints out.txt '^rows +200$'
succeeds convert data.svm data.sdc
holds "convert says what it wrote" prints out.txt 'data\.sdc: 200 rows, '
succeeds convert data.svm data.sdc --json
holds "convert --json tells the rows" test "$(key rows <out.txt)" = 200
succeeds inspect data.sdc --json
holds "a converted file is data" test "$(key rows <out.txt)" = 200
succeeds generate sparse-classification s.svm --rows 50 --features 20 --nnz 5 --seed 3
holds "generate says what it wrote" prints out.txt 's\.svm: sparse-classification, 50 rows'
holds "generate wrote the rows" test "$(wc -l <s.svm)" = 50

# Texts of the user's that are not UTF-8 are no reason to fail: JSON holds their bytes as {"hex": ...}.
hex_at() { python3 -c '
import json, sys
value = json.load(sys.stdin)
for key in sys.argv[1:]:
    value = value[int(key)] if isinstance(value, list) else value[key]
print(value["hex"])' "$@"; }
printf 'x,kla\xdf\n1,a\n2,b\n3,a\n4,b\n' >latin.csv
cp latin.csv $'\xff.csv'
succeeds train latin.csv --label $'kla\xdf' --epochs 1 --json --quiet
holds "a label's bytes" test "$(hex_at options label <out.txt)" = 6b6c61df
succeeds train latin.csv --label $'kla\xdf' --epochs 1 --json --quiet --valid $'\xff.csv' --run $'r\xff' --out $'m\xff'
holds "a path's bytes" test "$(hex_at options valid <out.txt)" = ff2e637376
succeeds compare $'\xff.csv' --label $'kla\xdf' --sync serial --epochs 1 --seeds 1 --json --quiet
holds "compare: a path's bytes" test "$(hex_at data 0 <out.txt)" = ff2e637376
succeeds convert latin.csv $'\xff.sdc' --label $'kla\xdf' --json
holds "convert: a path's bytes" test "$(hex_at path <out.txt)" = ff2e736463
succeeds generate sparse-classification $'\xff.svm' --rows 50 --json
holds "generate: a path's bytes" test "$(hex_at path <out.txt)" = ff2e73766d
# Labels are part of --class-weight, which a checkpoint holds.
printf 'x,y\n1,\xdf\n2,b\n3,\xdf\n4,b\n' >classes.csv
weighted=(train classes.csv --label y --class-weight $'\xdf=2' --run weighted --quiet)
succeeds "${weighted[@]}" --epochs 2 --schedule constant
succeeds "${weighted[@]}" --epochs 3 --schedule constant --resume
# A long value is told whole, whatever the number of its bytes.
python3 -c '
names = ",".join("é" * 4 + str(i) for i in range(400))
print("x,y," + names)
for i in range(6): print(f"{i},{i % 2}" + ",1" * 400)
open("names.txt", "w").write(names)' >many.csv
succeeds train many.csv --label y --ignore "$(cat names.txt)" --epochs 1 --json --quiet
holds "a long value" python3 -c 'import json
assert json.load(open("out.txt"))["options"]["ignore"] == open("names.txt").read()'
finish
