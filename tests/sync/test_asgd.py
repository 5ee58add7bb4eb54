"""ASGD: its formula against numpy, independent SGD and SimuParallelSGD as special cases, states that are torn, lost, partial or late,
workers that die."""
import json, os, shutil, subprocess, sys
import numpy as np

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from tensors import read_tensors
from laws import expect, finish
from small_sets import SOUNDER, dense, path, pictures, sparse


def run(command, *options):
    return subprocess.run([SOUNDER, command, *map(str, options)], capture_output=True, text=True)


def train(data, *options):
    done = run("train", *data, "--seed", 2, "--quiet", "--json", *options)
    if done.returncode:
        raise SystemExit("%s\n%s" % (" ".join(done.args), done.stderr))
    return json.loads(done.stdout)


# ---- the formula, against numpy ----
# Two workers with one slot write to each other, so nothing is random. Steps take one second, messages 0.4: a state that was written at
# the end of step t is found before step t + 2 begins.
ROWS, BATCH, EPOCHS, RATE = 48, 4, 3, 0.05
random = np.random.default_rng(5)
x = np.round(random.normal(size=(ROWS, 5)), 3).astype(np.float32)
y = np.round(x @ random.normal(size=5) + random.normal(size=ROWS), 3).astype(np.float32)
formula = path("formula.svm")
with open(formula, "w") as file:
    for label, row in zip(y, x):
        file.write("%g %s\n" % (label, " ".join("%d:%g" % (j + 1, v) for j, v in enumerate(row))))


