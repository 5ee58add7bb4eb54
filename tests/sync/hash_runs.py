"""The runs of test_hashes.py: command lines of 'sounder train'. Each is deterministic by its strategy, by --deterministic,
by having one worker, or by virtual time.

Options whose default may change are given, except in `defaults`. Small products are complete; elsewhere `in_turn` takes
the next value of an option from line to line."""
import itertools

LABELS = {"logistic": "two", "hinge": "two", "squared-hinge": "two", "huber": "real", "squared": "real", "softmax": "four"}
LINEAR = list(LABELS)
MODELS = [*LINEAR, "mf:5", "graph-cut:3", "kmeans:5"]
RATE = {"sgd": 1 / 16, "momentum": 1 / 64, "nesterov": 1 / 64, "adagrad": 1 / 4, "adadelta": 1, "adam": 1 / 32,
        "adamw": 1 / 32, "ftrl": 1 / 4, "rmsprop": 1 / 64, "rmsprop-nesterov": 1 / 64}
OPTIMIZERS = list(RATE)
# svm: sparse; vw: sparse, weights, hashed; csv: dense, weights; npy: dense; apart, long: see hash_data.py.
FORMS = ("svm", "vw", "csv", "npy", "apart", "long")


def data_of(model, form="svm"):
    """A file and the options that read it."""
    name = model.split(":")[0]
    apart = "-apart" if form == "apart" else ""
    if name == "mf":
        return "ratings%s.triples" % apart
    if name == "graph-cut":
        return "edges%s.svm" % apart
    if name == "kmeans" and form in ("csv", "npy"):
        return {"csv": "points.csv --label none", "npy": "two.npy"}[form]
    if name in ("mlp", "mlp-100", "mlp-300-100-50", "cnn", "lenet"):
        name = "softmax"
    if name in ("mlp-regression", "cnn-regression"):
        name = "squared"
    path = {"svm": "{0}.svm", "vw": "{0}.vw --bits 8", "csv": "{0}.csv --label y --weight w",
            "npy": "{0}.npy --labels {0}-y.npy", "apart": "{0}-apart.svm", "long": "{0}-long.svm"}[form]
    return path.format(LABELS.get(name, "two"))


def line(model, options, form="svm", optimizer="sgd", batch=1, epochs=3):
    words = [data_of(model, form), "--model", model.replace("IMAGE", "7x3"), "--epochs", epochs]
    if not model.startswith("kmeans"):
        words += ["--optimizer", optimizer]
        if "--lr" not in options:
            words += ["--lr", "%g" % RATE[optimizer]]
        if "--schedule" not in options:
            words += ["--schedule", "constant"]
        if model.split(":")[0] in LABELS and "--l2" not in options:
            words += ["--l2", "0"]
    if "--sync batch" not in options:
        words += ["--batch", batch]
    return " ".join(map(str, [*words, options]))


def in_turn(*values):
    """A function that returns the values in a cycle, one a call."""
    return itertools.cycle(values).__next__


# ---- one worker ----
def serial():
    for model, optimizer in itertools.product(LINEAR, OPTIMIZERS):
        yield line(model, "--sync serial", optimizer=optimizer)
        yield line(model, "--sync serial", optimizer=optimizer, form="csv", batch=5)
    form, batch = in_turn("npy", "vw", "long", "vw", "npy"), in_turn(16, 1)
    for model, optimizer in itertools.product(LINEAR, ("sgd", "nesterov", "adagrad")):
        yield line(model, "--sync serial", form(), optimizer, batch())
    for model, optimizer, size in itertools.product(("mf:5", "graph-cut:3"), OPTIMIZERS, (1, 5)):
        yield line(model, "--sync serial", optimizer=optimizer, batch=size)
    for form, size in itertools.product(FORMS[:4], (1, 5, 16)):
        yield line("kmeans:5", "--sync serial", form, batch=size)
    for model in ("mf:rank=19,bias=no", "mf:rank=4,l2=0.125,l2-item=0.25", "graph-cut:17", "huber:0.125"):
        yield line(model, "--sync serial", optimizer="adagrad")


