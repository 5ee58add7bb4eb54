"""Networks against numpy: every block after three steps on all rows, scores, losses, dropout, the size of LeNet.
Nothing here is taken from the program but the meaning of its blocks (src/model/layers.h)."""
import os
import re
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: its matrices are small, and cores are shared
import numpy as np

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import laws
from laws import MODEL, expect, finish, path_of, run
from tensors import read_tensors

STEPS = 3
random = np.random.default_rng(12)


# ---- a network in numpy: values are (rows, channels, height, width) ----
def windows(x, size, stride):
    """All windows of images: (rows, channels, height, width, size, size), of which those that fit."""
    views = np.lib.stride_tricks.sliding_window_view(x, (size, size), axis=(2, 3))
    return views[:, :, ::stride, ::stride]


def each_offset(shape, size, stride):
    """For every pixel of a window: its place, and where it lies in the image, for all windows at once."""
    height, width = (shape[2] - size) // stride + 1, (shape[3] - size) // stride + 1
    for r in range(size):
        for c in range(size):
            yield r, c, np.s_[:, :, r:r + stride * height:stride, c:c + stride * width:stride]


class Dense:
    def __init__(self, weight, bias):
        self.parameters, self.names = [weight, bias], None

    def forward(self, x):
        self.shape, self.x = x.shape, x.reshape(len(x), -1)
        return (self.x @ self.parameters[0] + self.parameters[1]).reshape(len(x), -1, 1, 1)

    def backward(self, d):
        d = d.reshape(len(d), -1)
        self.gradients = [self.x.T @ d, d.sum(0, keepdims=True)]
        return (d @ self.parameters[0].T).reshape(self.shape)


class Conv(Dense):
    def __init__(self, weight, bias, size, stride, pad):
        super().__init__(weight, bias)
        self.size, self.stride, self.pad = size, stride, pad

    def kernels(self, channels):
        return self.parameters[0].reshape(channels, self.size, self.size, -1)

    def forward(self, x):
        self.x = np.pad(x, ((0, 0), (0, 0), (self.pad, self.pad), (self.pad, self.pad)))
        view = windows(self.x, self.size, self.stride)
        out = np.einsum("nchwrs,crsk->nkhw", view, self.kernels(x.shape[1]), optimize=True)
        return out + self.parameters[1].reshape(1, -1, 1, 1)

    def backward(self, d):
        weight = np.einsum("nchwrs,nkhw->crsk", windows(self.x, self.size, self.stride), d, optimize=True)
        self.gradients = [weight.reshape(self.parameters[0].shape), d.sum((0, 2, 3)).reshape(1, -1)]
        back, kernels = np.zeros_like(self.x), self.kernels(self.x.shape[1])
        for r, c, place in each_offset(self.x.shape, self.size, self.stride):
            back[place] += np.einsum("nkhw,ck->nchw", d, kernels[:, r, c], optimize=True)
        return back[:, :, self.pad:back.shape[2] - self.pad, self.pad:back.shape[3] - self.pad]


class Pool:
    def __init__(self, size, stride):
        self.size, self.stride = size, stride

    def forward(self, x):
        view = windows(x, self.size, self.stride)
        self.shape, self.best = x.shape, view.reshape(*view.shape[:4], -1).argmax(-1)
        return view.max((4, 5))

    def backward(self, d):
        back = np.zeros(self.shape)
        for r, c, place in each_offset(self.shape, self.size, self.stride):
            back[place] += d * (self.best == r * self.size + c)
        return back