def asgd(window, blend, schedule):
    shards = [(x[:ROWS // 2], y[:ROWS // 2]), (x[ROWS // 2:], y[ROWS // 2:])]
    w = [np.zeros(5), np.zeros(5)]
    states, taken = [], 0  # states[t][worker]
    steps = ROWS // 2 // BATCH
    for t in range(EPOCHS * steps):
        rate = RATE * (1 - t / (EPOCHS * steps) if schedule == "linear" else 1)
        after = []
        for worker, (rows, labels) in enumerate(shards):
            at = slice(t % steps * BATCH, t % steps * BATCH + BATCH)
            g = rows[at].T @ (rows[at] @ w[worker] - labels[at]) / BATCH
            step = w[worker] - rate * g
            if t >= 2:
                other = states[t - 2][1 - worker]
                closer = np.sum((step - other) ** 2) < np.sum((w[worker] - other) ** 2)
                if window == "open" or window == "parzen" and closer:
                    step = step - (rate if blend == "rate" else 1) * (w[worker] - (w[worker] + other) / 2)
                    taken += 1
            after.append(step)
        w = after
        states.append(w)
    return w, taken


for window, schedule in (("parzen", "constant"), ("open", "constant"), ("open", "linear"), ("closed", "constant")):
    for blend in ("full", "rate"):
        out = train([formula], "--model", "squared", "--no-intercept", "--scale", "none", "--optimizer", "sgd", "--lr", RATE, "--schedule",
                    schedule, "--average", "no", "--shuffle", "none", "--batch", BATCH, "--epochs", EPOCHS, "--workers", 2, "--sync",
                    "asgd:every=1,slots=1,window=%s,blend=%s" % (window, blend), "--transport", "sim:latency=0.4", "--compute",
                    "const:1", "--out", path("formula.model"))
        (want, _), taken = asgd(window, blend, schedule)
        seen = read_tensors(path("formula.model"))[0]["weight"].ravel()
        expect("%s, %s, %s: the formula" % (window, schedule, blend), np.abs(seen - want).max() < 2e-6 and out["states_accepted"] == taken,
               (np.abs(seen - want).max(), out["states_accepted"], taken))

# ---- special cases ----
SIM = ["--transport", "sim:latency=0.5", "--compute", "exp:rate=1"]
MODELS = {"logistic": sparse, "squared": dense, "kmeans:3": dense, "mlp:hidden=40-7": sparse,
          "cnn:layers=conv4x3-relu-pool2-dense9-tanh-dropout0.25": pictures}
for model, data in MODELS.items():
    wrong = []
    for workers in (1, 2, 3, 7):
        common = ["--model", model, "--batch", 6, "--workers", workers, "--epochs", 4]
        mean = train(data, *common, "--sync", "average")
        for sync in ("asgd:send=no,final=average", "asgd:window=closed,final=average", "asgd:window=closed,final=average,every=3,part=0.5"):
            for where in ([], SIM):
                out = train(data, *common, "--sync", sync, *where)
                if (out["model_hash"], out["updates"]) != (mean["model_hash"], mean["updates"]):
                    wrong.append((workers, sync, bool(where)))
    expect("%s: without messages, or none merged, the mean is that of SimuParallelSGD, to the bit" % model, not wrong, wrong)
one = train(sparse, "--sync", "serial", "--batch", 4, "--epochs", 3)
out = train(sparse, "--sync", "asgd", "--workers", 1, "--batch", 4, "--epochs", 3)
expect("one worker is serial", out["model_hash"] == one["model_hash"] and out["states_sent"] == 0)

# ---- states ----
points = path("points.csv")
run("generate", "clusters", points, "--rows", 8000, "--features", 6, "--classes", 8, "--seed", 3, "--quiet")
KMEANS = [points, "--label", "label", "--model", "kmeans:8", "--batch", 50, "--epochs", 6, "--workers", 8, "--compute", "const:1e-4+exp:mean=1e-5"]


def clusters(sync="asgd:every=2", network="sim:latency=1e-5", *more):
    out = train(KMEANS, "--sync", sync, "--transport", network, *more)
    found = out["states_accepted"] + out["states_rejected"]
    expect("%s, %s: states add up" % (sync, network), out["states_lost"] == out["states_sent"] - found >= 0 and
           out["states_torn"] <= found, {k: v for k, v in out.items() if k.startswith("states")})
    return out


def sent(out):
    return sum(worker["bytes"] for worker in out["workers_detail"])


best = train(KMEANS[:9], "--sync", "serial")["train_loss"]
calm = clusters()
expect("a message after every other update", calm["states_sent"] == 6 * 8 * 10, calm["states_sent"])
expect("as good as one worker", calm["train_loss"] < 1.02 * best, (calm["train_loss"], best))
again = clusters()
expect("the same run twice", again["model_hash"] == calm["model_hash"] and again["states_accepted"] == calm["states_accepted"])
for network in ("sim:latency=1e-5,loss=0.25,torn=0.25", "sim:latency=1e-5,loss=1", "sim:latency=1"):
    out = clusters("asgd:every=2", network)
    expect("%s: within 2 %%" % network, out["train_loss"] < 1.02 * calm["train_loss"], (out["train_loss"], calm["train_loss"]))
    if "torn" in network:
        expect("%s: some are torn" % network, out["states_torn"] > 50, out["states_torn"])
    if "loss=0.25" in network:
        expect("a quarter is lost", 0.2 < out["states_lost"] / out["states_sent"] < 0.5, out["states_lost"])
    if "=1" == network[-2:] and "torn" not in network:
        expect("%s: all are lost" % network, out["states_lost"] == out["states_sent"] and out["states_accepted"] == 0)
part, touched = clusters("asgd:every=2,part=0.25"), clusters("asgd:every=1,touched=yes")
expect("a quarter of the state takes a quarter of the bytes", 0.2 < sent(part) / sent(calm) < 0.35, (sent(part), sent(calm)))
for out in (part, touched):
    expect("parts of states are enough", out["states_accepted"] > 20 and out["train_loss"] < 1.02 * best, (out["states_accepted"], out["train_loss"]))
slow = "sim:latency=1e-5,bandwidth=2e6"  # a state takes longer than a share
dense_traffic, adapted = clusters("asgd:every=1", slow), clusters("asgd:every=1,adapt=yes", slow)
expect("a slow network: messages that would queue are not sent", dense_traffic["states_sent"] < 6 * 8 * 20, dense_traffic["states_sent"])
expect("adapt=yes sends less, in the same time", adapted["states_sent"] <= dense_traffic["states_sent"] and
       abs(adapted["seconds_train"] - dense_traffic["seconds_train"]) < 0.02 * dense_traffic["seconds_train"], (adapted["states_sent"], dense_traffic["states_sent"]))

# ---- deaths, and going on ----
for dies in ("3@0.004", "7@0.004+2@0.006+1@0.0061", "+".join("%d@0.003" % w for w in range(1, 8))):
    for final in ("first", "average"):
        out = clusters("asgd:every=2,final=%s" % final, "sim:latency=1e-5,silence=0.001,dies=" + dies)
        lost = dies.count("@")
        expect("%s, %s: the others go on" % (dies, final), out["workers_lost"] == lost and out["epochs"] == 6 and
               out["updates"] < calm["updates"] and out["train_loss"] < 1.05 * best, (out["workers_lost"], out["updates"], out["train_loss"]))
folder = path("run")
shutil.rmtree(folder, ignore_errors=True)
whole = train(KMEANS, "--sync", "asgd:send=no,final=average", *SIM)
train(KMEANS, "--sync", "asgd:send=no,final=average", *SIM, "--epochs", 4, "--run", folder)
out = train(KMEANS, "--sync", "asgd:send=no,final=average", *SIM, "--run", folder, "--resume")
expect("replicas go on from a checkpoint, to the bit", (out["model_hash"], out["updates"]) == (whole["model_hash"], whole["updates"]))
finish()
