"""Every optimizer, loss, penalty, schedule and weight against an independent implementation in numpy.

Written from ALGORITHMS.md and the help texts: float64, dense arrays, penalties charged on every weight after
every update. `sounder train` must arrive at the same weights from the same rows in the same order.
"""
import json
import os
import struct
import subprocess
import sys
import tempfile

import numpy as np

SOUNDER = os.environ["SOUNDER"]
WORK = tempfile.mkdtemp(prefix="sounder-numbers-")
random = np.random.default_rng(7)
failures = []
checks = 0


def train(path, *options, code=0):
    """Runs the program; returns (weights d×K, intercept K or None, results)."""
    model = os.path.join(WORK, "model")
    if os.path.exists(model):
        os.unlink(model)
    command = [SOUNDER, "train", path, "--json", "--quiet", "--out", model, *map(str, options), *([] if "--sync" in options else ["--sync", "serial"])]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != code:
        raise AssertionError("exit code %d, not %d: %s\n%s" % (
            done.returncode, code, " ".join(command), done.stderr))
    if code:
        return None, None, done.stderr
    with open(model, "rb") as file:
        raw = file.read()
    size = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:8 + size])
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            assert entry["dtype"] == "F32"
            first, end = entry["data_offsets"]
            values = np.frombuffer(raw[8 + size + first:8 + size + end], dtype="<f4")
            tensors[name] = values.reshape(entry["shape"]).astype(float)
    intercept = tensors.get("intercept")
    return tensors["weight"], None if intercept is None else intercept.ravel(), json.loads(done.stdout)


def write_libsvm(name, X, y):
    path = os.path.join(WORK, name)
    with open(path, "w") as file:
        for row, label in zip(X, y):
            cells = " ".join("%d:%.9g" % (j + 1, x) for j, x in enumerate(row) if x)
            file.write("%.9g %s\n" % (label, cells))
    return path


def write_csv(name, X, y, weight=None):
    path = os.path.join(WORK, name)
    with open(path, "w") as file:
        file.write(",".join("x%d" % j for j in range(X.shape[1])) +
                   (",weight" if weight is not None else "") + ",label\n")
        for i in range(len(y)):
            cells = ["%.9g" % x for x in X[i]]
            if weight is not None:
                cells.append("%.9g" % weight[i])
            file.write(",".join(cells + ["%.9g" % y[i]]) + "\n")
    return path


# ---- the data: 45 rows so that batches of 7 leave a short one, feature 12 in one row only ----
N, D, K = 45, 12, 4
X = np.where(random.random((N, D)) < 0.6, random.normal(size=(N, D)), 0).astype(np.float32)
X[:, 11] = 0
X[17, 11] = 1.5
X[-1, D - 2] = 1
X = X.astype(float)
truth = random.normal(size=(D, K))
binary = np.where(X @ truth[:, 0] + 0.5 * random.normal(size=N) > 0, 1.0, -1.0)
real = np.float32(X @ truth[:, 1] + 0.3 * random.normal(size=N) + 2).astype(float)
classes = np.argmax(X @ truth + random.normal(size=(N, K)), axis=1).astype(float)
assert len(set(classes)) == K
FILES = {"binary": write_libsvm("binary.svm", X, binary), "real": write_libsvm("real.svm", X, real),
         "classes": write_libsvm("classes.svm", X, classes)}
LABELS = {"binary": binary, "real": real, "classes": classes}


# ---- losses: score (rows × K) → slopes ----
def squared(z, y):
    return z - y[:, None]


def huber(z, y):
    return np.clip(z - y[:, None], -1, 1)


def logistic(z, y):
    return -y[:, None] / (1 + np.exp(y[:, None] * z))


def hinge(z, y):
    return np.where(y[:, None] * z < 1, -y[:, None], 0.0)


def squared_hinge(z, y):
    return -2 * y[:, None] * np.maximum(0, 1 - y[:, None] * z)


def softmax(z, y):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    p = e / e.sum(axis=1, keepdims=True)
    p[np.arange(len(y)), y.astype(int)] -= 1
    return p


LOSSES = {"squared": (squared, "real"), "huber": (huber, "real"), "logistic": (logistic, "binary"),
          "hinge": (hinge, "binary"), "squared-hinge": (squared_hinge, "binary"),
          "softmax": (softmax, "classes")}


# ---- optimizers on an array of values: step(values touched) and the metric of the penalty ----
class Optimizer:
    look_ahead = 0.0
    fresh = None

    def __init__(self, shape, **options):
        self.a, self.b = np.zeros(shape), np.zeros(shape)
        self.__dict__.update(options)

    def published(self, w, l1=0):
        return w

    def metric(self, t):
        return np.ones_like(self.a)


class Sgd(Optimizer):
    def step(self, w, g, on, t, rate):
        w[on] -= rate * g[on]


