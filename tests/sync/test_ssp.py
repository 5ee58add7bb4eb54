"""Stale synchronous parallel, in virtual time: what every worker may see, on a thousand random schedules; the same
numbers as numpy computes from the ledger; what is equal to what; penalties; budgets."""
import json
import math
import os
import random
import struct
import sys

import numpy as np

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import laws
from laws import expect, finish, path_of, train

SLOW = bool(os.environ.get("SOUNDER_SANITIZE"))
SCHEDULES = 60 if SLOW else 1000
DROPPED = 2 ** 64 - 1


def ledger(folder):
    """(worker, waited for, read, applied, batch, bytes, computing, travelling, waiting) of every gradient."""
    data = open(os.path.join(folder, "ledger"), "rb").read()
    assert data[:16] == b"sounder-ledger-2" and (len(data) - 16) % 48 == 0
    return [struct.unpack_from("<IiQQQIfff", data, at) for at in range(16, len(data), 48)]


def views(records):
    """For every step applied, in order: its worker, its clock, and how many updates the server had shown in the values
    it was computed from. `read` counts the worker's own steps too; these it adds itself."""
    applied = [r[0] for r in records]
    assert [r[3] for r in records] == list(range(len(records)))
    clocks, out = {}, []
    for worker, _, read, *_ in records:
        c = clocks[worker] = clocks.get(worker, -1) + 1
        base, own = 0, 0
        while base + c - own < read:
            own += applied[base] == worker
            base += 1
        out.append((worker, c, base))
    return out


def follows_the_rule(records, workers, s):
    steps = views(records)
    missed = max(applied - read for _, _, read, applied, *_ in records)
    if missed > (2 * s + 1) * (workers - 1):
        return "a step missed %d updates" % missed
    for worker, c, base in steps:
        seen = {(w, k) for w, k, _ in steps[:base]}
        for w, k in seen:
            if w != worker and k >= c + s:
                return "worker %d at clock %d sees clock %d of worker %d" % (worker, c, k, w)
        for w in range(workers):
            for k in range(c - s):
                if w != worker and (w, k) not in seen:
                    return "worker %d at clock %d lacks clock %d of worker %d" % (worker, c, k, w)
    return ""


# ---- random schedules ----
few = path_of("few.svm")
with open(few, "w") as file:
    for i in range(32):
        file.write("%d %d:1 %d:%d\n" % (i % 2, 1 + i % 7, 8 + i % 5, i % 3 + 1))
chance = random.Random(11)
folder = path_of("run")
broken = []
for number in range(SCHEDULES):
    workers, s = chance.randint(2, 5), chance.randint(0, 3)
    sync = chance.choice(["ssp:%d" % s, "ssp:staleness=%d,lazy=yes" % s, "essp:%d" % s, "essp:staleness=%d,budget=%d" % (s, chance.choice([100, 400]))])
    latency = chance.choice(["", ":latency=0.3", ":latency=2", ":latency=0.1,bandwidth=200,port=900", ":latency=0.1,bandwidth=900,far=1:5x"])
    compute = chance.choice(["exp:rate=1", "uniform:0.1-3", "pareto:scale=0.3,shape=1.2", "const:1"])
    servers = chance.choice([1, 1, 2]) if sync.startswith("ssp") else 1
    os.system("rm -rf '%s'" % folder)
    train(few, "--sync", sync, "--transport", "sim" + latency, "--compute", compute, "--workers", workers, "--servers", servers,
          "--batch", 2, "--updates", 24, "--seed", number + 1, "--run", folder, "--slow", "1:%gx" % chance.choice([1, 3, 10]))
    wrong = follows_the_rule(ledger(folder), workers, s)
    if wrong:
        broken.append("%s, %d workers, %s, %s: %s" % (sync, workers, latency, compute, wrong))
expect("rule_on_%d_schedules" % SCHEDULES, not broken, "; ".join(broken[:3]))

# ---- what is equal to what, by the ledger ----
def trace(sync, *options):
    os.system("rm -rf '%s'" % folder)
    train(few, "--sync", sync, "--compute", "exp:rate=1", "--workers", 4, "--batch", 2, "--updates", 120, "--run", folder, *options)
    return ledger(folder)


for where in ("sim", "sim:latency=0.7"):
    steps = views(trace("ssp:0", "--transport", where))
    seen = [{(w, k) for w, k, _ in steps[:base] if w != me} for me, _, base in steps]
    expect("none_stale_is_bsp_%s" % where,
           seen == [{(w, k) for w in range(4) if w != me for k in range(c)} for me, c, _ in steps])
    same = [[r[:4] + (round(r[6], 6),) for r in trace(sync, "--transport", where)] for sync in ("ssp:inf", "async")]
    expect("unbounded_is_async_%s" % where, same[0] == same[1])
