"""What tests in Python share: running the program, and saying which laws hold."""
import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile

from tensors import read_tensors

SOUNDER = os.environ["SOUNDER"]
LAUNCH = os.environ.get("SOUNDER_LAUNCH", "").split()  # what starts the program, as mpirun -n 3
WORK = tempfile.mkdtemp(prefix="sounder-test-")
atexit.register(shutil.rmtree, WORK, ignore_errors=True)
MODEL = os.path.join(WORK, "model")
failures = []


def expect(name, holds, what=""):
    print("%s: %s %s" % (name, "ok" if holds else "FAILED", what))
    if not holds:
        failures.append(name)


def alone(options):
    """Options of one worker, unless they name a strategy, or a network: that has the bits of one worker anyway."""
    network = any(str(option).startswith(("mlp", "cnn", "lenet")) for option in options)
    return [] if network or any(str(option).startswith("--sync") for option in options) else ["--sync", "serial"]


def run(*arguments, code=0):
    """What the program prints, or with another exit code its complaint. Without --sync one worker trains."""
    if arguments[0] == "train" and "mpirun" not in LAUNCH and "--help" not in arguments:
        arguments += tuple(alone(arguments))
    done = subprocess.run([*LAUNCH, SOUNDER, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == code, "exit code %d: %s\n%s" % (done.returncode, " ".join(map(str, arguments)), done.stderr)
    return done.stderr if code else done.stdout


def train(path, *options, code=0):
    """The results of a run and the arrays of its model; with another exit code, the complaint."""
    out = run("train", path, "--json", "--quiet", "--out", MODEL, *options, code=code)
    return out if code else (json.loads(out), read_tensors(MODEL)[0])


def path_of(name):
    return os.path.join(WORK, name)


def some_rows(count, name="some.svm"):
    """A file of sparse rows whose labels lean towards a sum of sines."""
    import math
    import numpy as np
    rows, path = np.random.default_rng(5), path_of(name)
    with open(path, "w") as file:
        for _ in range(count):
            index = sorted(set(rows.integers(1, 40, 6)))
            file.write("%d %s\n" % (rows.random() < 1 / (1 + math.exp(-sum(math.sin(j) for j in index))),
                                    " ".join("%d:%.3f" % (j, rows.normal()) for j in index)))
    return path


def finish():
    sys.exit("FAILED: " + ", ".join(failures) if failures else 0)