class Momentum(Optimizer):
    beta = 0.9

    def step(self, w, g, on, t, rate):
        self.a[on] = self.beta * self.a[on] - rate * g[on]
        w[on] += self.a[on]

    def metric(self, t):
        return np.full_like(self.a, 1 / (1 - self.beta))


class Nesterov(Momentum):
    """w here is the point gradients are taken at, y = w + βv."""

    def step(self, w, g, on, t, rate):
        old = self.a[on].copy()
        self.a[on] = self.beta * old - rate * g[on]
        behind = w[on] - self.beta * old
        w[on] = behind + self.a[on] + self.beta * self.a[on]

    def published(self, w, l1=0):
        """Where l1 holds the look-ahead at zero the weight is zero."""
        return np.where((w == 0) & (l1 > 0), 0, w - self.beta * self.a)


class AdaGrad(Optimizer):
    def step(self, w, g, on, t, rate):
        self.a[on] += g[on] ** 2
        w[on] -= rate * g[on] / (np.sqrt(self.a[on]) + 1e-10)

    def metric(self, t):
        return 1 / (np.sqrt(self.a) + 1e-10)


class RmsProp(Optimizer):
    rho = 0.99

    def step(self, w, g, on, t, rate):
        self.a[on] = self.rho * self.a[on] + (1 - self.rho) * g[on] ** 2
        w[on] -= rate * g[on] / (np.sqrt(self.a[on]) + 1e-8)

    def metric(self, t):
        return 1 / (np.sqrt(self.a) + 1e-8)


class RmsPropNesterov(Optimizer):
    rho, beta = 0.99, 0.9

    def step(self, w, g, on, t, rate):
        self.a[on] = self.rho * self.a[on] + (1 - self.rho) * g[on] ** 2
        old = self.b[on].copy()
        self.b[on] = self.beta * old - rate * g[on] / (np.sqrt(self.a[on]) + 1e-8)
        w[on] = w[on] - self.beta * old + (1 + self.beta) * self.b[on]

    def published(self, w, l1=0):
        return np.where((w == 0) & (l1 > 0), 0, w - self.beta * self.b)

    def metric(self, t):
        return 1 / (1 - self.beta) / (np.sqrt(self.a) + 1e-8)


class AdaDelta(Optimizer):
    def step(self, w, g, on, t, rate):
        self.a[on] = 0.9 * self.a[on] + 0.1 * g[on] ** 2
        d = g[on] * np.sqrt(self.b[on] + 1e-6) / np.sqrt(self.a[on] + 1e-6)
        self.b[on] = 0.9 * self.b[on] + 0.1 * d ** 2
        w[on] -= rate * d

    def metric(self, t):
        return np.sqrt(self.b + 1e-6) / np.sqrt(self.a + 1e-6)


class Adam(Optimizer):
    beta1, beta2 = 0.9, 0.999

    def step(self, w, g, on, t, rate):
        self.a[on] = self.beta1 * self.a[on] + (1 - self.beta1) * g[on]
        self.b[on] = self.beta2 * self.b[on] + (1 - self.beta2) * g[on] ** 2
        m, v = self.a[on] / (1 - self.beta1 ** t), self.b[on] / (1 - self.beta2 ** t)
        w[on] -= rate * m / (np.sqrt(v) + 1e-8)

    def metric(self, t):
        return 1 / (np.sqrt(self.b / (1 - self.beta2 ** t)) + 1e-8)


class AdamW(Adam):
    """Adam's step; the decay w ← w(1 − ηλ) before it is in simulate()."""


class Ftrl(Optimizer):
    """z = a, n = b; the penalty of t updates is tλ."""
    beta = 1.0

    def weights(self, rate, t, l1, l2):
        size = np.maximum(np.abs(self.a) - t * l1, 0)
        return -np.sign(self.a) * size / ((self.beta + np.sqrt(self.b)) / rate + t * l2)

    def step(self, w, g, on, t, rate):
        sigma = (np.sqrt(self.b[on] + g[on] ** 2) - np.sqrt(self.b[on])) / rate
        self.a[on] += g[on] - sigma * w[on]  # w: where the gradient was taken
        self.b[on] += g[on] ** 2


OPTIMIZERS = {"sgd": (Sgd, 0.05), "momentum": (Momentum, 0.005), "nesterov": (Nesterov, 0.005),
              "adagrad": (AdaGrad, 0.2), "rmsprop": (RmsProp, 0.01),
              "rmsprop-nesterov": (RmsPropNesterov, 0.001), "adadelta": (AdaDelta, 1.0),
              "adam": (Adam, 0.01), "adamw": (AdamW, 0.01), "ftrl": (Ftrl, 0.2)}


def flow(w, amount, l1, l2):
    """The penalty acting alone: dw/dS = −(l2·w + l1·sign w) over `amount` = metric·ΔS."""
    keep = np.exp(-amount * l2)
    less = l1 / l2 * (1 - keep) if l2 else amount * l1
    return np.sign(w) * np.maximum(np.abs(w) * keep - less, 0)


