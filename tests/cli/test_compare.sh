#!/bin/bash
# Laws of `sounder compare`: strategies and variants, the table, JSON, the page, charts; and of --evaluate-every.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
"$sounder" generate sparse-classification data.svm --rows 2000 --features 200 --nnz 10 --seed 4 --quiet >/dev/null
sim="--transport sim --workers 8 --compute const:1+exp:rate=0.5 --batch 8"

# check NAME EXPRESSION: a law in Python on `it`, the object in out.txt.
check() {
    holds "$1" python3 -c 'import json, sys
it = json.loads(open("out.txt").read())
sys.exit(not eval(sys.argv[1]))' "$2"
}

# A comma begins a strategy, unless KEY=VALUE follows: that belongs to the one before.
succeeds compare data.svm --sync "hogwild:exchange=64,damping=no,serial,locked:stripes=2" --seeds 1 --epochs 2 --json --quiet
holds "--json is one line" test "$(wc -l <out.txt)" = 1
check "commas within options" '[s["sync"] for s in it["strategies"]] == ["hogwild:exchange=64,damping=no", "serial", "locked:stripes=2"]'
check "strategies without servers have points at the ends of epochs" \
    'it["strategies"][0]["runs"][0]["curve"]["updates"] == [0, 2000, 4000]'
refuses 2 "there is no strategy 'asink'; did you mean 'async'" compare data.svm --sync bsp,asink
refuses 2 "k-async has no option 'foo'" compare data.svm --sync bsp,k-async:k=4,foo=1
refuses 2 "missing between two commas" compare data.svm --sync bsp,,async
refuses 2 "'async' twice" compare data.svm --sync async,bsp,async
refuses 2 "what is to be compared" compare data.svm
refuses 2 "transport" compare data.svm --sync serial,async --transport sim --seeds 1
refuses 2 "seeds is a number" compare data.svm --sync bsp,async --seeds 0
refuses 2 "target takes a loss" compare data.svm --sync bsp,async --target low
refuses 2 "evaluate-every" compare data.svm --sync hogwild,serial --evaluate-every 10
for option in --out --run --resume --record --config; do
    refuses 2 "does not take $option" compare data.svm --sync bsp $option x
done
refuses 1 "nowhere" compare data.svm --sync bsp --report nowhere/report.html
refuses 2 "overwrite" compare data.svm --sync bsp --report data.svm
refuses 2 "no strategy 'bsp,async'" train data.svm --sync bsp,async

# A variant is options on top of the common ones, and those of one do not reach the next.
succeeds compare data.svm --variant "--optimizer adam --lr 0.01" --variant "--batch=4  --no-intercept" --variant "--epochs 3" \
    --epochs 2 --seeds 1 --json --quiet
check "the texts of variants" '[s["variant"] for s in it["strategies"]] == ["--optimizer adam --lr 0.01", "--batch=4  --no-intercept", "--epochs 3"]'
check "their labels" '[s["label"] for s in it["strategies"]] == ["optimizer=adam lr=0.01", "batch=4 no-intercept", "epochs=3"]'
check "every variant starts from the common options" '[[o["optimizer"], o["batch"], o["intercept"], s["runs"][0]["summary"]["epochs"]]
    for s in it["strategies"] for o in [s["runs"][0]["summary"]["options"]]] == [
    ["adam", "1", "yes", 2], ["adagrad", "4", "no", 2], ["adagrad", "1", "yes", 3]]'
check "without --sync: that of train" '[s["sync"] for s in it["strategies"]] == ["serial"] * 3'
# shellcheck disable=SC2086
succeeds compare data.svm --sync bsp,async --variant "--lr 0.1" --variant "--lr 0.2" $sim --epochs 1 --seeds 1 --report report.html --chart chart.svg
for label in "bsp lr=0.1" "bsp lr=0.2" "async lr=0.1" "async lr=0.2"; do
    holds "the table has $label" prints out.txt "^$label +1 "
    holds "progress has $label" prints err.txt "\] $label seed 1"
    holds "the chart has $label" prints chart.svg ">$label<"
    holds "the page has $label" prints report.html ">$label<"
