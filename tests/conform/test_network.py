"""A model that the library does not have, a network of two layers (tests/plugins/two_layer.c), under every strategy that
there is: it learns, or is refused; strategies that promise one result give one hash. With a codec and an aggregate that
the library does not have. With the argument mpi, under mpirun: the strategies with a server, over MPI."""
import glob
import math
import os
import random
import sys

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import laws
from laws import expect, finish, path_of, run, train

laws.SOUNDER = os.environ["SOUNDER_TEST"]
MPI = sys.argv[1:] == ["mpi"]
WORKERS = 3
MODELS = ["two-layer:8", "two-layer-dense:8"]  # gradients as factors, and multiplied out

# Three rings around each other, which no linear model tells apart, and six features of noise.
random.seed(4)
sparse, dense = path_of("rings.svm"), path_of("rings.csv")
with open(sparse, "w") as svm, open(dense, "w") as csv:
    csv.write("a,b,c,d,e,f,g,h,label\n")
    for i in range(450):
        radius, angle = i % 3 + 0.5 + random.uniform(-0.3, 0.3), random.uniform(0, 2 * math.pi)
        x = [radius * math.cos(angle), radius * math.sin(angle)] + [random.gauss(0, 0.3) for _ in range(6)]
        csv.write(",".join("%.4f" % v for v in x) + ",%d\n" % (i % 3))
        svm.write("%d %s\n" % (i % 3, " ".join("%d:%.4f" % (j + 1, v) for j, v in enumerate(x)
                                               if j < 2 or random.random() < 0.3)))
CHANCE = math.log(3)
DATA = {"sparse rows": [sparse], "dense rows": [dense, "--label", "label"]}


def strategies():
    """Their names, and which need a worker or rows of a kind: what list says, and what a run says."""
    return [line.split()[0] for line in run("list", "sync").splitlines()]


def told(*options):
    return train(*options)[0]


# ---- over MPI ----
if MPI:
    for model in MODELS:
        one = told(sparse, "--model", model, "--epochs", 4, "--batch", 48, "--sync", "bsp", "--deterministic", "--transport", "mpi")
        laws.LAUNCH = []
        alone = told(sparse, "--model", model, "--epochs", 4, "--batch", 48, "--sync", "serial")
        laws.LAUNCH = os.environ["SOUNDER_LAUNCH"].split()
        expect(model + ": one hash", one["model_hash"] == alone["model_hash"])
        for sync in "k-async:2", "async", "ssp":
            seen = told(sparse, "--model", model, "--epochs", 40, "--batch", 8, "--sync", sync, "--transport", "mpi")
            expect("%s, %s over MPI: it learns" % (model, sync), seen["train_loss"] < 0.7 * CHANCE, "%.3f" % seen["train_loss"])
    finish()

# ---- the data needs two layers ----
expect("a linear model does not learn", told(sparse, "--model", "softmax")["train_loss"] > 0.9 * CHANCE)

# ---- every strategy ----
# One mean at the end says nothing of networks: workers that went apart have nothing in common.
SPECS = {"average": "average:every=1", "k-sync": "k-sync:2", "k-async": "k-async:2", "k-batch-sync": "k-batch-sync:2",
         "k-batch-async": "k-batch-async:2", "backup": "backup:2"}
