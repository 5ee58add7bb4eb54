"""Three small data sets for tests of workers that share batches: sparse rows, dense rows, pictures."""
import os, subprocess, tempfile

import numpy

SOUNDER = os.environ["SOUNDER"]
work = tempfile.TemporaryDirectory(prefix="sounder-test-")
path = lambda name: os.path.join(work.name, name)


def generate(kind, name, *options):
    subprocess.run([SOUNDER, "generate", kind, path(name), "--seed", "4", "--quiet", *options], check=True, stdout=subprocess.DEVNULL)
    return path(name)


ROWS, FEATURES = 230, 97  # no multiples of a batch, a leaf or a number of workers
sparse = [generate("sparse-classification", "sparse.svm", "--rows", str(ROWS), "--features", str(FEATURES), "--nnz", "9")]
dense = [generate("dense-classification", "dense.csv", "--rows", str(ROWS), "--features", "12"), "--label", "label"]
images = numpy.random.default_rng(3).normal(size=(ROWS, 9, 8)).astype("float32")
numpy.save(path("images.npy"), images)
numpy.save(path("labels.npy"), (images[:, 2, 3] > images[:, 5, 5]).astype("int64") + (images[:, 1, 1] > 1))
pictures = [path("images.npy"), "--labels", path("labels.npy")]