def simulate(X, y, loss, optimizer, rate, batch, epochs, l1=0.0, l2=0.0, schedule=lambda e: 1.0,
             row_weight=None, intercept=True, regression=False, outputs=1, dense=False, average=None,
             options={}, updates=None, average_every=1):
    N, D = X.shape
    W, b = np.zeros((D, outputs)), np.zeros((1, outputs))
    row_weight = np.ones(N) if row_weight is None else row_weight * N / row_weight.sum()
    ours, own = optimizer((D, outputs), **options), optimizer((1, outputs), **options)
    ftrl = isinstance(ours, Ftrl)
    if regression and intercept and not ftrl:
        b[:] = (row_weight * y).sum() / N
    everything = np.ones((1, outputs), bool)
    total_W, total_b, summed, t = np.zeros_like(W), np.zeros_like(b), 0, 0
    for epoch in range(epochs):
        for first in range(0, N, batch):
            rows = slice(first, min(first + batch, N))
            x = X[rows]
            u = loss(x @ W + (b if intercept else 0), y[rows])
            u = u * row_weight[rows][:, None] / len(x)
            on = np.ones((D, outputs), bool) if dense else (x != 0).any(axis=0)[:, None] & \
                np.ones((D, outputs), bool)
            t += 1
            eta = rate * schedule(epoch + first / N)
            if isinstance(ours, AdamW):
                W *= 1 - eta * l2  # the old weight decays, not the step
            ours.step(W, x.T @ u, on, t, eta)
            if intercept:
                own.step(b, u.sum(axis=0, keepdims=True), everything, t, eta)
            if ftrl:
                W, b = ours.weights(eta, t, l1, l2), own.weights(eta, t, 0, 0)
            elif (l1 or l2) and not isinstance(ours, AdamW):
                W = flow(W, ours.metric(t) * eta, l1, l2)
            if average is not None and epoch >= average and t % average_every == 0:
                total_W += ours.published(W, l1)
                total_b += own.published(b)
                summed += 1
            if t == updates:
                return ours.published(W, l1), own.published(b).ravel()
    if summed:
        return total_W / summed, (total_b / summed).ravel()
    return ours.published(W, l1), own.published(b).ravel()


def compare(what, got, expected, tolerance=1e-4):
    global checks
    checks += 1
    worst = 0
    for a, e in zip(got, expected):
        if a is not None and e is not None:
            worst = max(worst, np.max(np.abs(a - e)) / (1e-3 + np.max(np.abs(e))))
    if not worst <= tolerance:
        failures.append("%s: apart by %.2g of the largest weight" % (what, worst))


def law(function):
    """A failing law does not keep the others from being checked."""
    try:
        function()
    except Exception as error:
        failures.append("%s: %s" % (function.__name__, error))


COMMON = ["--shuffle", "none", "--scale", "none"]


@law
def every_optimizer_has_a_formula():
    listed = subprocess.run([SOUNDER, "list", "optimizer"], capture_output=True, text=True).stdout
    names = {line.split()[0] for line in listed.splitlines() if line.strip()}
    assert names == set(OPTIMIZERS), names ^ set(OPTIMIZERS)


@law
def every_loss_has_a_formula():
    listed = subprocess.run([SOUNDER, "list", "model"], capture_output=True, text=True).stdout
    names = {line.split()[0] for line in listed.splitlines() if line.strip()}
    names -= {"mf", "kmeans", "graph-cut"}  # their numbers are in tests/model, those of networks in test_networks.py
    names = {name for name in names if not name.startswith(("mlp", "cnn", "lenet"))}
    assert names == set(LOSSES), names ^ set(LOSSES)


@law
def every_optimizer_on_every_loss_with_every_penalty():
    for name, (optimizer, rate) in OPTIMIZERS.items():
        for model, (loss, kind) in LOSSES.items():
            for batch in (1, 7):
                for l1, l2 in ((0, 0), (0.02, 0), (0, 0.05), (0.01, 0.05)):
                    spec, decay = name, l2
                    options = ["--l1", l1] if l1 else []
                    if name == "adamw" and l1:
                        continue  # refused: see below
                    if name == "adamw":
                        spec, decay = "adamw:decay=%g" % l2, l2
                    elif l2:
                        options += ["--l2", l2]
                    got = train(FILES[kind], "--model", model, "--optimizer", spec, "--lr", rate,
                                "--schedule", "constant", "--batch", batch, "--epochs", 6, *COMMON,
                                *options)
                    expected = simulate(X, LABELS[kind], loss, optimizer, rate, batch, 6, l1, decay,
                                        regression=kind == "real",
                                        outputs=K if kind == "classes" else 1)
                    compare("%s, %s, batch %d, l1=%g, l2=%g" % (name, model, batch, l1, l2), got,
                            expected)


