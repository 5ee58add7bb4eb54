#!/usr/bin/python3
"""Files that numpy and scipy write are read as numpy and scipy mean them, and generated files are what
numpy reads: an independent implementation on the other side of every format."""
import gzip
import json
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import scipy.sparse as sp
except ImportError:
    sys.exit(77)

SOUNDER = os.environ.get("SOUNDER", "build/sounder")
if not os.path.exists(SOUNDER):
    sys.exit(77)


def run(*arguments):
    return subprocess.run([SOUNDER, *arguments], capture_output=True, text=True, check=False)


def inspect(*arguments):
    done = run("inspect", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def check(got, matrix, labels=None):
    assert got["rows"] == matrix.shape[0], got
    assert got["features"] == int(np.prod(matrix.shape[1:])), got
    nonzeros = matrix.nnz if sp.issparse(matrix) else np.count_nonzero(matrix)
    assert got["nonzeros"] == nonzeros, (got["nonzeros"], nonzeros)
    if labels is not None:
        counts = {str(v): int(n) for v, n in zip(*np.unique(labels, return_counts=True))}
        assert {x["label"]: x["rows"] for x in got["labels"]} == counts, (got["labels"], counts)


def test_arrays(folder, rng):
    """Every dtype, order and number of dimensions that numpy.save writes."""
    for dtype in "?BbHhIiLlQq", "fd", "<f4 >f4 <f8 >f8 <i2 >i2 >i4 >u8".split():
        for kind in dtype:
            for order in "C", "F":
                for shape in (40, 7), (12, 3, 5):
                    x = (rng.integers(0, 3, shape)).astype(kind)
                    np.save(folder + "/x.npy", np.asarray(x, order=order))
                    y = rng.integers(0, 4, shape[0])
                    np.save(folder + "/y.npy", y)
                    check(inspect(folder + "/x.npy", "--labels", folder + "/y.npy"), x, y)
    with gzip.open(folder + "/x.npy.gz", "wb") as file:
        np.save(file, x)
    check(inspect(folder + "/x.npy.gz"), x)


def test_refused(folder):
    for x in np.array([1j]), np.array(["a"]), np.array([None]), np.zeros(3, "i4,f4"), np.zeros(0):
        np.save(folder + "/bad.npy", x, allow_pickle=True)
        done = run("inspect", folder + "/bad.npy")
        assert done.returncode == 3, (x, done)
        assert done.stderr.count("\n") == 1, done.stderr


def test_matrices(folder, rng):
    """scipy.sparse.save_npz, stored and deflated, sorted or not; labels added by numpy.savez."""
    for compressed in False, True:
        for dtype in "f4", "f8", "i4", "i8":
            x = sp.random(50, 300, 0.05, "csr", random_state=rng)
            x.data = np.ceil(x.data * 9)
            x = x.astype(dtype)
            x.indices[x.indptr[3]:x.indptr[4]] = x.indices[x.indptr[3]:x.indptr[4]][::-1]
            x.has_sorted_indices = False
            sp.save_npz(folder + "/x.npz", x, compressed=compressed)
            check(inspect(folder + "/x.npz"), x)
    y = rng.integers(0, 2, 50)
    save = np.savez_compressed
    save(folder + "/xy.npz", data=x.data, indices=x.indices, indptr=x.indptr, shape=x.shape,
         format=np.array(b"csr"), y=y)
    check(inspect(folder + "/xy.npz"), x, y)
    sp.save_npz(folder + "/csc.npz", x.tocsc())
    done = run("inspect", folder + "/csc.npz")
    assert done.returncode == 3 and "tocsr" in done.stderr, done


def test_generated(folder):
    """A generated .npy is what numpy reads; its label is the sign that its truth gives, but for noise."""
    path = folder + "/g.npy"
    done = run("generate", "dense-classification", path, "--rows", "3000", "--features", "30",
               "--seed", "4", "--noise", "0.2")
    assert done.returncode == 0, done.stderr
    x, y = np.load(path), np.load(path + ".labels.npy")
    with open(path + ".truth.json", encoding="utf-8") as file:
        truth = json.load(file)
    w = np.zeros(30)
    for feature, weight in truth["weights"]:
        w[feature] = weight
    assert x.shape == (3000, 30) and x.dtype == np.float32
    assert abs(x.mean()) < 0.02 and abs(x.std() - 1) < 0.02
    assert abs(np.mean(np.sign(x @ w) == y) - 0.8) < 0.03
    check(inspect(path, "--labels", path + ".labels.npy"), x)


def main():
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        test_arrays(folder, rng)
        test_refused(folder)
        test_matrices(folder, rng)
        test_generated(folder)


main()
