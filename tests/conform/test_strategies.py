"""The contract of strategies, run over every one that `sounder list sync` names, wherever it runs. What a strategy takes
(workers, batches, servers, transports, models, --updates, --deterministic) is asked of the program, so that a new
strategy is tested without another line; PROMISES adds what the algorithm of a name promises beyond that.

    learns       each model it takes: nine tenths of the way from the start to the best loss that numpy finds; the loss
                 told is that of the model file, and never below the best one
    counts       every row once an epoch, also where batches leave a remainder; updates by formula; --updates N is N
    stops        by --updates, at a checkpoint, by SIGTERM: goes on to the same counts, and to the same bits if it has any
    repeats      --deterministic: the same bits for any number of workers, anywhere; in virtual time: every run alike
    one worker   is serial, bit for bit
    tells        the keys of --json; staleness within what the algorithm allows
    refuses      what it does not take: exit code 2, one sentence that names it

With the argument mpi: strategies that take --transport mpi, as the processes that SOUNDER_LAUNCH starts."""
import itertools
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
from scipy.optimize import minimize

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import laws
from laws import LAUNCH, SOUNDER, WORK, expect, finish, path_of, train

OVER_MPI = "mpi" in sys.argv
WORKERS, BATCH = 3, 4
SGD = ["--optimizer", "sgd", "--lr", 0.05, "--schedule", "constant", "--average", "no"]
random = np.random.default_rng(1)


def ask(*arguments, launch=()):
    """Exit code, what was printed, and the sentences of complaint."""
    done = subprocess.run([*launch, SOUNDER, *map(str, arguments)], capture_output=True, text=True)
    return done.returncode, done.stdout, [line for line in done.stderr.splitlines() if line]


def takes(*options):
    """Whether the program accepts these options; it must say yes or no, and nothing else."""
    code, _, complaint = ask("train", *options, "--quiet")
    assert code == 0 or code == 2 and len(complaint) == 1, (options, code, complaint)
    return code == 0


# ---- problems: rows, the loss of a model file, where it starts, and the best loss there is ----
class Problem:
    def __init__(self, model, path, options, start, best, loss):
        self.model, self.path, self.start, self.best, self.loss = model, path, start, best, loss
        self.options = ["--model", model, *options]
        self.name = model.split(":")[0]


def write_rows(name, labels, rows):
    with open(path_of(name), "w") as file:
        for label, row in zip(labels, rows):
            file.write("%s %s\n" % (label, " ".join("%d:%g" % (j + 1, v) for j, v in enumerate(row) if v)))
    return path_of(name)


ROWS, FEATURES = 203, 8  # no multiple of a batch, nor of a batch of all workers
x = np.round(random.normal(size=(ROWS, FEATURES)) * (random.random((ROWS, FEATURES)) < 0.5), 3)
with_one = np.c_[x, np.ones(ROWS)]
truth = random.normal(size=(FEATURES, 3)) * 2
two = (x @ truth[:, 0] + random.logistic(size=ROWS) > 0).astype(int)
three = np.argmax(x @ truth + random.gumbel(size=(ROWS, 3)), axis=1)
number = np.round(x @ truth[:, 1] + random.normal(size=ROWS), 3)
planted = random.integers(0, 4, ROWS)
points = np.round(3 * random.normal(size=(4, FEATURES))[planted] + random.normal(size=(ROWS, FEATURES)), 3)


def linear(arrays):
    return x @ arrays["weight"].astype(float) + arrays["intercept"].astype(float).ravel()


def logistic_of(score):
    return np.mean(np.logaddexp(0, -score * (2 * two - 1)))


def softmax_of(score):
    return np.mean(np.logaddexp.reduce(score, axis=1) - score[np.arange(ROWS), three])


def kmeans_of(centers):
    return np.mean(((points[:, None] - centers) ** 2).sum(2).min(1))


def best(loss, shape):
    """The least loss of any linear model."""
    return minimize(lambda w: loss(with_one @ w.reshape(shape)), np.zeros(np.prod(shape)), tol=1e-9).fun


