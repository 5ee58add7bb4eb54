"""A checkpoint changes nothing: a run that writes many ends with the bits of one that writes none, and so does a run
that was stopped and resumed. And what round-robin and average do across the ends of epochs, against numpy."""
import glob
import os
import sys

import numpy as np

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import laws
from laws import expect, finish, path_of, train

ROWS, FEATURES = 237, 12
random = np.random.default_rng(11)
x = np.round(random.normal(size=(ROWS, FEATURES)) * (random.random((ROWS, FEATURES)) < 0.5), 3)
y = np.round(x @ random.normal(size=FEATURES) + random.normal(size=ROWS), 3)
data = path_of("rows.svm")
with open(data, "w") as file:
    for row, label in zip(x, y):
        file.write("%g %s\n" % (label, " ".join("%d:%g" % (j + 1, v) for j, v in enumerate(row) if v)))
    file.write("0 %d:0\n" % FEATURES)
x, y = np.vstack([x, np.zeros(FEATURES)]), np.append(y, 0)
ROWS += 1

BASE = ["--model", "squared", "--epochs", 5, "--lr", 0.02]
STRATEGIES = [["round-robin", "--workers", 4], ["round-robin", "--workers", 3, "--batch", 7, "--optimizer", "adam"],
              ["round-robin", "--workers", 5, "--batch", 90, "--l1", 1e-3], ["average", "--workers", 3],
              ["average", "--workers", 3, "--l1", 1e-3, "--l2", 1e-2], ["average:every=25", "--workers", 4, "--l2", 1e-2],
              ["average:every=7", "--workers", 5, "--batch", 3, "--l1", 1e-3, "--optimizer", "adagrad"],
              ["average:every=10", "--workers", 2, "--optimizer", "momentum", "--l2", 1e-2],
              ["average", "--workers", 2, "--optimizer", "adadelta", "--l2", 1e-2],
              ["bsp", "--workers", 4, "--servers", 2, "--transport", "sim", "--optimizer", "momentum", "--l2", 1e-2],
              ["bsp", "--workers", 3, "--servers", 3, "--optimizer", "nesterov", "--l2", 1e-2],
              ["round-robin", "--workers", 1], ["bsp", "--workers", 3, "--batch", 9, "--l1", 1e-3], ["bsp", "--workers", 3, "--batch", 9, "--transport", "sim"],
              ["hogwild", "--deterministic", "--l2", 1e-2], ["cyclades", "--l2", 1e-2], ["serial", "--l1", 1e-3]]
