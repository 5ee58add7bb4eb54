#!/usr/bin/env python3
"""Makes seeds of the files that Sounder itself writes: fuzz/make_seeds.py PROGRAM FOLDER

Models and checkpoints are given in parts (see tensors.h), one of each as it stands; caches, records, ledgers and
times as they stand; updates, which no file holds, are put together here. scripts/fuzz calls this, so that fuzzing
starts from today's formats; to renew the seeds kept here: fuzz/make_seeds.py build/sounder fuzz/corpus"""
import glob, json, os, struct, subprocess, sys, tempfile

program, out = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
for name in "model", "checkpoint", "cache", "record", "ledger", "trace", "update":
    os.makedirs(os.path.join(out, name), exist_ok=True)
work = tempfile.TemporaryDirectory()
os.chdir(work.name)


def run(*arguments):
    done = subprocess.run([program, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"sounder {' '.join(arguments)}: {done.stderr}")


def keep(kind, name, content):
    with open(os.path.join(out, kind, name), "wb") as file:
        file.write(content)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def parts(content):
    length = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + length])
    del header["__metadata__"]["checksum"]
    for name, entry in header.items():
        entry.pop("data_offsets", None)
    return json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode() + b"\n" + content[8 + length:]


colours, kinds = ["red", "blue", "green"], ["x", "y", "z"]
texts = {
    "two.svm": [f"{1 if i % 2 else -1} {i % 3 + 1}:0.{i % 9 + 1} 5:1" for i in range(40)],
    "values.svm": [f"{i * 0.5} {i % 3 + 1}:0.{i % 9 + 1} 5:1" for i in range(40)],
    "words.csv": ["a,b,colour,label"] + [f"{i % 5},{'' if i % 7 == 0 else i * 0.5},{colours[i % 3]},{kinds[i * 2 % 3]}"
                                         for i in range(40)],
    "ratings.triples": [f"u{i % 7} i{i * i % 5} {i % 5 + 1}" for i in range(40)],
    "edges.svm": [f"0.{i % 9 + 1} {i % 3 + 1}:1 {i % 4 + 4}:1" for i in range(40)],
    "numbers.csv": ["a,b,c,label"] + [f"{i % 5},{i % 7 * 0.5},{i % 11 + i % 2},{i % 2}" for i in range(40)],
}
for name, lines in texts.items():
    with open(name, "w") as file:
        file.write("\n".join(lines) + "\n")

for name, arguments in {"logistic": ["two.svm"], "softmax": ["words.csv", "--model", "softmax", "--missing", "mean"],
                        "regression": ["values.svm", "--model", "huber"],
                        "hashed": ["two.svm", "--bits", "4", "--model", "hinge"],
                        "ratings": ["ratings.triples", "--model", "mf:rank=3"],
                        "clusters": ["numbers.csv", "--model", "kmeans:4"],
                        "cut": ["edges.svm", "--model", "graph-cut:3"]}.items():
    run("train", *arguments, "--epochs", "2", "--threads", "1", "--out", "m.safetensors")
    keep("model", name, parts(read("m.safetensors")))
    if name == "logistic":
        keep("model", "whole", read("m.safetensors"))

# The configurations of fuzz_checkpoint.c, on data of the same shape.
rows = ["--optimizer", "adam", "--average", "0", "--early-stop", "2", "--valid-fraction", "0.25"]
for name, updates, arguments in [("rows", "17", rows), ("averaged", "50", rows), ("batch", "1", ["--sync", "batch"])]:
    folder = "run-" + name
    run("train", "numbers.csv", "--model", "logistic", "--epochs", "3", "--threads", "1", "--run", folder,
        "--updates", updates, *arguments)
    newest = read(max(glob.glob(folder + "/checkpoint-*.safetensors")))
    keep("checkpoint", name, parts(newest))
    if name == "rows":
        keep("checkpoint", "whole", newest)

