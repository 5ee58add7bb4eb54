"""Staleness on purpose, and what is done about it; workers that die; times from a trace; what a run's folder tells."""
import json
import math
import os
import sys

import numpy as np

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import laws
from laws import expect, finish, path_of, train

# ---- one worker, whole batches: the recursion can be written down ----
table = np.random.default_rng(7).normal(size=(40, 3)).round(3)
truth = np.float32(table @ [1, -2, 0.5])
dense = path_of("dense.csv")
with open(dense, "w") as file:
    file.write("y,a,b,c\n")
    file.writelines("%.6f,%s\n" % (y, ",".join("%.3f" % v for v in x)) for x, y in zip(table, truth))
plain = ["--model", "squared", "--optimizer", "sgd", "--schedule", "constant", "--scale", "none", "--no-intercept", "--batch", 40,
         "--transport", "sim", "--average", "no", "--shuffle", "none", "--lr", 0.05]


def gradient(w):
    return table.T @ (table @ w - truth) / 40


def delayed(updates, late, aware=False, ramp=0):
    """Gradient number t is computed from what there is when it is, and applied when `late` more have come."""
    w, queue, version = np.zeros(3), [], 0
    while version < updates:
        queue.append((version, gradient(w)))
        now = int(late * min(1, version / ramp)) if ramp else late
        if len(queue) > now:
            read, g = queue.pop(0)
            w = w - 0.05 * g / (1 + version - read if aware else 1)
            version += 1
    return w


for sync, wanted, most in (("async:staleness=4", delayed(60, 4), 4), ("async:staleness=7,aware=yes", delayed(60, 7, True), 7),
                           ("async:staleness=6,ramp=10", delayed(60, 6, ramp=10), 6), ("async:aware=yes", delayed(60, 0), 0)):
    seen, tensors = train(dense, *plain, "--workers", 1, "--sync", sync, "--updates", 60)
    gap = np.abs(tensors["weight"].ravel() - wanted).max()
    expect("numpy_%s" % sync, gap < 1e-5 and seen["staleness_max"] == most, "%.2g, stalest %d" % (gap, seen["staleness_max"]))

# Two workers of equal speed: from the third on every gradient has missed one update, and makes half a step.
seen, tensors = train(dense, *plain, "--workers", 2, "--sync", "async:aware=yes", "--updates", 40)
views, w = [np.zeros(3), np.zeros(3)], np.zeros(3)
for t in range(40):
    w, views[t % 2] = w - 0.05 * gradient(views[t % 2]) / (1 if t == 0 else 2), None
    views[t % 2] = w
expect("numpy_two_aware", np.abs(tensors["weight"].ravel() - w).max() < 1e-5)

# ---- several steps between two messages ----
for push, fetch, workers, servers in ((5, 5, 1, 1), (5, 5, 2, 1), (1, 3, 2, 1), (2, 6, 3, 2), (5, 20, 2, 3)):
    few = [o if o != 40 else 4 for o in plain]
    seen, tensors = train(dense, *few, "--workers", workers, "--servers", servers, "--sync", "async:push=%d,fetch=%d" % (push, fetch),
                          "--updates", 24, "--compute", "const:1")
    w, local, sent = np.zeros(3), [np.zeros(3)] * workers, [0] * workers
    numbers = list(range(workers))
    for t in range(24):
        who = t % workers
        own = local[who]
        for i in range(push):
            at = (numbers[who] * push * 4 + i * 4) % 40
            x, y = table[at:at + 4], truth[at:at + 4]
            own = own - 0.05 * x.T @ (x @ own - y) / 4
        w = w + own - local[who]
        sent[who] += push
        local[who], numbers[who] = own if sent[who] % fetch else w, workers + t
    gap = np.abs(tensors["weight"].ravel() - w).max()
    expect("numpy_push_%d_fetch_%d_%d_workers" % (push, fetch, workers),
           gap < 1e-5 and abs(seen["seconds_train"] - 24 * push / workers) < 1e-6, "%.2g, %g s" % (gap, seen["seconds_train"]))
sparse = [laws.some_rows(500), "--batch", 5, "--updates", 600, "--compute", "exp:rate=1", "--transport", "sim", "--workers", 4]
often, seldom = [train(*sparse, "--sync", "async:fetch=%d" % fetch)[0] for fetch in (1, 4)]
expect("fewer_fetches", seldom["train_loss"] < 1.2 * often["train_loss"] and seldom["staleness_mean"] > often["staleness_mean"],
       "loss %.4f, %.4f; staleness %.2f, %.2f" % (often["train_loss"], seldom["train_loss"], often["staleness_mean"], seldom["staleness_mean"]))
expect("fetch_is_a_multiple_of_push", "fetch" in train(dense, *plain, "--sync", "async:push=2,fetch=3", "--workers", 2, code=2))