SCHEDULES = {
    "constant": lambda e, n: 1.0,
    "constant:warmup=2": lambda e, n: min(e / 2, 1),
    "1/t:0.5": lambda e, n: 1 / (1 + 0.5 * e),
    "1/t:decay=2,warmup=1": lambda e, n: min(e, 1) / (1 + 2 * e),
    "1/sqrt:3": lambda e, n: 1 / np.sqrt(1 + 3 * e),
    "step:every=2,factor=0.3": lambda e, n: 0.3 ** np.floor(e / 2),
    "cosine": lambda e, n: 0.5 * (1 + np.cos(np.pi * e / n)),
    "cosine:0.1": lambda e, n: 0.1 + 0.9 * 0.5 * (1 + np.cos(np.pi * e / n)),
    "linear": lambda e, n: 1 - e / n,
    "recent": lambda e, n: 1 + e - np.floor(e),
    "linear:least=0.2": lambda e, n: 0.2 + 0.8 * (1 - e / n),
    "linear:warmup=1.5": lambda e, n: min(e / 1.5, 1) * (1 - e / n),
    "cosine:warmup=0.7": lambda e, n: min(e / 0.7, 1) * 0.5 * (1 + np.cos(np.pi * e / n)),
    "1/sqrt:warmup=2": lambda e, n: min(e / 2, 1) / np.sqrt(1 + e),
    "step:every=2,factor=0.3,warmup=3": lambda e, n: min(e / 3, 1) * 0.3 ** np.floor(e / 2),
}


@law
def every_schedule_is_its_formula():
    listed = subprocess.run([SOUNDER, "list", "schedule"], capture_output=True, text=True).stdout
    names = {line.split()[0] for line in listed.splitlines() if line.strip()}
    assert names == {s.split(":")[0] for s in SCHEDULES}, names
    for spec, factor in SCHEDULES.items():
        for name in ("sgd", "adagrad"):
            for batch in (1, 7):
                optimizer, rate = OPTIMIZERS[name]
                got = train(FILES["binary"], "--model", "logistic", "--optimizer", name, "--lr", rate,
                            "--schedule", spec, "--epochs", 5, "--batch", batch, "--l1", 0.01, *COMMON)
                expected = simulate(X, binary, logistic, optimizer, rate, batch, 5, l1=0.01,
                                    schedule=lambda e: factor(e, 5))
                compare("schedule %s, %s, batch %d" % (spec, name, batch), got, expected)


@law
def the_step_grows_with_the_rows_of_an_update():
    """--lr-batch N: B/N times --lr, where B counts the rows of all workers whose gradients are averaged."""
    for sync, rows in (("serial", 8), ("bsp", 24), ("allreduce", 24), ("master", 24), ("k-sync:2", 16), ("hogwild", 8), ("async", 8)):
        workers = [] if sync == "serial" else ["--workers", 3]
        for spec in ("constant", "linear:warmup=1.5"):
            options = ["--model", "logistic", "--optimizer", "sgd", "--batch", 8, "--schedule", spec, "--epochs", 3]
            _, _, result = train(FILES["binary"], *options, "--sync", sync, *workers, "--lr", 0.1, "--lr-batch", 4, *COMMON)
            assert abs(result["options"]["lr"] - 0.1 * rows / 4) < 1e-12, (sync, result["options"]["lr"])
    got = train(FILES["binary"], "--model", "logistic", "--optimizer", "sgd", "--lr", 0.05, "--lr-batch", 2, "--batch", 7,
                "--schedule", "linear:warmup=1.5", "--epochs", 5, *COMMON)
    expected = simulate(X, binary, logistic, Sgd, 0.05 * 7 / 2, 7, 5, schedule=lambda e: min(e / 1.5, 1) * (1 - e / 5))
    compare("--lr-batch 2 with batches of 7", got, expected)
    _, _, said = train(FILES["binary"], "--lr-batch", 32, code=2)
    assert "--lr-batch scales --lr" in said, said


@law
def schedules_end_with_the_updates():
    got = train(FILES["binary"], "--model", "logistic", "--optimizer", "sgd", "--lr", 0.1,
                "--schedule", "linear", "--updates", 90, *COMMON)
    expected = simulate(X, binary, logistic, Sgd, 0.1, 1, 3, schedule=lambda e: 1 - e / 2, updates=90)
    compare("linear over 90 updates", got, expected)


@law
def average_is_the_mean_of_the_weights_after_each_update():
    for name in ("sgd", "momentum", "nesterov", "adagrad", "rmsprop-nesterov", "ftrl"):
        for start in (0, 2):
            optimizer, rate = OPTIMIZERS[name]
            got = train(FILES["binary"], "--model", "logistic", "--optimizer", name, "--lr", rate,
                        "--schedule", "constant", "--epochs", 4, "--l1", 0.01, "--average", start,
                        *COMMON)
            expected = simulate(X, binary, logistic, optimizer, rate, 1, 4, l1=0.01, average=start)
            compare("average from %d, %s" % (start, name), got, expected)


