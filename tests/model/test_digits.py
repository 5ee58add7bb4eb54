"""Networks on MNIST with default options, and LeNet on Fashion-MNIST: what they are known to reach."""
import json, os, subprocess, sys

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from laws import expect, finish

DATA = os.path.join(os.environ.get("SOUNDER_DATA", "/nowhere"), "mnist")
FASHION = "/usr/share/datasets/fashion-mnist"


def accuracy(folder, *options):
    files = [os.path.join(folder, part + "-ubyte.gz") for part in ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")]
    done = subprocess.run([os.environ["SOUNDER"], "train", files[0], "--labels", files[1], "--valid", files[2], "--valid-labels", files[3], "--json",
                           "--quiet", *options], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["valid_accuracy"]


CASES = ((DATA, ["--model", "mlp"], 0.980), (DATA, ["--model", "lenet", "--epochs", "2"], 0.987),
         (DATA, ["--model", "mlp-100", "--epochs", "2"], 0.93), (FASHION, ["--model", "mlp"], 0.885),
         (FASHION, ["--model", "lenet", "--epochs", "1"], 0.87))
for folder, options, wanted in CASES:
    if not os.path.isdir(folder):
        print("skipped: no %s (SOUNDER_DATA)" % folder)
        continue
    found = accuracy(folder, *options)
    expect("%s, %s: %g" % (os.path.basename(folder), " ".join(options), wanted), found >= wanted, found)
finish()
