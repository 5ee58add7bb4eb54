"""Every model keeps its bits: model_hash and updates of the runs of hash_runs.py are those of hashes.json.

    test_hashes.py                  runs on threads and in the simulator; names every one that differs
    test_hashes.py mpi              runs over MPI, started by SOUNDER_LAUNCH: see tests/transport/test_mpi_hashes.sh
    test_hashes.py [mpi] --record   writes hashes.json instead; every plug-in must be in a run, and every refusal must be one
    test_hashes.py --cpu LEVEL      at that CPU level: the hashes are the same
    test_hashes.py --every N        every N-th run alone
    test_hashes.py --files FOLDER   writes the data there, for 'sounder train' with a line of hashes.json

A run that calls pow, cos, exp, log or log1p of the C library is compared only where that function gives the bits it gave
when the run was recorded."""
import hashlib
import itertools
import json
import math
import os
import sys

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import laws
from hash_data import write_files
from hash_runs import GROUPS, REFUSED, c_functions, mpi, options_of, refused
from laws import expect, finish

RECORD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hashes.json")


def argument(name):
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else None


def probe():
    """A hash of every function of the C library that runs may call, over values such as theirs."""
    values = {
        "pow": [math.pow(b, t) for b in (0.9, 0.999, 0.5, 0.25) for t in range(2200)] +
               [math.pow(i / 64, p) for i in range(1, 2000) for p in (2, -0.4)],
        "cos": [math.cos(math.pi * i / n) for n in (609, 1024) for i in range(2 * n)],
        "exp": [math.exp(i / 128) for i in range(-1000, 1000)],
        "log": [math.log(i / 4096) for i in range(1, 8192)],
        "log1p": [math.log1p(-i / 4096) for i in range(4096)],
    }
    return {name: hashlib.sha256(" ".join(map(float.hex, of)).encode()).hexdigest()[:16] for name, of in values.items()}


def hash_of(text):
    """[model_hash, updates], or what the program says instead."""
    level = ["--cpu", argument("--cpu")] if argument("--cpu") else []
    try:
        told = json.loads(laws.run("train", *text.split(), "--json", "--quiet", *level))
    except AssertionError as complaint:
        return str(complaint)
    return [told["model_hash"], told["updates"]]


def runs_of(group):
    return [text for text in group() if not refused(text)]


def write_record(record):
    """One run a line."""
    def section(of):
        return "{\n%s\n}" % ",\n".join("%s: %s" % (json.dumps(key), json.dumps(value)) for key, value in of.items())

    with open(RECORD, "w") as file:
        file.write("{%s}\n" % ",\n".join("%s: %s" % (json.dumps(name), section(of)) for name, of in record.items()))


def check_list(groups):
    """Every plug-in has a run, and the program refuses what REFUSED says it does."""
    lines = [text for group in groups for text in group()]
    expect("no run is in the list twice", len(lines) == len(set(lines)))
    for text in lines:
        if refused(text):
            try:
                laws.run("train", *text.split(), "--json", "--quiet", code=2)
            except AssertionError as complaint:
                expect("refused: " + text, False, str(complaint))
    expect("every rule of REFUSED is used", {why for why, _ in REFUSED} <= set(map(refused, lines)))
    for kind in ("model", "optimizer", "schedule", "sync"):
        used = {options_of(text)["--" + kind].split(":")[0] for text in lines if not refused(text)}
        listed = {row.split()[0] for row in laws.run("list", kind).splitlines()}
        expect("every %s has a run" % kind, listed <= used, " ".join(listed - used))


def record_all(section, groups, record):
    runs = {text: hash_of(text) for group in groups for text in runs_of(group)}
    for text, value in runs.items():
        if isinstance(value, str):
            expect(text, False, value)
    if section == "runs":
        check_list(groups)
    if not laws.failures:
        record["c library"][section] = probe()
        record[section] = runs
        write_record(record)
        print("%d runs recorded" % len(runs))


def compare_all(section, groups, record):
    same = {name for name, value in probe().items() if record["c library"].get(section, {}).get(name) == value}
    left = dict(record[section])
    every, number = int(argument("--every") or 1), itertools.count()
    skipped = {}
    for group in groups:
        different, count = [], 0
        for text in runs_of(group):
            recorded = left.pop(text, "none")
            if next(number) % every:
                continue
            missing = set(c_functions(text)) - same
            if missing:
                skipped.setdefault(" ".join(sorted(missing)), []).append(text)
                continue
            count += 1
            value = hash_of(text)
            if value != recorded:
                different.append(text)
                print("    %s: recorded %s, now %s" % (text, recorded, value))
        expect("%s: recorded hashes" % group.__name__, not different, "%d of %d runs differ" % (len(different), count))
    for name, texts in skipped.items():
        print("skipped group: %d runs that call %s, which this C library computes to other bits" % (len(texts), name))
    expect("every recorded run is in the list", not left, "; ".join(left))


if argument("--files"):
    os.makedirs(argument("--files"), exist_ok=True)
    os.chdir(argument("--files"))
    write_files()
    sys.exit()
laws.SOUNDER = os.path.abspath(laws.SOUNDER)
os.chdir(laws.WORK)
write_files()
if argument("--cpu") and "this CPU has no" in str(hash_of("two.svm")):
    print("skipped: this CPU has no %s" % argument("--cpu"))
    sys.exit(77)
stored = {"c library": {}, "runs": {}, "mpi": {}}
if os.path.exists(RECORD):
    with open(RECORD) as stored_file:
        stored.update(json.load(stored_file))
what, chosen = ("mpi", [mpi]) if "mpi" in sys.argv else ("runs", GROUPS)
(record_all if "--record" in sys.argv else compare_all)(what, chosen, stored)
finish()
