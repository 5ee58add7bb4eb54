"""k-means: sums and counts against numpy, Lloyd's cost falls, planted clusters are found, nothing is lost
between workers."""
import json
import os
import sys

import numpy as np

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import laws
from laws import MODEL as FILE, WORK, expect, path_of, run

random = np.random.default_rng(7)


def train(path, *options):
    result, tensors = laws.train(path, *options)
    counts = tensors["count"].astype(float).ravel()  # sums are those of rows moved by the origin
    return result, tensors["sum"].astype(float).T + counts[:, None] * tensors["origin"].astype(float).T, counts


def nearest(X, centers):
    distance = ((X[:, None, :] - centers[None]) ** 2).sum(2)
    return distance.argmin(1), distance.min(1)


def close(a, b, tolerance=2e-5):
    return np.abs(a - b).max() <= tolerance * (1 + np.abs(b).max())


# Seven clusters, rows far from the origin: distances that were differences of large squares would show.
K, ROWS, FEATURES = 7, 1500, 19
truth = random.normal(0, 4, (K, FEATURES)) + 300
X = (truth[random.integers(0, K, ROWS)] + random.normal(0, 1, (ROWS, FEATURES))).astype(np.float32)
dense = os.path.join(WORK, "rows.npy")
np.save(dense, X)
X = X.astype(float)
mixed = os.path.join(WORK, "mixed.npy")
M = (random.normal(0, 1, (ROWS, FEATURES)) ** 3 - 40).astype(np.float32)
np.save(mixed, M)
M = M.astype(float)
MODEL = ["--model", "kmeans:%d" % K, "--seed", 3]

# ---- Lloyd: each round is numpy's, and the cost falls until nothing moves ----
rounds = [train(mixed, *MODEL, "--sync", "batch", "--epochs", n) for n in (1, 2, 3, 4)]
for n in range(3):
    _, sums, counts = rounds[n]
    member, _ = nearest(M, sums / counts[:, None])
    expected = np.array([M[member == k].sum(0) for k in range(K)])
    _, sums, counts = rounds[n + 1]
    expect("round %d of Lloyd" % (n + 2), close(sums, expected) and
           np.array_equal(counts, np.bincount(member, minlength=K)))
costs = [result["train_loss"] for result, _, _ in rounds]
expect("the cost falls", all(a > b for a, b in zip(costs, costs[1:])), str(costs))
result, sums, counts = train(mixed, *MODEL, "--sync", "batch")
member, cost = nearest(M, sums / counts[:, None])
expect("the cost is the mean squared distance", abs(result["train_loss"] / cost.mean() - 1) < 1e-4,
       "%.6f %.6f" % (result["train_loss"], cost.mean()))
# Differences of squares would round these distances away: two groups 2·10⁵ apart, of fifteen clusters each.
far, listed = os.path.join(WORK, "far.npy"), os.path.join(WORK, "far.svm")
A = np.where(np.arange(30) % 2, 1e5, -1e5)[:, None] + random.normal(0, 40, (30, 5))
A = (A[np.arange(6000) % 30] + random.normal(0, 1, (6000, 5))).astype(np.float32)
np.save(far, A)
with open(listed, "w") as file:  # one feature in seven: stored as sparse rows
    file.writelines("0 " + " ".join("%d:%.9g" % (1 + 7 * j, v) for j, v in enumerate(row)) + "\n" for row in A)
A = A.astype(float)
for path, options in ((far, ["--sync", "batch"]), (far, ["--sync", "serial"]), (listed, ["--sync", "batch"]), (listed, ["--sync", "serial"])):
    name = "%s, %s" % ("dense" if path == far else "sparse", options[1])
    far_result, far_sums, far_counts = train(path, "--model", "kmeans:30", "--epochs", 25, *options)
    far_centers = far_sums / far_counts[:, None]
    _, far_cost = nearest(A, far_centers if path == far else far_centers[:, ::7])
    expect("far from the origin the cost is the mean squared distance, " + name,
           abs(far_result["train_loss"] / far_cost.mean() - 1) < 1e-3, "%.4f %.4f" % (far_result["train_loss"], far_cost.mean()))
    expect("far from the origin the planted clusters are found, " + name, far_cost.mean() < 5.5, far_cost.mean())
expect("at the end every center is the mean of its rows",
       close(sums, np.array([M[member == k].sum(0) for k in range(K)])))