for number, strategy in enumerate(STRATEGIES):
    common = [data, *BASE, "--sync", *strategy]
    name = " ".join(map(str, strategy))
    plain = train(*common)[0]
    folder = path_of("often%d" % number)
    often = train(*common, "--run", folder, "--checkpoint-every", "3u")[0]
    expect(name + ": checkpoints change nothing", often["model_hash"] == plain["model_hash"])
    os.remove(max(glob.glob(folder + "/checkpoint-*.safetensors")))  # the last one: it goes on from the one before
    again = train(*common, "--run", folder, "--checkpoint-every", "3u", "--resume")[0]
    expect(name + ": resumed from a checkpoint on the way", again["model_hash"] == plain["model_hash"] and
           again["updates"] == plain["updates"])
    # --updates does not go with shards, and cuts rounds where it ends the run.
    if "average" in strategy[0] or "--deterministic" in strategy or strategy[0] == "cyclades":
        continue
    for stop in (plain["updates"] // 3, plain["updates"] // 2 + 1):
        folder = path_of("stopped%d-%d" % (number, stop))
        constant = [*common, "--schedule", "constant", "--run", folder]
        train(*constant, "--updates", stop)
        resumed = train(*constant, "--resume")[0]
        unbroken = train(*common, "--schedule", "constant")[0]
        expect("%s: resumed at update %d" % (name, stop), resumed["model_hash"] == unbroken["model_hash"])
# A finished run goes on with more epochs as if it had never ended, also if it was resumed when there was nothing to do.
for number, strategy in enumerate((["round-robin", "--workers", 4], ["round-robin", "--workers", 1], ["serial"],
                                   ["bsp", "--workers", 3, "--transport", "sim"], ["average:every=7", "--workers", 3])):
    common = [data, *BASE[:2], "--lr", 0.02, "--schedule", "constant", "--sync", *strategy]
    folder = path_of("longer%d" % number)
    train(*common, "--epochs", 2, "--run", folder)
    train(*common, "--epochs", 2, "--run", folder, "--resume")
    longer = train(*common, "--epochs", 5, "--run", folder, "--resume")[0]
    expect("%s: a longer run" % " ".join(map(str, strategy)), longer["model_hash"] == train(*common, "--epochs", 5)[0]["model_hash"])
for strategy in (["round-robin"], ["bsp"]):
    folder = path_of("other" + strategy[0])
    train(data, *BASE, "--sync", *strategy, "--workers", 3, "--run", folder, "--updates", 20)
    expect(strategy[0] + ": another number of workers is refused",
           "workers" in train(data, *BASE, "--sync", *strategy, "--workers", 4, "--run", folder, "--resume", code=2))

# ---- round-robin: once all are at work every gradient is P − 1 updates old, also across epochs ----
PLAIN = ["--model", "squared", "--no-intercept", "--scale", "none", "--optimizer", "sgd", "--lr", 0.02, "--schedule",
         "constant", "--average", "no", "--shuffle", "none"]
for workers, batch, epochs in ((4, 1, 3), (3, 10, 4), (5, 100, 6)):
    told, arrays = train(data, *PLAIN, "--sync", "round-robin", "--workers", workers, "--batch", batch, "--epochs", epochs)
    starts = [s for _ in range(epochs) for s in range(0, ROWS, batch)]
    missed = [min(u, workers - 1) for u in range(len(starts))]
    expect("round-robin, %d workers: staleness" % workers, told["updates"] == len(starts) and
           abs(told["staleness_mean"] - np.mean(missed)) < 1e-9, "%g" % told["staleness_mean"])
    seen = [np.zeros(FEATURES)]
    for u, start in enumerate(starts):
        rows, labels, view = x[start:start + batch], y[start:start + batch], seen[u - missed[u]]
        seen.append(seen[-1] - 0.02 * rows.T @ (rows @ view - labels) / len(rows))
    expect("round-robin, %d workers: the delayed path" % workers, np.allclose(arrays["weight"].ravel(), seen[-1], atol=2e-5),
           "%.1e" % abs(arrays["weight"].ravel() - seen[-1]).max())


# ---- average:every=H is local SGD: the mean after every H updates, wherever epochs end ----
def local_sgd(workers, batch, every, epochs):
    shards = [range(ROWS * w // workers, ROWS * (w + 1) // workers) for w in range(workers)]
    models = [np.zeros(FEATURES) for _ in range(workers)]
    ticks = max(-(-len(shard) // batch) for shard in shards)
    for tick in range(epochs * ticks):
        for w, shard in enumerate(shards):
            part = list(shard)[tick % ticks * batch:tick % ticks * batch + batch]
            if part:
                models[w] = models[w] - 0.02 * x[part].T @ (x[part] @ models[w] - y[part]) / len(part)
        if every and (tick + 1) % every == 0:
            models = [np.mean(models, axis=0)] * workers
    return np.mean(models, axis=0)


for workers, batch, every, epochs in ((4, 1, 25, 3), (4, 1, 60, 3), (3, 7, 5, 4), (5, 1, 1000, 3), (2, 4, 0, 3), (4, 1, 100, 5)):
    _, arrays = train(data, *PLAIN, "--sync", "average:every=%d" % every, "--workers", workers, "--batch", batch, "--epochs", epochs)
    wanted = local_sgd(workers, batch, every, epochs)
    far = abs(arrays["weight"].ravel() - wanted).max()
    expect("average:every=%d of %d workers" % (every, workers), far < 2e-5, "%.1e" % far)

finish()
