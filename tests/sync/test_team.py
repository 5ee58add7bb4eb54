"""Strategies of several workers on one machine: what each is equal to, and what it conserves."""
import os
import sys

import numpy as np

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import laws
from laws import WORK, expect

SLOW = bool(os.environ.get("SOUNDER_SANITIZE"))
random = np.random.default_rng(11)


def train(path, *options, code=0):
    out = laws.train(path, *options, code=code)
    return out if code else {**out[0], **{name: values.ravel() for name, values in out[1].items()}}


def same(name, *runs):
    hashes = {run["model_hash"] for run in runs}
    expect(name, len(hashes) == 1, "%d models of %d runs" % (len(hashes), len(runs)))


def libsvm(name, rows):
    path = os.path.join(WORK, name)
    with open(path, "w") as file:
        for label, entries in rows:
            file.write("%s %s\n" % (label, " ".join("%d:%.6g" % (j + 1, x)
                                                    for j, x in sorted(entries.items()))))
    return path


def sparse_rows(count, features, nonzeros, classes=2, busy=False):
    """Rows with a hidden linear truth; busy: features of small number are frequent."""
    truth = random.standard_normal((features, classes))
    rows = []
    for _ in range(count):
        draw = random.random(nonzeros)
        index = np.unique((features * (draw ** 4 if busy else draw)).astype(int))
        x = random.standard_normal(len(index))
        rows.append((int(np.argmax(x @ truth[index] + 0.3 * random.standard_normal(classes))),
                     dict(zip(index, x))))
    return rows


ROWS = 600 if SLOW else 3000
busy = libsvm("busy.svm", sparse_rows(ROWS, 200, 12, busy=True))
even = libsvm("even.svm", sparse_rows(ROWS, 40 * ROWS, 4))
classes = libsvm("classes.svm", sparse_rows(ROWS, 60, 8, classes=4, busy=True))
rare_classes = libsvm("rare-classes.svm", sparse_rows(ROWS, 40 * ROWS, 4, classes=3))
dense = os.path.join(WORK, "dense.csv")
X = random.standard_normal((ROWS, 6))
np.savetxt(dense, np.c_[X, X @ random.standard_normal(6) + 0.1 * random.standard_normal(ROWS)],
           delimiter=",", header="a,b,c,d,e,f,y", comments="")