# ---- restarts ----
wild = [o if o != 0.05 else 3.0 for o in plain]
expect("diverges", "diverged" in train(dense, *wild, "--workers", 1, "--sync", "async", "--updates", 3000, code=4))
seen, tensors = train(dense, *wild, "--workers", 1, "--sync", "async", "--updates", 3000, "--restarts", 9)
expect("restarts", np.abs(tensors["weight"].ravel() - [1, -2, 0.5]).max() < 1e-2, str(tensors["weight"].ravel()))
expect("restarts_are_refused_for_copies", "--restarts" in train(dense, "--sync", "hogwild", "--workers", 2, "--restarts", 1, code=2))

# ---- workers that die ----
some = laws.some_rows(500)
common = ["--workers", 4, "--batch", 5, "--epochs", 6, "--compute", "exp:rate=1"]
for sync in ("async", "k-sync:2", "k-batch-sync:3", "k-async:3", "k-batch-async:5", "backup:3", "ssp:1", "essp:2"):
    whole = train(some, *common, "--transport", "sim", "--sync", sync)[0]
    seen = train(some, *common, "--transport", "sim:dies=1@40,silence=3", "--sync", sync)[0]
    detail = seen["workers_detail"]
    expect("goes_on_%s" % sync, seen["epochs"] == 6 and seen["workers_lost"] == 1 and whole["workers_lost"] == 0 and detail[1]["gradients"] < 0.8 * detail[0]["gradients"] and
           seen["train_loss"] < 1.1 * whole["train_loss"], "%.4f, %.4f" % (seen["train_loss"], whole["train_loss"]))
for sync, needed in (("bsp", 4), ("k-sync:4", 4), ("k-async:4", 4)):
    folder = path_of("dies-" + sync)
    complaint = train(some, *common, "--transport", "sim:dies=1@40", "--sync", sync, "--run", folder, code=6)
    expect("ends_%s" % sync, "worker 1 was lost" in complaint and "--resume" in complaint and
           any(name.startswith("checkpoint-") for name in os.listdir(folder)), complaint)
expect("nobody_is_left", "worker" in train(some, *common, "--transport", "sim:dies=0@5+1@6+2@7+3@8", "--sync", "async", code=6))
expect("bad_death", "dies" in train(some, *common, "--transport", "sim:dies=9@5", "--sync", "async", code=2))

# ---- traces ----
with open(path_of("times"), "w") as file:
    file.write("0 2\n1 0.5\n1 0.5\n")
seen = train(some, "--transport", "sim", "--sync", "async", "--workers", 2, "--batch", 1, "--epochs", 2, "--compute", "trace:" + path_of("times"))[0]
detail = seen["workers_detail"]
expect("trace", detail[1]["gradients"] == 800 and detail[0]["gradients"] == 200 and seen["seconds_train"] == 400, str(seen["seconds_train"]))
for text, word in (("1 x\n", ":1:"), ("", "no times"), ("worker,b\n1,2\n", "computing"), ("0 1\n-1 2\n", ":2:")):
    with open(path_of("bad"), "w") as file:
        file.write(text)
    expect("bad_trace_%r" % text, word in train(some, "--transport", "sim", "--sync", "async", "--compute", "trace:" + path_of("bad"), code=3))

# ---- a run's folder ----
folder = path_of("told")
steady = ["--scale", "none", "--lr", 0.1, "--schedule", "constant", "--transport", "sim:latency=0.1", "--sync", "k-async:2", "--slow", "2:4x", "--run", folder]
seen = train(some, *common, *steady)[0]
told = json.loads(laws.run("inspect", folder, "--json"))
expect("straggler_is_named", told["straggler"] == 2 and seen["straggler"] == 2)
expect("the_same_is_told", told["staleness_counts"] == seen["staleness_counts"] and told["gradients"] == sum(seen["staleness_counts"]) and
       all(abs(a["computing"] - b["computing"]) < 1e-3 * b["computing"] and a["gradients"] == b["gradients"]
           for a, b in zip(told["workers_detail"], seen["workers_detail"])))
lines = laws.run("inspect", folder, "--ledger").split("\n")
expect("ledger_is_printed", len(lines) == told["gradients"] + 2 and lines[0].startswith("worker,waited_for,read,applied"))
metrics = [json.loads(line) for line in open(os.path.join(folder, "metrics.jsonl"))]
counts = [line["staleness_counts"] for line in metrics if "staleness_counts" in line]
expect("intervals_add_up", sum(map(sum, counts)) == told["gradients"], str(len(counts)))
train(some, *common[:-4], "--epochs", 8, *common[-2:], *steady, "--resume")
more = json.loads(laws.run("inspect", folder, "--json"))
expect("a_resumed_run_adds_to_it", more["gradients"] > told["gradients"])
with open(os.path.join(folder, "ledger"), "r+b") as file:
    file.seek(16 + 48)
    file.write(b"\xff" * 48)
expect("damage_is_told", "damaged at byte 64" in laws.run("inspect", folder, code=5))
with open(os.path.join(folder, "ledger"), "wb") as file:
    file.write(b"something")
expect("no_ledger", "not a ledger" in laws.run("inspect", folder, code=5))
expect("no_run", "status.json" in laws.run("inspect", laws.WORK, code=5))
finish()
