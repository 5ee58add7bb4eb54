#!/usr/bin/env bash
# The same seed gives the same model, byte for byte: whatever the data came from, however many threads read
# it, and however often the run was killed on the way.
set -u
work=$(mktemp -d "${TMPDIR:-/tmp}/sounder-same-bits-XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0

bad() {
    echo "FAILED $*"
    failed=1
}

# train NAME ARGUMENT…: writes NAME.model and NAME.json
train() {
    local name=$1
    shift
    "$SOUNDER" train "$@" --quiet --json --out "$name.model" >"$name.json" 2>"$name.err" ||
        { bad "train $*: $(cat "$name.err")"; return 1; }
}
hash_of() { sed 's/.*"model_hash":"\([0-9a-f]*\)".*/\1/' "$1.json"; }

# same NAME OTHER: the same hash and the same bytes
same() {
    [ -s "$1.model" ] && [ -s "$2.model" ] || { bad "$2: no model"; return; }
    [ "$(hash_of "$1")" = "$(hash_of "$2")" ] || bad "$2: another model_hash than $1 (${kind[*]-})"
    [ "$(sha256sum <"$1.model")" = "$(sha256sum <"$2.model")" ] || bad "$2: other bytes than $1 (${kind[*]-})"
}

"$SOUNDER" generate sparse-classification data.svm --rows 20000 --seed 5 >/dev/null 2>&1 || exit 1
gzip -k data.svm
zstd -q -k data.svm 2>/dev/null || echo "no zstd program: that part is left out"

# ---- where the data comes from ----
common=(--epochs 3 --seed 9 --l1 1e-5 --l2 1e-5)
train text data.svm "${common[@]}"
train again data.svm "${common[@]}"
same text again
train gz data.svm.gz "${common[@]}"
same text gz
if [ -e data.svm.zst ]; then
    train zst data.svm.zst "${common[@]}"
    same text zst
fi
"$SOUNDER" train - --format libsvm "${common[@]}" --quiet --json --out stdin.model \
    <data.svm >stdin.json 2>stdin.err || bad "stdin: $(cat stdin.err)"
same text stdin
train cold data.svm "${common[@]}" --cache cache
same text cold
[ -n "$(ls cache 2>/dev/null)" ] || bad "the cache is empty: the warm run tests nothing"
train warm data.svm "${common[@]}" --cache cache
same text warm
"$SOUNDER" convert data.svm data.sdc >/dev/null 2>convert.err || bad "convert: $(cat convert.err)"
train sdc data.sdc "${common[@]}"
same text sdc
split -l 7000 --additional-suffix=.svm data.svm part-
train parts part-aa.svm part-ab.svm part-ac.svm "${common[@]}"
[ "$(hash_of text)" = "$(hash_of parts)" ] || bad "three parts: another model_hash than the whole file"
for threads in 1 2 3; do
    train threads-$threads data.svm "${common[@]}" --threads $threads
    same text threads-$threads
done

# ---- what must change the bits, and what must not ----
train other data.svm --epochs 3 --seed 10 --l1 1e-5 --l2 1e-5
[ "$(hash_of text)" != "$(hash_of other)" ] || bad "another seed gives the same model"
for optimizer in sgd nesterov adam ftrl; do
    for average in no 1; do
        name=$optimizer-$average
        train "$name" data.svm "${common[@]}" --optimizer $optimizer --average $average
        train "$name-watched" data.svm "${common[@]}" --optimizer $optimizer --average $average \
            --run "run-$name" --checkpoint-every 777u
        [ "$(hash_of "$name")" = "$(hash_of "$name-watched")" ] ||
            bad "$name: checkpoints change the model"
    done
done
train free data.svm --epochs 3 --seed 9 --l2 1e-4
train validated data.svm --epochs 3 --seed 9 --l2 1e-4 --valid data.svm.gz
[ "$(hash_of free)" = "$(hash_of validated)" ] || bad "evaluating changes the model"

# ---- killed and resumed ----
# One kind of run per round, so that every part of the state must come back.
kinds=("--optimizer adagrad --l1 1e-5 --l2 1e-5" "--optimizer nesterov --l2 1e-5 --batch 3"
       "--optimizer adam --average 2" "--optimizer ftrl --l1 1e-6"
       "--valid-fraction 0.2 --early-stop 5 --optimizer sgd" "--optimizer adadelta --l1 1e-6"
       "--optimizer momentum --average 1 --l1 1e-5" "--optimizer rmsprop-nesterov --l2 1e-5"
       "--class-weight balanced --shuffle blocks" "--sync batch --epochs 60 --l1 1e-4")
RANDOM=17
killed=0
epochs=15 # long enough to be killed on the way; one that is over too soon is started again
[ -z "${SOUNDER_SANITIZE:-}" ] || epochs=6
for round in 0 1 2 3 4 5 6 7 8 9; do
    read -r -a kind <<<"--epochs $epochs --seed 9 ${kinds[$round]}"
    train whole data.svm "${kind[@]}"
    every=4000u
    [[ ${kinds[$round]} == *--sync* ]] && every=3u
    resume=()
    hits=0
    pause=yes
    for _ in $(seq 50); do
        "$SOUNDER" train data.svm "${kind[@]}" --run "killed-$round" --checkpoint-every $every \
            "${resume[@]}" --quiet --json --out broken.model >broken.json 2>broken.err &
        process=$!
        # A slow machine may need a while to its first checkpoint; the kill comes at any time behind it.
        until compgen -G "killed-$round/checkpoint-*.safetensors" >/dev/null ||
            ! kill -0 "$process" 2>/dev/null; do
            sleep 0.02
        done
        [ $pause = no ] || sleep "0.$((RANDOM % 4))$((RANDOM % 10))"
        kill -9 "$process" 2>/dev/null
        wait "$process" 2>/dev/null
        if [ $? = 137 ]; then
            resume=(--resume)
            hits=$((hits + 1))
            [ $hits -lt 2 ] || break
        elif [ $hits = 0 ]; then # it was over before it could be killed: another one, killed at once
            rm -rf "killed-$round"
            pause=no
        else
            break
        fi
    done
    killed=$((killed + hits))
    train "resumed-$round" data.svm "${kind[@]}" --run "killed-$round" --checkpoint-every $every \
        "${resume[@]}"
    same whole "resumed-$round"
    [ $hits -gt 0 ] || bad "round $round: no kill hit a running process"
done

# ---- finished runs ----
# Resuming a run that is over changes nothing, whatever ended it.
for ended in "--early-stop 2 --valid-fraction 0.2 --epochs 60" "--target 0.4 --epochs 60" "--updates 30000" \
    "--epochs 3"; do
    read -r -a kind <<<"--seed 9 --optimizer sgd $ended"
    rm -rf over
    train over data.svm "${kind[@]}" --run over
    train over-again data.svm "${kind[@]}" --run over --resume
    same over over-again
done

# A schedule that ends with the run depends on its length: another length is another path.
rm -rf length
train length data.svm --optimizer sgd --schedule linear --updates 2000 --run length
"$SOUNDER" train data.svm --optimizer sgd --schedule linear --updates 4000 --run length --resume --quiet \
    >length.out 2>&1
[ $? = 2 ] || bad "--resume with other --updates under a schedule that needs the end: not refused"
echo "$killed kills"
exit $failed
