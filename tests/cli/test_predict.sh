#!/bin/bash
# Laws of predict: one line a row in the data's order, labels as they were written, whole files only.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
small_data data.svm
cut -d' ' -f1 data.svm >truth.txt

succeeds train data.svm --epochs 20 --out m
succeeds predict m data.svm --quiet
holds "one label a row, as written in the data" cmp -s out.txt truth.txt
holds "--quiet leaves standard error empty" test ! -s err.txt
succeeds predict m data.svm --out labels.txt
holds "--out has the same lines" cmp -s labels.txt truth.txt
holds "no temporary is left" test -z "$(find . -name '*tmp*')"
succeeds predict m data.svm --out - --quiet
holds "--out - is standard output" cmp -s out.txt truth.txt
echo old >behind.txt
ln -s behind.txt link.txt
succeeds predict m data.svm --out link.txt
holds "a link stays a link" test -L link.txt
holds "and the file behind it is written" cmp -s behind.txt truth.txt

# Probabilities and scores carry the same labels.
succeeds predict m data.svm --proba --quiet
holds "the header names the classes" prints out.txt '^labels (-1 \+1|\+1 -1)$'
tail -n +2 out.txt | cut -d' ' -f1 >proba.txt
holds "the labels are those of predict" cmp -s proba.txt truth.txt
holds "probabilities sum to one, the label's is the largest" python3 - <<'P'
lines = open("out.txt").read().splitlines()
names = lines[0].split()[1:]
for line in lines[1:]:
    label, *p = line.split()
    p = [float(x) for x in p]
    assert len(p) == len(names) and abs(sum(p) - 1) < 1e-5 and names[p.index(max(p))] == label
P
succeeds predict m data.svm --scores --quiet
holds "a positive score is the second class" python3 - <<'P'
lines = open("out.txt").read().splitlines()
names = lines[0].split()[1:]
for line in lines[1:]:
    label, score = line.split()
    assert names[float(score) > 0] == label
P

# Labels in the data are not needed and not looked at.
sed 's/^[-+]1/0/' data.svm >unlabelled.svm
succeeds predict m unlabelled.svm --quiet
holds "foreign labels do not matter" cmp -s out.txt truth.txt

# Words as labels come back as words, spaces and all.
{
    echo 'size,colour,animal'
    for i in $(seq 60); do
        case $((i % 3)) in
        0) echo "9,grey,wild boar" ;;
        1) echo "1,grey,mouse" ;;
        2) echo "1,green,frog" ;;
        esac
    done
} >animals.csv
succeeds train animals.csv --label animal --epochs 50 --out animals.model
succeeds predict animals.model animals.csv --quiet
cp out.txt predicted.txt
tail -n +2 animals.csv | cut -d, -f3 >truth.txt
holds "labels are the words of the file" cmp -s predicted.txt truth.txt
cut -d, -f1,2 animals.csv >features.csv
succeeds predict animals.model features.csv --quiet
holds "the label's column may be absent" cmp -s out.txt truth.txt
awk -F, -v OFS=, '{ print $2, $1 }' animals.csv >swapped.csv
succeeds predict animals.model swapped.csv --quiet
holds "columns are found by name" cmp -s out.txt truth.txt
succeeds predict animals.model animals.csv --proba --quiet
holds "tabs set fields apart if a label has a space" test "$(head -1 out.txt | tr '\t' '\n' | wc -l)" = 4

# A label with a line break keeps to its line.
{
    echo 'size,animal'
    for _ in $(seq 30); do printf '9,"wild\nboar"\n1,"tab\tmouse"\n'; done
} >broken.csv
succeeds train broken.csv --label animal --epochs 50 --out broken.model
succeeds predict broken.model broken.csv --quiet
holds "labels with line breaks and tabs are JSON strings" python3 - <<'P'
import json
labels = [json.loads(x) for x in open("out.txt")]
assert labels == ["wild\nboar", "tab\tmouse"] * 30, labels[:4]
P
succeeds predict broken.model broken.csv --proba --quiet
holds "in the header too" test "$(wc -l <out.txt)" = 61

# Regression: the shortest text of the float.
{ echo 'x,y'; for i in $(seq 100); do echo "$i,$((3 * i + 1)).5"; done; } >line.csv
succeeds train line.csv --label y --epochs 200 --out line.model
succeeds predict line.model line.csv --quiet
holds "a value a row, close to the line" python3 - <<'P'
values = [float(x) for x in open("out.txt")]
assert len(values) == 100
assert all(abs(v - (3 * (i + 1) + 1.5)) < 5 for i, v in enumerate(values)), values[:5]
P
{ echo 'x,y'; echo '5,five'; } >words.csv
succeeds predict line.model words.csv --quiet
holds "labels of another kind do not matter" test "$(wc -l <out.txt)" = 1
refuses 2 'predicts a number' predict line.model line.csv --proba

# A reader that goes away is a failure, but nothing to talk about, and not a death by signal.
for _ in $(seq 300); do cat data.svm; done >long.svm
{ "$sounder" predict m long.svm 2>err.txt; echo $? >status.txt; } | head -n 1 >/dev/null
status=$(cat status.txt)
holds "predict | head fails" test "$status" = 1
holds "predict | head is quiet" test ! -s err.txt

# A failure leaves the old file as it was.
echo old >kept.txt
echo '1 1:nan' >bad.svm
refuses 3 'bad\.svm:1:' predict m bad.svm --out kept.txt
holds "the old file is kept" test "$(cat kept.txt)" = old
finish
