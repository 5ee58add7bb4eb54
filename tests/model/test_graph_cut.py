"""Graph cuts: steps and projections against numpy, the smallest cut of small graphs, a picture segmented."""
import itertools
import os
import subprocess
import sys

import numpy as np

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import laws
from laws import SOUNDER, expect, path_of, run

random = np.random.default_rng(2)


def train(edges, *options, code=0):
    path = path_of("graph.svm")
    with open(path, "w") as file:
        file.writelines("%.6g %d:1 %d:1\n" % (w, min(a, b) + 1, max(a, b) + 1) for a, b, w in edges)
    out = laws.train(path, *options, code=code)
    return out if code else (out[0], out[1]["part"].astype(float))


def project(x):
    """The nearest point of the simplex, by sorting (Held, Wolfe and Crowder, 1974)."""
    u = np.sort(x)[::-1]
    k = np.nonzero(u - (np.cumsum(u) - 1) / np.arange(1, len(x) + 1) > 0)[0][-1]
    return np.maximum(x - (np.cumsum(u)[k] - 1) / (k + 1), 0)


def graph(vertices, parts):
    """Terminals first; every vertex has an edge to each, and to some others."""
    edges = [(t, v, random.random()) for t in range(parts) for v in range(parts, parts + vertices)]
    edges += [(a, b, 0.5 * random.random()) for a, b in itertools.combinations(range(parts, parts + vertices), 2)
              if random.random() < 0.5]
    return [edges[i] for i in random.permutation(len(edges))]


# ---- steps, one by one ----
PARTS, RATE = 4, 0.07
edges = [(a, b, float("%.6g" % w)) for a, b, w in graph(9, PARTS)]
x = np.full((9 + PARTS, PARTS), 1 / PARTS)
x[:PARTS] = np.eye(PARTS)
for a, b, w in edges * 2:
    a, b = min(a, b), max(a, b)
    pull = np.sign(np.round(x[a] - x[b], 7)) * w
    if a >= PARTS:
        x[a] = project(x[a] - RATE * pull)
    x[b] = project(x[b] + RATE * pull)
PLAIN = ["--model", "graph-cut:%d" % PARTS, "--optimizer", "sgd", "--schedule", "constant", "--lr", RATE, "--shuffle",
         "none", "--epochs", 2]
result, part = train(edges, *PLAIN)
expect("steps are numpy's", np.abs(part - x).max() < 1e-4, "%.1e" % np.abs(part - x).max())
for sync in ("serial", "hogwild", "hogwild --deterministic", "bsp --deterministic --batch 7", "cyclades", "average",
             "locked", "round-robin"):
    workers = [] if sync == "serial" else ["--workers", 3]
    _, part = train(edges, "--model", "graph-cut:%d" % PARTS, "--epochs", 30, *workers, "--sync", *sync.split())
    expect("points of the simplex: " + sync, part.min() >= 0 and np.abs(part.sum(1) - 1).max() < 1e-5 and
           np.array_equal(part[:PARTS], np.eye(PARTS)), "%.1e" % np.abs(part.sum(1) - 1).max())

# ---- two parts: the relaxation has the value of the smallest cut ----
for trial in range(3):
    edges = graph(10, 2)
    least = min(sum(w for a, b, w in edges if side[a] != side[b])
                for side in ((0, 1) + rest for rest in itertools.product((0, 1), repeat=10)))
    result, part = train(edges, "--model", "graph-cut", "--epochs", 4000, "--seed", trial)
    side = part.argmax(1)
    found = sum(w for a, b, w in edges if side[a] != side[b])
    expect("the smallest cut is found", abs(found / least - 1) < 1e-3 and
           abs(result["train_loss"] * len(edges) / 2 / least - 1) < 0.02,
           "%.4f, relaxed %.4f, least %.4f" % (found, result["train_loss"] * len(edges) / 2, least))

# ---- what would leave the simplex, or is no graph, is refused ----
for options in (["--l2", 0.1], ["--l1", 0.1], ["--optimizer", "adamw"], ["--optimizer", "nesterov"], ["--no-intercept"]):
    expect("refused: " + " ".join(map(str, options)), "graph-cut" in train(graph(5, 2), "--model", "graph-cut", *options, code=2))
expect("negative weights", "negative" in train([(0, 2, 1), (1, 2, -1)], "--model", "graph-cut", code=3))
expect("no vertex but terminals", "terminals" in train([(0, 1, 1)], "--model", "graph-cut", code=3))
with open(path_of("three.svm"), "w") as file:
    file.write("1 1:1 2:1 3:1\n1 2:1 3:1\n")
expect("rows that are no edges", "row 1 is no edge" in run("train", path_of("three.svm"), "--model", "graph-cut", "--quiet", code=3))

# ---- a picture ----
picture = path_of("cut.png")
example = os.path.join(os.environ["SOUNDER_SOURCE"], "examples", "graph_cut.py")
done = subprocess.run([sys.executable, "-B", example, SOUNDER, picture, "96"], capture_output=True, text=True)
wrong = [float(word) for word in done.stdout.split() if word.replace(".", "").isdigit()]
print(done.stdout + done.stderr)
expect("a picture is segmented", done.returncode == 0 and wrong[-1] < 3 and wrong[-2] > 15)
with open(picture, "rb") as file:
    expect("and drawn", file.read(8) == b"\x89PNG\r\n\x1a\n")
laws.finish()
