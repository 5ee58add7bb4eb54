#!/usr/bin/env -S /usr/bin/python3 -B
"""The cost of staleness, and remedies: examples/staleness_sweep.py TRAIN LABELS TEST TEST-LABELS [--seeds N] [--report PREFIX]

Every gradient is delayed by a number of updates (async:staleness=N), as in Chen, Monga, Bengio and Jozefowicz (2016), with
one worker in virtual time: nothing else differs. Then the same with four remedies: a tenth of the step size, staleness that
grows over the first epoch, steps that shrink with staleness, and restarts with half the step size when the loss explodes.
Prints the accuracy on the test images; --report writes the curves to PREFIX-*.html.

For MNIST: train-images-idx3-ubyte.gz train-labels-idx1-ubyte.gz t10k-images-idx3-ubyte.gz t10k-labels-idx1-ubyte.gz."""
import argparse, json, os, subprocess, sys

STALENESS = (0, 5, 10, 20, 30, 50)
STEP = 2e-6  # for pixels from 0 to 255
REMEDIES = {  # name: options of the strategy, of the run
    "as it is": ("", []),
    "step / 10": ("", ["--lr", STEP / 10]),
    "ramp": (",ramp=1", []),
    "aware": (",aware=yes", []),
    "restarts": ("", ["--restarts", 20]),
}
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("train")
parser.add_argument("labels")
parser.add_argument("test")
parser.add_argument("test_labels")
parser.add_argument("--seeds", type=int, default=3)
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--report", metavar="PREFIX")
arguments = parser.parse_args()
sounder = os.environ.get("SOUNDER", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "build", "sounder"))


def accuracies(name, of_strategy, options):
    """The median accuracy for each staleness."""
    strategies = ["async:staleness=%d%s" % (n, of_strategy) if n else "async" for n in STALENESS]
    command = [sounder, "compare", arguments.train, "--labels", arguments.labels, "--valid", arguments.test, "--valid-labels",
               arguments.test_labels, "--sync", ",".join(strategies), "--model", "softmax", "--transport", "sim", "--workers", 1,
               "--optimizer", "sgd", "--scale", "none", "--lr", STEP, "--schedule", "constant", "--batch", 32, "--average", "no",
               "--epochs", arguments.epochs, "--seeds", arguments.seeds, "--json", *options]
    if arguments.report:
        command += ["--report", "%s-%s.html" % (arguments.report, name.replace(" / ", "-").replace(" ", "-"))]
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit("staleness_sweep: sounder compare ended with %d" % done.returncode)
    return [s["measures"].get("accuracy", {}).get("median", 0.0) for s in json.loads(done.stdout)["strategies"]]


print("%-10s" % "accuracy", *("%9s" % ("N = %d" % n) for n in STALENESS))
for name, (of_strategy, options) in REMEDIES.items():
    print("%-10s" % name, *("%9.4f" % a for a in accuracies(name, of_strategy, options)), flush=True)