both = [trace("backup:k=3,cancel=yes", "--transport", "sim"), trace("k-sync:3", "--transport", "sim")]
expect("cancelled_spares_are_k_sync", both[0] == both[1] and len(both[0]) == 360)

# ---- numpy: the same numbers from the ledger ----
table = np.random.default_rng(7).normal(size=(60, 4)).round(3)
truth = np.float32(table @ [1, -2, 0.5, 3])
dense, sparse = path_of("dense.csv"), path_of("sparse.svm")
with open(dense, "w") as file:
    file.write("y,a,b,c,d\n")
    file.writelines("%.6f,%s\n" % (y, ",".join("%.3f" % v for v in x)) for x, y in zip(table, truth))
with open(sparse, "w") as file:
    file.writelines("%.6f %s\n" % (y, " ".join("%d:%.3f" % (j + 1, v) for j, v in enumerate(x))) for x, y in zip(table, truth))
plain = ["--model", "squared", "--schedule", "constant", "--scale", "none", "--no-intercept", "--batch", 60, "--updates", 40,
         "--workers", 4, "--transport", "sim:latency=0.4", "--compute", "exp:rate=1", "--average", "no", "--shuffle", "none"]


def replay(records, rate, optimizer):
    """Every batch is all rows, so that a step depends on the view alone: the values shown and the worker's own steps."""
    shown, own, state = [np.zeros(4)], {}, {}
    for worker, c, base in views(records):
        mine = own.setdefault(worker, [])
        in_them = sum(1 for r in records[:base] if r[0] == worker)
        w = shown[base] + sum(mine[in_them:], np.zeros(4))
        g = table.T @ (table @ w - truth) / 60
        if optimizer == "adagrad":
            state[worker] = state.get(worker, 0) + g * g
            g = g / (np.sqrt(state[worker]) + 1e-10)
        mine.append(-rate * g)
        shown.append(shown[-1] + mine[-1])
    return shown[-1]


for sync in ("ssp:0", "ssp:2", "essp:2", "essp:inf", "essp:staleness=3,budget=60"):
    for optimizer, rate in (("sgd", 0.05), ("adagrad", 0.2)):
        for path, servers in ((dense, 1), (sparse, 1), (sparse, 2), (dense, 3)):
            if servers > 1 and sync.startswith("essp"):
                continue
            os.system("rm -rf '%s'" % folder)
            _, tensors = train(path, *plain, "--sync", sync, "--optimizer", optimizer, "--lr", rate, "--run", folder, "--servers", servers)
            if "budget" in sync:  # views are mixtures then. Steps are all there: they end where the loss is nothing.
                _, tensors = train(path, *plain, "--sync", sync, "--optimizer", optimizer, "--lr", rate, "--updates", 400)
                gap = np.abs(tensors["weight"].ravel() - [1, -2, 0.5, 3]).max()
                expect("arrives_%s_%s_%s" % (sync, optimizer, os.path.basename(path)), gap < 1e-4, "%.1e" % gap)
                continue
            wanted = replay(ledger(folder), rate, optimizer)
            gap = np.abs(tensors["weight"].ravel() - wanted).max() / np.abs(wanted).max()
            expect("numpy_%s_%s_%s_%d" % (sync, optimizer, os.path.basename(path), servers), gap < 2e-5, "%.2g" % gap)

# ---- penalties: a proximal step on the sum ----
some = laws.some_rows(600)
for penalty in (["--l2", 0.02], ["--l1", 0.01]):
    common = ["--optimizer", "sgd", "--scale", "none", "--lr", 0.3, "--schedule", "1/t", "--epochs", 60, "--batch", 8, "--average", "no", *penalty]
    best = train(some, "--sync", "batch", "--epochs", 400, *penalty)[0]["objective"]
    for sync in ("ssp:2", "essp:2"):
        seen = train(some, "--sync", sync, "--transport", "sim:latency=0.2", "--workers", 4, "--compute", "exp:rate=1", *common)[0]["objective"]
        expect("proximal_%s_%s" % (sync, penalty[0]), best - 1e-6 <= seen <= best * 1.01, "%.5f, the best is %.5f" % (seen, best))

# ---- eager: no waiting for answers; a budget is kept ----
base = ["--workers", 4, "--batch", 8, "--epochs", 20, "--compute", "uniform:0.5-1.5"]
lazy, eager = [train(some, "--sync", sync, "--transport", "sim:latency=0.25", *base)[0] for sync in ("ssp:3", "essp:3")]
expect("answers_are_not_waited_for", eager["seconds_train"] < 0.8 * lazy["seconds_train"],
       "%.1f, %.1f s" % (eager["seconds_train"], lazy["seconds_train"]))
