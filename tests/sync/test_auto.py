"""Laws of --sync auto: one model for any number of workers and every CPU level, no worse than one worker's, and a note of what was chosen."""
import gzip
import json
import lzma
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import laws
from laws import expect, path_of, run

LEVELS = [level for level in ("portable", "avx2", "avx512")
          if laws.subprocess.run([laws.SOUNDER, "train", "/dev/null", "--cpu", level], capture_output=True, text=True).stderr.find("--cpu") < 0]
DATA = os.environ.get("SOUNDER_DATA", "")
rng = np.random.default_rng(5)


def result(path, *options):
    return json.loads(run("train", path, "--json", "--quiet", "--sync", "auto", *options))


def one_model(name, path, wanted, *options):
    """The same hash for all numbers of workers, at the best level; for all levels, with two."""
    first = result(path, *options)
    expect("%s: %s" % (name, wanted), first["sync"] == wanted, first["sync"])
    runs = [["--workers", n] for n in (1, 2, 3, 8)] + [["--cpu", level, "--workers", 2] for level in LEVELS] + [["--threads", 1]]
    hashes = {result(path, *options, *more)["model_hash"] for more in runs}
    expect("%s: one model" % name, hashes == {first["model_hash"]}, len(hashes))
    return first


def no_worse(name, path, *options):
    ours, serial = result(path, *options), json.loads(run("train", path, "--json", "--quiet", "--sync", "serial", *options))
    ratio = ours["train_loss"] / serial["train_loss"]
    expect("%s: no more than 0.5 %% above the loss of one worker" % name, ratio <= 1.005, "%.4f" % ratio)


# ---- what is chosen ----
sparse, wide, few = path_of("sparse.svm"), path_of("wide.svm"), path_of("few.svm")
run("generate", "sparse-classification", sparse, "--rows", 6000, "--features", 500, "--nnz", 20)
run("generate", "sparse-classification", wide, "--rows", 3000, "--features", 30000, "--nnz", 20)
run("generate", "sparse-classification", few, "--rows", 500, "--features", 100, "--nnz", 10)
dense, labels, classes = path_of("dense.npy"), path_of("labels.npy"), path_of("classes.npy")
x = rng.normal(size=(30000, 12)).astype(np.float32)
np.save(dense, x)
np.save(labels, (x @ rng.normal(size=12) > 0).astype(np.int64))
np.save(classes, (x @ rng.normal(size=(12, 3)) + rng.gumbel(size=(30000, 3))).argmax(1))
ratings, points = path_of("ratings.triples"), path_of("points.npy")
run("generate", "ratings", ratings, "--rows", 5000, "--features", 1000)
np.save(points, (rng.normal(size=(8, 5))[rng.integers(0, 8, 3000)] * 4 + rng.normal(size=(3000, 5))).astype(np.float32))

one_model("sparse rows", sparse, "hogwild:lanes=2", "--epochs", 3)
one_model("sparse rows with l2", sparse, "hogwild:lanes=2", "--epochs", 2, "--l2", 1e-4)
one_model("more features than rows", wide, "serial", "--epochs", 2)
one_model("few rows", few, "serial")
one_model("dense rows", dense, "hogwild:lanes=2", "--labels", labels, "--epochs", 3)
one_model("dense rows, classes", dense, "bsp", "--labels", classes, "--epochs", 2)
one_model("ratings", ratings, "rotation", "--model", "mf:rank=4", "--epochs", 3)
one_model("clusters", points, "batch", "--model", "kmeans:8", "--epochs", 5)
one_model("clusters in batches", points, "serial", "--model", "kmeans:8", "--batch", 64, "--epochs", 2)
for options, wanted in ((["--batch", 128], "bsp"), (["--batch", 64], "serial"), (["--l1", 1e-4], "serial"), (["--average", 1], "serial"),
                        (["--updates", 5000], "serial"), (["--optimizer", "adagrad"], "hogwild:lanes=2"),
                        (["--optimizer", "adam"], "serial"), (["--schedule", "constant"], "serial")):
    expect("%s: %s" % (" ".join(map(str, options)), wanted), result(sparse, "--epochs", 2, *options)["sync"] == wanted)
