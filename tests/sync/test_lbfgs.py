"""--sync batch by L-BFGS and OWL-QN: the optimum in tens of passes, an objective that never rises, the same path in any
units, the same bits for every number of threads, CPU level and interruption, and data at the edge."""
import glob
import os
import subprocess
import sys

import numpy as np
from scipy.optimize import minimize

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from laws import SOUNDER, expect, finish, path_of, train

N, D, CLASSES = 400, 12, 4
random = np.random.default_rng(5)
X = np.where(random.random((N, D)) < 0.6, (random.normal(size=(N, D)) + 2) * 2.0 ** np.linspace(-4, 4, D), 0)
X = X.astype(np.float32).astype(float)
score = (X - X.mean(axis=0)) / X.std(axis=0) @ random.normal(size=(D, CLASSES)) + random.normal(size=(N, CLASSES)) * 2
y = np.float32(score[:, 0]).astype(float)
sign = np.where(score[:, 1] > 0, 1.0, -1.0)
classes = score.argmax(axis=1).astype(float)
weights = np.round(random.uniform(0.5, 2, N), 3)
LABELS = {"squared": y, "huber": y, "logistic": sign, "squared-hinge": sign, "softmax": classes}


def svm(name, rows, labels):
    path = path_of(name)
    with open(path, "w") as file:
        for row, label in zip(rows, labels):
            file.write("%.9g %s\n" % (label, " ".join("%d:%.9g" % (j + 1, x) for j, x in enumerate(row) if x)))
    return [path]


def csv(name, rows, labels, importance=None):
    path = path_of(name)
    columns = [rows, labels[:, None]] + ([] if importance is None else [importance[:, None]])
    with open(path, "w") as file:
        file.write(",".join(["x%d" % j for j in range(rows.shape[1])] + ["y", "w"][:len(columns) - 1]) + "\n")
        for row in np.hstack(columns):
            file.write(",".join("%.9g" % x for x in row) + "\n")
    return [path, "--label", "y"] + ([] if importance is None else ["--weight", "w"])


# ---- the optimum, by scipy ----
def loss(model, labels, z):
    """Losses of scores z (rows × outputs), and their derivatives."""
    if model == "softmax":
        top = z.max(axis=1, keepdims=True)
        e = np.exp(z - top)
        p = e / e.sum(axis=1, keepdims=True)
        k = (np.arange(len(z)), labels.astype(int))
        value = np.log(e.sum(axis=1)) + top[:, 0] - z[k]
        p[k] -= 1
        return value, p
    z = z[:, 0]
    if model == "squared":
        return (z - labels) ** 2 / 2, (z - labels)[:, None]
    if model == "huber":
        r = z - labels
        return np.where(np.abs(r) <= 1, r ** 2 / 2, np.abs(r) - 0.5), np.clip(r, -1, 1)[:, None]
    if model == "logistic":
        return np.logaddexp(0, -labels * z), (-labels / (1 + np.exp(labels * z)))[:, None]
    short = np.maximum(1 - labels * z, 0)
    return short ** 2, (-2 * labels * short)[:, None]


def optimum(model, labels, l1, l2, importance):
    """The least objective: with l1 over w = p − q, p, q ≥ 0, features in units of their deviations."""
    outputs, size = CLASSES if model == "softmax" else 1, X.std(axis=0)
    Z, count = X / size, D * outputs

    def objective(v):
        p, q, b = v[:count].reshape(D, outputs), v[count:2 * count].reshape(D, outputs), v[2 * count:]
        w = (p - q) / size[:, None]
        value, u = loss(model, labels, Z @ (p - q) + b)
        u = u * importance[:, None] / N
        g = Z.T @ u + l2 * w / size[:, None]
        penalty = l1 / size[:, None] * np.ones((1, outputs))
        return ((value * importance).mean() + (penalty * (p + q)).sum() + l2 / 2 * (w ** 2).sum(),
                np.concatenate([(g + penalty).ravel(), (penalty - g).ravel(), u.sum(axis=0)]))

    bounds = [(0, None)] * (2 * count) + [(None, None)] * outputs
    v = np.zeros(2 * count + outputs)
    for _ in range(3):
        v = minimize(objective, v, jac=True, method="L-BFGS-B", bounds=bounds,
                     options={"ftol": 1e-16, "gtol": 1e-10, "maxiter": 20000, "maxfun": 40000, "maxcor": 30}).x
    return objective(v)[0]