def penalties():
    for options in ("--l1 0.01 --l2 0", "--l2 0.01", "--l1 0.005 --l2 0.02", "--l1 0.01 --l2 0 --standardize",
                    "--l2 0.01 --standardize", "--l2 0.01 --no-intercept", "--l2 2 --penalty-on sum",
                    "--l1 1 --l2 0 --penalty-on sum --scale none", "--scale none", "--no-intercept", "--average 1",
                    "--l1 0.01 --l2 0 --average 0", "--shuffle none", "--shuffle chunks", "--shuffle blocks"):
        yield line("logistic", options + " --sync serial", "apart" if "chunks" in options else "svm")
        yield line("squared", options + " --sync serial", "npy", "adagrad")
        yield line("softmax", options + " --sync serial", "csv", "momentum", 5)
    for optimizer in OPTIMIZERS:
        yield line("logistic", "--l1 0.01 --l2 0.01 --standardize --sync serial", "svm", optimizer)
        yield line("softmax", "--l1 0.01 --l2 0.01 --scale none --sync serial", "vw", optimizer, 16)
    for optimizer, form in itertools.product(("sgd", "momentum", "nesterov", "adagrad"), ("svm", "npy")):
        yield line("softmax", "--group-lasso 0.02 --sync serial", form, optimizer, 5)
    for model, form in itertools.product(("logistic", "softmax"), ("svm", "csv")):
        yield line(model, "--class-weight balanced --sync serial", form, "adagrad", 5)


def schedules():
    for schedule in ("constant:warmup=1", "1/t", "1/t:decay=0.5,warmup=0.5", "1/sqrt", "linear", "linear:least=0.25", "cosine",
                     "cosine:least=0.125,warmup=1", "step", "step:every=0.5,factor=0.25", "recent"):
        yield line("logistic", "--schedule %s --sync serial" % schedule)
        yield line("softmax", "--schedule %s --sync serial" % schedule, "csv", "adagrad", 5)
        yield line("squared", "--schedule %s --sync bsp --workers 2 --servers 2" % schedule, "vw", "momentum", 5)
    yield line("mf:5", "--schedule linear --sync rotation --workers 2")
    yield line("logistic", "--schedule linear --updates 170 --sync serial", epochs=5)
    yield line("logistic", "--schedule 1/t --sync async --workers 3 --transport sim", batch=5)


def full_batch():
    for method, model in itertools.product(("batch", "batch:fista", "batch:plain"), LINEAR):
        for form, penalty in (("svm", "--l2 0.01"), ("csv", "--l1 0.01 --l2 0 --no-intercept"),
                              ("npy", "--l1 0.01 --l2 0.01 --standardize")):
            yield "%s --model %s --epochs 20 %s --sync %s" % (data_of(model, form), model, penalty, method)
    for options in ("--group-lasso 0.02 --l2 0", "--group-lasso 0.02 --l1 0.01 --l2 0 --standardize"):
        yield "four.svm --model softmax --epochs 20 %s --sync batch" % options
    for model, optimizer in (("logistic", "sgd"), ("softmax", "adam"), ("mf:5", "adagrad"), ("graph-cut:3", "momentum"),
                             ("hinge", "ftrl")):
        yield line(model, "--sync batch:optimizer", optimizer=optimizer, epochs=20)
    for form in FORMS[:4]:
        yield line("kmeans:5", "--sync batch", form, epochs=9)


def other():
    """Other options that change the path: validation, the end of a run, restarts, seeds, data from disk."""
    simulated = " --workers 4 --transport sim --compute const:1+exp:rate=0.5"
    yield line("logistic", "--sync serial --valid-fraction 0.2 --early-stop 2", optimizer="adagrad", epochs=30)
    yield line("logistic", "--sync serial --target 0.5", epochs=30)
    yield line("softmax", "--sync serial --seed 7 --updates 77", batch=5)
    yield line("squared", "--sync serial --lr 4 --restarts 9", batch=5)
    yield line("squared", "--sync async --lr 4 --restarts 9" + simulated, batch=5)
    yield line("logistic", "--sync k-async:2 --updates 50 --seed 7" + simulated, batch=5)
    yield line("squared", "--sync ssp:2 --valid-fraction 0.1" + simulated, "csv", batch=5)
    yield line("logistic", "--sync bsp --workers 3 --valid-fraction 0.3 --evaluate-every 3", batch=5)
    for sync in ("serial", "hogwild --deterministic --workers 2", "bsp --deterministic --workers 2", "round-robin --workers 2"):
        yield line("logistic", "--sync %s --memory 1K" % sync, batch=5)


