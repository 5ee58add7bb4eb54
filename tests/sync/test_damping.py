"""What hogwild keeps of its workers' changes: all of them with damping=no, else the documented part on busy
features. Hinge steps this small have one slope for every row, −y, so that the sum of all changes is known:
w = η·Σ y·x, whoever made them and when."""
import os
import re
import subprocess
import sys

import numpy as np

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from laws import MODEL, SOUNDER, expect, finish, path_of
from tensors import read_tensors

ROWS, FEATURES, RATE = 6000, 12, 1e-7
random = np.random.default_rng(4)
# Feature j is in a share of 2^−j of the rows, the last one in twenty of them.
X = np.where(random.random((ROWS, FEATURES)) < 0.5 ** np.arange(FEATURES), random.integers(1, 9, (ROWS, FEATURES)), 0)
X[:, -1] = np.arange(ROWS) < 20
y = np.where(random.random(ROWS) < 0.5 + 0.4 * (X[:, 1] > 0), 1, -1)
with open(path_of("rows.svm"), "w") as file:
    for row, label in zip(X, y):
        file.write("%d %s\n" % (label, " ".join("%d:%d" % (j + 1, x) for j, x in enumerate(row) if x)))
changes = RATE * (X.T @ y)
often = (X > 0).mean(axis=0)


def kept(sync, *options):
    """The share of every feature's changes that is in the model, and the rows between two exchanges."""
    command = [SOUNDER, "train", path_of("rows.svm"), "--model", "hinge", "--optimizer", "sgd", "--lr", str(RATE), "--schedule",
               "constant", "--scale", "none", "--no-intercept", "--epochs", "1", "--out", MODEL, "--sync", sync, *options]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = re.search(r"workers, (\d+) rows at a time", done.stderr)
    return read_tensors(MODEL)[0]["weight"].ravel() / changes, int(rows.group(1)) if rows else 0


expect("one worker makes all changes", np.allclose(kept("serial")[0], 1, atol=1e-4))
for workers in (2, 3, 4, 8):
    count = ["--workers", str(workers)]
    for sync in ("hogwild:damping=no", "hogwild:exchange=64"):
        share, _ = kept(sync, *count)
        expect("%d workers, %s: nothing is lost" % (workers, sync), np.allclose(share, 1, atol=1e-4), str(share.round(3)))
    share, rows = kept("hogwild", *count)
    formula = np.maximum(2 / workers, np.minimum(1, 64 / (often * workers * rows))) if workers > 2 else np.ones(FEATURES)
    expect("%d workers: of busy features as much as is documented" % workers, np.allclose(share, formula, atol=1e-4) and
           (workers == 2 or share[0] < 0.9), "%s, %d rows" % (share.round(3), rows))
for lanes in (3, 4, 8):
    for damping in ("yes", "no"):
        share, rows = kept("hogwild:lanes=%d,damping=%s" % (lanes, damping), "--deterministic", "--workers", "2")
        formula = np.maximum(2 / lanes, np.minimum(1, 64 / (often * rows))) if damping == "yes" else np.ones(FEATURES)
        # A feature that fewer lanes met takes more; the first one all of them meet.
        expect("%d lanes, damping=%s" % (lanes, damping), abs(share[0] - formula[0]) < 1e-3 and
               (share >= formula - 1e-3).all() and (share <= 1 + 1e-3).all(), "%s %s" % (share.round(3), formula.round(3)))
finish()