for name, arguments in {"sparse": ["two.svm"], "dense": ["numbers.csv"],
                        "categories": ["words.csv", "--missing", "mean"]}.items():
    run("convert", *arguments, "c.sdc")
    keep("cache", name, read("c.sdc"))

for name, arguments in {"exchanges": ["hogwild:exchange=8"], "steps": ["hogwild:exchange=0"]}.items():
    run("train", "two.svm", "--epochs", "2", "--threads", "1", "--workers", "2", "--sync", *arguments, "--record", "r")
    keep("record", name, read("r"))

for name, sync in {"workers": "async", "dropped": "k-sync:2"}.items():
    run("train", "two.svm", "--epochs", "2", "--threads", "1", "--workers", "3", "--transport", "sim", "--sync", sync,
        "--compute", "exp:rate=1", "--run", "run-ledger-" + name)
    keep("ledger", name, b"\1" + read("run-ledger-" + name + "/ledger")[16:])
    keep("ledger", "whole", read("run-ledger-" + name + "/ledger"))
    keep("trace", name, subprocess.run([program, "inspect", "run-ledger-" + name, "--ledger"], stdout=subprocess.PIPE).stdout)
keep("trace", "times", b"0.5\n0.25\n1e-3\n")
keep("trace", "times_of_workers", b"0 0.5\n1 0.25\n0\t1e-3\n")


def update(parts, sense=0, rows=4, leaves=1, span=3, codec=0, dense=0):
    """A message of fuzz_update.c: what the reader expects, the head, losses, heads of parts, arrays."""
    heads, arrays = b"", b""
    for part in parts:
        block, form, right, flags, count, first, index, values, stored, shared = (
            part.get(key, 0) for key in "block form right flags count first index values stored shared".split())
        listed = struct.pack("<%dI" % len(index), *index) if index else b""
        size = 2 if codec == 1 else 4  # half is the first codec by name
        heads += struct.pack("<H3B3x6I2Q", block, form, right, flags, count, first, 0, part.get("leaves", 0), shared,
                             len(listed), size * values, size * stored)
        for array in listed, (b"\0\x3c" * 2)[:size] * values, (b"\0\x3c" * 2)[:size] * stored:
            arrays += array + bytes(-len(array) % 8)
    return (bytes([codec, rows, span, dense]) + struct.pack("<IHHIIIfd", 0x55524453, 1, sense, len(parts), leaves, rows, 0.5, 0.1)
            + struct.pack("<2d", 1.5, rows) * leaves + heads + arrays)


DENSE, ROWS, TOUCHED, FACTORS = range(4)
DISTINCT, INDEXED, SHARED = 1, 2, 4
linear = [dict(block=0, form=FACTORS, count=4, values=12), dict(block=1, form=FACTORS, right=2, flags=SHARED, count=4)]
for name, content in {
        "linear": update(linear), "half": update(linear, codec=1), "dense_rows": update(linear, dense=1),
        "clusters": update([dict(block=0, form=FACTORS, flags=INDEXED, count=4, index=[0, 2, 1, 2], values=4),
                            dict(block=1, form=FACTORS, right=2, flags=SHARED | INDEXED, count=4)], sense=3),
        "listed": update([dict(block=0, form=ROWS, flags=INDEXED, count=3, index=[1, 9, 1], values=9)]),
        "distinct": update([dict(block=2, form=ROWS, flags=INDEXED | DISTINCT, count=2, index=[1, 9], values=2)]),
        "network": update([dict(block=3, form=FACTORS, right=1, count=4, values=20, stored=16),
                           dict(block=1, form=DENSE, count=3, values=3, leaves=1)]),
        "dense": update([dict(block=3, form=DENSE, count=20, values=20, leaves=2), dict(block=3, form=DENSE, count=20, values=20, leaves=1)]),
        "step": update([dict(block=0, form=TOUCHED, count=11, values=33), dict(block=1, form=DENSE, count=3, values=3)], sense=1),
        "nothing": update([], rows=0, leaves=0)}.items():
    keep("update", name, content)