@law
def class_weights_multiply_the_losses():
    count = {-1.0: (binary < 0).sum(), 1.0: (binary > 0).sum()}
    for spec, weights in (("balanced", {c: N / (2 * n) for c, n in count.items()}),
                          ("-1=0.5,1=2", {-1.0: 0.5, 1.0: 2.0})):
        for batch in (1, 7):
            got = train(FILES["binary"], "--model", "logistic", "--optimizer", "sgd", "--lr", 0.05,
                        "--schedule", "constant", "--epochs", 5, "--batch", batch, "--class-weight",
                        spec, *COMMON)
            expected = simulate(X, binary, logistic, Sgd, 0.05, batch, 5,
                                row_weight=np.array([weights[y] for y in binary]))
            compare("class weight %s, batch %d" % (spec, batch), got, expected)


@law
def sample_weights_multiply_the_losses():
    weight = random.integers(1, 9, size=N) / 4.0
    path = write_csv("weights.csv", X, real, weight)
    for batch in (1, 7):
        got = train(path, "--label", "label", "--weight", "weight", "--model", "squared", "--optimizer",
                    "sgd", "--lr", 0.05, "--schedule", "constant", "--epochs", 5, "--batch", batch,
                    *COMMON)
        expected = simulate(X, real, squared, Sgd, 0.05, batch, 5, row_weight=weight, regression=True)
        compare("sample weights, batch %d" % batch, got, expected)
        z = X @ expected[0][:, 0] + expected[1]
        mean = (weight * 0.5 * (z - real) ** 2).sum() / weight.sum()
        assert abs(got[2]["train_loss"] - mean) < 1e-5 * mean, (got[2]["train_loss"], mean)


@law
def a_weight_of_two_is_the_row_twice():
    weight = random.integers(1, 4, size=N).astype(float)
    path = write_csv("twice.csv", X, real, weight)
    again = np.repeat(np.arange(N), weight.astype(int))
    other = write_csv("again.csv", X[again], real[again])
    common = ["--label", "label", "--model", "squared", "--sync", "batch", "--epochs", 3000, "--l2",
              0.1, "--scale", "none"]
    got, expected = train(path, "--weight", "weight", *common), train(other, *common)
    compare("rows of weight n against n rows", got[:2], expected[:2], 1e-5)


@law
def averages_are_of_every_kth_update():
    """k = features / non-zeros of an update, 40/10 for single rows and 40/20 for batches of two."""
    wide = np.zeros((30, 40))
    for row in wide:
        row[random.choice(39, 10, replace=False)] = np.float32(random.normal(size=10))
    wide[0] = 0
    wide[0, 30:] = 0.5
    labels = np.where(random.random(30) < 0.5, 1.0, -1.0)
    path = write_libsvm("wide.svm", wide, labels)
    for batch, k in ((1, 4), (2, 2)):
        got = train(path, "--model", "logistic", "--optimizer", "sgd", "--lr", 0.1, "--schedule", "constant", "--epochs", 3,
                    "--batch", batch, "--average", 1, *COMMON)
        expected = simulate(wide, labels, logistic, Sgd, 0.1, batch, 3, average=1, average_every=k)
        compare("the mean of every %d-th update, batch %d" % (k, batch), got, expected, 1e-5)


@law
def adamw_is_the_published_one():
    """w ← w(1 − ηλ) − η·m̂/(√v̂ + ε), as in PyTorch (the intercept does not decay): five updates with steps and
    decays so large that any other order shows, on dense rows and, lazily, on sparse ones."""
    full = random.normal(size=(5, 19)).astype(np.float32).astype(float)
    y = np.float32(full @ random.normal(size=19) + 1).astype(float)
    for path, rows, dense in ((write_csv("five.csv", full, y), full, True),
                              (write_libsvm("five.svm", X[15:20], real[15:20]), X[15:20], False)):
        label = ["--label", "label"] if dense else []
        for rate, decay in ((0.3, 0.5), (0.01, 0.01), (0.05, 4)):
            got = train(path, *label, "--model", "huber", "--optimizer", "adamw:decay=%g" % decay, "--lr", rate,
                        "--schedule", "constant", "--epochs", 1, *COMMON)
            expected = simulate(rows, y if dense else real[15:20], huber, AdamW, rate, 1, 1, l2=decay,
                                regression=True, dense=dense)
            compare("adamw of %g with decay %g, %s" % (rate, decay, "dense" if dense else "sparse"), got,
                    expected, 1e-6)


@law
def l2_is_the_flow_that_is_documented():
    """A weight that no row touches any more: |w| ← |w|·e^(−m·η·l2) a step, m = 1 (sgd), 1/(√Σg² + ε) (adagrad).
    The proximal 1/(1 + m·η·l2) is 3e-2 away."""
    path = write_libsvm("two.svm", np.array([[1.0, 0], [0, 1.0]]), np.array([1.0, 0]))
    for name, metric in (("sgd", lambda g: 1), ("adagrad", lambda g: 1 / (abs(g) + 1e-10))):
        W, b, _ = train(path, "--model", "squared", "--optimizer", name, "--lr", 0.5, "--schedule", "constant",
                        "--epochs", 1, "--l2", 0.25, "--no-intercept", *COMMON)
        first = 0.5 * metric(1.0)  # gradient −1 at w = 0, then two steps' penalty
        compare("l2 of %s" % name, (W[:1],), (np.array([[first * np.exp(-2 * metric(1.0) * 0.5 * 0.25)]]),), 1e-6)


