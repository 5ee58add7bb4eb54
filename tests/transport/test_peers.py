"""Peers, nodes without a server: the ring of tests/plugins/ring_sum.c, which checks in itself that every peer has the direct
sum and the same replica. Laws of what comes out: the same bits on threads and in virtual time, as good as bsp, resumed to
the same bits, and the times that the links of the simulator give."""
import json, os, subprocess, sys, tempfile

work = tempfile.mkdtemp()
program = os.path.join(os.path.dirname(os.environ["SOUNDER"]), "sounder_test")
failed = []


def expect(condition, *what):
    if not condition:
        failed.append(what)
        print("FAILED:", *what)


def run(*options, code=0):
    done = subprocess.run([program, "train", data, "--quiet", "--json", *map(str, options)], capture_output=True, text=True)
    expect(done.returncode == code, options, "ended with", done.returncode, done.stderr[-300:])
    return json.loads(done.stdout) if done.stdout else {"error": done.stderr}


data = os.path.join(work, "data.svm")
subprocess.run([program, "generate", "sparse-classification", data, "--rows", "600", "--features", "30", "--nnz", "6", "--seed", "4",
                "--quiet"], check=True, stdout=subprocess.DEVNULL)

# As good as bsp, with the same batches: sums are taken in another order, and nothing else differs. With 50 peers there are
# more of them than values (32 of the model, padding included, and 5 of the test vector), and parts of a batch are empty.
for model in (["--model", "logistic", "--l2", "0.001"], ["--model", "squared", "--optimizer", "sgd"]):
    for peers in (1, 2, 3, 7, 50):
        batch = 60 // peers if peers < 50 else 1
        common = [*model, "--workers", peers, "--batch", batch, "--epochs", 2]
        one = run("--sync", "ring-sum", *common)
        two = run("--sync", "ring-sum", *common, "--transport", "sim", "--compute", "exp:rate=1", "--slow", "0:3x")
        bsp = run("--sync", "bsp", *common)
        expect(one["model_hash"] == two["model_hash"], model, peers, "peers: other bits in virtual time")
        expect(one["updates"] == bsp["updates"] and one["epochs"] == 2, model, peers, one["updates"], "updates, bsp", bsp["updates"])
        expect(abs(one["train_loss"] - bsp["train_loss"]) < 1e-4 * bsp["train_loss"], model, peers, one["train_loss"], bsp["train_loss"])
        expect(one["staleness_max"] == 0 and [w["gradients"] for w in one["workers_detail"]] == [one["updates"]] * peers,
               peers, "peers: the ledger says", one["workers_detail"])
empty = run("--sync", "ring-sum:values=0", "--workers", 3, "--updates", 3)
expect(empty["updates"] == 3, "a vector of no values", empty["updates"])

# Bytes of an update, by the ledger: 2·N·(P−1) values around the ring for each of the two vectors, N·P·(P−1) directly, 8 bytes
# to compare replicas; headers are not counted.
run("--sync", "ring-sum", "--workers", 4, "--updates", 3, "--batch", 5, "--run", os.path.join(work, "bytes"))
lines = subprocess.run([program, "inspect", os.path.join(work, "bytes"), "--ledger"], capture_output=True, text=True).stdout.split("\n")
records = [dict(zip(lines[0].split(","), line.split(","))) for line in lines[1:] if line]
values, peers = 31, 4  # 30 features and an intercept
wanted = 4 * (2 * (values + 5) * (peers - 1) + values * peers * (peers - 1)) + peers * 8
for update in range(3):
    sent = sum(int(record["bytes"]) for record in records if int(record["applied"]) == update)
    expect(sent == wanted, "update", update, "took", sent, "bytes, not", wanted)

# Virtual time: an update is a second of work and six messages one after the other (two around the ring for each vector, the
# gradient, the replica's hash). The report to peer 0 travels while the next update begins, but for the last one.
straight = run("--sync", "ring-sum:values=0", "--workers", 2, "--updates", 10, "--transport", "sim:latency=0.25")
expect(abs(straight["seconds_train"] - 10 * (1 + 6 * 0.25) - 0.25) < 1e-6, "latency:", straight["seconds_train"])
# Every worker has a port: it is full when a gradient of 48 floats and its header are sent to 3 others at the same time.
slow = {n: run("--sync", "ring-sum:values=0", "--workers", n, "--updates", 1, "--transport", "sim:port=1000")["seconds_train"] for n in (2, 3)}
expect(slow[3] > slow[2] + 0.2, "ports:", slow)

# A death ends the run with a checkpoint, from which it goes on to the same bits.
common = ["--sync", "ring-sum", "--workers", 4, "--batch", 10, "--epochs", 2]
whole = run(*common, "--transport", "sim")
folder = ["--run", os.path.join(work, "run")]
lost = run(*common, *folder, "--transport", "sim:dies=2@7.5,silence=3", code=6)
expect("worker 2 was lost" in lost["error"] and "--resume" in lost["error"], lost)
again = run(*common, *folder, "--transport", "sim", "--resume")
expect(again["model_hash"] == whole["model_hash"] and again["updates"] == whole["updates"], "resumed:", again["updates"])
lost = run(*common, "--transport", "sim:dies=0@7.5", code=6)
expect("worker 0" in lost["error"], lost)

for option in (["--servers", "2"], ["--model", "kmeans:3"], ["--restarts", "2"], ["--pin", "yes"]):
    expect(run("--sync", "ring-sum", *option, code=2)["error"].startswith("sounder: "), option)
print("peers:", len(failed), "laws broken")
subprocess.run(["rm", "-rf", work])
sys.exit(bool(failed))
