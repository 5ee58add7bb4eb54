"""What tests on real data share: the program, the data sets, and laws that do not stop each other."""
import json
import os
import subprocess
import sys
import tempfile

SOUNDER = os.environ["SOUNDER"]
DATA = os.environ.get("SOUNDER_DATA")
failures = []


def need(*names):
    """Paths of data sets; without them the test is skipped."""
    if os.environ.get("SOUNDER_SANITIZE"):
        print("skipped: long runs are not for sanitizers")
        sys.exit(77)
    paths = [os.path.join(DATA or "", name) for name in names]
    missing = [name for name, path in zip(names, paths) if not os.path.exists(path)]
    if not DATA or missing:
        print("skipped: SOUNDER_DATA has no %s" % ", ".join(missing or names))
        sys.exit(77)
    return paths


def train(*arguments):
    command = [SOUNDER, "train", "--json", "--quiet", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, "exit code %d: %s\n%s" % (done.returncode, " ".join(command),
                                                           done.stderr)
    return json.loads(done.stdout)


def law(function):
    try:
        print("ok    ", function.__name__, function() or "", flush=True)
    except Exception as error:
        failures.append(function.__name__)
        print("FAILED", function.__name__, error, flush=True)


def folder():
    return tempfile.TemporaryDirectory(prefix="sounder-optimum-")


def finish():
    sys.exit(1 if failures else 0)