ALONE = {"serial"}  # one worker
APART = {"asgd"}  # on a busy machine a worker may see no state of others: it needs the epochs to learn from its own rows
SINGLE = {"cyclades"}  # single rows
REFUSED = {"rotation": "rows of two features", "batch": "two-layer", "ring-time": "times", "put-time": "times"}  # what the sentence names
servers = set()
for name in strategies():
    sync = SPECS.get(name, name)
    common = [sparse, "--epochs", 30 * (WORKERS if name in APART else 1), "--batch", 1 if name in SINGLE else 16, "--sync", sync,
              *([] if name in ALONE or name == "batch" else ["--workers", WORKERS])]
    if name == "batch":
        common[3:5] = []  # it takes all rows
    for model in MODELS:
        if name in REFUSED:
            said = train(*common, "--model", model, code=2)
            expect("%s, %s: is refused" % (model, name), REFUSED[name] in said, said.strip())
            continue
        seen = told(*common, "--model", model)
        expect("%s, %s: it learns" % (model, sync), seen["train_loss"] < 0.7 * CHANCE, "%.3f" % seen["train_loss"])
    if name in REFUSED or name in ALONE:
        continue
    # By messages, where the strategy has a server: others say that they have none.
    done = laws.subprocess.run([laws.SOUNDER, "train", *map(str, common), "--model", MODELS[0], "--transport", "sim", "--quiet"],
                               capture_output=True, text=True)
    if done.returncode:
        expect("%s: has no transport" % name, done.returncode == 2 and "--transport does nothing" in done.stderr, done.stderr.strip())
        continue
    # Peers have a transport, and no server.
    has_server = laws.subprocess.run([laws.SOUNDER, "train", *map(str, common), "--model", MODELS[0], "--transport", "sim",
                                      "--servers", "1", "--quiet"], capture_output=True, text=True).returncode == 0
    if has_server:
        servers.add(name)
    for model in MODELS:
        for transport in "threads", "sim":
            for count in (0,) if not has_server else (1,) if name == "essp" else (1, 2):
                seen = told(*common, "--model", model, "--transport", transport, *(["--servers", count] if count else []))
                expect("%s, %s on %s, %d servers: it learns" % (model, sync, transport, count),
                       seen["train_loss"] < 0.7 * CHANCE, "%.3f" % seen["train_loss"])
expect("strategies with a server", servers >= {"bsp", "k-sync", "k-async", "k-batch-sync", "k-batch-async", "backup",
                                               "async", "ssp", "essp"}, " ".join(sorted(servers)))

# ---- one hash ----
for model in MODELS:
    for rows, data in DATA.items():
        for batch in 48, 300:  # one leaf, and several
            for extra in [], ["--l2", 0.01, "--optimizer", "adam"]:
                common = [*data, "--model", model, "--epochs", 3, "--batch", batch, *extra]
                hashes = {told(*common, "--sync", "serial")["model_hash"]}
                for workers in 1, 2, 3, 4:
                    bsp = [*common, "--sync", "bsp", "--deterministic", "--workers", workers]
                    hashes.add(told(*bsp)["model_hash"])
                    for transport in "threads", "sim":
                        for count in 1, 2:
                            hashes.add(told(*bsp, "--transport", transport, "--servers", count)["model_hash"])
                expect("%s, %s, batches of %d, %s: one hash" % (model, rows, batch, extra), len(hashes) == 1, str(len(hashes)))
    common = [sparse, "--model", model, "--epochs", 2, "--batch", 1]
    hashes = {told(*common, "--sync", sync, *workers)["model_hash"]
              for sync, workers in (("serial", []), ("cyclades", ["--workers", 3]), ("locked", ["--workers", 1]),
                                    ("hogwild", ["--workers", 1]), ("round-robin", ["--workers", 1]))}
    expect(model + ", single rows: one hash", len(hashes) == 1, str(len(hashes)))

# ---- checkpoints ----
for model in MODELS:
    for number, strategy in enumerate((["serial"], ["round-robin", "--workers", 3],
                                       ["bsp", "--workers", 3, "--servers", 2, "--transport", "sim"])):
        common = [sparse, "--model", model, "--epochs", 4, "--batch", 80, "--sync", *strategy]
        folder = path_of("run%s%d" % (model[:12], number))
        plain = told(*common)["model_hash"]
        often = told(*common, "--run", folder, "--checkpoint-every", "3u")["model_hash"]
        os.remove(max(glob.glob(folder + "/checkpoint-*.safetensors")))
        again = told(*common, "--run", folder, "--checkpoint-every", "3u", "--resume")["model_hash"]
        expect("%s, %s: resumed" % (model, " ".join(map(str, strategy))), plain == often == again)

