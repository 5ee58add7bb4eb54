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
    return {**out[0], "first": next(iter(out[1].values())).astype(float).ravel()}


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
        expect("%s, %d workers" % (name, workers), again["replay_difference"] <= 1e-5 and
               np.allclose(race["first"], again["first"], rtol=1e-5, atol=1e-7), "%g" % again["replay_difference"])
        expect("it is the recorded one", again["recorded_loss"] == race["train_loss"] and
               again["workers"] == workers and again["updates"] == race["updates"])
size = os.path.getsize(RECORD) - 4 * len(race["first"])
expect("records are compact", size < 2000, "%d bytes for 9000 rows" % size)
# A record is of this run's order and of no other.
orders = set()
for _ in range(4):
    train(two, "--epochs", 4, "--sync", "hogwild:exchange=16", "--workers", 4, "--record", RECORD)
    with open(RECORD, "rb") as file:
        orders.add(file.read())
    again = train(two, "--epochs", 4, "--sync", "hogwild:exchange=16", "--replay", RECORD)
    expect("whatever the order was", again["replay_difference"] <= 1e-5)
print("%d different orders in 4 runs" % len(orders))

# ---- straight to the shared model: what got lost is counted and told ----
STRAIGHT = ["--model", "hinge", "--optimizer", "sgd", "--lr", 2.0 ** -20, "--schedule", "constant", "--scale", "none",
            "--epochs", 5, "--sync", "hogwild:exchange=0"]
inside = write("inside.svm", [(1 if i % 4 else 0, [(1, 1), (int(random.integers(2, 400)), 1)]) for i in range(4000)])
race = train(inside, *STRAIGHT, "--workers", 3, "--record", RECORD)
again = train(inside, *STRAIGHT, "--replay", RECORD)
missing = 1 - race["first"][0] / again["first"][0]  # of the steps on the feature that all rows have
expect("a replay loses nothing", again["updates_lost"] == 0 and
       abs(again["first"][0] / 2.0 ** -20 - 5 * (3000 - 1000)) < 1, "%g" % (again["first"][0] * 2 ** 20))
# A worker that the system puts to sleep between a load and its store undoes all that the others did meanwhile, on
# one weight or another: the shares lost of two weights need not be alike.
expect("the share lost is told", 0 <= race["updates_lost"] < 1,
       "%.4f of the steps on the intercept, %.4f on the busiest feature" % (race["updates_lost"], missing))
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
                          capture_output=True, text=True, timeout=60)
    if done.returncode not in (0, 5) or done.returncode == 0 and trial < 10:
        expect("a damaged record: %d" % trial, False, "%d %s" % (done.returncode, done.stderr))
laws.finish()