done
succeeds compare data.svm --variant "--sync bsp --workers 2" --variant "--sync hogwild" --batch 8 --epochs 1 --seeds 1 --quiet
holds "a variant may set the strategy" prints out.txt "^bsp workers=2 +1 "
refuses 2 "variant '--sync bsp': --sync is given" compare data.svm --sync async --variant "--sync bsp"
refuses 2 "variant '--optimiser x': there is no option --optimiser; did you mean --optimizer" compare data.svm --variant "--optimiser x"
refuses 2 "variant '--lr': --lr needs a value" compare data.svm --variant "--lr"
refuses 2 "variant 'lr 3': 'lr' is not an option" compare data.svm --variant "lr 3"
refuses 2 "variant '--sync serial --workers 2': --sync serial has one worker" compare data.svm --variant "--lr 1" --variant "--sync serial --workers 2"
refuses 2 "variant ' ': it has no options" compare data.svm --variant " "
refuses 2 "variant has 'lr=1' twice" compare data.svm --variant "--lr 1" --variant "--lr=1"
refuses 2 "virtual time" compare data.svm --variant "--sync bsp" --variant "--sync async --transport sim"
for option in "--label 3" "--valid x" "--valid-fraction 0.1" "--seed 2" "--json" "--threads 2"; do
    refuses 2 "variant '$option': ${option%% *} is common to all contenders" compare data.svm --variant "$option"
done

# The table has a line for every strategy, and standard error one for every run.
# shellcheck disable=SC2086
succeeds compare data.svm --sync bsp,k-async:k=4,async $sim --epochs 2 --seeds 3 --target 0.6 --report report.html
for sync in bsp k-async:k=4 async; do
    holds "the table has $sync" prints out.txt "^$sync +3 +3 "
done
holds "intervals are explained" prints out.txt "95 % confidence"
holds "a line for every run" test "$(grep -c '^\[[0-9]/9\] .*: objective .*virtual s' err.txt)" = 9
holds "what is next to come" prints err.txt "ETA"
holds "no temporary is left" test -z "$(find . -name '*tmp*')"
holds "the page loads nothing" test -z "$(grep -Eo '(https?:)?//[a-z]|src=|<script|@import|url\(' report.html)"
holds "the page is whole" prints report.html '</html>'
holds "curves are drawn" test "$(grep -c '<svg' report.html)" -ge 2
for sync in bsp k-async:k=4 async; do
    holds "the page has $sync" prints report.html ">$sync<"
done
cp data.svm 'a<b>&".svm'
# shellcheck disable=SC2086
succeeds compare 'a<b>&".svm' --sync bsp,async $sim --epochs 1 --seeds 1 --report report.html --quiet
holds "names are written as text" prints report.html 'a&lt;b&gt;&amp;&quot;.svm'
holds "--quiet is quiet" test ! -s err.txt
holds "the page is well formed" python3 -c 'import re, xml.dom.minidom as x
for svg in re.findall("<svg.*?</svg>", open("report.html", encoding="utf-8").read(), re.S): x.parseString(svg)'

# The chart is a file of its own: SVG that any viewer shows, and the loss that --target is meant for.
# shellcheck disable=SC2086
succeeds compare data.svm --sync bsp,async $sim --epochs 2 --seeds 2 --target 0.6 --chart chart.svg --quiet
holds "the chart is well formed" python3 -c 'import xml.dom.minidom as x
root = x.parse("chart.svg").documentElement
assert root.tagName == "svg" and root.getAttribute("width") and root.namespaceURI == "http://www.w3.org/2000/svg"'
holds "the chart loads nothing" test -z "$(grep -Eo 'href|src=|<script|@import|url\(' chart.svg)"
holds "its colours are written out" test -z "$(grep -Fo 'var(' chart.svg)"
holds "it is the objective against time" prints chart.svg '<title>Objective against time<'
holds "it has the target" prints chart.svg '>target 0.6<'
for sync in bsp async; do
    holds "the chart has $sync" prints chart.svg ">$sync<"
