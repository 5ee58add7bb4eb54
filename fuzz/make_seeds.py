#!/usr/bin/env python3
"""Makes seeds of the files that Sounder itself writes: fuzz/make_seeds.py PROGRAM FOLDER

Models and checkpoints are given in parts (see tensors.h), one of each as it stands; caches and records as
they stand. scripts/fuzz calls this, so that fuzzing starts from today's formats; to renew the seeds kept
here: fuzz/make_seeds.py build/sounder fuzz/corpus"""
import glob, json, os, struct, subprocess, sys, tempfile

program, out = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
for name in "model", "checkpoint", "cache", "record":
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
