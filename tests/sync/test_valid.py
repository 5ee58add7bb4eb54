"""Validation: its loss is what eval says of the saved model, however its rows are laid out in memory."""
import json
import os
import sys

import numpy as np

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import laws
from laws import MODEL, expect, path_of, run, train

random = np.random.default_rng(1)
full = random.normal(3, 1, (400, 8))
gaps = np.where(random.random((300, 8)) < 0.8, 0, random.normal(3, 1, (300, 8)))
gaps[:, 0] += 0.1


def write(name, rows, label):
    with open(path_of(name), "w") as file:
        file.writelines("%g %s\n" % (y, " ".join("%d:%.6f" % (j + 1, x) for j, x in enumerate(row) if x))
                        for row, y in zip(rows, label))
    return path_of(name)


def halves(rows):
    return rows.sum(1) > np.median(rows.sum(1))


def thirds(rows):
    return (3 * rows.sum(1).argsort().argsort()) // len(rows)


for model, label in (("logistic", halves), ("softmax", thirds), ("squared", lambda rows: rows.sum(1) - rows[:, 0] ** 2)):
    dense, sparse = write("dense.svm", full, label(full)), write("sparse.svm", gaps, label(gaps))
    for path, valid in ((dense, sparse), (sparse, dense), (dense, dense), (sparse, sparse)):
        for options in ([], ["--optimizer", "sgd"], ["--sync", "hogwild", "--workers", 2], ["--early-stop", 3]):
            result, _ = train(path, "--model", model, "--valid", valid, "--epochs", 4, *options)
            seen = json.loads(run("eval", MODEL, valid, "--json"))
            expect("%s %s %s %s" % (model, os.path.basename(path), os.path.basename(valid), " ".join(map(str, options))),
                   abs(result["valid_loss"] / seen["loss"] - 1) < 1e-5, "%g %g" % (result["valid_loss"], seen["loss"]))
laws.finish()