for batch in 128, 300:
    same = {json.loads(run("train", sparse, "--json", "--quiet", "--epochs", 2, "--batch", batch, "--sync", sync))["model_hash"]
            for sync in ("auto", "serial")}
    expect("batches of %d have the bits of one worker" % batch, len(same) == 1)

numbers = path_of("numbers.svm")
run("generate", "sparse-regression", numbers, "--rows", 6000, "--features", 3000, "--nnz", 20)
one_model("numbers, two rows a feature", numbers, "serial", "--epochs", 2)
no_worse("numbers", numbers)
run("generate", "sparse-regression", numbers, "--rows", 6000, "--features", 500, "--nnz", 20)
one_model("numbers, twelve rows a feature", numbers, "hogwild:lanes=2", "--epochs", 10)
one_model("numbers, two epochs", numbers, "serial", "--epochs", 2)
no_worse("numbers, more rows", numbers)
for model in "squared", "huber":
    for epochs in 1, 3, 10:
        no_worse("%s, %d epochs" % (model, epochs), numbers, "--model", model, "--epochs", epochs)
for model in "logistic", "hinge", "squared-hinge":
    for epochs in 1, 2, 5:
        no_worse("%s, %d epochs" % (model, epochs), sparse, "--model", model, "--epochs", epochs)

# ---- where one worker trains, auto does ----
for name, path, options in (("ratings, streamed", ratings, ["--model", "mf:rank=4", "--memory", "10k"]),
                            ("ratings, in chunks", ratings, ["--model", "mf:rank=4", "--shuffle", "chunks"]),
                            ("ratings, l2", ratings, ["--model", "mf:rank=4", "--l2", 1e-4]),
                            ("clusters, streamed", points, ["--model", "kmeans:8", "--memory", "10k"]),
                            ("rows, streamed", sparse, ["--memory", "10k"])):
    done = laws.subprocess.run([laws.SOUNDER, "train", path, "--epochs", "2", *map(str, options)], capture_output=True, text=True)
    expect("%s: trained" % name, done.returncode == 0, done.stderr)
    reason = "--memory" if "streamed" in name else "--l2" if "l2" in name else "--shuffle"
    expect("%s: the reason, where one worker trains" % name, name.startswith("rows") or
           ("auto: serial" in done.stderr and reason in done.stderr), done.stderr)

# ---- 0 is no batch, and a printed config repeats the run ----
for name, path, options in (("rows", sparse, []), ("classes", dense, ["--labels", classes]), ("clusters", points, ["--model", "kmeans:8"])):
    plain = result(path, *options, "--epochs", 2)
    zero = result(path, *options, "--epochs", 2, "--batch", 0)
    expect("%s: --batch 0 is the batch of no --batch" % name, (zero["sync"], zero["model_hash"]) == (plain["sync"], plain["model_hash"]))
config = path_of("config")
for options in ([], ["--batch", 1], ["--batch", 1, "--sync", "bsp"], ["--sync", "bsp"], ["--sync", "batch"], ["--sync", "hogwild", "--deterministic"],
                ["--model", "hinge", "--batch", 0]):
    again = [["--epochs", 2, *options], ["--config", config]]
    plainly = lambda *more: laws.subprocess.run([laws.SOUNDER, "train", sparse, *map(str, more)], capture_output=True, text=True).stdout
    with open(config, "w") as file:
        file.write(plainly(*again[0], "--print-config"))
    first, second = (json.loads(plainly("--json", "--quiet", *each) or "{}").get("model_hash", each[0]) for each in again)
    expect("a printed config repeats %s" % " ".join(map(str, options)), first == second)
folder = path_of("folder")
run("train", sparse, "--sync", "batch", "--epochs", 3, "--run", folder, "--quiet")
used = laws.subprocess.run([laws.SOUNDER, "train", sparse, "--config", os.path.join(folder, "config"), "--run", path_of("folder2"), "--quiet"])
expect("the config of a run with --sync batch can be used again", used.returncode == 0)

# ---- it is said ----
for options in (["--servers", 2], ["--transport", "sim"], ["--codec", "half"], ["--delay", "exp:mean=1"]):
    refused = laws.subprocess.run([laws.SOUNDER, "train", sparse, *map(str, options)], capture_output=True, text=True)
    expect("%s names no strategy: refused" % options[0], refused.returncode == 2 and "--sync bsp" in refused.stderr, refused.stderr)