@law
def regression_starts_the_intercept_at_the_mean_label():
    path = write_libsvm("mean.svm", np.eye(4), np.array([1.0, 2, 3, 10]))
    W, b, _ = train(path, "--model", "squared", "--optimizer", "sgd", "--lr", 1e-12, "--epochs", 1, *COMMON)
    compare("the start of the intercept", (b,), (np.array([4.0]),), 1e-6)


def weighted_optimum(X, y, weight, l2):
    """argmin Σ wᵢ·log(1 + e^(−yᵢzᵢ)) + l2/2·‖w‖², by Newton's method in double; the intercept is free."""
    A = np.column_stack([X, np.ones(len(X))])
    ridge = np.diag([l2] * X.shape[1] + [0.0])
    theta = np.zeros(A.shape[1])
    for _ in range(50):
        p = 1 / (1 + np.exp(y * (A @ theta)))
        gradient = -A.T @ (weight * y * p) + ridge @ theta
        theta -= np.linalg.solve(A.T @ (A * (weight * p * (1 - p))[:, None]) + ridge, gradient)
    z = A @ theta
    loss = (weight * np.log1p(np.exp(-y * z))).sum() + l2 / 2 * (theta[:-1] ** 2).sum()
    return theta[:-1, None], theta[-1:], loss


@law
def penalty_on_sum_takes_weights_as_they_are():
    """Σ wᵢ·lossᵢ + penalty, as rows written twice and as scikit-learn has it."""
    tiny = write_csv("tiny.csv", np.array([[1.0], [-1], [0.5]]), np.array([1, 0, 0]), np.array([2, 2, 2]))
    W, b, _ = train(tiny, "--label", "label", "--weight", "weight", "--model", "logistic", "--l2", 0.5,
                    "--penalty-on", "sum", "--sync", "batch", "--epochs", 2000)
    compare("three rows of weight two", (W,), (np.array([[1.35362]]),), 1e-5)
    Z = random.normal(size=(60, 4)).astype(np.float32).astype(float)
    y = np.where(Z @ np.array([1, -1, 0.5, 0]) + random.normal(size=60) > 0, 1, 0)
    times = random.integers(1, 5, 60).astype(float)
    heavy, again = write_csv("heavy.csv", Z, y, times), np.repeat(np.arange(60), times.astype(int))
    written = write_csv("written.csv", Z[again], y[again])
    signs = 2.0 * y - 1
    options = ["--label", "label", "--model", "logistic", "--l2", 3, "--penalty-on", "sum", "--sync", "batch",
               "--epochs", 3000]
    for name, path, more, weight in (
            ("sample weights", heavy, ["--weight", "weight"], times),
            ("rows written often", written, [], times),
            ("class weights", heavy, ["--ignore", "weight", "--class-weight", "0=0.5,1=4"], np.where(y, 4, 0.5)),
            ("both", heavy, ["--weight", "weight", "--class-weight", "0=0.5,1=4"], times * np.where(y, 4, 0.5))):
        got = train(path, *options, *more)
        W, b, objective = weighted_optimum(Z, signs, weight, 3)
        compare("penalty on sum, " + name, got[:2], (W, b), 2e-4)
        assert abs(got[2]["objective"] * weight.sum() / objective - 1) < 1e-5, name
    # With rows held out those that are trained on count: λ/Σw on the mean is the same run, for every optimizer.
    even = write_csv("even.csv", Z, y, np.full(60, 3))
    held = ["--label", "label", "--weight", "weight", "--model", "logistic", "--valid-fraction", 0.3, "--epochs", 4,
            "--class-weight", "0=0.5,1=0.5"]
    kept = train(even, *held)[2]["rows"]
    assert kept < 60
    for name in set(OPTIMIZERS) - {"adamw"}:
        for batch in (1, 7):
            own = held + ["--optimizer", name, "--batch", batch]
            on_sum = train(even, *own, "--l2", 3, "--penalty-on", "sum")
            on_mean = train(even, *own, "--l2", 3 / (1.5 * kept))
            compare("penalty on sum of rows kept, %s, batch %d" % (name, batch), on_sum[:2], on_mean[:2], 1e-5)


@law
def penalty_on_sum_is_the_penalty_over_the_rows():
    for name in ("sgd", "adagrad", "ftrl"):
        optimizer, rate = OPTIMIZERS[name]
        got = train(FILES["binary"], "--model", "logistic", "--optimizer", name, "--lr", rate,
                    "--schedule", "constant", "--epochs", 4, "--l1", 0.01 * N, "--l2", 0.05 * N,
                    "--penalty-on", "sum", *COMMON)
        expected = simulate(X, binary, logistic, optimizer, rate, 1, 4, l1=0.01, l2=0.05)
        compare("penalty on sum, %s" % name, got, expected)
        W, b, result = got
        z = binary * (X @ W[:, 0] + b[0])
        objective = np.log1p(np.exp(-z)).mean() + 0.01 * np.abs(W).sum() + 0.025 * (W ** 2).sum()
        assert abs(result["objective"] - objective) < 1e-6 * objective, (result["objective"], objective)


