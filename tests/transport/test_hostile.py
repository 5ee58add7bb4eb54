"""Damaged messages in a live run (tests/plugins/hostile.c): an error or a dropped message, never a crash or a wrong step.

An extra message beside the genuine one, which a receiver can tell or which comes too late, is dropped: the model is that of
the undisturbed run, to the bit. A message damaged in place of the genuine one ends the run with a sentence and an exit
code, or it goes on; where damage leaves a message that is possible nothing else can be said.

    test_hostile.py [--all] [--seed N]      --all: until 100 000 messages were damaged"""
import argparse, itertools, json, os, re, subprocess, sys, tempfile

parser = argparse.ArgumentParser()
parser.add_argument("--all", action="store_true")
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--only", help="cases that have this in their options")
arguments = parser.parse_args()
program = os.path.join(os.path.dirname(os.environ["SOUNDER"]), "sounder_test")
work = tempfile.TemporaryDirectory(prefix="sounder-test-")
PATIENCE = 1800  # seconds after which a run is taken for hanging
WANTED = 100_000
failed, damaged, ends = [], {"replace": 0, "before": 0, "after": 0}, {}


def generate(kind, name, *options):
    path = os.path.join(work.name, name)
    subprocess.run([program, "generate", kind, path, "--seed", "4", "--quiet", *options], check=True, stdout=subprocess.DEVNULL)
    return path


sparse = generate("sparse-classification", "sparse.svm", "--rows", "240", "--features", "150", "--nnz", "5")
dense = generate("dense-classification", "dense.csv", "--rows", "240", "--features", "12")


def run(options, transport):
    command = [program, "train", *options, "--quiet", "--json", "--transport", transport]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, errors="replace")
    except subprocess.TimeoutExpired:
        fail(command, "hangs")
        return None
    count = re.search(r"^hostile: damaged (\d+) messages", done.stderr, re.M)
    done.damaged = int(count.group(1)) if count else 0
    done.sentence = [line for line in done.stderr.split("\n") if line and not line.startswith("hostile:")]
    if done.returncode < 0 or "Sanitizer" in done.stderr or "runtime error" in done.stderr:
        fail(command, "crashed: %d\n%s" % (done.returncode, done.stderr[-3000:]))
        return None
    return done


def fail(command, what):
    failed.append(what)
    print("FAILED:", " ".join(command[1:]), what, flush=True)


def hash_of(done):
    return json.loads(done.stdout)["model_hash"]


STRATEGIES = ["bsp", "k-sync:k=2", "k-batch-sync:k=4", "backup:k=2", "k-async:k=2", "k-batch-async:k=2", "async", "async:staleness=2",
              "async:push=2,fetch=4", "ssp:2", "ssp:staleness=2,lazy=yes", "essp:2"]
MORTAL = ["async", "k-batch-async:k=2", "ssp:2"]
COMMON = ["--workers", "3", "--batch", "8", "--epochs", "2", "--seed", "3"]


def cases():
    for sync, servers, data, codec in itertools.product(STRATEGIES, "12", (sparse, dense), ("none", "half")):
        if codec == "half" and not sync.startswith(("bsp", "k-async", "ssp:2", "k-sync")):
            continue  # one of each way to send
        if servers == "2" and sync.startswith(("essp", "async:push", "ssp:staleness")):
            continue  # these have one server
        label = ["--label", "label"] if data == dense else []
        yield [data, *label, *COMMON, "--sync", sync, "--servers", servers, "--codec", codec, "--model", "logistic", "--l2", "0.01",
               *(["--optimizer", "sgd"] if sync.startswith(("ssp", "essp", "async:push")) else [])]
    for sync, servers in itertools.product(("bsp", "k-async:k=2", "ssp:2"), "12"):
        yield [dense, "--label", "label", *COMMON, "--sync", sync, "--servers", servers, "--model", "two-layer"]
    for data in (sparse, dense):
        label = ["--label", "label"] if data == dense else []
        yield [data, *label, *COMMON, "--sync", "ring-sum"]
    yield [sparse, *COMMON, "--sync", "k-async:k=3", "--servers", "2", "--aggregate", "test-middle"]


def simulated(options):
    """Options in virtual time, and of the transport: in some cases a worker dies on the way."""
    dies = options[options.index("--sync") + 1] in MORTAL and options[options.index("--servers") + 1] == "2"
    return [*options, "--compute", "exp:rate=1"], ",dies=1@5,silence=1" if dies else ""


def disturb(options, how, seed, most=10**9, threads=False):
    """A run with damaged messages."""
    share = 0.6 if how != "replace" else 0.03
    options, more = (options, "") if threads else simulated(options)
    transport = "hostile%s:how=%s,share=%g,seed=%d,most=%d%s" % ("-threads" if threads else "", how, share, seed, most, more)
    done = run(options, transport)
    if done:
        damaged[how] += done.damaged
    return done, ["", *options, "--transport", transport]


def check_extra(options, right, how, seed):
    done, command = disturb(options, how, seed)
    if done and done.returncode:
        fail(command, "an extra message ended the run: " + done.stderr[-400:])
    elif done and hash_of(done) != right:
        fail(command, "an extra message changed the model")


def check_replaced(options, seed):
    done, command = disturb(options, "replace", seed, most=1 + seed % 3)
    if not done:
        return
    ends[done.returncode] = ends.get(done.returncode, 0) + 1
    if done.returncode and not (0 < done.returncode < 128 and done.sentence):
        fail(command, "ended with %d and without a sentence: %s" % (done.returncode, done.stderr[-400:]))


def check_threads(options, seed):
    """Nodes as threads: the run comes to its end. (Which gradients make an update is a matter of time.)"""
    for how in ("before", "after"):
        done, command = disturb(options, how, seed, threads=True)
        if done and done.returncode:
            fail(command, "an extra message ended the run: " + done.stderr[-400:])


def right_model(options):
    options, more = simulated(options)
    done = run(options, "hostile:share=0" + more)
    if done and done.returncode:
        fail(options, done.stderr[-400:])
    return hash_of(done) if done and not done.returncode else None


subjects = [(options, right_model(options)) for options in cases() if not arguments.only or arguments.only in " ".join(options)]
subjects = [(options, right) for options, right in subjects if right]
for round in range(10**6 if arguments.all else 1):
    for number, (options, right) in enumerate(subjects):
        seed = arguments.seed * 10**9 + (round * 1000 + number) * 100
        check_extra(options, right, "before", seed)
        check_extra(options, right, "after", seed + 1)
        for more in range(40 if arguments.all else 2):
            check_replaced(options, seed + 2 + more)
        if (number + round) % 4 == 0:
            check_threads(options, seed)
    if sum(damaged.values()) >= WANTED or (arguments.only and round >= 3):
        break
print("damaged", damaged, "of", len(subjects), "cases; replaced messages ended runs with", dict(sorted(ends.items())))
sys.exit("FAILED: %d" % len(failed) if failed else 0)