def defaults():
    """What the program chooses by itself."""
    for model in MODELS:
        yield "%s --model %s --epochs 3 --sync serial" % (data_of(model), model)
    for optimizer in OPTIMIZERS:
        yield "real.csv --label y --ignore w --epochs 2 --sync serial --optimizer %s" % optimizer
    yield from ("two.svm", "four.csv --label y --ignore w", "real.vw", "ratings.triples")
    for sync in ("hogwild --deterministic", "cyclades", "bsp --deterministic", "batch"):
        yield "two.svm --sync " + sync
    for model, options in (("logistic", ""), ("squared", " --lr 0.25"), ("hinge", " --l2 0.01")):
        yield "many.svm --model %s --epochs 2 --sync hogwild --deterministic%s" % (model, options)


# ---- workers that share memory, with the batches they take ----
TEAM = (("cyclades --workers 3", 1), ("hogwild --deterministic --workers 2", 1),
        ("hogwild:exchange=16,lanes=3 --deterministic --workers 3", 5), ("hogwild:lanes=8 --deterministic --workers 4", 1),
        ("hogwild:lanes=8,damping=no --deterministic --workers 4", 5), ("bsp --deterministic --workers 3", 16),
        ("bsp --deterministic --workers 2", 150), ("bsp --workers 3", 5), ("average --workers 3", 1),
        ("average:every=4 --workers 2", 5), ("round-robin --workers 4", 1), ("round-robin --workers 3", 5))
ALONE = (("hogwild --workers 1", 1), ("hogwild:exchange=0 --workers 1", 1), ("hogwild:lanes=1 --deterministic --workers 2", 5),
         ("locked --workers 1", 5), ("locked:stripes=4 --workers 1", 1))


def team():
    form = in_turn("svm", "csv", "apart", "npy", "vw")
    for (sync, batch), model in itertools.product(TEAM, MODELS):
        yield line(model, "--sync " + sync, "apart" if "cyclades" in sync else form(), batch=batch)
    for model in MODELS:
        yield line(model, "--sync rotation --workers 3")
    for (sync, batch), model in itertools.product(ALONE, ("logistic", "softmax", "mf:5", "kmeans:5")):
        yield line(model, "--sync " + sync, form(), batch=batch)
    for (sync, batch), optimizer in itertools.product(TEAM, OPTIMIZERS[1:]):
        yield line("logistic", "--sync " + sync, "apart" if "cyclades" in sync else "svm", optimizer, batch)
    for optimizer in OPTIMIZERS[1:]:
        yield line("mf:5", "--sync rotation --workers 2", "apart", optimizer)
    penalties_of = ("--l1 0.01 --l2 0.01", "--l2 0.01 --standardize --no-intercept")
    for (sync, batch), penalty in itertools.product((*TEAM, *ALONE), penalties_of):
        yield line("hinge", penalty + " --sync " + sync, form(), batch=batch)
    for sync, batch in (*TEAM, *ALONE):
        yield line("logistic", "--sync " + sync, "long", "adagrad", batch)
    # Lanes long enough to have cells, of the features that occur.
    for optimizer, options in itertools.product(("sgd", "adagrad", "adam", "ftrl"), ("", "--l2 0.01 ", "--valid-fraction 0.3 ")):
        yield line("logistic", options + "--sync hogwild:exchange=40,lanes=3 --deterministic --workers 2", "long", optimizer)


def team_sizes():
    for sync, workers in itertools.product(("hogwild:lanes=4 --deterministic", "bsp --deterministic", "bsp", "average",
                                            "average:every=3", "round-robin"), (1, 2, 4, 8)):
        yield line("softmax", "--sync %s --workers %d" % (sync, workers), "svm", "adagrad", 5)
    for workers in (1, 2, 4, 8):
        yield line("softmax", "--sync cyclades --workers %d" % workers, "apart", "adagrad")
        yield line("mf:3", "--sync cyclades --workers %d" % workers, "apart", "adagrad")
        yield line("mf:3", "--sync rotation --workers %d" % workers)
        yield line("graph-cut:3", "--sync rotation --shuffle none --workers %d" % workers)


# ---- servers ----
# Strategies that depend on timing, except with one worker.
ONE_WORKER = ("k-sync:1", "k-batch-sync:2", "backup:1", "k-async:1", "k-batch-async:2", "async", "async:staleness=2",
              "async:push=3", "async:push=2,fetch=4", "ssp:2", "ssp:staleness=1,lazy=yes", "essp:2")
