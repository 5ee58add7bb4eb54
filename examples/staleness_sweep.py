#!/usr/bin/env -S /usr/bin/python3 -B
"""The cost of staleness, and remedies: examples/staleness_sweep.py TRAIN LABELS TEST TEST-LABELS [OPTIONS]

Every gradient is delayed by a number of updates (async:staleness=N), as in Chen, Monga, Bengio and Jozefowicz (2016), with
one worker in virtual time: nothing else differs. Then the same with four remedies: a tenth of the step size, staleness that
grows over the first epoch, steps that shrink with staleness, and restarts with half the step size when the loss explodes.
Prints the accuracy on the test images; --report writes the curves to PREFIX-*.html. --model, --optimizer and --lr sweep another
model than softmax.

For MNIST: train-images-idx3-ubyte.gz train-labels-idx1-ubyte.gz t10k-images-idx3-ubyte.gz t10k-labels-idx1-ubyte.gz."""
import argparse, json, os, subprocess, sys

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("train")
parser.add_argument("labels")
parser.add_argument("test")
parser.add_argument("test_labels")
parser.add_argument("--seeds", type=int, default=3)
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--staleness", default="0,5,10,20,30,50", help="numbers of updates [0,5,10,20,30,50]")
parser.add_argument("--model", default="softmax")
parser.add_argument("--optimizer", default="sgd")
parser.add_argument("--lr", type=float, default=2e-6, help="step; with softmax for pixels from 0 to 255 [2e-6]")
parser.add_argument("--ramp", type=float, default=1, help="epochs over which staleness grows [1]")
parser.add_argument("--report", metavar="PREFIX")
arguments = parser.parse_args()
STALENESS = [int(n) for n in arguments.staleness.split(",")]
REMEDIES = {  # name: options of the strategy, of the run
    "as it is": ("", []),
    "step / 10": ("", ["--lr", arguments.lr / 10]),
    "ramp": (",ramp=%g" % arguments.ramp, []),
    "aware": (",aware=yes", []),
    "restarts": ("", ["--restarts", 20]),
}
sounder = os.environ.get("SOUNDER", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "build", "sounder"))


def accuracies(name, of_strategy, options):
    """The median accuracy for each staleness; 0: all seeds diverged."""
    strategies = ["async:staleness=%d%s" % (n, of_strategy) if n else "async" for n in STALENESS]
    command = [sounder, "compare", arguments.train, "--labels", arguments.labels, "--valid", arguments.test, "--valid-labels",
               arguments.test_labels, "--sync", ",".join(strategies), "--model", arguments.model, "--transport", "sim", "--workers", 1,
               "--optimizer", arguments.optimizer, "--lr", arguments.lr, "--schedule", "constant", "--batch", 32, "--average", "no",
               "--epochs", arguments.epochs, "--seeds", arguments.seeds, "--json", *options]
    if arguments.model == "softmax":
        command += ["--scale", "none"]
    if not arguments.report:
        command += ["--evaluate-every", 0]  # the end is what is printed
    else:
        command += ["--report", "%s-%s.html" % (arguments.report, name.replace(" / ", "-").replace(" ", "-"))]
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit("staleness_sweep: sounder compare ended with %d" % done.returncode)
    return [s["measures"].get("accuracy", {}).get("median", 0.0) for s in json.loads(done.stdout)["strategies"]]


print("%-10s" % "accuracy", *("%9s" % ("N = %d" % n) for n in STALENESS))
for name, (of_strategy, options) in REMEDIES.items():
    print("%-10s" % name, *("%9.4f" % a if a else " diverged" for a in accuracies(name, of_strategy, options)), flush=True)