# Where messages take no time values sent ahead are as fresh as those asked for, but for what a worker's own step sets free.
for seed in (1, 2, 3):
    lazy, eager = [train(some, "--sync", sync, "--transport", "sim", *base, "--seed", seed)[0]["staleness_mean"] for sync in ("ssp:3", "essp:3")]
    expect("hardly_staler_%d" % seed, lazy <= eager <= 1.05 * lazy, "%.3f, asked for %.3f" % (eager, lazy))
for where in ("sim", "sim:latency=0.05", "sim:latency=0.25"):  # plain ssp: values are asked for when they are too old
    for times in ("uniform:0.5-1.5", "exp:rate=1"):
        common = [*base[:-1], times, "--transport", where]
        plain, often, eager = [train(some, "--sync", sync, *common)[0] for sync in ("ssp:staleness=3,lazy=yes", "ssp:3", "essp:3")]
        expect("less_stale_than_plain_%s_%s" % (where, times), eager["staleness_mean"] <= plain["staleness_mean"] and
               plain["bytes_sent"] != often["bytes_sent"] and plain["staleness_mean"] > often["staleness_mean"],
               "%.2f, plain %.2f, asking every time %.2f" % tuple(x["staleness_mean"] for x in (eager, plain, often)))


# In no window, of no worker, are more bytes sent ahead than the budget gives in that time, and what may be saved up: a
# tenth of a second's, or the values of one batch. A batch that was sent ahead went off between the arrivals of the two
# gradients before the one it follows; one that was asked for has both ways before it, which costs no budget.
def most_saved(folder, budget, latency):
    """The most that a window has beyond its budget, and the bytes of a message with all values."""
    with open(os.path.join(folder, "metrics.jsonl")) as file:
        when = {line["updates"]: line["seconds"] for line in map(json.loads, file)}
    records, most = ledger(folder), -math.inf
    message = 48 + 4 * 32  # a header and all values: 12 weights, an intercept, each block padded to 16
    step = min(r[5] for r in records) - message
    for worker in range(4):
        mine = [r for r in records if r[0] == worker]
        came = np.array([when[r[3] + 1] for r in mine])
        sent = np.cumsum([0] + [r[5] - step if r[7] < 2 * latency - 1e-3 else 0 for r in mine])
        for i in range(2, len(mine)):
            most = max(most, np.max(sent[i + 1:] - sent[i] - budget * (came[i - 1:-1] - came[i - 2])))
    return most, message, sum(r[7] < 2 * latency - 1e-3 for r in records), sum(r[5] for r in records)


wide = path_of("wide.csv")
with open(wide, "w") as file:
    values = np.random.default_rng(4).normal(size=(240, 13)).round(3)
    file.write("y,%s\n" % ",".join("x%d" % j for j in range(12)))
    file.writelines(",".join("%.3f" % v for v in row) + "\n" for row in values)
for times in ("uniform:0.5-1.5", "pareto:scale=0.2,shape=1.2"):
    for budget in (200, 400, 800):
        os.system("rm -rf '%s'" % folder)
        seen = train(wide, "--label", "y", "--sync", "essp:staleness=3,budget=%d" % budget, "--transport", "sim:latency=0.25", "--workers", 4,
                     "--batch", 8, "--epochs", 20, "--compute", times, "--run", folder, "--evaluate-every", 1)[0]
        excess, message, ahead, total = most_saved(folder, budget, 0.25)
        expect("budget_%d_%s" % (budget, times), ahead > 150 and excess <= max(0.1 * budget + 48, message) + 1,
               "%d of %d batches ahead, %.0f bytes saved up, a message has %d" % (ahead, seen["updates"], excess, message))
        expect("the_ledger_has_every_byte", seen["bytes_sent"] == total + 4 * 48, "%d, sent %d" % (total, seen["bytes_sent"]))

# ---- refusals ----
for options, word in ((["--sync", "ssp", "--optimizer", "ftrl"], "state"), (["--sync", "ssp:x"], "inf"), (["--sync", "ssp:-1"], "inf"), (["--sync", "ssp:staleness=inf,lazy=yes"], "bound"),
                      (["--sync", "ssp", "--l2", 0.1], "sgd"), (["--sync", "ssp", "--model", "kmeans:3"], "async"),
                      (["--sync", "essp", "--servers", 2], "one server"), (["--sync", "ssp", "--deterministic"], "deterministic")):
    expect("refuses_%s" % " ".join(map(str, options)), word in train(some, *options, "--workers", 2, code=2))
finish()
