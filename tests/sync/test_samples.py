"""What is estimated from some of the rows: files whose rows come in a periodic order are judged as fairly as
shuffled ones. Every estimate here is one that every second, fourth or fiftieth row gets wrong."""
import json
import os
import subprocess
import sys

import numpy as np

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from laws import SOUNDER, expect, finish, path_of, run, train

random = np.random.default_rng(3)


def write(name, lines):
    with open(path_of(name), "w") as file:
        file.writelines(lines)
    return path_of(name)


# ---- points of curves, --target and compare: 20 000 of 40 000 rows, of which the even ones have no noise ----
x = random.uniform(-2, 2, 40000)
noise = np.where(np.arange(40000) % 2, random.uniform(-3, 3, 40000), 0)
periodic = write("periodic.svm", ("%f 1:%f\n" % (a + n, a) for a, n in zip(x, noise)))
SLOW = ["--model", "squared", "--optimizer", "sgd", "--lr", 1e-3, "--schedule", "constant", "--epochs", 3]
best = 0.5 * np.mean(noise ** 2)
result, _ = train(periodic, *SLOW, "--evaluate-every", 1000, "--target", 0.3)
expect("a target below the best loss is not reached", result["stopped"] == "all epochs done" and
       result["train_loss"] > 0.95 * best, "%s, %.3f" % (result["stopped"], result["train_loss"]))


def curve(name, *options):
    train(periodic, *SLOW, "--evaluate-every", 20000, "--run", path_of(name), *options)
    with open(os.path.join(path_of(name), "metrics.jsonl")) as file:
        return [json.loads(line)["objective"] for line in file if '"point"' in line]


in_memory = curve("memory")
exact = train(periodic, *SLOW)[0]["train_loss"]
expect("the curve ends at the loss of all rows", abs(in_memory[-1] / exact - 1) < 0.03, "%.4f %.4f" % (in_memory[-1], exact))
streamed = curve("streams", "--memory", "150K")
expect("rows that stream are sampled alike", streamed[0] == in_memory[0] and abs(streamed[-1] / exact - 1) < 0.03,
       "%s %s" % (streamed[0], in_memory[0]))
expect("the rows looked at do not depend on workers or transport",
       len({curve("run%d" % i, "--sync", sync, "--batch", 50, "--workers", workers, *more)[0]
            for i, (sync, workers, more) in enumerate((("bsp", 1, []), ("bsp", 3, []), ("bsp", 2, ["--transport", "sim"]),
                                                       ("async", 2, [])))}) == 1)

# ---- how busy features are: one in every row but each fourth, which 20 000 of 80 000 rows at a stride are ----
quarter = np.arange(80000) % 4 > 0
rare = np.sort(random.integers(2, 60000, (80000, 3)), axis=1)
rare[:, 1] += 60000
rare[:, 2] += 120000
busy = write("busy.svm", ("%d %s%d:1 %d:1 %d:1\n" % (i % 3 > 0, "1:1 " if q else "", *r)
                          for i, (q, r) in enumerate(zip(quarter, rare))))
seen = json.loads(run("inspect", busy, "--sparsity", "--json"))
expect("the busiest feature is in three rows of four", abs(seen["delta"] - 0.75) < 0.02, str(seen["delta"]))
expect("so many rows conflict", abs(seen["rho"] - 0.75) < 0.05 and abs(seen["rho_mean"] - 0.75 ** 2) < 0.06,
       "%.3f %.3f" % (seen["rho"], seen["rho_mean"]))
for more in ([], ["--memory", "500K"]):
    done = subprocess.run([SOUNDER, "train", busy, "--sync", "hogwild", "--workers", "2", "--epochs", "1", *more],
                          capture_output=True, text=True)
    expect("workers do not race on a busy feature " + " ".join(more), done.returncode == 0 and "hogwild: 2 workers" in done.stderr and
           "straight to the shared model" not in done.stderr, done.stderr.strip().splitlines()[-1][:100])

# ---- windows of cyclades: 20 480 rows at a stride for 128, 256 … 4 096 are all of those without the busy feature ----
quiet = np.arange(20480) % 5 == 0
joined = write("joined.svm", ("%d %s%d:1 %d:1 %d:1\n" % (i % 3 > 0, "" if q else "1:1 ", *r)
                              for i, (q, r) in enumerate(zip(quiet, rare))))
done = subprocess.run([SOUNDER, "train", joined, "--sync", "cyclades", "--workers", "2", "--epochs", "1"], capture_output=True,
                      text=True)
expect("windows are chosen by rows of all kinds", done.returncode == 0 and "join nearly all rows" in done.stderr,
       done.stderr.strip().splitlines()[-1][:100])

# ---- where clusters start: 1 984 of 7 936 rows at a stride are all of one cluster of four ----
points = write("points.svm", ("0 %d:%.4f 42000:%.4f\n" % (1 + (i % 4), 100 + random.normal(), random.normal())
                              for i in range(7936)))
result, _ = train(points, "--model", "kmeans:4", "--sync", "batch", "--epochs", 1)
expect("clusters start in all of them", result["train_loss"] < 4, "%.2f, of two coordinates with variance 1" % result["train_loss"])
finish()
