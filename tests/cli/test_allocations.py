"""Laws of memory that runs out, for the whole program with the libraries it uses (fail_malloc.c): whichever allocation
fails, alone or with all that come after it,
    the program is not killed by a signal;
    exit code 0 means that all results are there: every key and every file, and what does not differ between
        undisturbed runs is the same;
    otherwise it ends with 1 and one sentence, no file is half-written, and a checkpoint there is resumes.

Without arguments a part of the allocations is tried: the first ones of every command and, from a random place, every
so many-th. --all tries each; NAME... only the commands of these names."""
import argparse, atexit, concurrent.futures, json, os, random, re, shutil, subprocess, sys, tempfile, time

program = os.path.abspath(os.environ["SOUNDER"])
preload = os.path.abspath(os.environ.get("SOUNDER_FAIL_MALLOC", ""))
if os.environ.get("SOUNDER_SANITIZE") or not os.path.exists(preload):
    print("skipped: the allocator is the sanitizer's, or fail_malloc was not built")
    sys.exit(77)
parser = argparse.ArgumentParser()
parser.add_argument("--all", action="store_true")
parser.add_argument("--first", type=int, default=25)
parser.add_argument("--tries", type=int, default=42, help="of a command and a way to fail, at most, without --all")
parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
parser.add_argument("name", nargs="*")
arguments = parser.parse_args()
dice = random.Random(arguments.seed)
print(f"--seed {arguments.seed}", flush=True)
before = time.monotonic()
work = tempfile.mkdtemp(prefix="sounder-allocations-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
atexit.register(shutil.rmtree, work, ignore_errors=True)
inputs = os.path.join(work, "inputs")
os.mkdir(inputs)


def write(name, lines):
    with open(os.path.join(inputs, name), "w") as file:
        file.write("\n".join(lines) + "\n")


write("data.svm", [f"{'+1' if i % 2 else '-1'} {i % 7 + 1}:0.{i % 9 + 1} {10 + i % 3 if i % 2 else 13 + i % 4}:1.5 20:1"
                   for i in range(60)])
write("data.csv", ["size,colour,kind"] + [f"{i % 11},{['red', 'green', 'blue'][i * 7 % 3]},{'abc'[i * 7 % 3]}"
                                         for i in range(40)])
write("ratings.csv", ["user,item,rating"] + [f"u{i * 5 % 9},i{i * 3 % 7},{i % 5 + 1}" for i in range(50)])
write("valid.svm", [f"{'+1' if i % 2 else '-1'} {i % 7 + 1}:0.{i % 9 + 1} 20:1" for i in range(20)])
write("large.svm", [f"{'+1' if i % 2 else '-1'} " + " ".join(f"{j + 1}:0.{(i * j) % 9 + 1}" for j in range(20))
                    for i in range(1500)])
write("wide.svm", [f"{'+1' if i % 2 else '-1'} {i % 7 + 1}:0.{i % 9 + 1} {90000 + i % 5}:1" for i in range(60)])  # few features occur
write("graph.svm", [f"0.{i % 9 + 1} {i % 5 + 1}:1 {i * 3 % 7 + 6}:1" for i in range(40)])
# Columns of which notes are made: one that is constant, one that numbers the rows, one that is empty.
write("notes.csv", ["id,same,size,none,kind"] + [f"{i},1,{i % 11},,{'ab'[i % 2]}" for i in range(40)])
write("plain.csv", ["x,y"] + [f"{i % 11},{i % 5}" for i in range(40)])
subprocess.run(["gzip", "-k", "data.svm"], cwd=inputs, check=True)
subprocess.run(["zstd", "-q", "data.svm"], cwd=inputs, check=False)
svm, table, ratings = "../inputs/data.svm", "../inputs/data.csv", "../inputs/ratings.csv"
train = ["train", svm, "--epochs", "2", "--threads", "1", "--quiet"]
sim = ["--transport", "sim", "--compute", "const:1", "--workers", "2", "--batch", "4"]
late = ["--transport", "sim:latency=0.3", *sim[2:]]
kept = ["--run", "run", "--checkpoint-every", "30u", "--out", "model"]
commands = {
    "train": train + ["--json", "--valid-fraction", "0.2", *kept],
    "train-text": train + ["--out", "model"],
    "train-wide": ["train", "../inputs/wide.svm", *train[2:], "--sync", "hogwild:exchange=20", "--deterministic", "--out", "model"],
    "train-gz": ["train", svm + ".gz", *train[2:], "--json"],
    "train-zst": ["train", svm + ".zst", *train[2:], "--json"],
    "train-csv": ["train", table, *train[2:], "--label", "kind", "--optimizer", "adam", *kept, "--json"],
    "notes": ["train", "../inputs/notes.csv", *train[2:-1], "--label", "kind", "--missing", "zero", "--json"],
    "memory": ["train", "../inputs/large.svm", *train[2:], "--memory", "64k", "--json"],
    "valid": train + ["--valid", "../inputs/valid.svm", "--early-stop", "1", "--json", "--out", "model"],
    "resume": ["train", svm, "--epochs", "3", *train[4:], "--schedule", "constant", "--run", "run", "--resume", "--json"],
    "top": ["predict", "../inputs/model.mf", ratings, "--format", "triples", "--top", "2"],
    "cache": train + ["--cache", "cache", "--json"],
    "record": train + ["--sync", "hogwild", "--workers", "2", "--record", "record", "--json"],
    "batch": train + ["--sync", "batch", "--json", *kept],
    "hogwild": train + ["--sync", "hogwild", "--deterministic", "--workers", "2", "--json", *kept],
    "cyclades": train + ["--sync", "cyclades", "--workers", "2", "--json"],
    "average": train + ["--sync", "average", "--workers", "2", "--json"],
    "bsp": train + ["--sync", "bsp", "--deterministic", "--workers", "2", "--batch", "4", "--json"],
    "servers": train + ["--sync", "k-async:k=1", "--workers", "2", "--servers", "2", "--batch", "4", "--json"],
    "sim": train + ["--sync", "bsp", *sim, "--json", *kept],
    "async": train + ["--sync", "async", *sim, "--json", *kept[:4]],
    "ssp": train + ["--sync", "ssp:1", *sim, "--json"],
    "essp": train + ["--sync", "essp:1", *sim, "--json"],
    "bsp-servers": train + ["--sync", "bsp", "--deterministic", "--workers", "2", "--servers", "2", "--batch", "4", "--json", *kept],
    "bsp-sim-servers": train + ["--sync", "bsp", *sim, "--servers", "2", "--json", *kept],
    "k-sync": train + ["--sync", "k-sync:1", *late, "--servers", "2", "--json", *kept[:4]],
    "backup": train + ["--sync", "backup:1", *late, "--json"],
    "k-batch-async": train + ["--sync", "k-batch-async:3", *late, "--servers", "3", "--optimizer", "adam", "--json"],
    "async-threads": train + ["--sync", "async", "--workers", "2", "--batch", "4", "--json"],
    "downpour": train + ["--sync", "async:push=2,fetch=4", *late, "--servers", "2", "--json", *kept[:4]],
    "stale": train + ["--sync", "async:staleness=3,aware=yes", *sim, "--json"],
    "dies": train + ["--sync", "async", "--transport", "sim:dies=1@3", *sim[2:], "--json", *kept[:4]],
    "ssp-servers": train + ["--sync", "ssp:staleness=1,lazy=yes", *late, "--servers", "2", "--l2", "0.01", "--optimizer", "sgd",
                            "--json", *kept[:4]],
    "essp-budget": train + ["--sync", "essp:staleness=1,budget=400", *late, "--json", *kept[:4]],
    "mf-servers": ["train", ratings, *train[2:], "--model", "mf:rank=4", "--label", "rating", "--sync", "k-async:2", *late,
                   "--servers", "2", "--json"],
    "kmeans-servers": train + ["--model", "kmeans:clusters=3", "--sync", "async", *late, "--servers", "2", "--json"],
    "cut-servers": ["train", "../inputs/graph.svm", *train[2:], "--model", "graph-cut", "--sync", "bsp", *sim, "--json"],
    "round-robin": train + ["--sync", "round-robin", "--workers", "2", "--batch", "4", "--json", *kept],
    "record-mf": ["train", ratings, *train[2:], "--model", "mf:rank=4", "--label", "rating", "--sync", "hogwild:exchange=7",
                  "--workers", "2", "--record", "record", "--json"],
    "replay": train + ["--sync", "hogwild:exchange=7", "--replay", "../inputs/record", "--json"],
    "mf": ["train", ratings, *train[2:], "--model", "mf:rank=4", "--label", "rating", "--json", "--out", "model"],
    "rotation": ["train", ratings, *train[2:], "--model", "mf:rank=4", "--label", "rating", "--sync", "rotation",
                 "--workers", "2", "--json", *kept],
    "kmeans": train + ["--model", "kmeans:clusters=3", "--json"],
    "points": train + ["--evaluate-every", "10", "--run", "run", "--json"],
    "predict": ["predict", "../inputs/model", svm, "--proba"],
    "predict-out": ["predict", "../inputs/model.csv", table, "--out", "predictions"],
    "eval": ["eval", "../inputs/model", svm, "--json"],
    "eval-text": ["eval", "../inputs/model.csv", table],
    "inspect-data": ["inspect", table, "--json"],
    "inspect-text": ["inspect", svm],
    "inspect-sparsity": ["inspect", svm, "--sparsity"],
    "inspect-model": ["inspect", "../inputs/model.csv"],
    "inspect-run": ["inspect", "../inputs/run", "--json"],
    "inspect-ledger": ["inspect", "../inputs/run", "--ledger"],
    "convert": ["convert", table, "data.sdc", "--label", "kind", "--json"],
    "mapped": ["train", "../inputs/data.sdc", *train[2:], "--json"],
    "generate": ["generate", "sparse-classification", "made.svm", "--rows", "50", "--json"],
    "compare": ["compare", svm, "--sync", "bsp,async", *sim, "--epochs", "1", "--seeds", "2", "--target", "0.5",
                "--evaluate-every", "10", "--report", "page.html", "--json", "--quiet"],
    "compare-variants": ["compare", svm, "--variant", "--lr 0.1 --batch 2", "--variant", "--sync bsp --workers 1", "--epochs", "1", "--seeds", "1"],
    "compare-text": ["compare", svm, "--sync", "serial,hogwild", "--workers", "1", "--epochs", "1", "--seeds", "1"],
    "list": ["list", "optimizer", "--verbose"],
    "help": ["train", "--help"],
    "print-config": ["train", svm, "--lr", "0.5", "--print-config"],
}
for line in ["train data.svm --quiet --threads 1 --out model", "train data.csv --label kind --quiet --out model.csv",
             "train data.svm --sync async --transport sim --workers 2 --batch 4 --run run --quiet",
             "train ratings.csv --model mf:rank=4 --format triples --quiet --out model.mf",
             "train data.svm --epochs 2 --threads 1 --schedule constant --run begun --quiet",
             "train data.svm --epochs 2 --threads 1 --sync hogwild:exchange=7 --workers 2 --record record --quiet",
             "convert data.csv data.sdc --label kind"]:
    subprocess.run([program, *line.split()], cwd=inputs, check=True, stdout=subprocess.DEVNULL)


class Outcome:
    """What a run of the program left: exit code, texts, and the files of its folder."""

    def __init__(self, words, folder, **faults):
        shutil.rmtree(folder, ignore_errors=True)
        os.mkdir(folder)
        if "--resume" in words:
            shutil.copytree(os.path.join(inputs, "begun"), os.path.join(folder, "run"))
        environment = dict(os.environ, LD_PRELOAD=preload, **{key: str(value) for key, value in faults.items()})
        done = subprocess.run([program, *words], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=100)
        self.code, self.out, self.errors = done.returncode, done.stdout, done.stderr.decode(errors="replace")
        self.files = {}
        for path, _, names in os.walk(folder):
            for name in names:
                with open(os.path.join(path, name), "rb") as file:
                    self.files[os.path.relpath(os.path.join(path, name), folder)] = file.read()


racing = {"servers", "record", "record-mf", "async-threads"}  # results depend on who is first
clock = re.compile("second|rss|wait|share|computing|travelling|awaited|straggler|updates_lost")


def leaves(value, path="", race=False):
    """Every number and text of a JSON value with its place; none that the clock decides."""
    if isinstance(value, dict):
        for key in value:
            if not clock.search(key):
                yield from leaves(value[key], f"{path}/{key}", race)
    elif isinstance(value, list):
        for i, element in enumerate(value):
            yield from leaves(element, f"{path}/{'*' if race else i}", race)
    else:
        yield path, value


def facts(outcome, race):
    """All that a run told, as a flat table; lines of text are told apart by words."""
    table = {}
    checkpoints = sorted(name for name in outcome.files if name.startswith("run/checkpoint-"))
    for name, content in {"stdout": outcome.out, **outcome.files}.items():
        # A cache file saves time, no more; of checkpoints the last one counts.
        if name in ("run/lock", "run/config", *checkpoints[:-1]) or name.startswith("cache/"):
            continue
        table[name] = "there"
        if name.endswith((".safetensors", ".sdc")) or name in ("model", "record"):
            table[name + " bytes"] = content
            continue
        if name == "run/ledger":  # 48 bytes a gradient, with times
            table[name + " records"] = (len(content) - 16) / 48
            continue
        for i, line in enumerate(content.decode(errors="replace").splitlines()):
            try:
                parts = leaves(json.loads(line), race=race)
            except ValueError:
                parts = enumerate(re.sub(r"[0-9.]+[kMG]?(?= (s|rows/s)\b)", "TIME", line).split())
            table.update((f"{name}:{i}:{place}", value) for place, value in parts)
    return table


def broken_law(words, outcome, same, keys, folder, race):
    """The law that an outcome breaks, as a sentence; None: it breaks none."""
    sentences = [line for line in outcome.errors.splitlines()
                 if line.startswith("sounder: ") and not line.startswith("sounder: note:")]
    left = [name for name in outcome.files if ".tmp-" in name]
    if outcome.code < 0 or outcome.code > 6:
        return f"it ended with {outcome.code}: {outcome.errors[-200:]}"
    if left:
        return f"{left} was left behind"
    if outcome.code == 0:
        found = facts(outcome, race)
        if found.keys() != keys:
            return f"exit code 0, but {sorted(keys ^ found.keys())[:4]}"
        wrong = [key for key in same if found[key] != same[key]]
        return f"exit code 0, but another {wrong[:3]}" if wrong else None
    if outcome.code != 1 or len(sentences) != 1:
        return f"it ended with {outcome.code} and said {sentences}"
    if "model" in outcome.files and "model bytes" in same and outcome.files["model"] != same["model bytes"]:
        return "another model was written"
    if any(name.startswith("run/checkpoint-") for name in outcome.files):
        again = words if "--resume" in words else [*words, "--resume"]
        done = subprocess.run([program, *again], cwd=folder, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            return f"what was left does not resume: {done.stderr}"
        if "model bytes" in same:
            with open(os.path.join(folder, "model"), "rb") as file:
                if file.read() != same["model bytes"]:
                    return "what was left resumes to another model"
    return None


def chosen(count):
    if arguments.all:
        return range(1, count + 1)
    first = min(arguments.first, count)
    stride = max(1, (count - first) // max(1, arguments.tries - first))
    return [*range(1, first + 1), *range(first + 1 + dice.randrange(stride), count + 1, stride)]


def sweep(name, words):
    folder = os.path.join(work, name)
    count_file = os.path.join(work, name + ".count")
    clean = [Outcome(words, folder, FAIL_COUNT=count_file) for _ in range(3)]
    for outcome in clean:
        if outcome.code:
            sys.exit(f"{name}: {outcome.errors}")
    race = name in racing
    tables = [facts(outcome, race) for outcome in clean]
    keys = tables[0].keys()
    if any(table.keys() != keys for table in tables):
        sys.exit(f"{name}: undisturbed runs tell different things: {sorted(keys ^ tables[1].keys())[:5]}")
    same = {key: value for key, value in tables[0].items() if all(table[key] == value for table in tables) and not race}
    with open(count_file) as file:
        count = int(file.read())
    if not count:
        sys.exit(f"{name}: no allocation was counted: {preload} is not in front of the C library")
    broken, tries = [], 0
    for fault in "FAIL_AT", "FAIL_FROM":
        for nth in chosen(count):
            law = broken_law(words, Outcome(words, folder, **{fault: nth}), same, keys, folder, race)
            tries += 1
            if law:
                broken.append(f"{name} {fault}={nth}: {law}")
    shutil.rmtree(folder, ignore_errors=True)
    return name, count, tries, broken


wanted = {name: words for name, words in commands.items() if not arguments.name or name in arguments.name}
if not os.path.exists(os.path.join(inputs, "data.svm.zst")):
    wanted.pop("train-zst", None)
bad, tried = 0, 0
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    for done in concurrent.futures.as_completed([pool.submit(sweep, *item) for item in wanted.items()]):
        name, count, tries, broken = done.result()
        bad += len(broken)
        tried += tries
        if broken or arguments.all:
            print(f"{name}: {count} allocations, {tries} failures, {len(broken)} laws broken", flush=True)
        for law in broken[:6]:
            print("  " + law[:400], flush=True)
print(f"{tried} failed allocations in {len(wanted)} commands, {bad} laws broken, {time.monotonic() - before:.0f} s")
sys.exit(1 if bad else 0)
