"""--cpu: every level that the CPU has gives the same models and the same predictions; others are refused."""
import os
import sys

import numpy as np

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import laws
from laws import MODEL, expect, path_of, train

random = np.random.default_rng(5)


def flags():
    """Of the CPU, as the system tells them; None where it does not. An emulated CPU is not of x86."""
    if laws.LAUNCH:
        return set()
    try:
        with open("/proc/cpuinfo") as file:
            return next((set(line.split(":")[1].split()) for line in file if line.startswith("flags")), set())
    except OSError:
        return None


NEEDS = {"portable": set(), "avx2": {"avx2"}, "avx512": {"avx512f", "avx512bw", "avx512dq", "avx512vl"}}


def libsvm(name, count, features, most, classes):
    """Rows of one to `most` non-zeros: whole vectors of sixteen and what is left over."""
    with open(path_of(name), "w") as file:
        for _ in range(count):
            index = np.unique(random.integers(1, features, random.integers(1, most)))
            x = random.normal(size=len(index))
            file.write("%d %s\n" % (abs(x.sum()) * classes / 3 % classes, " ".join("%d:%.4f" % e for e in zip(index, x))))
    return path_of(name)


short, long_ = libsvm("short.svm", 600, 500, 40, 2), libsvm("long.svm", 400, 100_000, 60, 3)
dense = path_of("dense.csv")
X = random.normal(size=(500, 37))
np.savetxt(dense, np.c_[X, X @ random.normal(size=37) + random.normal(size=500)], "%.4f", ",",
           header=",".join("x%d" % i for i in range(37)) + ",y", comments="")
ratings = path_of("ratings.triples")
with open(ratings, "w") as file:
    file.writelines("u%d i%d %d\n" % (random.integers(60), random.integers(40), random.integers(1, 6)) for _ in range(1500))

RUNS = [(short, ["--optimizer", name, "--l1", 1e-3]) for name in ("sgd", "adagrad", "ftrl", "momentum")]
RUNS += [(long_, ["--optimizer", name]) for name in ("adam", "nesterov", "rmsprop", "adadelta")]
RUNS += [(dense, []), (dense, ["--batch", 7, "--l2", 1e-2]), (dense, ["--model", "kmeans:5"]), (short, ["--model", "kmeans:20"]),
         (ratings, ["--model", "mf:rank=19"]), (ratings, ["--model", "mf:rank=5", "--sync", "rotation", "--workers", 2]),
         (short, ["--sync", "batch", "--l1", 1e-3]), (long_, ["--sync", "hogwild", "--deterministic", "--workers", 2]),
         (short, ["--sync", "bsp", "--deterministic", "--batch", 40, "--workers", 3]),
         (short, ["--sync", "bsp", "--deterministic", "--batch", 40, "--transport", "sim", "--workers", 3])]

levels = []
for level, needed in NEEDS.items():
    has = flags() is None or needed <= flags()
    if has:
        levels.append(level)
        expect("used: " + level, train(short, "--cpu", level)[0]["cpu"] == level)
    else:
        expect("refused: " + level, "--cpu: this CPU has no " + level in train(short, "--cpu", level, code=2))
expect("auto is the highest", train(short)[0]["cpu"] == levels[-1])
expect("no such level", "portable" in train(short, "--cpu", "sse", code=2))

for path, options in RUNS:
    name = " ".join(map(str, [os.path.basename(path), *options]))
    seen = set()
    for level in levels:
        result, _ = train(path, "--epochs", 3, "--cpu", level, *options)
        said = laws.run("predict", MODEL, path, "--quiet", "--cpu", level)
        score = laws.run("eval", MODEL, path, "--quiet", "--json", "--cpu", level)
        seen.add((result["model_hash"], result["train_loss"], said, score))
    expect("one set of bits: " + name, len(seen) == 1, "%d of %d levels" % (len(seen), len(levels)))

# Racing workers exchange with wider instructions at some levels than at others, and lose nothing at any.
for level in levels:
    race, _ = train(short, "--epochs", 3, "--sync", "hogwild:exchange=16", "--workers", 3, "--record", path_of("race"), "--cpu", level)
    again, _ = train(short, "--epochs", 3, "--sync", "hogwild:exchange=16", "--replay", path_of("race"), "--cpu", levels[0])
    expect("a race at level %s is replayed at another" % level, again["model_hash"] == race["model_hash"])
laws.finish()
