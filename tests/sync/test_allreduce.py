"""Training without a server: allreduce and master are one worker with a larger batch; bytes by the formulas; the death of a
worker; replicas that differ."""
import json, math, os, random, shutil, subprocess, sys, time

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from laws import expect, finish
from small_sets import ROWS, SOUNDER, dense, generate, path, pictures, sparse

TEST = os.environ["SOUNDER_TEST"]
MODELS = {
    "logistic": sparse, "squared": dense, "mlp:hidden=40-7": sparse, "mlp:hidden=9,activation=tanh": dense,
    "cnn:layers=conv4x3-relu-pool2-dense9-tanh-dropout0.25": pictures,
}


def train(data, *options, program=SOUNDER, fails=False):
    done = subprocess.run([program, "train", *data, "--epochs", "2", "--seed", "2", "--quiet", "--json", *map(str, options)],
                          capture_output=True, text=True)
    if fails:
        return done
    if done.returncode:
        raise SystemExit("%s\n%s" % (" ".join(done.args), done.stderr))
    return json.loads(done.stdout)


# ---- the same bits ----
for model, data in MODELS.items():
    for more in ([], ["--l2", "0.01"], ["--optimizer", "nesterov"]):
        wrong = []
        serial = train(data, "--model", model, "--sync", "serial", "--batch", 75, *more)
        for workers in (1, 2, 3, 4, 7):
            for transport in ([], ["--transport", "sim", "--compute", "exp:rate=1"]):
                out = train(data, "--model", model, "--sync", "allreduce", "--deterministic", "--batch", 75, "--workers", workers,
                            *transport, *more)
                if (out["model_hash"], out["updates"]) != (serial["model_hash"], serial["updates"]):
                    wrong.append((workers, transport))
        expect("%s %s: --deterministic is one worker, to the bit" % (model, " ".join(more)), not wrong, wrong)

# ---- the same numbers ----
for sync in ("allreduce", "allreduce:bucket=100", "allreduce:tree=1G", "allreduce:tree=0,bucket=256", "master"):
    for model, data in MODELS.items():
        wrong = []
        for workers, each in ((2, 30), (3, 20), (5, 12), (8, 1)):
            one = train(data, "--model", model, "--sync", "serial", "--optimizer", "sgd", "--batch", workers * each)
            for transport in ([], ["--transport", "sim:latency=0.1", "--compute", "exp:rate=1"]):
                out = train(data, "--model", model, "--sync", sync, "--optimizer", "sgd", "--batch", each, "--workers", workers, *transport)
                if abs(out["train_loss"] - one["train_loss"]) > 2e-4 * (0.1 + one["train_loss"]) or out["updates"] != one["updates"]:
                    wrong.append((workers, each, transport, out["train_loss"], one["train_loss"]))
        expect("%s, %s: P workers are one with a batch P times as large" % (sync, model), not wrong, wrong)

for model, data in MODELS.items():
    hashes = {train(data, "--model", model, "--sync", "allreduce:bucket=%d,overlap=%s" % (bucket, overlap), "--batch", 9, "--workers", 3,
                    *transport)["model_hash"]
              for bucket in (64,) for overlap in ("yes", "no") for transport in ([], ["--transport", "sim", "--compute", "exp:rate=1"])}
    expect("%s: overlap and transport change no bit" % model, len(hashes) == 1, hashes)
many = generate("dense-classification", "many.csv", "--rows", "1500", "--features", "12")
for batch in (65, 500, 700):  # of 64-row leaves: one and a bit, eight, more than are kept for stages
    hashes = {train([many, "--label", "label"], "--model", "mlp:hidden=30-20", "--sync", "allreduce:bucket=64,overlap=%s" % overlap,
                    "--batch", batch, "--workers", 2, *transport)["model_hash"]
              for overlap in ("yes", "no") for transport in ([], ["--transport", "sim"])}
    expect("parts of %d rows: overlap and transport change no bit" % batch, len(hashes) == 1, hashes)