@law
def dense_rows_give_the_same_numbers():
    full = random.normal(size=(N, 19)).astype(np.float32).astype(float)
    y = np.float32(full @ random.normal(size=19) + 1).astype(float)
    path = write_csv("dense.csv", full, y)
    for name, (optimizer, rate) in OPTIMIZERS.items():
        for batch in (1, 7):
            options = [] if name in ("adamw",) else ["--l2", 0.02]
            spec, l1 = ("adamw:decay=0.02", 0) if name == "adamw" else (name, 0.01)
            got = train(path, "--label", "label", "--model", "huber", "--optimizer", spec, "--lr", rate,
                        "--schedule", "constant", "--epochs", 4, "--batch", batch, "--l1", l1, *COMMON,
                        *options)
            expected = simulate(full, y, huber, optimizer, rate, batch, 4, l1=l1, l2=0.02,
                                regression=True, dense=True)
            compare("dense rows, %s, batch %d" % (name, batch), got, expected)


@law
def huber_takes_its_delta():
    got = train(FILES["real"], "--model", "huber:0.25", "--optimizer", "sgd", "--lr", 0.05,
                "--schedule", "constant", "--epochs", 5, *COMMON)
    expected = simulate(X, real, lambda z, y: np.clip(z - y[:, None], -0.25, 0.25), Sgd, 0.05, 1, 5,
                        regression=True)
    compare("huber:0.25", got, expected)


@law
def options_of_the_optimizers_are_taken():
    for spec, optimizer, rate, options in (
            ("momentum:0.5", Momentum, 0.02, {"beta": 0.5}),
            ("nesterov:beta=0.7", Nesterov, 0.02, {"beta": 0.7}),
            ("rmsprop:rho=0.8", RmsProp, 0.01, {"rho": 0.8}),
            ("adam:beta1=0.5,beta2=0.9", Adam, 0.01, {"beta1": 0.5, "beta2": 0.9}),
            ("ftrl:3", Ftrl, 0.2, {"beta": 3.0})):
        got = train(FILES["binary"], "--model", "logistic", "--optimizer", spec, "--lr", rate,
                    "--schedule", "constant", "--epochs", 5, *COMMON)
        expected = simulate(X, binary, logistic, optimizer, rate, 1, 5, options=options)
        compare(spec, got, expected)


@law
def without_an_intercept_there_is_none():
    got = train(FILES["binary"], "--model", "logistic", "--optimizer", "sgd", "--lr", 0.05,
                "--schedule", "constant", "--epochs", 5, "--no-intercept", *COMMON)
    assert got[1] is None
    expected = simulate(X, binary, logistic, Sgd, 0.05, 1, 5, intercept=False)
    compare("no intercept", (got[0], None), expected)


# ---- x² + 4y²: two rows, ½(√2·2... ) chosen so that the mean loss is x² + 4y² plus a constant ----
def quadratic():
    """Rows (2, 0) and (0, 4) with label 0: mean loss ½·½(4x² + 16y²) = x² + 4y². A start away from 0 comes
    from labels: row (2,0) label 2 has its minimum at x = 1, row (0,4) label 4 at y = 1."""
    return write_libsvm("quadratic.svm", np.array([[2.0, 0], [0, 4.0]]), np.array([2.0, 4.0]))


@law
def quadratic_follows_its_closed_form():
    path = quadratic()
    for eta in (0.01, 0.05, 0.125, 0.2, 0.24):
        for steps in (1, 2, 3, 10, 30):
            W, _, _ = train(path, "--model", "squared", "--no-intercept", "--batch", 2, "--optimizer",
                            "sgd", "--lr", eta, "--schedule", "constant", "--epochs", steps, *COMMON)
            expected = 1 - np.array([(1 - 2 * eta) ** steps, (1 - 8 * eta) ** steps])
            compare("x² + 4y², η=%g, %d steps" % (eta, steps), (W[:, 0],), (expected,), 1e-5)


@law
def quadratic_diverges_beyond_a_quarter():
    path = quadratic()
    for eta, steps in ((0.26, 5000), (0.3, 1000), (0.5, 300)):
        train(path, "--model", "squared", "--no-intercept", "--batch", 2, "--optimizer", "sgd", "--lr",
              eta, "--schedule", "constant", "--epochs", steps, *COMMON, code=4)


@law
def a_loss_a_trillion_times_the_first_is_divergence_long_before_infinity():
    train(quadratic(), "--model", "squared", "--no-intercept", "--batch", 2, "--optimizer", "sgd",
          "--lr", 0.3, "--schedule", "constant", "--epochs", 100, *COMMON, code=4)  # weights 1.4^100


