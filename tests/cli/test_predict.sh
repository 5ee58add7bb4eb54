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

# A model of numbers does not carry the labels it was trained on; a model of classes has its classes.
printf 'size,price\n70,210.5\n95,330.25\n60,180.125\n88,305.75\n' >flats.csv
succeeds train flats.csv --label price --model squared --epochs 3 --out flats.model
holds "the weights are in the file" grep -aq '"weight"' flats.model
holds "labels of regression are not" test "$(grep -ac '330.25' flats.model)" = 0
succeeds train flats.csv --label price --model softmax --epochs 3 --out prices.model
holds "classes are in the file" grep -aq '330.25' prices.model
printf 'kind,x\nred,1\nblue,2\nred,1.1\nblue,2.1\n' >kinds.csv
succeeds train kinds.csv --label kind --model kmeans:2 --out kinds.model
holds "labels that clusters leave out are not in the file" test "$(grep -ac blue kinds.model)" = 0
succeeds predict kinds.model kinds.csv
# A model file of before, which has them, is read as it was: 70 gave 219.0109.
base64 -d <<'B' | gunzip >old.model
H4sIAAAAAAACA71TO47bMBBNkS6XCFjLhqiPpXWVKpewBWNMjixiJVIhqc06C18hp8gpUqbLrTIkhcDYrdKE1cybefN70vP7d/G9sNNpQg8SPJ
xObP/CemMn8GzPnFm0RMsy9oTWKaMJ4+RNRuIY4l8WsCgJ8RaUVvpC4MuRmdmrSX1De2T7I6PKFwvyyLIjGwNUNVteN7wuGnq7Os93FHFiQLmM
GCmj0gg2MXhE8uQUd87FmmXejOCcuUNn1DD668boCE4IOuLOg5ZgJY0VA9okWMDas0fwi8WIAu0Ll4TD4lPqGbwYIsQTdVj6fnyV5K5aRMShVT
BGTIQZN19RXQa/9tapj0OUdxWfYFRy01sQXq3zp6VwNmJwBJQ3OvYAbqBDy5bnkveigHMjEMqyroqKi7LhFeS7vqbMcNQJkihJ1VhUuKdYdl05
FObk6mU6k86rd1Y+mHnc3OFqTso50jmWQWtNEsnjsz+NcMYxUHoYHYZc0Ne3qDDjMumAHGgqDVO6oIvCUPxR6XSTNM79oGGGW3bPmq0Sr2ix4R
tWl62R2PjICp5v65hVlvm2SCZv8y1f7TKvtw2Zf4knUmeJtzpEcpaI2UrKEqELAqVGdPZDRx5pIB7dMpFfyLapdw0gr+udQAm7uu05rx6q6qGV
bc1uGUvfSfgPpb/OSKzPZRG0HCB4B57xLmPxbzV979BTo0OeVR1xlfZoBc7/Sq+ytrvdPv7X9/vH90/dh5+//gDa3mu+iAQAAA==
B
succeeds predict old.model flats.csv --quiet
holds "older model files give what they gave" test "$(tr '\n' ' ' <out.txt)" = '219.0109 330.45126 174.43472 299.24796 '

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
