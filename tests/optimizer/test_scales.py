"""Units of features: least squares does not depend on them, values that floats cannot multiply are refused, --lr keeps
them scaled; and what a model is compared with, against numpy."""
import json
import os
import subprocess
import sys

import numpy as np

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import laws
from laws import MODEL as FILE, SOUNDER, expect, path_of, run

random = np.random.default_rng(11)
ROWS = 200
a, b = random.normal(50, 20, ROWS), random.normal(0, 1, ROWS)
y = 4 * a + 30 * b + random.normal(0, 45, ROWS)


def table(name, columns, label):
    path = path_of(name)
    np.savetxt(path, np.c_[columns, label], delimiter=",", fmt="%.9g", comments="",
               header=",".join("abcdefgh"[:columns.shape[1]]) + ",label")
    return path


def sparse(name, columns, label):
    path = path_of(name)
    with open(path, "w") as file:
        file.writelines("%.9g %s\n" % (t, " ".join("%d:%.9g" % (j + 1, x) for j, x in enumerate(row)))
                        for row, t in zip(columns, label))
    return path


def least_squares(columns, label):
    X = np.c_[(columns - columns.mean(0)) / columns.std(0), np.ones(len(label))]
    rest = label - X @ np.linalg.lstsq(X, label, rcond=None)[0]
    return 1 - (rest @ rest) / ((label - label.mean()) @ (label - label.mean()))


def told(path, *options, code=0):
    """Standard error of a run: notes, and the sentence if it fails."""
    done = subprocess.run([SOUNDER, "train", path, *map(str, options), *laws.alone(options)], capture_output=True, text=True)
    assert done.returncode == code, "exit code %d, not %d: %s" % (done.returncode, code, done.stderr)
    return done.stderr


# ---- least squares does not depend on units ----
X = np.c_[a, b]
wanted = least_squares(X, y)
for options in ([], ["--optimizer", "sgd"], ["--optimizer", "adam"], ["--sync", "batch"], ["--batch", 16], ["--optimizer", "ftrl"]):
    for size in (1e30, 5e30):
        result, tensors = laws.train(table("huge.csv", X * [size, 1], y), "--epochs", 60, *options)
        gap = abs(result["train_r2"] - wanted)
        expect("a column x %g %s" % (size, " ".join(map(str, options))), gap < 2e-3, "r2 %.5f, numpy %.5f" % (result["train_r2"], wanted))
        given = np.array(run("predict", FILE, path_of("huge.csv")).split(), dtype=float)
        expect("and its predictions", abs(1 - ((given - y) ** 2).sum() / ((y - y.mean()) ** 2).sum() - result["train_r2"]) < 1e-4)

# ---- what floats cannot do is refused, by name ----
message = told(table("absurd.csv", X * [1e35, 1], y), code=3)
expect("too large to be multiplied", "column 'a' holds values up to %.3g" % (1e35 * a.max()) in message, message.strip()[-120:])
message = told(path_of("huge.csv"), "--scale", "none", code=3)
expect("too large to be squared", "column 'a' holds values up to" in message and "--scale" in message, message.strip()[-120:])
message = told(path_of("huge.csv"), "--model", "kmeans:3", code=3)
expect("too large for distances", "column 'a' holds values up to" in message, message.strip()[-120:])
message = told(sparse("absurd.svm", X * [1, 1e35], y), "--model", "squared", code=3)
expect("features have their number", "feature 2 holds values up to" in message, message.strip()[-120:])

# ---- one value beside which the others are nothing ----
one = X.copy()
one[7, 0] = 1e30
path = table("one.csv", one, y)
message = told(path)
expect("one value dwarfs the others", "column 'a': the largest value 1e+30 is over 2^24 times" in message, message[:200])
result, _ = laws.train(path, "--epochs", 60)
expect("which is what numpy makes of it", abs(result["train_r2"] - least_squares(one, y)) < 2e-3)
for name, columns in (("plain.csv", X), ("wide.csv", np.c_[np.exp(random.normal(12, 3, ROWS)), b])):
    expect("nothing is said of " + name, "over 2^24 times" not in told(table(name, columns, y)))