@law
def warm_up_from_zero_does_no_harm_to_ftrl():
    """A rate of 0 in the first update must not leave NaN in the state: its weights would stay 0 for ever."""
    touched = X[0] != 0
    try:
        W, b, _ = train(FILES["binary"], "--model", "logistic", "--optimizer", "ftrl", "--lr", 0.2,
                        "--schedule", "constant:warmup=1", "--epochs", 8, *COMMON)
    except Exception as error:
        assert "exit code 2" in str(error), error  # refusing it is fine
        return
    assert (W[touched] != 0).any() and b[0] != 0, "the features of the first row never learn"


@law
def elastic_net_with_a_tiny_l2_is_the_lasso():
    for name in ("sgd", "adagrad"):
        optimizer, rate = OPTIMIZERS[name]
        for l2 in (1e-5, 1e-7, 1e-9, 1e-12):
            got = train(FILES["binary"], "--model", "logistic", "--optimizer", name, "--lr", rate,
                        "--schedule", "constant", "--epochs", 6, "--l1", 0.02, "--l2", l2, *COMMON)
            expected = simulate(X, binary, logistic, optimizer, rate, 1, 6, l1=0.02)
            compare("l1=0.02 with l2=%g, %s" % (l2, name), got, expected, 1e-3)


@law
def l1_gives_exact_zeros_with_every_optimizer():
    for name, (optimizer, rate) in OPTIMIZERS.items():
        if name == "adamw":
            done = subprocess.run([SOUNDER, "train", FILES["binary"], "--optimizer", name, "--l1", "1"],
                                  capture_output=True, text=True)
            assert done.returncode == 2 and "--l1" in done.stderr, "adamw has no place for l1"
            continue
        W, _, result = train(FILES["binary"], "--model", "logistic", "--optimizer", name, "--lr", rate,
                             "--schedule", "constant", "--epochs", 6, "--l1", 5, *COMMON)
        assert not W.any(), "%s: l1=5 must kill every weight, %d are left" % (name, (W != 0).sum())


@law
def an_average_that_never_starts_is_refused_or_said():
    done = subprocess.run([SOUNDER, "train", FILES["binary"], "--epochs", "3", "--average", "50",
                           "--json"], capture_output=True, text=True)
    assert done.returncode == 2 or "average" in done.stderr, "--average 50 with 3 epochs does nothing"


@law
def units_do_not_matter_to_the_bit():
    """A feature in units 1024 times as small: steps in scaled units give the same scores, bit for bit."""
    for layout in (write_libsvm, write_csv):
        extra = ["--label", "label"] if layout is write_csv else []
        data = X if layout is write_libsvm else np.where(X == 0, 0.25, X)
        other = data.copy()
        other[:, 3] *= 1024
        for options in ([], ["--optimizer", "sgd", "--scale", "feature"],
                        ["--standardize", "--l1", 0.01, "--l2", 0.01],
                        ["--sync", "batch", "--epochs", 50]):
            a = train(layout("unit", data, real), "--format", "csv" if extra else "libsvm",
                      "--model", "squared", *extra, *options)
            b = train(layout("unit", other, real), "--format", "csv" if extra else "libsvm",
                      "--model", "squared", *extra, *options)
            b[0][3] *= 1024
            assert (a[0] == b[0]).all() and a[1] == b[1], (options, np.abs(a[0] - b[0]).max())
            assert a[2]["train_loss"] == b[2]["train_loss"], options


@law
def a_penalty_takes_all_of_a_weight_whose_feature_is_tiny():
    """Values of 1e-22 have a scale of 1e22, whose square no float holds: that weight is zero whenever it is read."""
    tiny, without = X.copy(), X.copy()
    tiny[:, 3] *= 1e-22
    without[:, 3] = 0
    for batch in (1, 16):
        options = ["--model", "squared", "--l2", 1e-3, "--epochs", 3, "--lr", 0.125, "--scale", "feature", "--batch", batch]
        W, b, _ = train(write_libsvm("tiny", tiny, real), "--format", "libsvm", *options)
        expected = train(write_libsvm("without", without, real), "--format", "libsvm", *options)
        assert W[3] == 0, W[3]
        compare("a tiny feature, batch %d" % batch, (np.delete(W, 3, 0),), (np.delete(expected[0], 3, 0),))


@law
def nan_is_divergence_with_a_penalty_too():
    for penalty in ([], ["--l1", 0.001], ["--l2", 0.001]):
        train(FILES["real"], "--model", "squared", "--optimizer", "sgd", "--lr", 1e6, "--schedule",
              "constant", "--epochs", 40, *COMMON, *penalty, code=4)


print("%d comparisons, %d failures" % (checks, len(failures)))
for line in failures:
    print("FAILED", line)
subprocess.run(["rm", "-rf", WORK])
sys.exit(1 if failures else 0)