for model, labels in LABELS.items():
    for l1, l2 in ((0, 0), (0.01, 0), (0, 0.01), (0.01, 0.01)):
        for data, importance in ((svm("rows.svm", X, labels), np.ones(N)),
                                 (csv("rows.csv", X, labels, weights), weights / weights.mean())):
            common = [*data, "--model", model, "--sync", "batch", "--l1", l1, "--l2", l2]
            best = optimum(model, labels, l1, l2, importance)
            name, gap = "%s, l1 %g, l2 %g: " % (model, l1, l2), train(*common, "--epochs", 60)[0]["objective"] / best - 1
            expect(name + "at the optimum in 60 passes", -1e-6 < gap < 1e-6, "gap %.2g" % gap)
            r = train(*common, "--epochs", 200)[0]
            gap = r["objective"] / best - 1
            expect(name + "ends by itself", r["stopped"] == "the objective no longer falls" and r["epochs"] < 200 and
                   -1e-6 < gap < 2e-7, "%d epochs, gap %.2g" % (r["epochs"], gap))

# ---- the line search: what an epoch ends with was evaluated, and is never worse than what the last one ended with ----
rejected = 0
for model, penalty in (("huber:0.01", []), ("logistic", ["--l1", 0.02]), ("softmax", ["--l2", 1e-4])):
    data = svm("rows.svm", X, LABELS[model.split(":")[0]])
    before, last = np.inf, None
    for epochs in range(1, 26):
        r = train(*data, "--model", model, "--sync", "batch:lbfgs", *penalty, "--epochs", epochs)[0]
        expect("%s: epoch %d does not raise the objective" % (model, epochs),
               r["objective"] <= before * (1 + 1e-7), "%.9g, then %.9g" % (before, r["objective"]))
        rejected += epochs > 2 and r["model_hash"] == last
        before, last = r["objective"], r["model_hash"]
alike = np.repeat(X[:, :1], 30, axis=1)  # one curvature of 30, not thirty of 1
for make in (svm, csv):
    r = train(*make("alike", alike, alike[:, 0] * 3 + y), "--model", "squared", "--sync", "batch", "--epochs", 1)[0]
    expect("the first step, which is taken unseen, lowers the objective", r["train_r2"] > 0, "r2 %.3g" % r["train_r2"])
expect("some points were rejected, and left the weights as they were", rejected > 0)

# ---- units ----
powers = 2.0 ** random.integers(-8, 9, D)
for make in (svm, csv):
    for options in (["--model", "logistic"], ["--model", "softmax", "--l1", 0.01, "--standardize"]):
        labels = LABELS[options[1]]
        a, v = train(*make("a", X, labels), *options, "--sync", "batch")
        b, w = train(*make("b", X * powers, labels), *options, "--sync", "batch")
        expect("%s: the same path in other units" % options[1], a["epochs"] == b["epochs"] and
               np.array_equal(v["weight"], w["weight"] * powers[:, None]))

# ---- the same bits ----
best = ("portable", "avx2", "avx512").index(train(*svm("rows.svm", X, sign), "--epochs", 1)[0]["cpu"])
levels = ("portable", "avx2", "avx512")[:best + 1]
wide = random.normal(size=(3000, 37)).astype(np.float32)
for labels, model in ((np.sign(wide[:, 0] + wide[:, 1] ** 2 - 0.7), "logistic"),
                      (np.digitize(wide[:, 0] * wide[:, 1], [-1, -0.5, 0, 0.5, 1, 1.5]).astype(float), "softmax")):
    sparse = np.where(np.abs(wide) > 0.7, wide, 0)
    for data in (svm("wide.svm", sparse, labels), csv("wide.csv", wide, labels)):
        for method in ("lbfgs", "fista"):
            common = [*data, "--model", model, "--sync", "batch:" + method, "--l1", 1e-3, "--epochs", 12]
            found = {train(*common, "--threads", t)[0]["model_hash"] for t in (1, 2, 3)}
            found |= {train(*common, "--cpu", level)[0]["model_hash"] for level in levels}
            expect("%s, %s: the same bits for threads and CPU levels" % (model, method), len(found) == 1)