def make_ratings():
    users, items = random.normal(size=(14, 2)), random.normal(size=(10, 2))
    pairs = random.permutation([(u, i) for u in range(14) for i in range(10)])
    stars = np.array([round(3 + users[u] @ items[i] + 0.1 * random.normal(), 3) for u, i in pairs])
    with open(path_of("stars.triples"), "w") as file:
        file.writelines("u%d i%d %.3f\n" % (u, i, r) for (u, i), r in zip(pairs, stars))

    def loss(arrays, schema):
        place = {name: k for k, name in enumerate(schema["categories"])}
        both = np.hstack([arrays["factor"], arrays["bias"].reshape(-1, 1)])
        a, b = (both[[place["%s%d" % (kind, pair[side])] for pair in pairs]].astype(float)
                for side, kind in enumerate(("user:u", "item:i")))
        rating = arrays["intercept"].ravel()[0] + (a[:, :2] * b[:, :2]).sum(1) + a[:, 2:].sum(1) + b[:, 2:].sum(1)
        return np.mean((rating - stars) ** 2) / 2
    return Problem("mf:rank=2", path_of("stars.triples"), ["--optimizer", "sgd", "--lr", 0.2, "--schedule", "1/sqrt",
                                                           "--epochs", 200, "--batch", 2], np.var(stars) / 2, 0, loss)


def make_graph():
    """Two terminals and twelve vertices, each near one of them; a smallest cut of 2^12."""
    side = random.integers(0, 2, 12)
    edges = [(t, v + 2, random.uniform(0.6, 1) if side[v] == t else random.uniform(0, 0.2)) for t in range(2) for v in range(12)]
    edges += [(a + 2, b + 2, random.uniform(0.3, 0.5) if side[a] == side[b] else random.uniform(0, 0.05))
              for a, b in itertools.combinations(range(12), 2)]
    edges = [(a, b, round(w, 4)) for a, b, w in (edges[i] for i in random.permutation(len(edges)))]
    with open(path_of("graph.svm"), "w") as file:
        file.writelines("%.4f %d:1 %d:1\n" % (w, a + 1, b + 1) for a, b, w in edges)
    from_, to, weight = (np.array(column) for column in zip(*edges))
    cuts = np.array([(0, 1) + rest for rest in itertools.product((0, 1), repeat=12)])
    least = ((cuts[:, from_] != cuts[:, to]) * weight).sum(1).min()
    start = sum(w for a, b, w in edges if a < 2)

    def loss(arrays, _):
        part = arrays["part"].astype(float)
        return np.mean(weight * np.abs(part[from_] - part[to]).sum(1))
    return Problem("graph-cut", path_of("graph.svm"), ["--epochs", 60, "--batch", 2], start / len(edges), 2 * least / len(edges), loss)


centers = np.array([points[planted == k].mean(0) for k in range(4)])
LOGISTIC = Problem("logistic", write_rows("two.svm", two, x), ["--epochs", 20, "--batch", BATCH], math.log(2),
                   best(lambda s: logistic_of(s.ravel()), (FEATURES + 1, 1)), lambda arrays, _: logistic_of(linear(arrays).ravel()))
SQUARED = Problem("squared", write_rows("number.svm", ["%g" % v for v in number], x), ["--epochs", 20, "--batch", BATCH], np.var(number) / 2,
                  np.mean((with_one @ np.linalg.lstsq(with_one, number, rcond=None)[0] - number) ** 2) / 2,
                  lambda arrays, _: np.mean((linear(arrays).ravel() - number) ** 2) / 2)
SOFTMAX = Problem("softmax", write_rows("three.svm", three, x), ["--epochs", 20, "--batch", BATCH], math.log(3),
                  best(softmax_of, (FEATURES + 1, 3)), lambda arrays, _: softmax_of(linear(arrays)))
