"""Strategies with a server, in virtual time: order statistics, staleness, what is equal to what, and the same
numbers as a simulation in numpy."""
import heapq
import math
import os
import struct
import sys

import numpy as np

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import laws
from laws import expect, finish, path_of

SLOW = bool(os.environ.get("SOUNDER_SANITIZE"))
UPDATES = 3000 if SLOW else 100_000
SHARP = 0.05 if SLOW else 0.01


def train(path, *options, code=0):
    out = laws.train(path, *options, code=code)
    return out if code else {**out[0], **{name: values.ravel() for name, values in out[1].items()}}


def sim(path, sync, workers, *options):
    return train(path, "--transport", "sim", "--sync", sync, "--workers", workers, *options)


def near(name, seen, wanted, share):
    expect(name, abs(seen - wanted) <= share * abs(wanted), "%.4f, expected %.4f" % (seen, wanted))


few = path_of("few.svm")
with open(few, "w") as file:
    for i in range(16):
        file.write("%d 1:%d 2:1\n" % (i % 2, i % 3))

# ---- times of updates: X = 1 + Exp(rate 0.5), 8 workers ----
X = ["--compute", "const:1+exp:rate=0.5", "--batch", 1, "--seed", 3]
harmonic = [sum(1 / i for i in range(1, n + 1)) for n in range(10001)]
TIMES = {"k-sync": {k: 1 + 2 * (harmonic[8] - harmonic[8 - k]) for k in (1, 2, 4, 6, 8)},
         "k-batch-sync": {1: 1.250, 2: 1.534, 4: 2.217, 6: 2.978, 8: 3.730},
         "k-async": {1: 0.375, 2: 0.800, 4: 1.836, 6: 3.235, 8: 6.436},
         "k-batch-async": {k: 3 * k / 8 for k in (1, 2, 4, 6, 8)}}
STALE = {"k-sync": lambda k: 0, "k-batch-sync": lambda k: 0, "k-async": lambda k: 8 / k - 1,
         "k-batch-async": lambda k: 7 / k}
for sync, times in TIMES.items():
    for k, time in times.items():
        seen = sim(few, "%s:%d" % (sync, k), 8, *X, "--updates", UPDATES)
        near("time_of_%s_%d" % (sync, k), seen["seconds_train"] / seen["updates"], time, SHARP)
        expect("staleness_of_%s_%d" % (sync, k), abs(seen["staleness_mean"] - STALE[sync](k)) <= 0.02 * 8 / k,
               "%.4f, expected %.4f" % (seen["staleness_mean"], STALE[sync](k)))