expect("Lloyd stops by itself", 5 < result["epochs"] < 100 and "no center moves" in result["stopped"],
       "%d rounds" % result["epochs"])
for threads in (1, 2, 5):
    other, _, _ = train(mixed, *MODEL, "--sync", "batch", "--threads", threads)
    expect("the same bits on %d threads" % threads, other["model_hash"] == result["model_hash"])

_, sums, counts = train(dense, *MODEL, "--sync", "batch")
expect("planted clusters are found", nearest(truth, sums / counts[:, None])[1].max() < 0.5)

# ---- batches: later rows weigh more; all rows are in the sums, whoever added them ----
BATCH, EPOCHS = 100, 3
_, start, ones = train(dense, *MODEL, "--batch", BATCH, "--shuffle", "none", "--updates", 1)
_, sums, counts = train(dense, *MODEL, "--batch", BATCH, "--shuffle", "none", "--epochs", EPOCHS)
w_sum, w_count = start.copy(), ones.copy()
for b in range(1, ROWS * EPOCHS // BATCH):
    some = X[(b * BATCH) % ROWS:(b * BATCH) % ROWS + BATCH]
    member, _ = nearest(some, w_sum / w_count[:, None])
    rate = 1 + (b * BATCH) % ROWS / ROWS
    np.add.at(w_sum, member, rate * some)
    np.add.at(w_count, member, rate)
    if ((b + 1) * BATCH) % ROWS == 0:
        half = np.where(w_count > 1, 0.5, 1)
        w_sum, w_count = w_sum * half[:, None], w_count * half
expect("steps of batches are numpy's", close(sums, w_sum) and close(counts, w_count))
total, weight = sums.sum(0), counts.sum()
for name in ("hogwild", "hogwild --deterministic", "locked", "locked:stripes=8", "round-robin", "bsp --deterministic"):
    result, sums, counts = train(dense, *MODEL, "--batch", BATCH, "--shuffle", "none", "--epochs", EPOCHS,
                                 "--workers", 3, "--sync", *name.split())
    expect("no row is lost: " + name, close(sums.sum(0), total, 1e-4) and abs(counts.sum() / weight - 1) < 1e-4,
           "%.1f rows of %.1f" % (counts.sum(), weight))
    expect("and the clusters are found: " + name, nearest(truth, sums / counts[:, None])[1].max() < 1)

# ---- sparse rows are rows ----
pattern = np.where(random.random((4, 12)) < 0.6, 0, random.normal(0, 3, (4, 12)))
zeros = (pattern[random.integers(0, 4, 400)] * random.normal(1, 0.1, (400, 12))).astype(np.float32)
np.save(os.path.join(WORK, "zeros.npy"), zeros)
with open(os.path.join(WORK, "zeros.svm"), "w") as file:
    for row in zeros:
        file.write("0 %s\n" % " ".join("%d:%.9g" % (j + 1, x) for j, x in enumerate(row) if x))
for sync in (["--sync", "batch"], ["--sync", "serial", "--batch", 50, "--epochs", 3],
             ["--sync", "cyclades", "--epochs", 2]):
    _, a, n = train(os.path.join(WORK, "zeros.npy"), "--model", "kmeans:4", *sync)
    _, b, m = train(os.path.join(WORK, "zeros.svm"), "--format", "libsvm", "--model", "kmeans:4", *sync)
    expect("sparse is dense: " + sync[1], close(a / n[:, None], b / m[:, None], 1e-3))

hashes = {train(dense, *MODEL, "--epochs", 2, "--sync", *sync)[0]["model_hash"]
          for sync in (["serial", "--batch", 1], ["cyclades"], ["bsp", "--deterministic", "--batch", 1])}
expect("cyclades is serial", len(hashes) == 1)

# ---- rows that count for nothing, rows far away, very many epochs ----
weighted = path_of("weighted.csv")
with open(weighted, "w") as file:
    file.write("a,b,weight\n" + "".join("%g,%g,%d\n" % (10 * (i % 2) + random.normal(0, 0.1), 0, 1) for i in range(200)) +
               "900,900,0\n-900,900,0\n")
result, sums, counts = train(weighted, "--model", "kmeans:2", "--weight", "weight", "--sync", "batch")
expect("rows without weight are no centers", np.abs(np.sort((sums / counts[:, None])[:, 0]) - [0, 10]).max() < 0.1)
far = path_of("far.npy")
np.save(far, (random.normal(0, 1, (500, 3)) + 20000 + 8 * random.integers(0, 2, (500, 1))).astype(np.float32))
result, sums, counts = train(far, "--model", "kmeans:2", "--sync", "batch")
seen = json.loads(run("eval", FILE, far, "--json"))
expect("a model knows where its rows are", abs(seen["loss"] / result["train_loss"] - 1) < 1e-5, "%g %g" % (seen["loss"], result["train_loss"]))
full, gaps = (path_of(name) for name in ("full.svm", "gaps.svm"))
F = random.normal(30, 1, (300, 8)) + 5 * random.integers(0, 2, (300, 1))
G = np.where(random.random((200, 8)) < 0.8, 0, random.normal(30, 1, (200, 8)))
G[:, 0] += 1
for name, values in ((full, F), (gaps, G)):
    with open(name, "w") as file:
        file.writelines("0 %s\n" % " ".join("%d:%.6f" % (j + 1, x) for j, x in enumerate(row) if x) for row in values)
result, sums, counts = train(full, "--model", "kmeans:2", "--sync", "batch", "--valid", gaps)
seen = json.loads(run("eval", FILE, gaps, "--json"))
wanted = nearest(G, sums / counts[:, None])[1].mean()
expect("rows may come sparse to a model of dense ones", abs(seen["loss"] / wanted - 1) < 1e-4 and
       abs(result["valid_loss"] / wanted - 1) < 1e-4, "%g %g %g" % (seen["loss"], result["valid_loss"], wanted))
large = path_of("large.npy")
np.save(large, (1e6 * random.normal(0, 1, (300, 2))).astype(np.float32))
few, many = (train(large, "--model", "kmeans:3", "--batch", 50, "--epochs", n)[0]["train_loss"] for n in (20, 1500))
expect("epochs do not wear a model out", many < 1.2 * few, "%g %g" % (few, many))
expect("more clusters than rows", "rows" in run("train", large, "--model", "kmeans:301", code=3))

# ---- the program ----
result, sums, counts = train(dense, *MODEL, "--valid-fraction", 0.2)
expect("validation has a loss and no accuracy", "valid_loss" in result and "valid_accuracy" not in result)
given = np.array(run("predict", FILE, dense).split(), dtype=int)
expect("predictions are the nearest", np.array_equal(given, nearest(X, sums / counts[:, None])[0]))
seen = json.loads(run("eval", FILE, dense, "--json"))
expect("eval gives the inertia", abs(seen["inertia"] / (ROWS * seen["loss"]) - 1) < 1e-6)
table = os.path.join(WORK, "table.csv")
np.savetxt(table, X[:200], delimiter=",", header=",".join("c%d" % j for j in range(FEATURES)), comments="")
result, _, _ = train(table, *MODEL, "--sync", "batch")
expect("a table without labels is all features", result["features"] == FEATURES)
run("predict", FILE, table)
# A column may be called y and be a coordinate: three pairs, of which two differ in y alone.
pairs = path_of("pairs.csv")
with open(pairs, "w") as file:
    file.write("x,y\n1,1\n1.1,1\n9,9\n9.1,9\n1,9\n1,9.2\n")
result, _, _ = train(pairs, "--model", "kmeans:3", "--sync", "batch")
given = run("predict", FILE, pairs).split()
expect("a column called y is a feature", result["features"] == 2 and len(set(given)) == 3 and
       given[0::2] == given[1::2], "%d %s" % (result["features"], given))
expect("eval has both columns", json.loads(run("eval", FILE, pairs, "--json"))["features"] == 2)
result, sums, counts = train(pairs, "--model", "kmeans:2", "--sync", "batch", "--label", "y")
expect("--label leaves the column out", result["features"] == 1 and
       np.abs(np.sort((sums / counts[:, None]).ravel()) - [4.1 / 4, 9.05]).max() < 1e-5)
for option in (["--lr", 0.1], ["--optimizer", "adam"], ["--l2", 1], ["--standardize"], ["--sync", "batch:optimizer"]):
    message = run("train", dense, *MODEL, *option, code=2)
    expect("refused: " + " ".join(map(str, option)), "kmeans" in message and message.count("\n") == 1, message.strip())
many, _, counts = train(os.path.join(WORK, "zeros.npy"), "--model", "kmeans:400", "--sync", "batch")
expect("as many clusters as rows", many["train_loss"] < 1e-5 and (counts == 1).all(), str(many["train_loss"]))
laws.finish()