done
# shellcheck disable=SC2086
succeeds compare data.svm --sync bsp,async $sim --epochs 1 --seeds 1 --valid-fraction 0.2 --chart chart.svg --quiet
holds "with validation data it is its loss" prints chart.svg '<title>Validation loss against time<'
refuses 2 "overwrite" compare data.svm --sync bsp --chart data.svm
refuses 2 "the same file" compare data.svm --sync bsp --chart page --report page
refuses 1 "nowhere" compare data.svm --sync bsp --chart nowhere/chart.svg

# The axes of the chart are a choice.
# shellcheck disable=SC2086
succeeds compare data.svm --sync bsp $sim --epochs 1 --seeds 1 --valid-fraction 0.2 --chart chart.svg --chart-x rows --chart-y error --quiet
holds "error against rows" prints chart.svg '<title>Validation error against rows<'
# shellcheck disable=SC2086
succeeds compare data.svm --sync bsp $sim --epochs 1 --seeds 1 --chart chart.svg --chart-x updates --chart-y loss --quiet
holds "objective against updates" prints chart.svg '<title>Objective against updates<'
refuses 2 "chart-x is seconds, updates or rows, not 'row'" compare data.svm --sync bsp --chart c.svg --chart-x row
refuses 2 "chart-y is loss or error" compare data.svm --sync bsp --chart c.svg --chart-y accuracy
refuses 2 "chart-x needs --chart" compare data.svm --sync bsp --chart-x rows
refuses 2 "chart-y needs --chart" compare data.svm --sync bsp --chart-y loss
refuses 2 "chart-y error needs --valid" compare data.svm --sync bsp --chart c.svg --chart-y error
refuses 2 "chart-y error needs a model of classes" compare data.svm --sync bsp --batch 8 --epochs 1 --model squared --valid-fraction 0.2 \
    --chart c.svg --chart-y error