# ---- what is told of it ----
trained = told(sparse, "--model", MODELS[0], "--epochs", 20)
accuracy = [line.split() for line in run("eval", laws.MODEL, sparse).splitlines() if line.startswith("accuracy")]
right = sum(line.split()[0] == str(i % 3) for i, line in enumerate(run("predict", laws.MODEL, sparse).splitlines()))
expect("eval and predict", abs(float(accuracy[0][1]) - right / 450) < 1e-6 and abs(trained["train_accuracy"] - right / 450) < 1e-6,
       "%d rows" % right)

# ---- a codec and aggregates that the library does not have ----
AGGREGATES = [line.split()[0] for line in run("list", "aggregate").splitlines() if line.strip()]
expect("aggregates of tests are there", {"mean", "test-middle", "test-nearest"} <= set(AGGREGATES), str(AGGREGATES))
for model in MODELS:
    for sync in "bsp", "k-async:2", "ssp":
        common = [sparse, "--model", model, "--epochs", 30, "--batch", 16, "--workers", 3, "--transport", "sim", "--sync", sync]
        plain = told(*common)
        for count in 1, 2:
            coded = told(*common, "--codec", "test-bytes", "--servers", count)
            expect("%s, %s, a byte a value, %d servers: it learns" % (model, sync, count), coded["train_loss"] < 0.7 * CHANCE,
                   "%.3f" % coded["train_loss"])
        expect("%s, %s: fewer bytes" % (model, sync),
               told(*common, "--codec", "test-bytes")["bytes_sent"] < told(*common, "--codec", "half")["bytes_sent"] < plain["bytes_sent"])
    common = [sparse, "--model", model, "--epochs", 30, "--batch", 16, "--workers", 4, "--transport", "sim"]
    for sync in "k-sync:3", "k-async:3":
        seen = [told(*common, "--sync", sync, "--aggregate", "test-middle", "--servers", count) for count in (1, 2, 3)]
        expect("%s, %s, the middle gradient: it learns, on any servers" % (model, sync),
               seen[0]["train_loss"] < 0.7 * CHANCE and len({one["model_hash"] for one in seen}) == 1, "%.3f" % seen[0]["train_loss"])
    for sync in "bsp", "ssp":
        expect("%s: no middle of %s" % (model, sync), "test-middle" in train(*common, "--sync", sync, "--aggregate", "test-middle", code=2))
    # Every aggregate: it learns, twice the same, and stale gradients make smaller steps where that is asked for.
    for rule in AGGREGATES:
        runs = [told(*common, "--sync", sync, "--aggregate", rule, "--compute", "exp:rate=1", "--slow", "1:3x")
                for sync in ("k-async:3", "k-async:3", "k-async:k=3,aware=yes")]
        expect("%s, %s: it learns" % (model, rule), runs[0]["train_loss"] < 0.7 * CHANCE, "%.3f" % runs[0]["train_loss"])
        expect("%s, %s: the same again" % (model, rule), runs[0]["model_hash"] == runs[1]["model_hash"])
        expect("%s, %s: weights of gradients count" % (model, rule), runs[0]["model_hash"] != runs[2]["model_hash"])
    expect(model + ": distances of whole gradients", "leave --servers out" in train(
        *common, "--sync", "k-async:3", "--aggregate", "test-nearest", "--servers", 2, code=2))
    # One gradient is its own middle, and two have their mean in the middle.
    pair = [told(*common, "--sync", "k-sync:2", "--aggregate", rule)["train_loss"] for rule in ("mean", "test-middle")]
    expect(model + ": the middle of two is their mean", abs(pair[0] - pair[1]) < 1e-3 * pair[0], "%.6f and %.6f" % tuple(pair))
finish()
