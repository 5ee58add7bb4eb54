"""SimuParallelSGD and local SGD with messages: the models of shared memory, bytes by the formula, --resume."""
import json, os, shutil, subprocess, sys

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from laws import expect, finish
from small_sets import FEATURES, ROWS, SOUNDER, dense, path, pictures, sparse

MODELS = {
    "logistic": sparse, "squared": dense, "kmeans:3": dense, "mlp:hidden=40-7": sparse,
    "cnn:layers=conv4x3-relu-pool2-dense9-tanh-dropout0.25": pictures,
}


def train(data, *options):
    done = subprocess.run([SOUNDER, "train", *data, "--seed", "2", "--quiet", "--json", *map(str, options)],
                          capture_output=True, text=True)
    if done.returncode:
        raise SystemExit("%s\n%s" % (" ".join(done.args), done.stderr))
    return json.loads(done.stdout)


# ---- the models of shared memory ----
MESSAGES = {"sim": ["--transport", "sim:latency=0.5", "--compute", "exp:rate=1"], "threads": ["--delay", "const:0"]}
for model, data in MODELS.items():
    kinds = [[], ["--l1", "0.01", "--optimizer", "sgd"], ["--optimizer", "ftrl"], ["--valid-fraction", "0.2"]]
    for more in kinds[3:] if model == "kmeans:3" else kinds[:2] + kinds[3:] if model[0] in "mc" else kinds:
        wrong = []
        for workers, every in ((1, 0), (1, 3), (2, 0), (2, 7), (3, 5), (3, 1000), (7, 1), (8, 4)):
            common = ["--model", model, "--sync", "average:every=%d" % every, "--batch", 6, "--workers", workers, "--epochs", 4, *more]
            shared = train(data, *common)
            for where, options in MESSAGES.items():
                out = train(data, *common, *options)
                if (out["model_hash"], out["updates"]) != (shared["model_hash"], shared["updates"]):
                    wrong.append((workers, every, where))
        expect("%s %s: the model of shared memory, to the bit" % (model, " ".join(more)), not wrong, wrong)
for optimizer in ("nesterov", "rmsprop-nesterov", "adam", "momentum"):
    for more in (["--batch", 6], ["--batch", 1], ["--batch", 300]):
        common = ["--sync", "average:every=5", "--optimizer", optimizer, "--workers", 3, "--epochs", 3, *more]
        shared, out = train(sparse, *common), train(sparse, *common, *MESSAGES["sim"])
        expect("%s, batch %d: the model of shared memory, to the bit" % (optimizer, more[1]),
               (shared["model_hash"], shared["objective"]) == (out["model_hash"], out["objective"]), (shared["objective"], out["objective"]))
for every in (0, 9):
    one = train(sparse, "--sync", "serial", "--batch", 4, "--epochs", 3)
    out = train(sparse, "--sync", "average:every=%d" % every, "--workers", 1, "--batch", 4, "--epochs", 3, *MESSAGES["sim"])
    expect("every=%d: one worker is serial" % every, out["model_hash"] == one["model_hash"])
many = ["--sync", "average:every=2", "--workers", 300, "--epochs", 2]
few, shared = train(sparse, *many, "--transport", "sim"), train(sparse, *many)
expect("more workers than rows", few["updates"] == 2 * ROWS and few["model_hash"] == shared["model_hash"], few["updates"])

# ---- bytes ----
VALUES = FEATURES + 1
for workers in (2, 3, 5):
    longest = -(-(-(-ROWS // workers)) // 6)
    for every, means in ((0, 1), (longest, 1), (1, longest)):
        out = train(sparse, "--sync", "average:every=%d" % every, "--workers", workers, "--batch", 6, "--epochs", 1, "--transport", "sim")
        part = [VALUES * (p + 1) // workers - VALUES * p // workers for p in range(workers)]
        sent = [4 * means * (VALUES - part[p] + part[p] * (workers - 1)) for p in range(workers)]
        seen = [worker["bytes"] for worker in out["workers_detail"]]
        expect("P = %d, every=%d: %d means of 2N(P − 1)/P values" % (workers, every, means), seen == sent, (seen, sent))

# ---- --resume ----
for every, optimizer in ((0, "sgd"), (5, "sgd"), (0, "adam"), (7, "ftrl"), (5, "momentum")):
    common = ["--sync", "average:every=%d" % every, "--workers", 3, "--batch", 6, "--optimizer", optimizer, "--lr", 0.1, "--schedule",
              "constant", "--l2", 0.001, "--transport", "sim"]
    shutil.rmtree(path("run"), ignore_errors=True)
    train(sparse, *common, "--epochs", 3, "--run", path("run"))
    out = train(sparse, *common, "--epochs", 6, "--run", path("run"), "--resume")
    whole = train(sparse, *common, "--epochs", 6)
    expect("every=%d, %s: goes on with --resume, to the bit" % (every, optimizer),
           (out["updates"], out["model_hash"]) == (whole["updates"], whole["model_hash"]), (out["updates"], whole["updates"]))
finish()