# All strategies with a server, for virtual time.
SERVED = ("bsp", "bsp --deterministic", "k-sync:2", "k-batch-sync:3", "backup:3", "backup:k=2,cancel=yes", "k-async:2",
          "k-async:k=3,aware=yes", "k-batch-async:3", "k-batch-async:k=2,aware=yes", "async", "async:aware=yes",
          "async:staleness=2", "async:staleness=3,ramp=1", "async:push=2", "async:push=2,fetch=4", "ssp:0", "ssp:2", "ssp:inf",
          "ssp:staleness=2,lazy=yes", "essp:1", "essp:staleness=2,budget=2000")
TIMES = ("sim --compute const:1+exp:rate=0.5", "sim:latency=0.3 --compute const:1+exp:rate=0.5 --slow 1:7x",
         "sim --compute uniform:1-3 --slow 0:2x,2:3x", "sim:latency=0.1,bandwidth=2000 --compute const:1+exp:rate=0.5",
         "sim:latency=0.2,port=4000,far=1:5x --compute const:1", "sim --compute uniform:1-2 --delay uniform:0-1",
         "sim --compute trace:times.txt")


def threads():
    """Servers and workers that are threads."""
    form = in_turn("svm", "csv", "vw", "npy", "apart")
    for model in MODELS:
        yield line(model, "--sync bsp --workers 3 --servers 2", form(), batch=5)
        yield line(model, "--sync bsp --deterministic --workers 2 --servers 3", form(), batch=100)
    for optimizer in OPTIMIZERS[1:]:
        yield line("logistic", "--sync bsp --workers 2 --servers 3", "svm", optimizer, 5)
    for workers, servers in itertools.product((1, 2, 3, 4, 8), (2, 3)):
        yield line("softmax", "--l1 0.01 --l2 0.01 --sync bsp --workers %d --servers %d" % (workers, servers), batch=16)
    yield line("logistic", "--sync bsp --workers 3 --delay const:0", batch=5)
    yield line("logistic", "--sync bsp --workers 3 --delay exp:mean=0.0002 --slow 2:3x", batch=16)
    yield line("softmax", "--sync bsp --deterministic --workers 2 --servers 2 --slow 1:2x --delay const:0.0001", batch=70)
    for sync in ONE_WORKER:
        servers = 1 if sync.startswith("essp") else 2
        yield line("squared", "--sync %s --workers 1 --servers %d" % (sync, servers), form(), batch=5)


def sim():
    form, times, optimizer = in_turn("svm", "csv", "apart", "npy", "vw"), in_turn(*TIMES), in_turn(*OPTIMIZERS[1:])
    batch, servers, workers = in_turn(5, 1, 16), in_turn(1, 2, 1, 3), in_turn(4, 3, 8)

    def where(sync):
        return "--sync %s --workers %d --servers %d --transport %s" % (
            sync, workers(), 1 if sync.startswith("essp") else servers(), times())

    drawn = in_turn(TIMES[0], "sim --compute uniform:1-5")  # the second needs no C library
    for sync, model in itertools.product(SERVED, MODELS):
        yield line(model, "--sync %s --workers 4 --transport %s" % (sync, drawn()), form(), batch=5)
    for sync, _ in itertools.product(SERVED, range(5)):
        yield line("logistic", where(sync), "svm", optimizer(), batch())
    for sync, penalty in itertools.product(SERVED, ("--l1 0.01 --l2 0.01", "--l2 0.02 --standardize")):
        yield line("softmax", penalty + " " + where(sync), form(), batch=batch())


def sim_sizes():
    for sync, count in itertools.product(("bsp", "k-sync:1", "k-async:1", "async", "ssp:1", "essp:1"), (1, 2)):
        where = "--workers %d --transport sim:latency=0.3 --compute uniform:1-3" % count
        yield line("huber:0.5", "--sync %s %s" % (sync, where), batch=5)
    for sync in ("k-sync:20", "k-batch-sync:30", "backup", "k-async:20", "k-batch-async:30", "async", "ssp", "essp"):
        yield line("logistic", "--sync %s --workers 60 --transport %s" % (sync, TIMES[0]), "apart", batch=1)
    for sync in ("k-sync:2", "k-batch-sync:3", "backup:2", "k-async:2", "k-batch-async:2", "async", "ssp:2"):
        yield line("logistic", "--sync %s --workers 4 --transport sim:dies=2@20,silence=3 --compute const:1+exp:rate=0.5" % sync,
                   batch=5)
    for compute in ("normal:mean=2,deviation=1", "lognormal:mean=1,sigma=1", "pareto:scale=1,shape=2.5"):
        yield line("logistic", "--sync async --workers 4 --transport sim --compute " + compute, batch=5)