class Activation:
    F = {"relu": (lambda x: np.maximum(x, 0), lambda y: y > 0), "tanh": (np.tanh, lambda y: 1 - y * y),
         "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), lambda y: y * (1 - y))}

    def __init__(self, name):
        self.f, self.slope = self.F[name]

    def forward(self, x):
        self.y = self.f(x)
        return self.y

    def backward(self, d):
        return d * self.slope(self.y)


class Mask:
    """Dropout of given units: for tests that know which; None: none, as in predictions."""
    factor = None

    def forward(self, x):
        return x if self.factor is None else x * self.factor.reshape(1, *x.shape[1:])

    def backward(self, d):
        return d if self.factor is None else d * self.factor.reshape(1, *d.shape[1:])


class Network:
    def __init__(self, text, tensors):
        """The layers that a text describes, with the values of a model file."""
        self.fixed = {name: tensors[name].astype(float).ravel() for name in ("input", "output") if name in tensors}
        self.layers, count = [], {"dense": 0, "conv": 0}
        for word in text.split("-") + ["dense%d" % list(tensors.values())[-1 - ("output" in tensors)].size]:
            kind, numbers = re.match("[a-z]+", word).group(), dict(re.findall(r"([a-z]+)([\d.]+)", word))
            layer = None
            if kind in count:
                count[kind] += 1
                name = "%s%d" % (kind, count[kind])
                values = [tensors[name + part].astype(float) for part in (".weight", ".bias")]
                values[1] *= np.abs(values[1]) > 1e-20  # a bias starts at 0, and a step of 1e-30 has passed
                assert values[0].shape[1] == values[1].size == int(numbers[kind])
                layer = Dense(*values) if kind == "dense" else Conv(
                    *values, int(numbers["x"]), int(numbers.get("s", 1)), int(numbers.get("p", 0)))
                layer.names = [name + ".weight", name + ".bias"]
            elif kind == "pool":
                layer = Pool(int(numbers["pool"]), int(numbers.get("s", numbers["pool"])))
            else:
                layer = Mask() if kind == "dropout" else Activation(kind)
            self.layers.append(layer)

    def trained(self):
        return [layer for layer in self.layers if isinstance(layer, Dense)]

    def values(self):
        return {name: value for layer in self.trained() for name, value in zip(layer.names, layer.parameters)}

    def scores(self, x):
        if "input" in self.fixed:
            shift, scale = self.fixed["input"]
            x = (x - shift) * scale
        for layer in self.layers:
            x = layer.forward(x)
        x = x.reshape(len(x), -1)
        if "output" in self.fixed:
            mean, size = self.fixed["output"]
            x = mean + size * x
        return x

    def loss(self, x, y, weight, backward=False):
        """The mean loss of rows with weights; with backward, gradients are left in the layers."""
        scores, share = self.scores(x), weight / weight.sum()
        if "output" in self.fixed:
            d = scores - y[:, None]
            losses, d = 0.5 * d[:, 0] ** 2, d * self.fixed["output"][1]
        else:
            p = np.exp(scores - scores.max(1, keepdims=True))
            p /= p.sum(1, keepdims=True)
            losses, d = -np.log(p[np.arange(len(y)), y]), p - np.eye(p.shape[1])[y]
        d = (d * share[:, None])[:, :, None, None]
        for layer in reversed(self.layers if backward else []):
            d = layer.backward(d)
        return losses @ share

    def step(self, rate, x, y, weight):
        self.loss(x, y, weight, backward=True)
        for layer in self.trained():
            layer.parameters = [w - rate * g for w, g in zip(layer.parameters, layer.gradients)]

    def slope_error(self, x, y, weight):
        """The gradient against differences of the loss, along a random direction."""
        start, h = [layer.parameters for layer in self.trained()], 1e-6
        self.loss(x, y, weight, backward=True)
        ways = [[g + random.normal(0, np.abs(g).mean(), g.shape) for g in layer.gradients] for layer in self.trained()]
        length = np.sqrt(sum((way ** 2).sum() for pair in ways for way in pair))
        slope = sum((g * way).sum() for layer, pair in zip(self.trained(), ways)
                    for g, way in zip(layer.gradients, pair)) / length
        ends = []
        for sign in (1, -1):
            for layer, values, pair in zip(self.trained(), start, ways):
                layer.parameters = [w + sign * h / length * way for w, way in zip(values, pair)]
            ends.append(self.loss(x, y, weight))
        for layer, values in zip(self.trained(), start):
            layer.parameters = values
        return abs((ends[0] - ends[1]) / (2 * h) / slope - 1)


# ---- data ----
class Data:
    """Rows in a file, and as numpy has them."""

    def __init__(self, x, y, weight=None):
        self.x, self.y = x if x.dtype == np.uint8 else x.astype(np.float32), np.asarray(y)
        self.weight = np.ones(len(y)) if weight is None else weight
        self.weighted, self.options = weight is not None, []

    def npy(self, name):
        self.path = path_of(name + ".npy")
        np.save(self.path, self.x)
        labels = path_of(name + "-labels.npy")
        np.save(labels, self.y.astype(np.float32) if self.y.dtype.kind == "f" else self.y)
        self.options = ["--labels", labels]
        return self

    def csv(self, name):
        self.path = path_of(name + ".csv")
        flat = self.x.reshape(len(self.x), -1)
        with open(self.path, "w") as file:
            file.write(",".join(["f%d" % j for j in range(flat.shape[1])] + ["w"] * self.weighted + ["label"]) + "\n")
            for row, w, label in zip(flat, self.weight, self.y):
                file.write(",".join(["%.9g" % v for v in row] + ["%.9g" % w] * self.weighted + ["%.9g" % label]) + "\n")
        self.options = ["--label", "label"] + ["--weight", "w"] * self.weighted
        return self

    def svm(self, name):
        self.path = path_of(name + ".svm")
        with open(self.path, "w") as file:
            for row, label in zip(self.x.reshape(len(self.x), -1), self.y):
                file.write("%.9g %s\n" % (label, " ".join("%d:%.9g" % (j + 1, v) for j, v in enumerate(row) if v)))
        return self

    def shaped(self, flat):
        """Rows as networks take them: channels first, or as they stand in the file for a dense first layer."""
        x = self.x.astype(float)
        if flat or x.ndim < 4:
            return x.reshape(len(x), -1, 1, 1) if flat else x[:, None]
        return x if x.shape[1] == 3 else x.transpose(0, 3, 1, 2)

    def measure(self):
        """Centers and sizes of features: those of all values where rows are dense, else of the non-zeros."""
        x = self.x.reshape(len(self.x), -1).astype(float)
        if not self.path.endswith(".svm"):
            return x.mean(0), x.std(0)
        return np.zeros(x.shape[1]), np.sqrt((x * x).sum(0) / np.maximum((x != 0).sum(0), 1))


def classes(rows, count):
    return random.permutation(np.arange(rows) % count)


def numbers(x, mean, size):
    """Labels that rows have something to do with, to be learnt."""
    flat = x.reshape(len(x), -1)
    z = np.tanh(flat @ random.normal(0, 0.5, flat.shape[1])) + random.normal(0, 0.3, len(x))
    return (mean + size * z).astype(np.float32).astype(float)


def vectors(rows, features, share=1.0):
    x = random.normal(0.3, 1, (rows, features)) * (random.random((rows, features)) < share)
    x[-1, -1] = 1  # sparse text tells the number of features by the last one
    return x


def pictures(rows, *shape, mean=4.0, size=2.5):
    return random.normal(mean, size, (rows, *shape))


def sparse_pictures(rows, *shape):
    x = random.normal(1, 0.5, (rows, *shape)) * (random.random((rows, *shape)) < 0.3)
    x[-1].flat[-1] = 1
    return x


# ---- runs ----
def plain(data, model, rate, *options, batch=None):
    return [data.path, *data.options, "--model", model, "--optimizer", "sgd", "--schedule", "constant", "--batch",
            batch or len(data.y), "--lr", repr(rate), "--threads", 1, *options]


def scores_of(data):
    """What predict writes: a row of scores for each row."""
    lines = run("predict", MODEL, data.path, *data.options, "--scores", "--quiet", "--threads", 1).splitlines()
    return np.array([[float(word) for word in line.split()[1:]] for line in lines[1:]])


DEFAULTS = {"lenet": "conv20x5-pool2-conv50x5-pool2-dense500-relu", "mlp-100": ("100", "sigmoid"),
            "mlp-300-100-50": ("300-100-50", "sigmoid-relu-sigmoid"), "mlp-regression": ("300-100", "relu"),
            "mlp": ("300-100", "relu"), "cnn": "conv16x3p1-relu-pool2-conv32x3p1-relu-pool2-dense128-relu"}


def layers_of(model):
    """The text of layers that a model's options stand for."""
    name, _, text = model.partition(":")
    given = dict(item.split("=") for item in text.split(",") if item)
    if not name.startswith("mlp"):
        return given.get("layers", DEFAULTS.get(name))
    units, f = given.get("hidden", DEFAULTS[name][0]).split("-"), given.get("activation", DEFAULTS[name][1]).split("-")
    return "-".join("dense%s-%s" % (n, f[min(i, len(f) - 1)]) for i, n in enumerate(units))


def check(data, model, rate, scale="none", l2=0.0, batch=None):
    """Some steps of the program against as many of numpy's."""
    options = ["--scale", scale, "--l2", l2] + ["--shuffle", "none"] * bool(batch)
    updates = STEPS if batch is None else 2 * -(-len(data.y) // batch)  # two epochs
    _, begin = laws.train(*plain(data, model, 1e-30, *options, batch=batch), "--updates", 1)
    result, end = laws.train(*plain(data, model, rate, *options, batch=batch), "--updates", updates)
    what = "%s, %s%s" % (model, os.path.basename(data.path), "".join(" %s=%s" % pair for pair in (
        ("scale", scale), ("l2", l2), ("batch", batch)) if pair[1] not in ("none", 0, None)))
    network = Network(layers_of(model), begin)
    x = data.shaped("input" not in begin)
    if "input" in begin:
        exact = [x.mean(), 1 / x.std()]
        expect("%s: pixels are shifted and scaled" % what, np.allclose(begin["input"].ravel(), exact, rtol=1e-5))
    if "output" in begin:
        exact = [data.y.mean(), data.y.std()]
        expect("%s: mean and size of labels" % what, np.allclose(begin["output"].ravel(), exact, rtol=1e-4),
               "%s %s" % (begin["output"].ravel(), exact))

    first, z = network.layers[0], x
    if scale == "feature":  # scaled features: z = (x - center) / size, and weights of these
        center, size = data.measure()
        z = (x - center.reshape(1, -1, 1, 1)) / size.reshape(1, -1, 1, 1)
        weight, bias = first.parameters
        first.parameters = [weight * size[:, None], bias + center @ weight]
    for u in range(updates):
        at = u * batch % (-(-len(z) // batch) * batch) if batch else 0
        part = slice(at, at + (batch or len(z)))
        network.step(rate, z[part], data.y[part], data.weight[part])
        for layer in network.trained():
            shrink = -rate * l2 / (size[:, None] ** 2 if scale == "feature" and layer is first else 1)
            layer.parameters[0] = layer.parameters[0] * np.exp(shrink)
    if scale == "feature":
        weight, bias = first.parameters
        first.parameters = [weight / size[:, None], bias - center @ (weight / size[:, None])]

    errors, changes = {}, {}
    for name, value in network.values().items():
        start = begin[name].astype(float)
        change = np.linalg.norm(value - start)
        errors[name] = np.linalg.norm(end[name] - value) / change
        changes[name] = change / max(np.linalg.norm(start), 0.1)
    worst, least = max(errors, key=errors.get), min(changes, key=changes.get)
    expect("%s: every block is numpy's" % what, errors[worst] < 1e-4 and set(errors) == set(end) - {"input", "output"},
           "%.1e in %s" % (errors[worst], worst))
    expect("%s: every block changes" % what, changes[least] > 2e-3, "%.1e in %s" % (changes[least], least))
    expect("%s: fixed blocks stay" % what, all(np.array_equal(begin[name], end[name]) for name in ("input", "output")
                                              if name in begin))
    slope = network.slope_error(x, data.y, data.weight)
    expect("%s: numpy's gradient is the slope of its loss" % what, slope < 1e-5, "%.1e" % slope)
    loss = network.loss(x, data.y, data.weight)
    expect("%s: the loss" % what, abs(result["train_loss"] / loss - 1) < 1e-5, "%.7g %.7g" % (result["train_loss"], loss))
    ours = network.scores(x)
    away = np.linalg.norm(scores_of(data) - ours) / np.linalg.norm(ours - ours.mean())
    expect("%s: the scores" % what, away < 1e-4, "%.1e" % away)


# ---- dense layers ----
v = vectors(130, 19)
four, two = Data(v, classes(130, 4)).npy("four"), Data(v[:50], classes(50, 2)).csv("two")
check(four, "mlp:hidden=17,activation=relu", 0.3)
check(four, "mlp:hidden=8,activation=tanh", 0.3)
check(four, "mlp:hidden=33-16-5,activation=sigmoid", 2.0)
check(four, "mlp:hidden=9-20-7,activation=tanh-relu-sigmoid", 0.5)
check(four, "mlp:hidden=7-1-6,activation=sigmoid-tanh", 1.5)
check(four, "mlp-300-100-50", 1.0, batch=50)
check(two, "mlp-100", 0.3)
check(two, "mlp:hidden=6-5", 0.2, l2=0.4)
few = vectors(150, 60, 0.1)
sparse = Data(few, classes(150, 3)).svm("sparse")
check(sparse, "mlp:hidden=16-9,activation=relu-tanh", 0.5)
check(sparse, "mlp:hidden=5,activation=sigmoid", 1.0, batch=64)
check(Data(v, classes(130, 3), random.integers(1, 9, 130) / 4).csv("weighted"), "mlp:hidden=10-4,activation=tanh", 0.3)
shifted = np.geomspace(0.05, 20, 19) * (vectors(130, 19) + random.normal(0, 2, 19))
check(Data(shifted, classes(130, 3)).npy("units"), "mlp:hidden=12-6,activation=tanh", 0.3, scale="feature", l2=0.01)
check(Data(few * np.geomspace(0.1, 10, 60), classes(150, 3)).svm("sparse-units"), "mlp:hidden=12,activation=relu", 0.3,
      scale="feature")
check(Data(v, numbers(v, 50, 7)).npy("numbers"), "mlp-regression:hidden=14-5,activation=tanh", 0.004)
check(Data(few, numbers(few, -3, 0.2)).svm("sparse-numbers"), "mlp-regression:hidden=9,activation=relu", 6.0)

# ---- images ----
gray = Data(pictures(70, 9, 8), classes(70, 3)).npy("gray")
colour = Data(pictures(40, 7, 10, 3), classes(40, 4)).npy("colour")
check(gray, "cnn:layers=conv5x3-relu-dense9-tanh", 0.2)
check(gray, "cnn:layers=conv4x3p2-tanh-pool2-conv6x2s2-relu-dense5-sigmoid", 0.4)  # pooling leaves a row out
check(gray, "cnn:layers=pool2s1-conv3x1-sigmoid-conv17x4s3p3-pool3s2", 0.5)  # windows overlap; strides leave pixels out
check(gray, "cnn:layers=relu-conv3x8-tanh-dense4", 0.2)
check(colour, "cnn:layers=conv6x3s2p1-relu-pool2s3-dense8-relu", 0.2)
check(colour, "cnn:layers=conv4x2-tanh-pool3s2-conv5x2p1-relu-pool2-dense7-tanh", 0.2, batch=16)
check(colour, "cnn", 0.1)
check(colour, "cnn:layers=dense8-tanh-dense4-relu", 0.2, scale="feature")
check(Data(pictures(30, 3, 6, 7), classes(30, 3)).npy("channels-first"), "cnn:layers=conv4x3p1-relu-pool2-dense6-relu", 0.2)
check(Data(pictures(30, 5, 6, 2), classes(30, 3), random.random(30) + 0.2).csv("table"),
      "cnn:layers=conv4x3-sigmoid-conv3x2-relu,image=5x6x2", 0.4)
check(Data(sparse_pictures(60, 8, 8), classes(60, 3)).svm("dark"), "cnn:layers=conv4x3-pool2-conv5x2-pool2,image=8x8", 0.1)
photos = pictures(50, 6, 6, 3)
check(Data(photos, numbers(photos, 1000, 30)).npy("ages"), "cnn-regression:layers=conv5x3-tanh-pool2-dense6-relu", 2e-3)
photos = photos[:, :, :, 0]
check(Data(photos, numbers(photos, 2, 1)).csv("ages-table"), "cnn-regression:layers=conv4x3p1s2-relu,image=6x6", 0.1)

# ---- LeNet, on bytes as MNIST has them ----
digits = random.integers(0, 256, (20, 28, 28), dtype=np.uint8)
check(Data(digits, np.arange(20) % 10).npy("digits"), "lenet", 0.02)
size = sum(block.size for name, block in read_tensors(MODEL)[0].items() if name != "input")
expect("LeNet has 431080 parameters", size == 431080, str(size))


# ---- dropout: rows of the next weights tell which units were dropped ----
def dropped(data, model, *options, batch=1, updates=1):
    """Per block of weights the inputs whose weights a run left alone, and the model before and after."""
    options = [*options, "--scale", "none", "--shuffle", "none", "--updates", updates]
    _, begin = laws.train(*plain(data, model, 1e-30, *options, batch=batch))
    _, end = laws.train(*plain(data, model, RATE, *options, batch=batch))
    return {name: (begin[name] == end[name]).all(1) for name in begin if name.endswith("weight")}, begin, end


def about(share, p, units):
    """Whether a share of units may come from a probability: five standard deviations."""
    return abs(share - p) < 5 * np.sqrt(p * (1 - p) / units)


RATE = 0.02
for data, layers, behind, p in ((four, "dense300-tanh-dropout0.5-dense7-tanh", "dense2.weight", 0.5),
                                (four, "dense20-sigmoid-dense400-tanh-dropout0.8", "dense3.weight", 0.8),
                                (sparse, "dense200-tanh-dropout0.5-dense6-relu", "dense2.weight", 0.5),
                                (colour, "conv6x3-tanh-dropout0.25-dense5-tanh", "dense1.weight", 0.25),
                                (colour, "dropout0.4-dense6-tanh", "dense1.weight", 0.4)):
    model = "cnn:layers=" + layers
    units, begin, end = dropped(data, model)
    units = units[behind]
    expect("%s: units dropped" % model, about(units.mean(), p, units.size), "%.3f" % units.mean())
    network, x = Network(layers, begin), data.shaped("input" not in begin)
    next(layer for layer in network.layers if isinstance(layer, Mask)).factor = ~units / (1 - p)
    network.step(RATE, x[:1], data.y[:1], np.ones(1))
    errors = [np.linalg.norm(end[name] - value) / np.linalg.norm(value - begin[name])
              for name, value in network.values().items()]
    expect("%s: a step without them is numpy's" % model, max(errors) < 1e-4, "%.1e" % max(errors))
    other = dropped(data, model, "--seed", 2)[0][behind]
    expect("%s: the seed decides" % model, np.array_equal(units, dropped(data, model)[0][behind]) and
           about((units & other).mean(), p * p, units.size), "%.3f" % (units & other).mean())
    for how in ({"batch": 2}, {"updates": 2}):  # each row has its own units, in one batch and in two
        share = dropped(data, model, **how)[0][behind].mean()
        expect("%s: units of two rows, %s" % (model, how), about(share, p * p, units.size), "%.3f" % share)
    if layers.startswith("conv"):
        share = units.reshape(6, -1).mean(1)
        expect("%s: pixels are dropped, not channels" % model, 0 < share.min() and share.max() < 1, str(share.round(3)))
    result, end = laws.train(*plain(data, model, RATE), "--epochs", 2)
    network, scores = Network(layers, end), scores_of(data)
    ours, loss = network.scores(x), network.loss(x, data.y, data.weight)
    expect("%s: predictions drop nothing" % model, np.array_equal(scores, scores_of(data)) and
           np.linalg.norm(scores - ours) < 1e-4 * np.linalg.norm(ours) and abs(result["train_loss"] / loss - 1) < 1e-5)
    loss = laws.train(*plain(data, model, RATE), "--epochs", 2, "--seed", 2)[0]["train_loss"]
    expect("%s: seeds differ" % model, loss != result["train_loss"])
units, begin, end = dropped(four, "cnn:layers=dense200-tanh-dropout0.5-dense200-tanh-dropout0.5")
both = units["dense2.weight"] & units["dense3.weight"]
expect("every layer drops its own units", about(both.mean(), 0.25, 200), "%.3f" % both.mean())
pair = Data(v[:2], np.array([0, 1])).npy("pair")
units = dropped(pair, "cnn:layers=dense1000-tanh-dropout0.5", updates=4)[0]["dense2.weight"]
expect("every epoch drops other units", about(units.mean(), 1 / 16, 1000), "%.3f" % units.mean())
units = dropped(gray, "cnn:layers=conv5x3p1-tanh-dropout0-dense5-tanh")[0]["dense1.weight"]
expect("dropout0 drops nothing", not units.any())
finish()
