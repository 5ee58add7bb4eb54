"""Records of racing runs: a replay by one worker is the run that was recorded, and tells what races cost."""
import os
import subprocess
import sys

import numpy as np

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import laws
from laws import SOUNDER, expect, path_of

RECORD = path_of("record")
random = np.random.default_rng(3)


def train(path, *options, code=0):
    out = laws.train(path, *options, code=code)
    if code:
        expect("one line", out.count("\n") == 1, out.strip())
        return out
    return {**out[0], "first": next(iter(out[1].values())).astype(float).ravel(), "intercept": out[1].get("intercept")}


def write(name, rows):
    path = path_of(name)
    with open(path, "w") as file:
        file.writelines("%s %s\n" % (label, " ".join("%d:%.4g" % entry for entry in sorted(entries)))
                        for label, entries in rows)
    return path


def rows(count, classes):
    for _ in range(count):
        index = np.unique((300 * random.random(9) ** 3).astype(int))
        x = random.standard_normal(len(index))
        yield int(abs(x.sum()) * 2) % classes, [(j + 1, v) for j, v in zip(index, x)]


two, four = write("two.svm", rows(4000, 2)), write("four.svm", rows(3000, 4))
ratings = path_of("ratings.triples")
with open(ratings, "w") as file:
    file.writelines("u%d i%d %.2f\n" % (random.integers(200), random.integers(90), random.normal(3, 1))
                    for _ in range(4000))

# ---- with exchanges: the same numbers ----
for name, path, options in (("adagrad", two, []), ("adam", two, ["--optimizer", "adam"]),
                            ("penalties", two, ["--l1", 1e-3, "--l2", 1e-3]), ("softmax", four, []),
                            ("batches", two, ["--batch", 7]), ("ratings", ratings, ["--model", "mf:rank=4"]),
                            ("clusters", four, ["--model", "kmeans:5"])):
    for workers in (2, 5):
        options = [*options, "--epochs", 3, "--sync", "hogwild:exchange=64"]
        race = train(path, *options, "--workers", workers, "--record", RECORD)
        again = train(path, *options, "--replay", RECORD)
        expect("%s, %d workers" % (name, workers), again["replay_difference"] == 0 and
               again["model_hash"] == race["model_hash"], "%g" % again["replay_difference"])
        expect("it is the recorded one", again["recorded_loss"] == race["train_loss"] and
               again["workers"] == workers and again["updates"] == race["updates"])
size = os.path.getsize(RECORD) - 4 * len(race["first"])
expect("records are compact", size < 2000, "%d bytes for 9000 rows" % size)
# A record is of this run's order and of no other. On one core workers take turns, and may do so in the same order:
# runs become longer than the time for which the system lets a thread run.
orders, epochs = {}, 4
while len(orders.get(epochs, ())) < 2 and epochs <= 1024:
    epochs *= 2
    for _ in range(4):
        train(two, "--epochs", epochs, "--sync", "hogwild:exchange=16", "--workers", 4, "--record", RECORD)
        with open(RECORD, "rb") as file:
            orders.setdefault(epochs, set()).add(file.read())
        again = train(two, "--epochs", epochs, "--sync", "hogwild:exchange=16", "--replay", RECORD)
        expect("whatever the order was", again["replay_difference"] <= 1e-5)
expect("orders differ from run to run", len(orders[epochs]) > 1, "%d of %d epochs" % (len(orders[epochs]), epochs))

# ---- straight to the shared model: what got lost is counted and told ----
STEP, COUNT = 2.0 ** -26, 4000
STRAIGHT = ["--model", "hinge", "--optimizer", "sgd", "--lr", STEP, "--schedule", "constant", "--scale", "none",
            "--sync", "hogwild:exchange=0"]
# Steps on the intercept and on feature 1 are all of one size, and but one of an epoch of one sign: both count them.
inside = write("inside.svm", [(1 if i else 0, [(1, 1), (int(random.integers(2, 400)), 1)]) for i in range(COUNT)])
race = train(inside, *STRAIGHT, "--epochs", 5, "--workers", 3, "--record", RECORD)
again = train(inside, *STRAIGHT, "--epochs", 5, "--replay", RECORD)
expect("a replay loses nothing", again["updates_lost"] == 0 and again["first"][0] == 5 * (COUNT - 2) * STEP and
       again["intercept"].ravel()[0] == 5 * (COUNT - 2) * STEP, "%g" % (again["first"][0] / STEP))