refused = laws.subprocess.run([laws.SOUNDER, "train", sparse, "--sync", "hogwild:lanes=2"], capture_output=True, text=True)
expect("lanes need --deterministic", refused.returncode == 2 and "--deterministic" in refused.stderr, refused.stderr)
done = laws.subprocess.run([laws.SOUNDER, "train", sparse, "--epochs", "1", "--updates", "100"], capture_output=True, text=True)
expect("a note names the option that needs one worker", "because of --updates" in done.stderr, done.stderr)
for path, options, reason in ((wide, [], "too few rows a feature"), (numbers, [], "too few epochs"), (sparse, ["--model", "hinge"], "too few epochs"),
                              (sparse, ["--optimizer", "sgd"], "--optimizer adagrad"), (sparse, ["--schedule", "constant"], "ends at zero"), (few, ["--workers", 4], "fewer than 2048 rows"), (sparse, ["--batch", 64], "128 rows"),
                              (sparse, ["--l1", 1e-4], "--l1"), (points, ["--model", "kmeans:8", "--batch", 64], "step options")):
    done = laws.subprocess.run([laws.SOUNDER, "train", path, "--epochs", "1", *map(str, options)], capture_output=True, text=True)
    expect("a note tells why one worker trains: %s" % reason, "auto: serial" in done.stderr and reason in done.stderr, done.stderr)
done = laws.subprocess.run([laws.SOUNDER, "train", few, "--epochs", "1"], capture_output=True, text=True)
expect("few rows: no note", "--sync auto" not in done.stderr, done.stderr)
done = laws.subprocess.run([laws.SOUNDER, "train", sparse, "--epochs", "2"], capture_output=True, text=True)
expect("a note tells what was chosen, and another way", "--sync auto: hogwild:lanes=2 --deterministic" in done.stderr and "--sync serial" in done.stderr)
expect("the default is auto", json.loads(laws.subprocess.run([laws.SOUNDER, "train", sparse, "--epochs", "2", "--json", "--quiet"],
                                                             capture_output=True, text=True).stdout)["sync"] == "hogwild:lanes=2")


# ---- no worse than one worker, on real data ----
no_worse("sparse rows", sparse, "--epochs", 5)
no_worse("dense rows", dense, "--labels", labels)
# With first rounds as long as the others the loss of one epoch is 0.1 % higher.
many = rng.normal(size=(20000, 60)).astype(np.float32)
np.save(dense, many)
np.save(labels, (many @ rng.normal(size=60) + 8 * rng.normal(size=len(many)) > 0).astype(np.int64))
lanes, serial = (result(dense, "--labels", labels, "--epochs", 1, *more)["train_loss"] for more in ([], ["--sync", "serial"]))
expect("dense rows: after one epoch, the loss of one worker within 0.03 %", abs(lanes / serial - 1) < 3e-4, "%.5f" % (lanes / serial))
if os.path.exists(os.path.join(DATA, "a9a", "a9a.gz")):
    a9a, rcv1 = path_of("a9a"), path_of("rcv1")
    with gzip.open(os.path.join(DATA, "a9a", "a9a.gz")) as file, open(a9a, "wb") as to:
        to.write(file.read())
    with lzma.open(os.path.join(DATA, "rcv1-subsets", "rcv1_subsets.binary.xz")) as file, open(rcv1, "wb") as to:
        to.write(file.read())
    digits = os.path.join(DATA, "mnist", "t10k-images-idx3-ubyte.gz")
    named = ["--labels", os.path.join(DATA, "mnist", "t10k-labels-idx1-ubyte.gz")]
    one_model("a9a", a9a, "hogwild:lanes=2")
    one_model("RCV1", rcv1, "serial", "--epochs", 2)
    one_model("digits", digits, "serial", *named, "--epochs", 1)
    no_worse("a9a", a9a)
    no_worse("RCV1", rcv1)
    no_worse("digits", digits, *named, "--epochs", 5)
    for label in "median_house_value", "ocean_proximity":
        no_worse("housing, " + label, os.path.join(DATA, "california-housing", "housing.csv.gz"), "--label", label, "--missing", "mean")
else:
    print("skipped: SOUNDER_DATA does not point to a folder with a9a")
laws.finish()