for spare, time in ((2, 4.082), (4, 3.099)):
    seen = sim(few, "backup:%d" % (8 - spare), 8, *X, "--updates", UPDATES // 2)
    near("time_of_backup_%d_spare" % spare, seen["seconds_train"] / seen["updates"], time, SHARP)
    if spare == 2:
        dropped = seen["gradients_dropped"] / (seen["gradients_dropped"] + 6 * seen["updates"])
        near("share_dropped", dropped, 0.225, 2 * SHARP)
for workers, updates in ((10, 20000), (100, 4000), (1000, 800)) if not SLOW else ((10, 2000), (100, 200)):
    seen = sim(few, "bsp", workers, *X, "--updates", updates)
    near("slowest_of_%d" % workers, seen["seconds_train"] / updates, 1 + 2 * harmonic[workers], 0.01 if not SLOW else 0.1)
seen = sim(few, "async", 8, "--compute", "const:1", "--batch", 1, "--updates", 4000)
expect("equal_times_equal_staleness", seen["staleness_max"] == 7 and
       abs(seen["staleness_mean"] - (7 - 28 / 4000)) < 1e-9, str(seen["staleness_mean"]))

# ---- what is equal to what ----
some = laws.some_rows(500)


def equal(name, *syncs, workers=4, rows=some):
    runs = [sim(rows, s, workers, *X, "--updates", 300, "--batch", 4) for s in syncs]
    expect(name, len({(run["model_hash"], run["seconds_train"], run["staleness_max"]) for run in runs}) == 1,
           str([run["seconds_train"] for run in runs]))


# Updates of K gradients do not end with an epoch; those of bsp do, so the rows must be a multiple of 4 · 4. bsp sums in
# the order of rows, the others in the order in which gradients come.
even = laws.some_rows(496, "even.svm")
equal("all_of_them", "k-sync:4", "k-async:4", "backup:4", rows=even)
runs = [sim(even, s, 4, *X, "--updates", 300, "--batch", 4) for s in ("bsp", "k-sync:4")]
expect("all_of_them_as_bsp", runs[0]["seconds_train"] == runs[1]["seconds_train"] and
       np.allclose(runs[0]["weight"], runs[1]["weight"], rtol=1e-5, atol=1e-6), str(abs(runs[0]["weight"] - runs[1]["weight"]).max()))
equal("one_of_them", "async", "k-async:1", "k-batch-async:1")
equal("first_of_them", "k-sync:1", "k-batch-sync:1")
equal("cancelled_spares", "backup:k=3,cancel=yes", "k-sync:3")
equal("twice_the_same", "k-batch-async:3", "k-batch-async:3", workers=7)
servers = [sim(some, s, 4, *X, "--updates", 200, "--batch", 4, "--servers", n)
           for s in ("k-sync:3", "k-batch-async:3", "async") for n in (1, 2, 5)]
expect("any_number_of_servers", all(len({run["model_hash"] for run in servers[i:i + 3]}) == 1 for i in (0, 3, 6)))

# ---- the same bits everywhere ----
for model, options in (("logistic", ["--l2", 1e-3]), ("logistic", ["--optimizer", "adam"]), ("softmax", []),
                       ("kmeans:5", []), ("hinge", ["--optimizer", "ftrl", "--l1", 1e-3])):
    common = ["--sync", "bsp", "--deterministic", "--batch", 150, "--epochs", 2, "--model", model, *options]
    hashes = set()
    for workers in (1, 2, 3, 4, 8):
        for where in ([], ["--transport", "sim"], ["--servers", 2], ["--transport", "sim", "--servers", 2],
                      ["--delay", "const:0"]):
            hashes.add(train(some, *common, "--workers", workers, *where)["model_hash"])
    expect("one_hash_%s" % " ".join(map(str, [model, *options])), len(hashes) == 1, str(len(hashes)))

large = {train(some, "--sync", "bsp", "--deterministic", "--batch", batch, "--updates", 12, "--schedule", "cosine",
               "--workers", 2, *where)["model_hash"] for batch in (500, 4000) for where in ([], ["--transport", "sim"])}
expect("one_hash_of_a_batch_larger_than_the_data", len(large) == 1)

# ---- checkpoints ----
common = ["--sync", "bsp", "--deterministic", "--batch", 64, "--workers", 3, "--transport", "sim", "--servers", 2, "--l2", 1e-3,
          "--schedule", "constant", "--scale", "none", "--lr", 0.1]
whole = train(some, *common, "--epochs", 4)
train(some, *common, "--epochs", 2, "--run", path_of("half"))
rest = train(some, *common, "--epochs", 4, "--run", path_of("half"), "--resume")
expect("resumed_to_the_same_bits", rest["model_hash"] == whole["model_hash"])
uneven = ["--sync", "k-batch-sync:3", "--workers", 4, "--transport", "sim", "--batch", 64, "--scale", "none", "--lr", 0.1, "--schedule", "constant"]
train(some, *uneven, "--updates", 3, "--run", path_of("uneven"), "--checkpoint-every", "3u")
train(some, *uneven, "--updates", 6, "--run", path_of("uneven"), "--resume")
expect("other_nodes_are_another_run",
       "workers" in train(some, *[5 if o == 4 else o for o in uneven], "--updates", 9, "--run", path_of("uneven"), "--resume", code=2))

# ---- shares of time: a worker waits from its gradient to its next task; nobody waits for the end ----
for sync, workers, slow, latency, round_, waits, first in (
        ("bsp", 2, "1:3x", 0, 3, 2, 0), ("bsp", 3, "1:2x,2:4x", 0, 4, 5, 0), ("k-async:2", 2, "1:3x", 0, 3, 2, 0),
        ("k-sync:2", 3, "2:5x", 0, 1, 0, 0), ("k-batch-sync:3", 2, "1:3x", 0, 3, 0, 0), ("backup:2", 3, "2:4x", 0, 1, 0, 0),
        ("async", 1, "0:1x", 0.5, 2, 1, 0.5), ("bsp", 2, "1:3x", 0.5, 4, 4, 1)):
    # of a round: how long it is and what all workers wait in it; what they wait for their first task
    seen = sim(some, sync, workers, "--transport", "sim:latency=%g" % latency, "--compute", "const:1", "--slow", slow, "--batch", 5,
               "--updates", 60)
    wanted = (59 * waits + first) / (workers * 60 * round_)
    expect("waits_%s_%d_%g" % (sync, workers, latency), abs(seen["seconds_train"] - 60 * round_) < 1e-6 and
           abs(seen["wait_fraction"] - wanted) < 1e-9, "%.6f, expected %.6f" % (seen["wait_fraction"], wanted))
many = [sim(some, "async", 8, "--transport", "sim:latency=1", "--servers", 2, "--compute", "const:0.1", "--batch", 1, "--updates", n)
        ["peak_rss_bytes"] for n in (4000, 80000 if not SLOW else 4000)]
expect("memory_does_not_grow", many[1] < many[0] + (2_000_000 if not SLOW else 20_000_000), str(many))

# ---- messages take their time: latency and bandwidth of each way, ports, ways that are slower than others ----
def travels(options, sync="async", workers=1, updates=50):
    seen = sim(some, sync, workers, "--transport", "sim:" + options, "--compute", "const:1", "--batch", 4, "--updates", updates)
    return seen["seconds_train"], seen["bytes_sent"]


seconds, sent = travels("latency=0.5,bandwidth=1000")
expect("one_after_the_other", abs(seconds - 50 * 2 - sent / 1000) < 0.5, "%g s, %d bytes" % (seconds, sent))
seconds, sent = travels("latency=0.5,bandwidth=1000,far=0:3x")
expect("a_way_that_is_slow", abs(seconds - 50 * 4 - 3 * sent / 1000) < 1.5, "%g s, %d bytes" % (seconds, sent))
near, far = [travels("latency=0.5,far=2:%dx" % times, "bsp", 4)[0] for times in (1, 3)]
expect("the_slow_way_is_waited_for", abs(near - 100) < 1e-6 and abs(far - 200) < 1e-6, "%g, %g s" % (near, far))
seconds, sent = travels("bandwidth=300", "essp:3", 3)
expect("no_way_carries_more_than_it_can", seconds > sent / 2 / 3 / 300, "%g s, %d bytes" % (seconds, sent))
seconds, sent = travels("port=1000", "async", 8)
expect("no_port_carries_more_than_it_can", seconds > 0.9 * sent / 2 / 1000, "%g s, %d bytes" % (seconds, sent))
expect("bad_way", "sim:far" in train(some, "--sync", "async", "--transport", "sim:far=9:2x", "--workers", 2, code=2))

# ---- stability: a quadratic with a fixed delay, η·curvature < 2 sin(π / (2 (2τ + 1))) ----
one = path_of("one.svm")
with open(one, "w") as file:
    file.write("1 1:1\n" * 4)
    file.write("1.5 1:1\n" * 4)
plain = ["--model", "squared", "--optimizer", "sgd", "--schedule", "constant", "--scale", "none", "--no-intercept",
         "--batch", 8, "--shuffle", "none", "--compute", "const:1", "--updates", 12000]
for delay in (0, 1, 2, 5, 15):
    bound = 2 * math.sin(math.pi / (2 * (2 * delay + 1)))
    below = sim(one, "async", delay + 1, *plain, "--lr", 0.97 * bound)
    expect("stable_at_delay_%d" % delay, abs(below["weight"][0] - 1.25) < 1e-3, str(below["weight"]))
    if os.path.exists(laws.MODEL):
        os.remove(laws.MODEL)
    command = ["train", one, "--transport", "sim", "--sync", "async", "--workers", delay + 1, *plain, "--lr", 1.03 * bound]
    try:
        laws.run(*command, "--out", laws.MODEL, code=4)
        grew = True
    except AssertionError:
        grew = abs(laws.read_tensors(laws.MODEL)[0]["weight"].ravel()[0] - 1.25) > 1
    expect("unstable_at_delay_%d" % delay, grew)

# ---- numpy: the same events, the same numbers ----
dense = path_of("dense.csv")
table = np.random.default_rng(7).normal(size=(60, 4)).round(3)
truth = table @ [1, -2, 0.5, 3]
with open(dense, "w") as file:
    file.write("y,a,b,c,d\n")
    for x, y in zip(table, truth):
        file.write("%.6f,%s\n" % (y, ",".join("%.3f" % v for v in x)))
SPEED = [1, 1.713, 2.939, 1.331]


def simulate(quorum, batches, synchronous, cancels, updates, batch=3, rate=0.02):
    """The server and its workers, as the papers describe them."""
    w, version, workers = np.zeros(4), 0, len(SPEED)
    per_epoch = len(table) // batch
    next_number, again, events, task = 0, [], [], [None] * workers
    now, gathered, order = 0.0, [], 0

    def assign(i):
        nonlocal next_number, order
        if task[i] is not None:
            again.append(task[i][0])
        number = again.pop(0) if again else next_number
        if number == next_number:
            next_number += 1
        task[i] = (number, version, w.copy(), order)
        heapq.heappush(events, (now + SPEED[i], order, i))
        order += 1

    for i in range(workers):
        assign(i)
    while version < updates:
        now, mine, i = heapq.heappop(events)
        if task[i] is None or task[i][3] != mine:
            continue
        number, read, values, _ = task[i]
        if synchronous and read != version:
            again.append(number)
            task[i] = None
            assign(i)
            continue
        place = number % per_epoch * batch
        x, y = table[place:place + batch], np.float32(truth[place:place + batch])
        gathered.append(x.T @ (x @ values - y) / batch)
        task[i] = None
        if len(gathered) < quorum:
            if batches:
                assign(i)
            continue
        w = w - rate * np.mean(gathered, axis=0)
        gathered, version = [], version + 1
        for j in range(workers):
            if cancels or task[j] is None:
                assign(j)
    return w, now


for name, rule in (("bsp", (4, 0, 1, 0)), ("k-sync:2", (2, 0, 1, 1)), ("k-batch-sync:3", (3, 1, 1, 1)),
                   ("backup:3", (3, 0, 1, 0)), ("k-async:2", (2, 0, 0, 0)), ("k-batch-async:3", (3, 1, 0, 0)),
                   ("async", (1, 0, 0, 0))):
    wanted, time = simulate(*rule, updates=57)
    seen = sim(dense, name, 4, "--label", "y", "--model", "squared", "--optimizer", "sgd", "--schedule", "constant",
               "--scale", "none", "--no-intercept", "--lr", 0.02, "--batch", 3, "--shuffle", "none", "--updates", 57,
               "--compute", "const:1", "--slow", "1:1.713x,2:2.939x,3:1.331x")
    error = np.abs(seen["weight"] - wanted).max()
    expect("numpy_%s" % name, error < 2e-5 and abs(seen["seconds_train"] - time) < 1e-4,
           "differs by %.2g, at %.4f s of %.4f s" % (error, seen["seconds_train"], time))


# ---- numpy: a run that was stopped and resumed, from what its ledger says of every gradient ----
def from_ledger(folder, batch, rate):
    """The weights after the updates that the ledger tells of, and the batches that were applied."""
    data = open(os.path.join(folder, "ledger"), "rb").read()
    records = [struct.unpack_from("<IiQQQIfff", data, at) for at in range(16, len(data), 48)]
    values, per_epoch = [np.zeros(4)], len(table) // batch
    applied = [r for r in records if r[3] != 2 ** 64 - 1]
    for version in range(applied[-1][3] + 1):
        steps = []
        for _, _, read, _, number, *_ in (r for r in applied if r[3] == version):
            place = number % per_epoch * batch
            x, y = table[place:place + batch], np.float32(truth[place:place + batch])
            steps.append(x.T @ (x @ values[read] - y) / batch)
        values.append(values[-1] - rate * np.mean(steps, axis=0))
    return values[-1], [r[4] for r in applied]


for name, quorum in (("k-batch-sync:3", 3), ("k-sync:3", 3), ("k-async:2", 2), ("k-batch-async:3", 3), ("backup:3", 3), ("async", 1)):
    folder = path_of("parts-" + name)
    common = [dense, "--label", "y", "--model", "squared", "--optimizer", "sgd", "--schedule", "constant", "--scale", "none",
              "--no-intercept", "--lr", 0.02, "--batch", 3, "--shuffle", "none", "--compute", "exp:rate=1", "--transport", "sim",
              "--sync", name, "--workers", 4, "--run", folder]
    train(*common, "--updates", 11)
    seen = train(*common, "--updates", 31, "--resume")
    wanted, batches = from_ledger(folder, 3, 0.02)
    error = np.abs(seen["weight"] - wanted).max()
    expect("goes_on_with_others_%s" % name, seen["updates"] == 31 and error < 2e-5 and len(batches) == 31 * quorum and
           len(set(batches)) == len(batches), "differs by %.2g, %d of %d batches" % (error, len(set(batches)), 31 * quorum))

# ---- what makes no sense is refused ----
for options, word in ((["--sync", "hogwild", "--transport", "sim"], "share memory"),
                      (["--sync", "k-sync:9", "--workers", 4], "9 of 4"),
                      (["--sync", "async", "--compute", "const:1"], "--transport sim"),
                      (["--sync", "async", "--transport", "sim", "--compute", "exp:1"], "const:1+exp:rate=0.5"),
                      (["--sync", "async", "--slow", "9:2x", "--workers", 4], "0 … 3"),
                      (["--sync", "async", "--slow", "1:2", "--workers", 4], "2:3x"),
                      (["--sync", "async", "--record", path_of("race")], "hogwild"),
                      (["--sync", "async", "--transport", "sim", "--compute", "exp:mean=1,rat=7"], "a term is wrong"),
                      (["--sync", "async", "--transport", "sim", "--compute", "const:1e9", "--updates", 9000], "virtual time"),
                      (["--sync", "k-async", "--deterministic"], "deterministic")):
    expect("refused_%s" % " ".join(map(str, options)), word in train(some, *options, code=2))
finish()