# ---- bytes ----
def chunks(values, peers):
    return [values * (c + 1) // peers - values * c // peers for c in range(peers)]


def check_bytes(sync, workers, values, sent, updates):
    """Values that every worker sends in an update, and those it must send."""
    if sync.startswith("master"):
        wanted = [values * (workers - 1)] + [values] * (workers - 1)
    else:
        of = chunks(values, workers)
        wanted = [2 * values - of[(r + 1) % workers] - of[(r + 2) % workers] if workers > 1 else 0 for r in range(workers)]
    got = [bytes / 4 / updates for bytes in sent]
    expect("%s, %d workers: each sends the values of the formula" % (sync, workers), got == wanted, (got, wanted))
    if not sync.startswith("master"):
        expect("%s, %d workers: 2N(P - 1) in all" % (sync, workers), sum(got) == 2 * values * (workers - 1), sum(got))


for values, data, model in ((98, sparse, "logistic"), (13, dense, "squared"), (1, [generate("dense-regression", "one.csv", "--rows", "99", "--features", "1"), "--label", "label"], "squared --no-intercept")):
    for workers in (1, 2, 3, 4, 7, 16):
        for sync in ("allreduce:tree=0", "master"):
            out = train(data, "--model", *model.split(), "--sync", sync, "--batch", 2, "--workers", workers, "--transport", "sim")
            check_bytes(sync, workers, values, [w["bytes"] for w in out["workers_detail"]], out["updates"])
out = train(sparse, "--model", "logistic", "--sync", "allreduce:tree=1G", "--batch", 2, "--workers", 7, "--transport", "sim")
total = sum(w["bytes"] for w in out["workers_detail"]) / 4 / out["updates"]
expect("a tree sends 2N(P - 1) values in all", total == 2 * 98 * 6, total)

# ---- virtual time ----
def seconds(sync, workers, *options):
    return train(pictures, "--model", "mlp:hidden=50-50", "--sync", sync, "--batch", 1, "--workers", workers, "--updates", 4,
                 "--compute", "const:1", *options)["seconds_train"] / 4


values = 4 * ((72 + 1) * 50 + 51 * 50 + 51 * 3)
for workers in (2, 4, 8):
    expect("ring of %d: 2N(P - 1)/P values one after the other" % workers,
           abs(seconds("allreduce:overlap=no,bucket=1G,tree=0", workers, "--transport", "sim:bandwidth=1e6") - 1 - 2 * values * (workers - 1) / workers / 1e6) < 0.01)
plain, hidden = (seconds("allreduce:overlap=%s,bucket=4K,tree=0" % overlap, 4, "--transport", "sim:bandwidth=1e6") for overlap in ("no", "yes"))
expect("what travels during the backward pass costs less time", hidden < plain - 0.005, (hidden, plain))
ring, master = (seconds(sync, 8, "--transport", "sim:port=1e6") - 1 for sync in ("allreduce", "master"))
expect("messages of a ring take less than half the time of a master's", ring < 0.5 * master, (ring, master))

# ---- deaths ----
undisturbed = train(pictures, "--model", "mlp:hidden=20", "--sync", "allreduce", "--workers", 5, "--batch", 5, "--transport", "sim", "--compute", "const:1")
chance = random.Random(5)
for number in range(24):
    when = sorted(chance.uniform(0.5, 12) for _ in range(1 + number % 3))
    dies = "+".join("%d@%.3f" % (w, t) for w, t in zip(chance.sample(range(1, 5), len(when)), when))
    sync = ["allreduce:tree=0,bucket=300", "allreduce", "allreduce:overlap=no"][number % 3]
    done = train(pictures, "--model", "mlp:hidden=20", "--sync", sync + ",check=1" if ":" in sync else sync + ":check=1", "--workers", 5, "--batch", 5,
                 "--transport", "sim:latency=0.05,silence=0.5,dies=%s" % dies, "--compute", "const:1+exp:rate=2", fails=True)
    out = json.loads(done.stdout) if done.returncode == 0 else {}
    good = out.get("workers_lost") == len(when) and out["updates"] == undisturbed["updates"] and \
        abs(out["train_loss"] - undisturbed["train_loss"]) < 0.02 * undisturbed["train_loss"]
    expect("%s, %s: those left go on to the same end" % (sync, dies), good, (done.stderr[-300:], out.get("train_loss"), undisturbed["train_loss"]))
wrong = []
for number in range(90):  # several deaths, one slow link: some are an update ahead, and some hear of a death late
    workers = chance.randint(3, 6)
    dead = chance.sample(range(1, workers), chance.randint(1, min(3, workers - 1)))
    dies = "+".join("%d@%.4f" % (worker, chance.uniform(1.5, 3)) for worker in dead)
    done = train(sparse, "--updates", 20, "--batch", 4, "--workers", workers, "--sync", "allreduce:check=1,tree=%s" % chance.choice(("0", "1M")),
                 "--compute", "const:0.1", "--transport", "sim:latency=0.01,far=%d:10x,dies=%s" % (chance.randrange(workers), dies), fails=True)
    if done.returncode or json.loads(done.stdout)["updates"] != 20:
        wrong.append((" ".join(done.args), done.stderr[-200:]))
expect("deaths one after the other leave the same replicas", not wrong, wrong[:3])
done = train(pictures, "--model", "mlp:hidden=20", "--sync", "allreduce", "--workers", 3, "--batch", 5, "--transport", "sim:dies=0@3", "--compute", "const:1", fails=True)
expect("without worker 0 the run ends with a sentence", done.returncode == 6 and "worker 0" in done.stderr, (done.returncode, done.stderr))

# ---- resume ----
def stopped(folder, *options):
    """A run that is stopped once it has written a checkpoint."""
    process = subprocess.Popen([SOUNDER, "train", *map(str, options), "--run", folder, "--checkpoint-every", "20u", "--quiet"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and not (os.path.isdir(folder) and any(name.startswith("checkpoint") for name in os.listdir(folder))):
        time.sleep(0.01)
    process.terminate()
    process.wait()
    return process.returncode


long = [*pictures, "--model", "mlp:hidden=200-100", "--epochs", "40", "--seed", "2"]
for name, first, second in (("deterministic", ["--deterministic", "--batch", 60, "--workers", 3], ["--deterministic", "--batch", 60, "--workers", 2]),
                            ("penalties", ["--deterministic", "--l2", "1e-3", "--batch", 50, "--workers", 2], ["--deterministic", "--l2", "1e-3", "--batch", 50, "--workers", 4]),
                            ("ring", ["--batch", 20, "--workers", 3], ["--batch", 30, "--workers", 2])):
    folder = path("run-" + name)
    whole = subprocess.run([SOUNDER, "train", *long, "--sync", "allreduce", *map(str, first), "--json", "--quiet"], capture_output=True, text=True)
    code = stopped(folder, *long, "--sync", "allreduce", *first)
    shutil.copytree(folder, folder + "-other")
    outs = []
    for options, where in ((first, folder), (second, folder + "-other")):
        done = subprocess.run([SOUNDER, "train", *long, "--sync", "allreduce", *map(str, options), "--run", where, "--resume", "--json", "--quiet"],
                              capture_output=True, text=True)
        outs.append(json.loads(done.stdout) if done.returncode == 0 else {"model_hash": done.stderr, "train_loss": math.nan})
    whole = json.loads(whole.stdout)
    expect("%s: a checkpoint resumes to the bit" % name, outs[0]["model_hash"] == whole["model_hash"], (code, outs[0]["model_hash"]))
    expect("%s: a checkpoint resumes on another number of workers" % name,
           outs[1]["model_hash"] == whole["model_hash"] if name != "ring" else
           abs(outs[1]["train_loss"] - whole["train_loss"]) < 0.05 * whole["train_loss"] + 1e-3, (outs[1]["model_hash"], outs[1]["train_loss"], whole["train_loss"]))

# A death that ends the run: the checkpoint is of a whole number of updates.
for when in (1.505, 3.505, 3.6):
    folder = path("given-up-%g" % when)
    common = [*sparse, "--epochs", 3, "--seed", 3, "--batch", 20, "--workers", 3, "--sync", "allreduce", "--deterministic", "--compute", "const:0.1",
              "--slow", "0:3x", "--run", folder, "--quiet", "--json"]
    first = subprocess.run([SOUNDER, "train", *map(str, common), "--transport", "sim:latency=0.01,dies=2@%g" % when], capture_output=True, text=True)
    again = subprocess.run([SOUNDER, "train", *map(str, common), "--transport", "sim:latency=0.01", "--resume"], capture_output=True, text=True)
    serial = subprocess.run([SOUNDER, "train", *sparse, "--epochs", "3", "--seed", "3", "--batch", "20", "--quiet", "--json"], capture_output=True, text=True)
    expect("a death at %g with --deterministic: ends with 6, and goes on to the model of one worker" % when, first.returncode == 6 and again.returncode == 0 and
           json.loads(again.stdout)["model_hash"] == json.loads(serial.stdout)["model_hash"], (first.returncode, first.stderr, again.stderr))

# ---- refusals ----
for options in (["--average", "0"], ["--restarts", "2"]):
    done = train(sparse, "--sync", "allreduce", "--workers", 2, *options, fails=True)
    expect("%s is refused" % options[0], done.returncode == 2 and options[0] in done.stderr, done.stderr)
done = train(dense, "--model", "kmeans:3", "--sync", "allreduce", "--workers", 2, fails=True)
expect("sums of rows are no gradients", done.returncode == 2 and "gradient" in done.stderr, done.stderr)
finish()