# Many curves differ in colour or dash pattern.
rates=()
for i in $(seq 1 16); do rates+=(--variant "--lr 0.0$i"); done
succeeds compare data.svm "${rates[@]}" --epochs 1 --seeds 1 --chart chart.svg --quiet
holds "sixteen curves, no two alike" test "$(grep -o '<path class="line [^"]*"' chart.svg | sort -u | wc -l)" = 16

# A strategy that falls at once is seen beside a slow one: time is logarithmic. Alone it is not.
"$sounder" generate dense-regression fall.csv --rows 2000 --features 10 --quiet >/dev/null
fall="--transport sim --workers 16 --slow 3:20x --batch 4 --optimizer sgd --lr 0.01 --schedule constant --epochs 8 --seeds 1 --quiet"
# shellcheck disable=SC2086
succeeds compare fall.csv --sync bsp,async $fall --chart chart.svg
holds "quick and slow: a logarithmic time axis" prints chart.svg 'virtual seconds\), logarithmic<'
# shellcheck disable=SC2086
succeeds compare fall.csv --sync bsp $fall --chart chart.svg
holds "slow alone: a linear one" prints chart.svg 'virtual seconds\)<'

# Everything is in the JSON object, and virtual time repeats itself.
again() {
    # shellcheck disable=SC2086
    succeeds compare data.svm --sync bsp,async $sim --epochs 2 --seeds 2 --seed 7 --valid-fraction 0.2 --target 0.6 --json --quiet
    python3 -c 'import json
it = json.load(open("out.txt"))
for s in it["strategies"]:
    for r in s["runs"]: del r["wall_seconds"]
print(json.dumps(it))' >"$1"
}
again first.json
check "a curve for every strategy and seed" \
    '[[r["seed"] for r in s["runs"]] for s in it["strategies"]] == [[7, 8], [7, 8]] and all(len(r["curve"]["seconds"]) > 20 for s in it["strategies"] for r in s["runs"])'
check "columns of a curve go together" \
    'all(len(set(map(len, r["curve"].values()))) == 1 and set(r["curve"]) == {"seconds", "updates", "rows", "objective", "valid_loss", "valid_metric"} for s in it["strategies"] for r in s["runs"])'
check "curves begin at nothing and go forward" \
    'all(r["curve"]["updates"][0] == 0 and r["curve"]["seconds"] == sorted(r["curve"]["seconds"]) for s in it["strategies"] for r in s["runs"])'
check "the time to the target is that of the first point at or below it" \
    'all(abs(s["measures"]["time_to_target"]["mean"] - sum(min(t for t, l in zip(r["curve"]["seconds"], r["curve"]["valid_loss"]) if l <= 0.6) for r in s["runs"]) / 2) < 1e-9 for s in it["strategies"])'
check "runs do not stop at the target" 'all(r["summary"]["epochs"] == 2 for s in it["strategies"] for r in s["runs"])'
check "two seeds, t = 12.706" \
    'all(abs((m["high"] - m["low"]) / 2 - 12.706 * abs(s["runs"][0]["summary"]["objective"] - s["runs"][1]["summary"]["objective"]) / 2) < 1e-4 for s in it["strategies"] for m in [s["measures"]["objective"]])'
again second.json
holds "the same command, the same JSON" cmp -s first.json second.json

# With a constant step: the less a strategy waits the sooner it is at the target, and the higher its floor.
"$sounder" generate dense-regression line.csv --rows 5000 --features 20 --noise 1 --quiet >/dev/null
succeeds compare line.csv --sync bsp,k-async:k=4,async --seeds 3 --target 0.6 --transport sim --workers 8 --json --quiet \
    --compute const:1+exp:rate=0.5 --batch 4 --optimizer sgd --lr 0.02 --schedule constant --epochs 4
check "async is first, bsp last" '(lambda t: t[0] > 2 * t[1] > 4 * t[2])([s["measures"]["time_to_target"]["median"] for s in it["strategies"]])'
check "async ends highest, bsp lowest" '(lambda l: l[0] < l[1] < l[2])([s["measures"]["objective"]["median"] for s in it["strategies"]])'

# One that diverges is a line, not the end.
stale="--transport sim --workers 32 --model squared --lr 0.15 --schedule constant --scale none --optimizer sgd --epochs 3 --seeds 2"
# shellcheck disable=SC2086
succeeds compare data.svm --sync async,bsp $stale --report report.html
holds "async diverged" prints out.txt '^async +diverged +- '
holds "bsp did not" prints out.txt '^bsp +2 +0\.'
holds "progress says so" prints err.txt 'async seed 1: diverged'
holds "and so does the page" prints report.html 'async \(diverged\)'
# shellcheck disable=SC2086
succeeds compare data.svm --sync async,bsp $stale --json --quiet
check "and JSON" '[(s["diverged"], s["runs"][0]["outcome"]) for s in it["strategies"]] == [(2, "diverged"), (0, "trained")]'

# --evaluate-every: points at multiples, with the bits of a run without them, penalties or not.
for options in "--sync serial" "--sync serial --l2 1e-3" "--sync serial --batch 3 --l1 1e-3 --optimizer ftrl" \
    "--sync bsp $sim" "--sync async $sim" "--sync async --servers 2 --l2 1e-3 $sim" "--sync bsp --workers 2 --batch 50"; do
    rm -rf folder
    # shellcheck disable=SC2086
    succeeds train data.svm $options --epochs 2 --json --quiet
    hash=$(key model_hash <out.txt)
    # shellcheck disable=SC2086
    succeeds train data.svm $options --epochs 2 --json --quiet --evaluate-every 7 --run folder
    holds "$options: the same bits" test "$(key model_hash <out.txt)" = "$hash"
    holds "$options: a point every 7 updates" python3 -c 'import json, sys
lines = [json.loads(l) for l in open("folder/metrics.jsonl")]
at = [l["updates"] for l in lines if l["state"] == "point"]
sys.exit(at != list(range(0, int(sys.argv[1]) + 1, 7)) or not all("objective" in l for l in lines if l["state"] == "point"))' "$(key updates <out.txt)"
done
succeeds train data.svm --evaluate-every 100 --target 0.5 --json --quiet
holds "the target is looked for at points" test "$(($(key updates <out.txt) % 100))" = 0
holds "and reached" test "$(key stopped <out.txt)" = "the target was reached"
refuses 2 "evaluate-every needs a strategy with servers" train data.svm --sync hogwild --evaluate-every 5
refuses 2 "evaluate-every takes updates" train data.svm --evaluate-every often
finish