# ---- values close together for their size ----
for name, values, narrow in (("seconds", 1.7e9 + np.arange(ROWS) * 10, True), ("days", 1.7e9 + np.arange(ROWS) * 86400, False),
                             ("ids", 1.6e7 + np.arange(ROWS), False), ("flag", 1.7e9 * (a > 50), False)):
    for make in (table, sparse):
        message = told(make(name, np.c_[b, values], y), *([] if make == table else ["--model", "squared"]))
        expect("%s by %s" % (name, make.__name__), ("rounded to multiples of 128" in message) == narrow, message[:300])

# ---- weight decay that takes the weights away ----
for size, decay, large in ((1e4, [], True), (1e4, ["--optimizer", "adamw:decay=1e-9"], False), (1e-4, [], False)):
    message = told(table("labels.csv", X, y * size), "--optimizer", "adamw", *decay)
    expect("labels of size %g, adamw %s" % (100 * size, decay), ("try adamw:decay=" in message) == large, message[:300])

# ---- --lr is in scaled units ----
uneven = table("uneven.csv", np.c_[1000 * a, 0.001 * b, random.normal(0, 1, ROWS)], y)
for options in ([], ["--optimizer", "sgd"], ["--optimizer", "adam"]):
    chosen, _ = laws.train(uneven, *options)
    rate = chosen["options"]["lr"]
    given, _ = laws.train(uneven, *options, "--lr", repr(rate))
    expect("the automatic step, given, changes nothing", given["model_hash"] == chosen["model_hash"], "%g" % rate)
    message = told(uneven, *options, "--lr", 1e-6 * rate)
    expect("a step that moves nothing", "--lr %g is less than a tenth of the automatic step %.5g" % (1e-6 * rate, rate) in message, message[-200:])
    expect("is said to be given", "(given)" in message and "features scaled" in message)
    expect("an automatic one is not", "the automatic step" not in told(uneven, *options))
chosen, _ = laws.train(uneven)
other, _ = laws.train(uneven, "--lr", chosen["options"]["lr"], "--scale", "none")
expect("--scale none does", other["train_r2"] < chosen["train_r2"] - 0.01, "r2 %g and %g" % (other["train_r2"], chosen["train_r2"]))
chosen, _ = laws.train(uneven, "--optimizer", "sgd")
message = told(uneven, "--optimizer", "sgd", "--lr", 1e6, "--schedule", "constant", code=4)
expect("a divergence names the automatic step", "the automatic step would be %.5g" % chosen["options"]["lr"] in message, message.strip()[-200:])

# ---- what needs no features ----
noise = random.normal(0, 1, (600, 2))
kind = (random.random(600) < 0.3).astype(int) + (random.random(600) < 0.1)
weight = random.integers(1, 5, 600)
path = path_of("noise.csv")
np.savetxt(path, np.c_[noise, weight, kind], delimiter=",", fmt="%.9g", comments="", header="a,b,w,label")
share = max(weight[kind == k].sum() for k in range(3)) / weight.sum()
result, _ = laws.train(path, "--weight", "w", "--l2", 10)
expect("the most frequent class", abs(result["train_baseline"] - share) < 1e-9, "%g %g" % (result["train_baseline"], share))
seen = json.loads(run("eval", FILE, path, "--json"))
expect("eval has it too", abs(seen["baseline"] - share) < 1e-9)
message = told(path, "--weight", "w", "--l2", 10)
expect("a model that is no better says so", "no better than always predicting the most frequent class" in message, message[-200:])
result, _ = laws.train(path, "--ignore", "w", "--valid-fraction", 0.3, "--l2", 10)
held, right = result["valid_rows"], result["valid_baseline"] * result["valid_rows"]
expect("of the rows held out", abs(right - round(right)) < 1e-6 and held < 300 and
       abs(result["train_baseline"] * result["rows"] + right - max((kind == k).sum() for k in range(3))) < 1e-6)
expect("a good model does not", "no better" not in told(table("good.csv", noise, (noise[:, 0] > 0).astype(int))))
few, others = (table(name, random.normal(0, 1, (rows, 8)), random.normal(0, 1, rows)) for name, rows in (("few.csv", 30), ("others.csv", 100)))
message = told(few, "--valid", others)
expect("the training rows are not asked then", laws.train(few, "--valid", others)[0]["train_r2"] > 0.1)
expect("no better than the mean", "no better than the mean of the labels" in message, message[-200:])
expect("better than the mean", "no better" not in told(table("good.csv", X, y)))
laws.finish()
