"""--sync batch: monotone, exact on least squares, at the optimum of every penalty, safe on a hostile start."""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from tensors import read_tensors

SOUNDER = os.environ["SOUNDER"]
WORK = tempfile.mkdtemp(prefix="sounder-batch-")
random = np.random.default_rng(3)
failures = []


def train(path, *options, code=0):
    model = os.path.join(WORK, "model")
    command = [SOUNDER, "train", path, "--json", "--quiet", "--out", model, *map(str, options)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == code, "exit code %d: %s\n%s" % (done.returncode, " ".join(command),
                                                              done.stderr)
    tensors = {name: values.astype(float) for name, values in read_tensors(model)[0].items()}
    b = tensors.get("intercept")
    return tensors["weight"], 0.0 if b is None else b.ravel(), json.loads(done.stdout)


def libsvm(name, X, y):
    path = os.path.join(WORK, name)
    with open(path, "w") as file:
        for row, label in zip(X, y):
            cells = " ".join("%d:%.9g" % (j + 1, x) for j, x in enumerate(row) if x)
            file.write("%.9g %s\n" % (label, cells))
    return path


def csv(name, X, y):
    path = os.path.join(WORK, name)
    with open(path, "w") as file:
        file.write(",".join("x%d" % j for j in range(X.shape[1])) + ",label\n")
        for row, label in zip(X, y):
            file.write(",".join("%.9g" % x for x in [*row, label]) + "\n")
    return path


def law(function):
    try:
        function()
        print("ok    ", function.__name__)
    except Exception as error:
        failures.append(function.__name__)
        print("FAILED", function.__name__, error)


N, D = 60, 9
X = np.where(random.random((N, D)) < 0.7, random.normal(size=(N, D)) * 2.0 ** np.arange(-2, 2.5, 0.5), 0)
X = X.astype(np.float32).astype(float)
y = np.float32(X @ random.normal(size=D) + 3 + 0.5 * random.normal(size=N)).astype(float)
sign = np.where(y > np.median(y), 1.0, -1.0)
classes = np.digitize(y, np.quantile(y, [0.3, 0.7])).astype(float)


@law
def least_squares_is_lstsq():
    for path, extra in ((libsvm("l.svm", X, y), []), (csv("l.csv", X, y), ["--label", "label"])):
        for scale in ("none", "feature"):
            W, b, _ = train(path, *extra, "--model", "squared", "--sync", "batch", "--epochs", 4000,
                            "--scale", scale)
            expected = np.linalg.lstsq(np.c_[X, np.ones(N)], y, rcond=None)[0]
            apart = np.abs(np.r_[W[:, 0], b] - expected).max() / np.abs(expected).max()
            assert apart < 1e-4, (path, scale, apart)


@law
def plain_descent_never_rises():
    for model, labels in (("squared", y), ("logistic", sign), ("squared-hinge", sign),
                          ("softmax", classes), ("huber", y)):
        path = libsvm("m.svm", X, labels)
        for scale in ("none", "feature"):
            before = np.inf
            for epochs in (1, 2, 3, 4, 6, 9, 14, 20, 40, 80):
                _, _, r = train(path, "--model", model, "--sync", "batch:plain", "--epochs", epochs,
                                "--scale", scale, "--l1", 0.01)
                assert r["objective"] <= before * (1 + 1e-6), (model, scale, epochs, before,
                                                              r["objective"])
                before = r["objective"]


@law
def accelerated_and_plain_agree_in_the_end():
    path = libsvm("m.svm", X, sign)
    common = ["--model", "logistic", "--l2", 0.1, "--epochs", 3000]
    a = train(path, "--sync", "batch:plain", *common)[2]["objective"]
    b = train(path, "--sync", "batch:fista", *common)[2]["objective"]
    assert abs(a - b) < 1e-6 * a, (a, b)


def hostile():
    """The steepest direction is at right angles to the vector the power iteration starts from."""
    s = np.array([1, 1 + 0.1 * np.sin(1)])
    s /= np.linalg.norm(s)
    steep = np.array([s[1], -s[0]])
    return libsvm("hostile.svm", np.array([steep * np.sqrt(5.0), s * np.sqrt(2.0)]), [3, -2])


@law
def the_step_is_safe_where_the_power_iteration_starts_badly():
    for method in ("fista", "plain"):
        _, _, r = train(hostile(), "--model", "squared", "--no-intercept", "--scale", "none", "--sync",
                        "batch:" + method, "--epochs", 200)
        assert r["objective"] < 1e-6, (method, r["objective"])


def subgradient_gap(W, g, l1, l2, unit=1.0):
    """Largest violation of 0 ∈ g + l2·w/unit² + l1·sign(w)/unit."""
    g = g + l2 * W / unit ** 2
    bound = l1 / unit + 0 * W
    return np.where(W != 0, np.abs(g + bound * np.sign(W)), np.maximum(np.abs(g) - bound, 0)).max()


@law
def penalties_are_at_their_optimum():
    path = libsvm("p.svm", X, sign)
    for l1, l2 in ((0.05, 0), (0, 0.05), (0.03, 0.03)):
        for scale in ("none", "feature"):
            W, b, r = train(path, "--model", "logistic", "--sync", "batch", "--epochs", 5000, "--scale",
                            scale, "--l1", l1, "--l2", l2)
            u = -sign / (1 + np.exp(sign * (X @ W[:, 0] + b[0]))) / N
            assert abs(u.sum()) < 2e-5, ("the intercept is not penalised", u.sum())
            gap = subgradient_gap(W[:, 0], X.T @ u, l1, l2)
            assert gap < 5e-5, (l1, l2, scale, gap)


@law
def standardized_penalties_are_at_their_optimum():
    size = X.std(axis=0)
    for path, extra in ((libsvm("p.svm", X, sign), []), (csv("p.csv", X, sign), ["--label", "label"])):
        for l1, l2 in ((0.05, 0), (0, 0.05), (0.03, 0.03)):
            W, b, r = train(path, *extra, "--model", "logistic", "--sync", "batch", "--epochs", 5000,
                            "--standardize", "--l1", l1, "--l2", l2)
            u = -sign / (1 + np.exp(sign * (X @ W[:, 0] + b[0]))) / N
            gap = subgradient_gap(W[:, 0], X.T @ u, l1, l2, 1 / size)
            assert gap < 1e-4, (path, l1, l2, gap)
            z = sign * (X @ W[:, 0] + b[0])
            v = W[:, 0] * size
            objective = np.log1p(np.exp(-z)).mean() + l1 * np.abs(v).sum() + l2 / 2 * (v ** 2).sum()
            assert abs(objective - r["objective"]) < 1e-5 * objective, (objective, r["objective"])


@law
def group_lasso_is_at_its_optimum():
    path = libsvm("g.svm", X, classes)
    for scale in ("none", "feature"):
        W, b, r = train(path, "--model", "softmax", "--sync", "batch", "--epochs", 6000, "--scale",
                        scale, "--group-lasso", 0.1)
        z = X @ W + b
        p = np.exp(z - z.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        p[np.arange(N), classes.astype(int)] -= 1
        g = X.T @ p / N
        for j in range(D):
            norm = np.linalg.norm(W[j])
            gap = (np.linalg.norm(g[j] + 0.1 * W[j] / norm) if norm else
                   max(np.linalg.norm(g[j]) - 0.1, 0))
            assert gap < 1e-4, (scale, j, gap)
        assert 0 < (np.abs(W).sum(axis=1) == 0).sum() < D, "the test should see zero and non-zero rows"


@law
def proximal_sgd_comes_near_the_same_optimum():
    path = libsvm("p.svm", X, sign)
    for options in (["--l1", 0.05], ["--l2", 0.05], ["--l1", 0.03, "--l2", 0.03],
                    ["--l1", 0.05, "--l2", 1e-9], ["--l1", 0.05, "--standardize"],
                    ["--l2", 0.05, "--standardize"]):
        best = train(path, "--model", "logistic", "--sync", "batch", "--epochs", 5000,
                     *options)[2]["objective"]
        for name in ("sgd", "adagrad", "momentum"):
            near = train(path, "--model", "logistic", "--optimizer", name, "--epochs", 2000,
                         *options)[2]["objective"]
            assert best - 1e-6 < near < best * 1.01, (name, options, best, near)


subprocess.run(["rm", "-rf", WORK])
sys.exit(1 if failures else 0)