ratings = os.path.join(WORK, "ratings.triples")
with open(ratings, "w") as file:
    file.writelines("u%d i%d %.2f\n" % (random.integers(ROWS // 8), random.integers(ROWS // 20) ** 2 % 60,
                                        random.normal(3, 1)) for _ in range(ROWS))
SETTINGS = [("busy", busy, []), ("ratings", ratings, ["--model", "mf:rank=5"]),
            ("clusters", busy, ["--model", "kmeans:5"]), ("dense clusters", dense, ["--model", "kmeans:6"]),
            ("classes", classes, []), ("dense", dense, []),
            ("adam", busy, ["--optimizer", "adam"]),
            ("penalties", busy, ["--l1", 1e-3, "--l2", 1e-3]),
            ("ftrl", busy, ["--optimizer", "ftrl", "--l1", 1e-3]),
            ("momentum", busy, ["--optimizer", "momentum"]),
            ("nesterov", busy, ["--optimizer", "nesterov", "--schedule", "constant"])]

# ---- one worker is the serial one ----
for name, path, options in SETTINGS:
    options = [*options, "--epochs", 3]
    alone = train(path, *options)
    same("one worker is serial: " + name, alone, train(path, *options, "--sync", "hogwild", "--workers", 1),
         train(path, *options, "--sync", "hogwild:exchange=7", "--workers", 1),
         train(path, *options, "--sync", "hogwild:lanes=1", "--workers", 3, "--deterministic"),
         train(path, *options, "--sync", "average", "--workers", 1),
         train(path, *options, "--sync", "average:every=10", "--workers", 1) if name != "penalties" else alone,
         train(path, *options, "--sync", "locked", "--workers", 1),
         train(path, *options, "--sync", "round-robin", "--workers", 1))

# ---- the same bits for any number of workers ----
COUNTS = (1, 2, 3) if SLOW else (1, 2, 3, 4, 7, 8)
for seed in (1, 2):
    for name, path, options in [*SETTINGS, ("even", even, []), ("rare classes", rare_classes, []),
                                ("rare, penalties", even, ["--l1", 1e-5, "--l2", 1e-4]),
                                ("rare classes, penalties", rare_classes, ["--l1", 1e-5, "--l2", 1e-4]),
                                ("rare, adam", even, ["--optimizer", "adam"]),
                                ("rare, ftrl", even, ["--optimizer", "ftrl", "--l1", 1e-5])]:
        if seed == 2 and ("--optimizer" in options or "--l1" in options):
            continue
        options = [*options, "--epochs", 2, "--seed", seed]
        same("hogwild --deterministic: %s, seed %d" % (name, seed),
             *[train(path, *options, "--sync", "hogwild", "--deterministic", "--workers", p) for p in COUNTS])
        same("bsp --deterministic is serial: %s, seed %d" % (name, seed),
             train(path, *options, "--batch", 96),
             *[train(path, *options, "--batch", 96, "--sync", "bsp", "--deterministic", "--workers", p)
               for p in COUNTS])
        same("cyclades: %s, seed %d" % (name, seed),
             *[train(path, *options, "--sync", "cyclades", "--workers", p) for p in COUNTS])

# The order of an epoch shuffled by chunks is laid out by all workers, in pieces of 8192 rows.
many = libsvm("many.svm", sparse_rows(20000, 300, 4))
for more in ([], ["--valid-fraction", 0.2]):
    options = [*more, "--shuffle", "chunks", "--epochs", 3]
    same("an order laid out together, lanes %s" % more,
         *[train(many, *options, "--sync", "hogwild", "--deterministic", "--workers", p) for p in (1, 2, 3)])
    same("an order laid out together is that of one worker %s" % more, train(many, *options, "--batch", 96),
         *[train(many, *options, "--batch", 96, "--sync", "bsp", "--deterministic", "--workers", p) for p in (1, 2, 3)])

# Rotation: the same for any number of workers, and a permutation of the rows that one worker could have gone through.
cut = libsvm("graph.svm", [("%.3f" % random.random(), {int(a): 1.0, int(b): 1.0}) for a, b in
                           (random.choice(150, 2, replace=False) for _ in range(ROWS))])
for seed in (1, 2):
    for name, path, options in (("ratings", ratings, ["--model", "mf:rank=5"]),
                                ("ratings, adam", ratings, ["--model", "mf:rank=3", "--optimizer", "adam"]),
                                ("weights", ratings, ["--model", "mf:rank=5,bias=no", "--valid-fraction", 0.2]),
                                ("cut", cut, ["--model", "graph-cut:3"])):
        same("rotation: %s, seed %d" % (name, seed),
             *[train(path, *options, "--epochs", 3, "--seed", seed, "--sync", "rotation", "--workers", p)
               for p in COUNTS])
expect("every row once an epoch", train(ratings, "--model", "mf:rank=5", "--epochs", 3, "--sync", "rotation",
                                        "--workers", 2)["updates"] == 3 * ROWS)
expect("rotation needs pairs", "two features" in train(busy, "--sync", "rotation", code=2))
expect("rotation takes single rows", "--batch" in train(ratings, "--model", "mf", "--sync", "rotation", "--batch", 2, code=2))
expect("rotation has no lazy penalty", "mf:l2" in train(ratings, "--model", "mf", "--sync", "rotation", "--l2", 1, code=2))
stopped = train(ratings, "--model", "mf:rank=5", "--sync", "rotation", "--workers", 3, "--updates", 777)
expect("rotation stops where it is told to", stopped["updates"] == 777)

# A batch of one row; batches that do not divide a shard's shares.
same("bsp of single rows is serial", train(busy, "--epochs", 2),
     train(busy, "--epochs", 2, "--sync", "bsp", "--batch", 1, "--deterministic", "--workers", 2),
     train(busy, "--epochs", 2, "--sync", "bsp", "--batch", 1, "--workers", 1))
same("average of one worker is serial by batches", train(busy, "--epochs", 2, "--batch", 2),
     train(busy, "--epochs", 2, "--batch", 2, "--sync", "average", "--workers", 1))
# P workers with batches of b are one worker with batches of P·b.
same("bsp of 4 workers is serial with 4 batches", train(busy, "--batch", 128, "--epochs", 2),
     train(busy, "--batch", 32, "--epochs", 2, "--sync", "bsp", "--workers", 4))
# Without an intercept nothing is left of windows in the first epoch: cyclades is serial.
for name, path in (("even", even), ("busy", busy), ("rare classes", rare_classes)):
    for options in ([], ["--l2", 1e-4], ["--optimizer", "adam"]):
        options = [*options, "--no-intercept", "--epochs", 1]
        same("cyclades is serial: %s %s" % (name, options[:2]), train(path, *options),
             train(path, *options, "--sync", "cyclades", "--workers", 2))
for shuffle in ("none", "rows"):
    same("cyclades is serial, shuffled by " + shuffle,
         train(even, "--no-intercept", "--shuffle", shuffle, "--epochs", 1),
         train(even, "--no-intercept", "--shuffle", shuffle, "--epochs", 1, "--sync", "cyclades",
               "--workers", 3))
runs = train(even, "--epochs", 1, "--sync", "cyclades", "--workers", 2)
expect("cyclades has work for two where features are rare", runs["workers"] == 2)
runs = train(busy, "--epochs", 1, "--sync", "cyclades", "--workers", 2)
expect("cyclades runs serially where all rows are joined", runs["workers"] == 1)

# ---- rows that have nothing in common: serial at any number of workers ----
apart = libsvm("apart.svm", [(i % 2, {3 * i + k: 1 + k + (i % 7) / 8 for k in range(3)}) for i in range(ROWS)])
for options in ([], ["--optimizer", "sgd"], ["--optimizer", "adagrad", "--batch", 5]):
    options = [*options, "--no-intercept", "--epochs", 3]
    same("nothing in common: %s" % options[:2], train(apart, *options),
         *[train(apart, *options, "--sync", sync, "--workers", p) for p in (2, 5)
           for sync in ("hogwild:exchange=35", "hogwild:exchange=5")],
         *([train(apart, *options, "--sync", "hogwild:exchange=0", "--workers", 3)]
           if "--batch" not in options else []))

# ---- nothing is lost: hinge steps of 2^-20 on rows that all stay inside the margin ----
counts = random.integers(0, 40, ROWS)
inside = libsvm("inside.svm", [(int(c % 2), {int(c): 1.0, 41: 1.0, 50: 1.0 if i % 3 else -1.0})
                               for i, c in enumerate(counts)])
STEP = 2.0 ** -20
wanted = np.zeros(51)
for i, c in enumerate(counts):
    sign = 1 if c % 2 else -1
    for j, x in ((c, 1.0), (41, 1.0), (50, 1.0 if i % 3 else -1.0)):
        wanted[j] += sign * x * STEP
for sync in ("serial", "locked", "locked:stripes=8", "hogwild:exchange=1", "hogwild:exchange=9", "average:every=3"):
    result = train(inside, "--model", "hinge", "--optimizer", "sgd", "--lr", STEP, "--schedule", "constant",
                   "--scale", "none", "--no-intercept", "--epochs", 1, "--sync", sync, *([] if sync == "serial" else ["--workers", 4]))
    if sync.startswith("average"):  # a mean of four models that saw a quarter each
        lost = abs(result["weight"] * 4 - wanted).max() / STEP
        expect("average: four quarters make the whole", lost < 4, "%g steps" % lost)
    else:
        lost = abs(result["weight"] - wanted).max() / STEP
        expect("conserves every step: " + sync, lost == 0, "%g steps" % lost)

# ---- average: the mean of models of their own ----
PLAIN = ["--model", "logistic", "--optimizer", "sgd", "--lr", 0.05, "--schedule", "constant", "--scale", "none",
         "--shuffle", "none"]
lines = open(busy).read().splitlines()
parts = [lines[len(lines) * w // 3:len(lines) * (w + 1) // 3] for w in range(3)]
models = []
for w, part in enumerate(parts):
    path = os.path.join(WORK, "part%d.svm" % w)
    with open(path, "w") as file:  # the last row holds the highest feature, so that all have the same
        file.write("\n".join(part) + "\n")
    models.append(train(path, *PLAIN, "--epochs", 4))
mean = np.zeros(200)
for model in models:
    mean[:len(model["weight"])] += model["weight"] / 3
result = train(busy, *PLAIN, "--epochs", 4, "--sync", "average", "--workers", 3)
expect("average is the mean of its workers' models",
       np.allclose(result["weight"], mean[:len(result["weight"])], rtol=1e-5, atol=1e-7),
       "%.1e" % abs(result["weight"] - mean[:len(result["weight"])]).max())
expect("average often is another model",
       train(busy, *PLAIN, "--epochs", 4, "--sync", "average:every=20", "--workers", 3)["model_hash"] !=
       result["model_hash"])
same("average has the same bits each time", *[train(busy, *PLAIN, "--epochs", 4, "--sync", "average:every=20",
                                                    "--workers", 3) for _ in range(3)])

# ---- round-robin: the delay is what it says, and so is the path ----
for workers in (1, 2, 5):
    result = train(dense, "--epochs", 1, "--batch", 8, "--sync", "round-robin", "--workers", workers)
    updates = result["updates"]
    missed = sum(min(i, workers - 1) for i in range(updates))
    expect("round-robin is %d updates behind" % (workers - 1),
           result["staleness_max"] == workers - 1 and round(result["staleness_mean"] * updates) == missed)
data = np.loadtxt(dense, delimiter=",", skiprows=1)
w = np.zeros(6)
history = [w.copy()]
for b in range(ROWS // 8):
    rows = data[8 * b:8 * b + 8]
    view = history[max(b - 3, 0)]
    w = w - 0.01 * rows[:, :6].T @ (rows[:, :6] @ view - rows[:, 6]) / 8
    history.append(w.copy())
result = train(dense, "--model", "squared", "--optimizer", "sgd", "--lr", 0.01, "--schedule", "constant",
               "--scale", "none", "--shuffle", "none", "--no-intercept", "--batch", 8, "--epochs", 1,
               "--updates", ROWS // 8, "--sync", "round-robin", "--workers", 4)
expect("round-robin follows the delayed path", np.allclose(result["weight"], w, rtol=1e-4, atol=1e-5),
       "%.1e" % abs(result["weight"] - w).max())

# ---- what cannot be done is said ----
expect("serial has one worker", "hogwild" in train(busy, "--workers", 2, code=2))
for sync in ("locked", "average", "round-robin"):
    expect(sync + " is not deterministic", "--deterministic" in train(busy, "--sync", sync, "--deterministic", code=2))
expect("no averaging of racing steps", "--average" in train(busy, "--sync", "hogwild", "--average", 1, code=2))
expect("no penalty on racing steps",
       "exchange" in train(busy, "--sync", "hogwild:0", "--workers", 2, "--l2", 1, code=2))
expect("no group lasso from several copies",
       "group-lasso" in train(classes, "--sync", "hogwild", "--workers", 2, "--group-lasso", 1e-3,
                              "--optimizer", "sgd", code=2))
expect("no average of stripes",
       "one lock" in train(busy, "--sync", "locked:stripes=4", "--workers", 2, "--average", 0, code=2))
expect("no batch steps on ratings", "linear" in train(ratings, "--model", "mf", "--sync", "batch", code=2))
expect("no ftrl on ratings", "zero" in train(ratings, "--model", "mf", "--optimizer", "ftrl", code=2))
expect("no sizes of users", "standardize" in train(ratings, "--model", "mf", "--standardize", code=2))
for sync in ("cyclades", "average"):
    expect(sync + " needs the data in memory", "--memory" in train(busy, "--sync", sync, "--memory", "10K", code=2))

# ---- data that streams, a quarter of it in memory ----
size = "%dK" % (os.path.getsize(busy) // 8192)
in_memory = train(busy, "--epochs", 5)
for sync in ("hogwild --deterministic", "bsp --deterministic --batch 64"):
    same("streams: " + sync, *[train(busy, "--epochs", 2, "--memory", size, "--workers", p, "--sync", *sync.split())
                               for p in COUNTS])
for sync in ("serial", "hogwild", "hogwild --deterministic", "locked", "round-robin"):
    workers = [] if sync == "serial" else ["--workers", 2]
    result = train(busy, "--epochs", 5, "--memory", size, *workers, "--sync", *sync.split())
    expect("as good a model streaming: " + sync, result["train_loss"] < 1.05 * in_memory["train_loss"] and
           result["updates"] == in_memory["updates"], "%.4f, in memory %.4f" % (result["train_loss"], in_memory["train_loss"]))
expect("cyclades takes single rows", "--batch" in train(even, "--sync", "cyclades", "--batch", 2, code=2))

# ---- updates, epochs, more workers than rows ----
for sync in ("hogwild", "hogwild:16", "locked", "round-robin", "bsp", "cyclades"):
    result = train(busy, "--sync", sync, "--workers", 3, "--updates", 70, "--batch", 1)
    expect("--updates: " + sync, result["updates"] == 70, str(result["updates"]))
some = libsvm("some.svm", sparse_rows(105, 50, 5))
for sync in ("serial", "hogwild", "locked", "round-robin", "bsp --deterministic"):
    result = train(some, "--batch", 10, "--updates", 10, "--sync", *sync.split())
    expect("--updates before a short batch: " + sync, result["updates"] == 10, str(result["updates"]))
for exchange in (2 ** 61, 2 ** 64 - 1):
    result = train(some, "--epochs", 1, "--sync", "hogwild:exchange=%d" % exchange, "--deterministic", "--batch", 3)
    expect("an exchange of very many rows", result["updates"] == 35)
folder = os.path.join(WORK, "cut")
for sync in ("cyclades", "hogwild --deterministic"):
    options = ["--sync", *sync.split(), "--epochs", 3, "--run", folder + sync[:3]]
    train(even, *options, "--updates", 333)
    expect("a run that was cut goes on as it was: " + sync,
           "updates" in train(even, *options, "--updates", 900, "--resume", code=2))
tiny = libsvm("tiny.svm", [(i % 2, {i: 1.0}) for i in range(5)])
for workers in (2, 3, 7):  # shards of unequal length
    result = train(classes, "--sync", "average:every=1", "--workers", workers, "--epochs", 2, "--valid-fraction", 0.37)
    expect("shards of unequal length meet: %d" % workers, result["updates"] == 2 * result["rows"])
for sync in ("hogwild", "locked", "round-robin", "bsp", "cyclades", "average", "average:every=1",
             "hogwild --deterministic"):
    result = train(tiny, "--workers", 16, "--epochs", 2, "--sync", *sync.split())
    expect("more workers than rows: " + sync, np.isfinite(result["weight"]).all() and result["rows"] == 5)

laws.finish()