# A worker that the system puts to sleep between a load and its store undoes what the others did meanwhile, on the
# intercept, or on its count as well. On one core nothing else loses a step: runs become longer until some are lost.
seen, epochs = [], 5
while len([1 for _, missing in seen if missing > 1e-3]) < 3 and epochs <= 2560:
    for _ in range(4):
        race = train(inside, *STRAIGHT, "--epochs", epochs, "--workers", 3)
        seen.append((race["updates_lost"], 1 - race["intercept"].ravel()[0] / (epochs * (COUNT - 2) * STEP)))
    epochs *= 2
told = ", ".join("%.4f of %.4f" % pair for pair in sorted(seen, key=lambda pair: -pair[1])[:4])
expect("all that is lost is told", all(0 <= lost < 1 and lost >= 0.9 * missing - 1e-3 for lost, missing in seen), told)
expect("and what is not lost is not", min(lost - 1.5 * missing for lost, missing in seen) < 0.01, told)
apart = write("apart.svm", [(i % 2, [(2 * i + 1, 1), (2 * i + 2, 0.5)]) for i in range(2000)])
options = ["--no-intercept", "--epochs", 3, "--sync", "hogwild:exchange=0"]
train(apart, *options, "--workers", 3, "--record", RECORD)
again = train(apart, *options, "--replay", RECORD)
expect("rows with nothing in common race for nothing", again["replay_difference"] == 0)

# ---- what does not fit is refused ----
OPTIONS = ["--epochs", 2, "--sync", "hogwild:exchange=64"]
train(two, *OPTIONS, "--workers", 2, "--record", RECORD)
expect("other options", "seed" in train(two, *OPTIONS, "--seed", 9, "--replay", RECORD, code=2))
expect("other data", "data" in train(write("other.svm", rows(4000, 2)), *OPTIONS, "--replay", RECORD, code=2))
expect("other ends", "epochs" in train(two, *OPTIONS, "--epochs", 3, "--replay", RECORD, code=2))
expect("other blocks", "other options" in train(two, *OPTIONS, "--memory", "20K", "--replay", RECORD, code=2))
again = train(two, *OPTIONS, "--replay", RECORD, "--run", path_of("replayed"), "--checkpoint-every", "900u")
expect("checkpoints do not disturb a replay", again["replay_difference"] == 0)
before = open(two).read()
expect("a record does not go over its data", "two.svm" in train(two, *OPTIONS, "--record", two, code=2))
os.mkfifo(path_of("fifo"))
train(two, *OPTIONS, "--record", path_of("fifo"), code=2)
expect("and nothing was lost", open(two).read() == before)
expect("other workers", "2 workers" in train(two, *OPTIONS, "--workers", 3, "--replay", RECORD, code=2))
expect("nothing races", "hogwild" in train(two, "--record", RECORD, code=2))
expect("nothing races among lanes", "race" in train(two, *OPTIONS, "--deterministic", "--record", RECORD, code=2))
with open(RECORD, "rb") as file:
    whole = file.read()
head = whole.index(b"\n", whole.index(b"\n", 20) + 1) + 1
for trial in range(40):
    broken = bytearray(whole)
    if trial < 10:
        broken = broken[:int(random.integers(len(whole)))]
    else:
        broken[int(random.integers(head, min(head + 400, len(whole))))] ^= 1 << int(random.integers(8))
    with open(RECORD, "wb") as file:
        file.write(broken)
    done = subprocess.run([SOUNDER, "train", two, *map(str, OPTIONS), "--quiet", "--replay", RECORD],
                          capture_output=True, text=True)
    if done.returncode not in (0, 5) or done.returncode == 0 and trial < 10:
        expect("a damaged record: %d" % trial, False, "%d %s" % (done.returncode, done.stderr))
# Numbers no run would write: more rows than there are, workers that are not there.
for events in (b"\x00" + b"\x0a" + b"\xfb" + 8 * b"\xff" + b"\x01", b"\x90\x1c\x00\x01"):
    for workers in (b"2", b"1000"):
        line = whole.index(b"\n", whole.index(b"\n", 17) + 1)
        first = whole[:whole.rindex(b"\n", 0, line) + 1] + workers + b"\n"
        tail = whole[-24:]
        values = whole[len(whole) - 24 - 4 * int.from_bytes(tail[8:16], "little"):-24]
        with open(RECORD, "wb") as file:
            file.write(first + events + values + len(events).to_bytes(8, "little") + tail[8:])
        train(two, *OPTIONS, "--replay", RECORD, code=5)
laws.finish()