def mpi():
    form = in_turn("svm", "csv", "vw", "npy", "apart")
    for model in MODELS:
        yield line(model, "--sync bsp --workers 3 --transport mpi", form(), batch=5)
    for sync in PEERS:
        yield line(NETWORKS[0], "--sync %s --transport mpi" % sync, "svm", batch=16)
    for workers, servers in ((1, 1), (2, 2), (4, 1), (8, 3)):
        yield line("softmax", "--l1 0.01 --l2 0.01 --sync bsp --deterministic --workers %d --servers %d --transport mpi" % (
            workers, servers), batch=100)
    for optimizer in ("nesterov", "adagrad", "adam", "ftrl"):
        yield line("logistic", "--sync bsp --workers 2 --servers 2 --transport mpi", "svm", optimizer, 5)
    for sync in ONE_WORKER:
        yield line("squared", "--sync %s --workers 1 --transport mpi" % sync, form(), batch=5)


# ---- networks, and training without a server ----
NETWORKS = ("mlp:hidden=7-5", "mlp:hidden=40,activation=tanh", "mlp-100:hidden=9", "mlp-300-100-50:hidden=6-5-4", "mlp-regression:hidden=8")
PICTURES = ("cnn:layers=conv3x2-relu-pool2-dense5-tanh,image=IMAGE", "lenet:layers=conv3x2p1-pool2s1-dropout0.25-dense4-sigmoid,image=IMAGE",
            "cnn-regression:layers=conv2x2-tanh,image=IMAGE")
PEERS = ("allreduce --workers 3", "allreduce --deterministic --workers 4", "allreduce:bucket=100,tree=0 --workers 4",
         "allreduce:overlap=no,tree=0 --workers 2", "allreduce:tree=1M --workers 7", "master --workers 3")


def networks():
    form, optimizer, batch = in_turn("svm", "csv", "npy", "vw"), in_turn(*(o for o in OPTIMIZERS if o != "ftrl")), in_turn(16, 5, 70)
    for model, _ in itertools.product((*NETWORKS, *PICTURES), range(9)):
        yield line(model, "--sync serial", "npy" if "IMAGE" in model else form(), optimizer(), batch())
    for model, sync in itertools.product((NETWORKS[0], NETWORKS[1], PICTURES[0]), TEAM):
        if not sync[0].startswith("cyclades"):
            yield line(model, "--sync " + sync[0], "npy" if "IMAGE" in model else form(), batch=sync[1])
    for model, sync in itertools.product((NETWORKS[0], PICTURES[1]), SERVED):
        yield line(model, "--sync %s --workers 4 --transport sim --compute uniform:1-5" % sync, "npy" if "IMAGE" in model else "svm", batch=5)


def peers():
    form, optimizer, batch = in_turn("svm", "csv", "npy", "vw"), in_turn(*(o for o in OPTIMIZERS if o != "ftrl")), in_turn(5, 16, 30)
    models = (*LINEAR, "mf:5", "graph-cut:3", NETWORKS[0], NETWORKS[4], PICTURES[0])
    for sync, where, model in itertools.product(PEERS, ("", " --transport sim:latency=0.1 --compute uniform:1-3"), models):
        yield line(model, "--sync %s%s" % (sync, where), "npy" if "IMAGE" in model else form(), batch=batch())
    for sync in PEERS:
        yield line("logistic", "--sync %s --transport sim" % sync, "svm", optimizer(), 5)
        yield line("hinge", "--l1 0.01 --l2 0.02 --sync %s --transport sim" % sync, "csv", batch=5)
    for sync in PEERS[:3]:
        yield line(NETWORKS[0], "--sync %s --transport sim:dies=2@9.5,silence=0.5 --compute uniform:1-2" % sync.replace(" --deterministic", ""), batch=5)