# ---- interruptions ----
for number, options in enumerate((["--model", "logistic"], ["--model", "softmax", "--l1", 0.01],
                                  ["--model", "huber:0.01", "--l2", 1e-3])):
    common = [*svm("rows.svm", X, LABELS[options[1].split(":")[0]]), *options, "--sync", "batch", "--epochs", 30]
    plain, folder = train(*common)[0], path_of("often%d" % number)
    often = train(*common, "--run", folder, "--checkpoint-every", "3u")[0]
    os.remove(max(glob.glob(folder + "/checkpoint-*.safetensors")))
    again = train(*common, "--run", folder, "--checkpoint-every", "3u", "--resume")[0]
    expect("%s: checkpoints change nothing" % options[1], often["model_hash"] == plain["model_hash"])
    expect("%s: resumed from a checkpoint on the way" % options[1], again["model_hash"] == plain["model_hash"])
    for stop in (1, 2, plain["updates"] // 2):
        folder = path_of("stopped%d-%d" % (number, stop))
        train(*common, "--run", folder, "--updates", stop)
        resumed = train(*common, "--run", folder, "--resume")[0]
        expect("%s: resumed after pass %d" % (options[1], stop), resumed["model_hash"] == plain["model_hash"] and
               resumed["updates"] == plain["updates"])

# ---- the end: at the optimum, or a note ----
for model, options in (("logistic", ["--l2", 1e-3]), ("softmax", ["--l2", 1e-3]), ("squared", ["--l1", 0.01])):
    rows = [*svm("ends.svm", X, LABELS[model]), "--model", model, *options]
    lowest = train(*rows, "--sync", "batch")[0]["objective"]
    for method in ("fista", "plain") if model == "squared" else ("fista",):
        r = train(*rows, "--sync", "batch:" + method)[0]
        expect("%s: %s ends by itself at the optimum" % (model, method), r["stopped"] == "the objective no longer falls" and
               r["objective"] < lowest * (1 + 1e-6), "%s after %d epochs, %.9g %.9g" % (r["stopped"], r["epochs"], r["objective"], lowest))
unfinished = "not at the optimum yet"
for epochs, told in (([], True), (["--epochs", 1000], False)):
    done = subprocess.run([SOUNDER, "train", *svm("slow.svm", X * 2.0 ** np.arange(D), sign), "--scale", "none", "--sync", "batch:plain",
                           *map(str, epochs)], capture_output=True, text=True)
    expect("1000 steps that are not enough", done.returncode == 0 and " 1000 epochs" in done.stdout, done.stdout)
    expect("are told, unless they were asked for", (unfinished in done.stderr) == told, done.stderr[-200:])
expect("a run at the optimum has no note", unfinished not in
       subprocess.run([SOUNDER, "train", *svm("slow.svm", X, sign), "--sync", "batch"], capture_output=True, text=True).stderr)

# ---- data at the edge ----
for model, labels in LABELS.items():
    one = svm("one.svm", np.vstack([X[:1], X[:1] * 0]), np.array([labels[0], labels[0] if model in ("squared", "huber") else
                                                                  next(v for v in labels if v != labels[0])]))
    expect("%s: two rows" % model, np.isfinite(train(*one, "--model", model, "--sync", "batch")[0]["objective"]))
    for size in (1e-12, 1e12):
        r = train(*csv("big.csv", X * size, labels), "--model", model, "--sync", "batch")[0]
        s = train(*csv("big.csv", X, labels), "--model", model, "--sync", "batch")[0]
        expect("%s: features of size %g" % (model, size), abs(r["objective"] / s["objective"] - 1) < 1e-6)
single = train(*csv("single.csv", X[:1], y[:1]), "--model", "squared", "--sync", "batch")[0]
expect("one row is fitted", single["objective"] < 1e-9, str(single["objective"]))
empty = np.hstack([X, np.zeros((N, 3)), np.full((N, 1), 7.0)])
for make in (svm, csv):
    a = train(*make("e", empty, sign), "--model", "logistic", "--sync", "batch", "--l1", 0.01)[0]
    b = train(*make("e", X, sign), "--model", "logistic", "--sync", "batch", "--l1", 0.01)[0]
    expect("columns that are empty or constant change nothing", abs(a["objective"] / b["objective"] - 1) < 1e-6,
           "%.9g %.9g" % (a["objective"], b["objective"]))
apart = train(*svm("apart.svm", X, np.where(X[:, 0] > 0, 1.0, -1.0)), "--model", "logistic", "--sync", "batch")[0]
expect("separable classes end at a loss of 0", apart["objective"] < 1e-4, str(apart["objective"]))
exact = train(*csv("exact.csv", X, X @ np.arange(1, D + 1) * 1e6), "--model", "squared", "--sync", "batch")[0]
expect("an exact fit ends at a loss of 0", 1 - exact["train_r2"] < 1e-12, str(exact["objective"]))
expect("groups need fista", "fista" in train(*svm("g.svm", X, classes), "--model", "softmax", "--sync", "batch:lbfgs",
                                             "--group-lasso", 0.1, code=2))
finish()