KMEANS = Problem("kmeans:4", write_rows("points.svm", planted, points), ["--epochs", 20, "--batch", BATCH],
                 np.mean(((points - points.mean(0)) ** 2).sum(1)), kmeans_of(centers) * 0.999,  # planted: not quite the best
                 lambda arrays, _: kmeans_of((arrays["origin"] + arrays["sum"] / arrays["count"]).T.astype(float)))
PROBLEMS = [LOGISTIC, SQUARED, SOFTMAX, KMEANS, make_ratings(), make_graph()]


# ---- promises ----
def by_batches(rows, batch, workers, epochs, quorum):
    return epochs * math.ceil(rows / batch)


def by_all(rows, batch, workers, epochs, quorum):
    return by_batches(rows, batch * workers, workers, epochs, quorum)


def shards(rows, workers):
    return [rows * (w + 1) // workers - rows * w // workers for w in range(workers)]


def by_shards(rows, batch, workers, epochs, quorum):
    return epochs * sum(math.ceil(shard / batch) for shard in shards(rows, workers))


def by_quorums(rows, batch, workers, epochs, quorum):
    return math.ceil(by_batches(rows, batch, workers, epochs, quorum) / quorum)


def by_epochs(rows, batch, workers, epochs, quorum):
    return epochs


class Promise:
    """What the strategy of a name promises; the defaults are for one that PROMISES does not list.
    updates  how many there are in a number of epochs; quorum: gradients of an update
    stale    the most updates that a gradient may miss
    mean     how many it misses on average, whoever is slow, in a long run
    bits     the same model for a "count" of workers, or for "any"
    serial   one worker makes the steps of --sync serial
    share    part of a worker's step that the model keeps
    behind   for models it is not made for: the part of the way to the best loss that may be missing
    raced    the same in real time, where it depends on who is scheduled when; virtual time has no such luck
    apart    with these options the model has a share of every worker's steps, and nothing else
    endless  with these options it never ends by itself"""

    def __init__(self, updates=None, quorum=lambda p: 1, stale=lambda p: math.inf, mean=None, bits=None, serial=True,
                 share=lambda p: 1, behind=None, raced=None, apart=None, endless=None):
        self.updates, self.quorum, self.stale, self.mean, self.bits = updates, quorum, stale, mean, bits
        self.serial, self.share, self.behind, self.apart, self.endless = serial, share, behind or {}, apart, endless
        self.raced = {**self.behind, **(raced or {})}


def never(p):
    return 0


def half(p):
    return math.ceil(p / 2)


PROMISES = {
    "serial": Promise(by_batches, stale=never, bits="count"),
    "batch": Promise(by_epochs, stale=never, bits="count", serial=False, endless="batch:plain"),
    "hogwild": Promise(by_batches),
    "locked": Promise(by_batches),
    "round-robin": Promise(by_batches, stale=lambda p: p - 1, mean=lambda p: p - 1, bits="count"),
    "cyclades": Promise(by_batches, stale=never, bits="any"),
    "rotation": Promise(by_batches, stale=never, bits="any", serial=False),  # goes through pairs in an order of its own
    # The mean of models that saw a part of the rows each: of factors, and of vertices without their edges, a poor one.
    "average": Promise(by_shards, bits="count", share=lambda p: 1 / p, behind={"mf": 1, "graph-cut": 1.2}),
    # The result is the state of one worker, which may be done with its few rows before others begin, and has then merged
    # first states of theirs: of three, one is trained. The loss is convex: two thirds of the way may be missing, and what
    # its own rows leave. Of a graph a third of the edges says nothing.
    "asgd": Promise(by_shards, share=lambda p: 1 / p, behind={"graph-cut": 1},
                    raced={"logistic": 0.8, "squared": 0.8, "softmax": 0.8, "kmeans": 0.8, "mf": 1, "graph-cut": math.inf},
                    apart="asgd:send=no,final=average"),
    "bsp": Promise(by_all, stale=never, bits="count"),
    "allreduce": Promise(by_all, stale=never, bits="count"),
    "master": Promise(by_all, stale=never, bits="count"),
    "k-sync": Promise(by_quorums, half, never),
    "k-batch-sync": Promise(by_quorums, half, never),
    "backup": Promise(by_quorums, lambda p: p - p // 10, never),
    "k-async": Promise(by_quorums, half, mean=lambda p: p / half(p) - 1),
    "k-batch-async": Promise(by_quorums, half, mean=lambda p: (p - 1) / half(p)),
    "async": Promise(by_batches, mean=lambda p: p - 1),
    "ssp": Promise(by_batches, stale=lambda p: 7 * (p - 1)),  # (2 s + 1)(P - 1), where s is 3
    "essp": Promise(by_batches, stale=lambda p: 7 * (p - 1)),
}


# ---- strategies, and what they take ----
class Place:
    """Somewhere a strategy runs: options, and what it promises there."""

    def __init__(self, name, options, promise):
        self.name, self.options, self.promise = name, options, promise


class Strategy:
    def __init__(self, name):
        self.name, self.sync, self.promise = name, ["--sync", name], PROMISES.get(name, Promise())
        self.endless = ["--sync", self.promise.endless or name]
        self.models = [problem for problem in PROBLEMS if takes(problem.path, *self.sync, *self.fit(problem), "--epochs", 1)]
        if not self.models:
            return
        self.base = self.models[0]
        self.once = [self.base.path, *self.sync, *self.fit(self.base), "--epochs", 1]
        self.workers = WORKERS if takes(*self.once, "--workers", WORKERS) else 1
        self.batch = BATCH if "--batch" in self.fit(self.base) else 1
        self.cuts = takes(*self.once, "--updates", 5)
        self.places = [Place(where, options, self.promise) for where, options in PLACES.items() if takes(*self.once, *options)]
        # The batch is that of all workers then.
        same = Promise(self.promise.updates and (by_batches if self.promise.updates == by_all else self.promise.updates),
                       self.promise.quorum, self.promise.stale, self.promise.mean, "any", self.promise.serial, self.promise.share)
        self.places += [Place(place.name + ", --deterministic", [*place.options, "--deterministic"], same)
                        for place in self.places if takes(*self.once, *place.options, "--deterministic")]

    def fit(self, problem):
        """Options of a problem; without its batch where the strategy takes rows one by one, or all of them."""
        at = problem.options.index("--batch")
        without = problem.options[:at] + problem.options[at + 2:]
        return without if takes(problem.path, *self.sync, *without, "--epochs", 1) and \
            not takes(problem.path, *self.sync, *problem.options, "--epochs", 1) else problem.options

    def team(self):
        return ["--workers", WORKERS] if self.workers > 1 else []

    def lot(self):
        return ["--batch", BATCH] if self.batch > 1 else []

    def updates(self, place, rows, epochs):
        """By formula; None where none is promised."""
        promise = place.promise
        return promise.updates and promise.updates(rows, self.batch, self.workers, epochs, promise.quorum(self.workers))


PLACES = {"mpi": ["--transport", "mpi"]} if OVER_MPI else \
    {"threads": [], "two servers": ["--servers", 2], "sim": ["--transport", "sim", "--compute", "exp:rate=1"],
     "sim, two servers": ["--transport", "sim:latency=0.3", "--compute", "exp:rate=1", "--servers", 2]}
KEYS = ("rows features nonzeros workers cpu epochs updates seconds_read seconds_train seconds_total train_loss valid_loss "
        "model_hash peak_rss_bytes bytes_sent staleness_mean staleness_max wait_fraction options").split()


# ---- laws ----
def learns(strategy, place, problem):
    told, arrays = train(problem.path, *strategy.sync, *strategy.fit(problem), *strategy.team(), *place.options)
    name = "%s, %s: learns %s" % (strategy.name, place.name, problem.name)
    loss = problem.loss(arrays, json.loads(laws.read_tensors(laws.MODEL)[1]["schema"]))
    expect(name + ", and says how well", abs(told["train_loss"] - loss) < 1e-4 * problem.start,
           "%.6f, numpy %.6f" % (told["train_loss"], loss))
    missing = (loss - problem.best) / (problem.start - problem.best)
    allowed = strategy.promise.behind if place.name.startswith("sim") else strategy.promise.raced
    expect(name, -1e-4 < missing < allowed.get(problem.name, 0.1), "%.4f of the way is missing" % missing)


def refuses_models(strategy):
    for problem in PROBLEMS:
        if problem not in strategy.models:
            code, out, said = ask("train", problem.path, *strategy.sync, *problem.options[:2], "--quiet")
            expect("%s: refuses %s by name" % (strategy.name, problem.name), code == 2 and not out and len(said) == 1 and
                   strategy.name in said[0] and problem.name in said[0], str(said))


# Row i has feature i alone, and the slope of its hinge loss is 1 all the time: its weight counts how often it was
# trained on, times the step, over the rows of the update.
STEP = 2.0 ** -12
EPOCHS = 3
COUNT = ["--model", "hinge", "--no-intercept", "--scale", "none", "--optimizer", "sgd", "--lr", STEP, "--schedule", "constant",
         "--average", "no", "--shuffle", "none", "--epochs", EPOCHS]


def rows_apart(count):
    return write_rows("apart%d.svm" % count, np.arange(count) % 2 * 2 - 1, np.eye(count))


def sizes(strategy, place, count):
    """The rows that each row's step is divided by, with the quorum's number; the last update of a run aside."""
    workers, batch, updates = strategy.workers, strategy.batch, place.promise.updates
    if updates == by_all:
        batch *= workers
    parts = shards(count, workers) if updates == by_shards else [count]
    return np.concatenate([np.minimum(batch, n - np.arange(n) // batch * batch) for n in parts]) * place.promise.quorum(workers)


def counts(strategy, place):
    name = "%s, %s: " % (strategy.name, place.name)
    share, quorum = place.promise.share(strategy.workers), place.promise.quorum(strategy.workers)
    for count in (96, 101) if not OVER_MPI else (101,):  # a multiple of the batches of all workers, and none
        path, folder = rows_apart(count), path_of("counted")
        if not takes(path, *COUNT, *strategy.sync):
            continue
        shutil.rmtree(folder, ignore_errors=True)
        sync = ["--sync", strategy.promise.apart or strategy.name]
        told, arrays = train(path, *COUNT, *sync, *strategy.team(), *strategy.lot(), *place.options, "--run", folder)
        weight = np.zeros(count)
        weight[:arrays["weight"].size] = np.abs(arrays["weight"].ravel()) / STEP / share
        wanted = strategy.updates(place, count, EPOCHS)
        expect(name + "%d rows, updates" % count, told["rows"] == count and told["epochs"] == EPOCHS and
               told["updates"] == (wanted or told["updates"]), "%d, by formula %s" % (told["updates"], wanted))
        with open(os.path.join(folder, "status.json")) as file:
            status = json.load(file)
        expect(name + "%d rows, what status.json tells" % count, status["rows"] == count * EPOCHS and
               status["updates"] == told["updates"], str(status["rows"]))
        if strategy.promise.updates == by_epochs:
            continue  # its steps are its own
        if strategy.promise.updates:
            visits, left = weight * sizes(strategy, place, count), EPOCHS * math.ceil(count / strategy.batch) % quorum
            last = EPOCHS - 1 + quorum / left if left and quorum > 1 else EPOCHS
        elif count != 96:
            continue
        else:
            visits, last = weight * count * EPOCHS / told["updates"], EPOCHS
        rare = np.abs(visits - last) < 1e-3
        expect(name + "%d rows, each once an epoch" % count, np.all(rare | (np.abs(visits - EPOCHS) < 1e-3)) and
               (last == EPOCHS or 1 <= rare.sum() <= left * strategy.batch), "%.4f to %.4f" % (visits.min(), visits.max()))
    if strategy.base.name == "mf":  # pairs that have nothing in common: in any order the steps of one worker
        with open(path_of("apart.triples"), "w") as file:
            file.writelines("u%d i%d %d\n" % (i, i, i % 5) for i in range(101))
        common = [path_of("apart.triples"), "--model", "mf:rank=2", *SGD, "--epochs", EPOCHS]
        told = train(*common, *strategy.sync, *strategy.team(), *place.options)[0]
        alone = train(*common)[0]
        expect(name + "each pair once an epoch", told["model_hash"] == alone["model_hash"] and told["updates"] == 101 * EPOCHS)
    for updates in ((1, 7, 60) if not OVER_MPI else (60,)) if strategy.cuts else ():
        told = train(*strategy.once, *strategy.endless, *strategy.team(), *place.options, "--epochs", 0, "--updates", updates)[0]
        expect(name + "--updates %d" % updates, told["updates"] == updates, str(told["updates"]))
    if not strategy.cuts:
        _, _, said = ask("train", *strategy.once, "--updates", 5, "--quiet")
        expect(name + "no --updates, and why", "--updates" in said[0] and strategy.name in said[0], said[0])


def newest(folder):
    return max(name for name in os.listdir(folder) if name.startswith("checkpoint-"))


def reports(folder):
    """What the run has told, as text."""
    with open(os.path.join(folder, "metrics.jsonl")) as file:
        return file.read()


def went_on(folder, before):
    """Whether a run has told of more since then, and of no update twice."""
    now = reports(folder)
    updates = [json.loads(line)["updates"] for line in now.splitlines()]
    return before and now.startswith(before) and len(now) > len(before) and all(a < b for a, b in zip(updates, updates[1:]))


def signalled(command, folder):
    """Ends a run by SIGTERM once it has trained for an epoch. Its exit code."""
    shutil.rmtree(folder, ignore_errors=True)
    process = subprocess.Popen([SOUNDER, "train", *map(str, command), "--run", folder, "--quiet"], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    metrics = os.path.join(folder, "metrics.jsonl")
    end = time.monotonic() + 600
    while process.poll() is None and time.monotonic() < end and not (os.path.exists(metrics) and os.path.getsize(metrics)):
        time.sleep(0.002)
    process.send_signal(signal.SIGTERM)
    return process.wait(600)


def stops(strategy, place):
    name, folder = "%s, %s: " % (strategy.name, place.name), path_of("stopped")
    rows = {"mf": 140}.get(strategy.base.name, ROWS)
    # Of pairs the model's own options go, and their optimizer; steps do not depend on how long the run is.
    common = [strategy.base.path, *strategy.endless, "--model", strategy.base.model, *strategy.team(), *strategy.lot(), *place.options,
              *(SGD if strategy.promise.updates != by_epochs else [])]

    def finished(way, told, epochs, hash_wanted):
        wanted = strategy.updates(place, rows, epochs)
        expect(name + way, told["epochs"] == epochs and told["updates"] == (wanted or told["updates"]) and
               math.isfinite(told["train_loss"]) and (not place.promise.bits or told["model_hash"] == hash_wanted),
               "%d updates, by formula %s" % (told["updates"], wanted))

    whole = train(*common, "--epochs", 4)[0]
    if strategy.cuts:
        shutil.rmtree(folder, ignore_errors=True)
        stop = whole["updates"] // 2 + 1
        train(*common, "--epochs", 4, "--updates", stop, "--run", folder)
        before = reports(folder)
        code, out, said = ask("train", *common, "--epochs", 4, "--run", folder, "--resume", "--json", "--quiet", launch=LAUNCH)
        if code == 0:
            finished("goes on from update %d" % stop, json.loads(out), 4, whole["model_hash"])
            expect(name + "and does not begin again", went_on(folder, before))
        else:  # rounds that were cut for it cannot be made whole again
            expect(name + "does not go on after --updates, and says so", code == 2 and len(said) == 1 and "updates" in said[0], str(said))
    if OVER_MPI:
        return
    shutil.rmtree(folder, ignore_errors=True)
    often = train(*common, "--epochs", 4, "--run", folder, "--checkpoint-every", "%du" % max(1, whole["updates"] // 5))[0]
    finished("checkpoints change nothing", often, 4, whole["model_hash"])
    os.remove(os.path.join(folder, newest(folder)))
    expect(name + "there is a checkpoint on the way", newest(folder) < "checkpoint-%020d" % whole["updates"], newest(folder))
    finished("goes on from a checkpoint", train(*common, "--epochs", 4, "--run", folder, "--resume")[0], 4, whole["model_hash"])
    code = signalled([*common, "--epochs", 10 ** 6], folder)
    expect(name + "SIGTERM", code == 75 and newest(folder), str(code))
    with open(os.path.join(folder, "status.json")) as file:
        epochs = json.load(file)["epoch"] + 2
    before = reports(folder)
    told = train(*common, "--epochs", epochs, "--run", folder, "--resume")[0]
    expect(name + "and does not begin again after SIGTERM", went_on(folder, before))
    finished("goes on after SIGTERM", told, epochs,
             train(*common, "--epochs", epochs)[0]["model_hash"] if place.promise.bits else None)


wide = path_of("wide.svm")  # hardly any two rows have a feature in common
with open(wide, "w") as file:
    for _ in range(1501):
        file.write("%d %s\n" % (random.integers(2), " ".join("%d:%.3f" % (j, random.normal()) for j in np.unique(random.integers(1, 60000, 3)))))


def facts(told):
    return {key: value for key, value in told.items() if key not in ("seconds_read", "seconds_total", "peak_rss_bytes", "options")}


def repeats(strategy):
    path = strategy.base.path if strategy.base.name == "mf" else wide
    common = [path, *strategy.sync, "--model", strategy.base.model, "--epochs", 2]
    for bits in ("count", "any"):
        hashes, said = {}, []
        for place in strategy.places:
            if place.promise.bits == bits:
                for workers in (1, 2, 3, 8) if bits == "any" and not OVER_MPI else (strategy.workers,) * 2:
                    told = train(*common, *strategy.lot(), *place.options, *(["--workers", workers] if strategy.workers > 1 else []))[0]
                    hashes.setdefault(told["model_hash"], []).append("%s, %d" % (place.name, workers))
                    said.append(told["workers"])
        expect("%s: the same bits for %s of workers" % (strategy.name, bits), len(hashes) <= 1, str(hashes))
        if hashes and bits == "any" and strategy.workers > 1 and not OVER_MPI:
            expect("%s: and not because one worker did it all" % strategy.name, len(set(said)) > 1, str(said))
    for place in strategy.places:
        if place.name.startswith("sim"):
            runs = [facts(train(*common, *strategy.lot(), *strategy.team(), *place.options)[0]) for _ in range(2)]
            differ = [key for key in runs[0] if runs[0][key] != runs[1].get(key)]
            expect("%s, %s: every run alike" % (strategy.name, place.name), not differ, str(differ))


def one_worker(strategy):
    if not strategy.promise.serial:
        return
    common = [LOGISTIC.path, "--model", "logistic", *SGD, "--no-intercept", "--epochs", 3, *strategy.lot()]
    alone = train(*common)[0]
    for place in strategy.places:
        if "--deterministic" in place.options:  # lanes are as many for one worker as for several
            continue
        told = train(*common, *strategy.sync, *place.options, "--workers", 1)[0]
        expect("%s, %s: one worker is serial" % (strategy.name, place.name), told["model_hash"] == alone["model_hash"] and
               told["updates"] == alone["updates"] and told["staleness_max"] == 0, "%.6f, serial %.6f" % (told["train_loss"], alone["train_loss"]))


def tells(strategy, place):
    name = "%s, %s: " % (strategy.name, place.name)
    told = train(*strategy.once, *strategy.team(), *place.options, "--epochs", 4, "--valid-fraction", 0.2)[0]
    lacks = [key for key in KEYS if key not in told] + [key for key in ("valid_accuracy", "valid_rmse") if
                                                        (key == "valid_rmse") == (strategy.base.name == "mf") and key not in told]
    expect(name + "promised keys", not lacks, str(lacks))
    expect(name + "chosen options", told["options"]["sync"] == strategy.name and told["options"]["seed"] == "1")
    mean, most, allowed = told["staleness_mean"], told["staleness_max"], place.promise.stale(strategy.workers)
    expect(name + "staleness", 0 <= mean <= most <= min(allowed, told["updates"]), "%.3f, at most %d of %s" % (mean, most, allowed))
    if place.promise.mean:  # at either end of the run a gradient of each worker misses less
        gradients, ideal = sum(told.get("staleness_counts", [told["updates"]])), place.promise.mean(strategy.workers)
        expect(name + "staleness on average", abs(mean - ideal) <= strategy.workers ** 2 / gradients, "%.4f, expected %.4f" % (mean, ideal))
    expect(name + "waiting is a share of the time", 0 <= told["wait_fraction"] <= 1, str(told["wait_fraction"]))
    detail = told.get("workers_detail")
    expect(name + "who sends messages tells of them", bool(detail) == (told["bytes_sent"] > 0), str(told["bytes_sent"]))
    if detail:
        tally = np.array(told["staleness_counts"])  # the last: 64 and more
        added = tally @ np.arange(len(tally)) / tally.sum()
        expect(name + "staleness adds up", len(detail) == told["workers"] and sum(w["gradients"] for w in detail) == tally.sum() and
               np.flatnonzero(tally)[-1] == min(most, 64) and (added <= mean if most > 64 else abs(added - mean) < 1e-9),
               "%.4f, counted %.4f" % (mean, added))


def refuses(strategy):
    for wrong, word in ((["--sync", strategy.name + ":no-such-option=1"], "no-such-option"), (["--workers", -1], "workers"),
                        (["--workers", 100001], "workers"), (["--workers", "2x"], "workers"), (["--batch", -1], "batch")):
        code, out, said = ask("train", *strategy.once, *wrong, "--quiet")
        expect("%s: refuses %s" % (strategy.name, " ".join(map(str, wrong))), code == 2 and not out and len(said) == 1 and
               said[0].startswith("sounder: ") and word in said[0], str(said))
    for place in strategy.places:  # no machine has as many, nor the simulator
        code, out, said = ask("train", *strategy.once, *place.options, "--workers", 100000, "--quiet")
        expect("%s, %s: refuses 100000 workers" % (strategy.name, place.name), code == 2 and not out and len(said) == 1 and
               "worker" in said[0], str(said))
    told = train(*strategy.once, "--workers", 0)[0]
    expect("%s: --workers 0 is a number of its choice" % strategy.name, told["workers"] >= 1)
    taken = {place.name for place in strategy.places}
    for where, options in PLACES.items():
        if where not in taken:
            code, out, said = ask("train", *strategy.once, *options, "--quiet")
            expect("%s: refuses %s, and says why" % (strategy.name, where), code == 2 and not out and len(said) == 1 and
                   strategy.name in said[0] and any(option in said[0] for option in options), str(said))


names = [line.split()[0] for line in ask("list", "sync")[1].splitlines()]
expect("strategies are listed", len(names) > 1 and "serial" in names, str(len(names)))
expect("promises are of strategies that there are", set(PROMISES) <= set(names), str(set(PROMISES) - set(names)))
for each in map(Strategy, names):
    expect("%s: takes some model" % each.name, bool(each.models))
    if not each.models:
        continue
    for somewhere in each.places:
        for model in each.models if not OVER_MPI else [m for m in each.models if m.name in ("logistic", "mf")]:
            learns(each, somewhere, model)
        tells(each, somewhere)
        counts(each, somewhere)
        stops(each, somewhere)
    repeats(each)
    if not OVER_MPI:
        one_worker(each)
        refuses_models(each)
        refuses(each)
finish()