def states():
    """Only in virtual time the order of one-sided writes is always the same."""
    form, optimizer, batch = in_turn("svm", "csv", "npy", "vw"), in_turn(*OPTIMIZERS), in_turn(5, 16, 30)
    options = in_turn("asgd", "asgd:every=1,slots=1,blend=rate", "asgd:every=2,part=0.5", "asgd:every=1,touched=yes,window=parzen",
                      "asgd:every=3,final=average", "asgd:every=1,window=open,adapt=yes", "asgd:send=no,final=average")
    network = in_turn("sim", "sim:latency=0.1", "sim:latency=0.1,bandwidth=1e3", "sim:loss=0.2,torn=0.2", "sim:dies=2@9.5,silence=0.5")
    for model, _ in itertools.product((*LINEAR, "mf:5", "graph-cut:3", "kmeans:4", NETWORKS[0], PICTURES[0]), range(7)):
        plain = model.startswith("kmeans")
        yield line(model, "--sync %s --workers 4 --transport %s --compute uniform:1-3" % (options(), network()),
                   "npy" if "IMAGE" in model else form(), batch=batch())
        if not plain and "IMAGE" not in model and model[:3] not in ("mlp", "mf:", "gra"):
            yield line(model, "--sync %s --workers 3 --transport sim --compute exp:rate=1" % options(), form(), optimizer(), batch())


GROUPS = (serial, penalties, schedules, full_batch, other, defaults, team, team_sizes, threads, sim, sim_sizes, networks, peers, states)


# ---- what the program refuses, and what depends on the C library ----
def options_of(text):
    words = text.split()
    return {**dict.fromkeys(("--model", "--optimizer", "--sync", "--schedule", "--compute", "--l1", "--l2"), ""),
            **dict(zip(words, words[1:]))}


def adds_steps(sync):
    """Workers send steps, not gradients."""
    return sync.startswith(("ssp", "essp", "async:push"))


REFUSED = (
    ("rotation is for pairs", lambda o: o["--sync"] == "rotation" and not o["--model"].startswith(("mf", "graph-cut"))),
    ("rotation takes no decay", lambda o: o["--sync"] == "rotation" and o["--optimizer"] == "adamw"),
    ("ftrl starts from zero, these models do not",
     lambda o: o["--optimizer"] == "ftrl" and o["--model"].startswith(("mf", "graph-cut"))),
    ("graph-cut keeps its values in the simplex: no decay, no look-ahead",
     lambda o: o["--model"].startswith("graph-cut") and o["--optimizer"] in ("adamw", "nesterov", "rmsprop-nesterov")),
    ("steps in the simplex, or sums, cannot be added up",
     lambda o: adds_steps(o["--sync"]) and o["--model"].startswith(("graph-cut", "kmeans"))),
    ("steps of ftrl cannot be added up", lambda o: adds_steps(o["--sync"]) and o["--optimizer"] == "ftrl"),
    ("group lasso needs equal steps within a feature", lambda o: "--group-lasso" in o and o["--optimizer"] == "adagrad"),
    ("adamw has a decay of its own", lambda o: o["--optimizer"] == "adamw" and (o["--l1"] or o["--l2"] not in ("", "0"))),
    ("the hinge is not smooth", lambda o: o["--sync"] in ("batch", "batch:fista", "batch:plain") and o["--model"] == "hinge"),
    ("several locks cannot charge penalties",
     lambda o: o["--sync"].startswith("locked:") and (o["--l1"] or o["--l2"] not in ("", "0"))),
)


def refused(text):
    """Why the program does not take this command line; None: it takes it."""
    options = options_of(text)
    return next((why for why, rule in REFUSED if rule(options)), None)


def c_functions(text):
    """Functions of the C library that the run calls where its bits may depend on them."""
    o = options_of(text)
    times = o["--compute"] + o.get("--delay", "") if "sim" in o.get("--transport", "") else ""
    own_steps = o["--sync"] in ("batch", "batch:fista", "batch:plain")
    uses = {
        "pow": o["--optimizer"].startswith("adam") or o["--schedule"].startswith("step") or "pareto" in times or
               not ("--lr" in o or own_steps or o["--model"].startswith("kmeans")),
        "cos": o["--schedule"].startswith("cosine") or o["--model"].startswith(("mlp", "cnn", "lenet")) or o["--model"].startswith("mf") or text.startswith("ratings") or
               (own_steps and not o["--model"].startswith("kmeans")) or "normal:" in times,
        "exp": "lognormal" in times,
        "log1p": "exp:" in times,
    }
    uses["log"] = uses["cos"] and not o["--schedule"].startswith("cosine") or "--restarts" in o
    return [name for name, used in uses.items() if used]
