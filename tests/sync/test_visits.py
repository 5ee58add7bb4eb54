"""How often every row is trained on: exactly once an epoch, whatever the strategy, the transport and the remainders.

Two independent counts. Row i has feature i alone and its hinge loss has slope −1 all the time, so that a step adds
lr / (rows of the update) to weight i: the weights count visits. Where there is a ledger, the numbers of the batches
in it must be those of every epoch, each once. With the argument mpi: the part about
servers alone, over MPI and with one remainder (mpi all: with all of them)."""
import os
import struct
import sys

import numpy as np

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import laws
from laws import expect, finish, path_of, train

WORKERS, BATCH, EPOCHS, LR = 4, 5, 3, 2.0 ** -12
PLAIN = ["--model", "hinge", "--no-intercept", "--scale", "none", "--l2", 0, "--optimizer", "sgd", "--lr", LR, "--schedule",
         "constant", "--average", "no", "--epochs", EPOCHS, "--shuffle"]


def rows_of(count):
    path = path_of("rows%d.svm" % count)
    with open(path, "w") as file:
        for i in range(count):
            file.write("%d %d:1\n" % (i % 2 * 2 - 1, i + 1))
    return path


def weights(count, options):
    told, arrays = train(rows_of(count), *PLAIN, *options)
    weight = np.zeros(count)
    weight[:arrays["weight"].size] = np.abs(arrays["weight"].ravel())
    return told, weight / LR


def by_number(count, size):
    """Rows of the batch of `size` rows that each row is in, without shuffling."""
    place = np.arange(count)
    return np.minimum(size, count - place // size * size)


def batches_once(name, folder, count, size, parts=1):
    data = open(os.path.join(folder, "ledger"), "rb").read()
    records = [struct.unpack_from("<IiQQQIfff", data, at) for at in range(16, len(data), 48)]
    numbers = sorted(r[4] for r in records if r[3] != 2 ** 64 - 1)
    wanted = sorted(list(range(EPOCHS * -(-count // size))) * parts)
    expect(name + ": every batch once an epoch", numbers == wanted, "%d of %d" % (len(numbers), len(wanted)))


OVER_MPI = "mpi" in sys.argv
COUNTS = (100, 101, 119, 7)  # three remainders of P·b, and fewer rows than a batch of all

# ---- workers that share memory ----
TEAM = ["serial", "hogwild", "hogwild:exchange=0", "hogwild --deterministic", "cyclades", "locked", "locked:stripes=4",
        "round-robin", "average", "average:every=4", "bsp", "bsp --deterministic"]
for count in COUNTS:
    for text in TEAM if not OVER_MPI else []:
        sync, *more = text.split()
        workers = [] if sync == "serial" else ["--workers", WORKERS]
        batch = 1 if sync in ("cyclades", "hogwild:exchange=0") else BATCH
        joint = BATCH * (WORKERS if text == "bsp" else 1)
        told, weight = weights(count, ["none", "--sync", sync, "--batch", batch, *workers, *more])
        if sync.startswith("average"):
            shard = [count * (w + 1) // WORKERS - count * w // WORKERS for w in range(WORKERS)]
            of = np.concatenate([by_number(n, BATCH) for n in shard if n])
            weight = weight * WORKERS  # the mean of models of which one has seen the row
        elif batch == 1:
            of = np.ones(count)
        else:
            of = by_number(count, min(joint, count))
        visits = weight * of
        # With exchange=0 steps may be lost: rows have no feature in common, so that here none is.
        expect("%s, %d rows" % (text, count), np.allclose(visits, EPOCHS, atol=1e-4),
               "visits %.4f to %.4f" % (visits.min(), visits.max()))

# ---- servers ----
SERVERS = ["bsp", "k-sync:3", "k-batch-sync:3", "backup:3", "k-async:3", "k-batch-async:3", "async", "async:staleness=3",
           "async:push=2", "async:push=2,fetch=4", "ssp:0", "ssp:2", "ssp:staleness=2,lazy=yes", "essp:2"]
WHERE = {"sim": ["--transport", "sim", "--compute", "const:1+exp:rate=0.5"], "threads": ["--delay", "const:0"],
         "sim, slow": ["--transport", "sim:latency=0.3", "--compute", "const:1+exp:rate=0.5", "--slow", "1:7x"]}
if OVER_MPI:
    WHERE = {"mpi": ["--transport", "mpi"]}
for count in COUNTS[2:3] if OVER_MPI and "all" not in sys.argv else COUNTS:
    for sync in SERVERS:
        for where, options in WHERE.items():
            folder = path_of("run-%d-%s-%s" % (count, sync, where.replace(", ", "-")))
            told, weight = weights(count, ["rows", "--sync", sync, "--batch", BATCH, "--workers", WORKERS, "--run", folder,
                                           *options])
            size = min({"bsp": WORKERS, "async:push=2": 2, "async:push=2,fetch=4": 2}.get(sync, 1) * BATCH, count)
            batches_once("%s, %s, %d rows" % (sync, where, count), folder, count, size, WORKERS if sync == "bsp" else 1)
            if sync == "bsp":
                expect("bsp, %s, %d rows: updates" % (where, count), told["updates"] == EPOCHS * -(-count // size))

if OVER_MPI:
    finish()

# ---- bsp: the same updates wherever it runs ----
for count in COUNTS:
    common = ["rows", "--sync", "bsp", "--batch", BATCH, "--workers", WORKERS]
    runs = [weights(count, ["rows", "--sync", "serial", "--batch", WORKERS * BATCH])] + [
        weights(count, common + where) for where in ([], ["--servers", 2], ["--delay", "const:0"], ["--transport", "sim"],
                                                     ["--transport", "sim", "--servers", 3])]
    expect("bsp is serial with the batches of all, %d rows" % count,
           len({(told["updates"], told["model_hash"]) for told, _ in runs}) == 1, str([told["updates"] for told, _ in runs]))

# ---- --updates: the step falls to zero with the last of them, though the last batch of every epoch is small ----
for where in (["--sync", "serial"], ["--sync", "bsp", "--workers", 1], ["--sync", "async", "--workers", 1, "--transport", "sim"]):
    path = rows_of(101)
    _, arrays = train(path, *PLAIN[:-7], "--schedule", "linear", "--average", "no", "--shuffle", "none", "--batch", 100,
                      "--updates", 20, *where)
    steps = abs(arrays["weight"].ravel()[0]) / LR * 100
    expect("20 updates are 10 epochs: " + where[1], abs(steps - 5.5) < 0.01, "%.3f steps, not 5.5" % steps)

# ---- a run that was stopped and resumed: no batch twice, none left out ----
for sync in ("async", "k-async:3", "k-sync:3", "ssp:2", "bsp"):
    common = [rows_of(101), *PLAIN, "rows", "--sync", sync, "--batch", BATCH, "--workers", WORKERS, "--transport", "sim",
              "--compute", "const:1+exp:rate=0.5"]
    folder = path_of("stopped-" + sync)
    train(*common, "--run", folder, "--updates", 17)
    train(*common, "--run", folder, "--updates", 17, "--resume")  # there is nothing to do
    train(*common, "--run", folder, "--resume")
    batches_once("%s, resumed" % sync, folder, 101, BATCH * (WORKERS if sync == "bsp" else 1), WORKERS if sync == "bsp" else 1)

finish()
