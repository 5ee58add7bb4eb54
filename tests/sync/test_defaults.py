"""Defaults are good: the accuracy of `sounder train DATA` with no tuning, whatever units the features have."""
import gzip
import lzma
import os

from optimum import finish, folder, law, need, train

a9a, a9a_t, images, labels, images_t, labels_t, rcv1, housing, kdd = need(
    "a9a/a9a.gz", "a9a/a9a.t.gz", "mnist/train-images-idx3-ubyte.gz", "mnist/train-labels-idx1-ubyte.gz",
    "mnist/t10k-images-idx3-ubyte.gz", "mnist/t10k-labels-idx1-ubyte.gz",
    "rcv1-subsets/rcv1_subsets.binary.xz", "california-housing/housing.csv.gz",
    "kddcup99/kddcup.data_10_percent.gz")


def in_other_units(path, to, feature, by=1000):
    """The same file with one feature multiplied."""
    mark = " %d:" % feature
    changed = 0
    with gzip.open(path, "rt") as old, open(to, "w") as new:
        for line in old:
            at = line.find(mark)
            if at >= 0:
                end = line.find(" ", at + len(mark))
                end = len(line.rstrip("\n")) if end < 0 else end
                value = float(line[at + len(mark):end])
                line = line[:at + len(mark)] + "%.9g" % (value * by) + line[end:]
                changed += 1
            new.write(line)
    assert changed > 0
    return to


@law
def a9a_reaches_848():
    accuracy = train(a9a, "--valid", a9a_t)["valid_accuracy"]
    assert accuracy >= 0.848, accuracy
    return "%.4f" % accuracy


@law
def a9a_does_not_depend_on_the_units_of_a_feature():
    plain = train(a9a, "--valid", a9a_t)["valid_accuracy"]
    seen = []
    with folder() as place:
        for feature in (19, 40):
            data = in_other_units(a9a, os.path.join(place, "a9a"), feature)
            test = in_other_units(a9a_t, os.path.join(place, "a9a.t"), feature)
            accuracy = train(data, "--valid", test)["valid_accuracy"]
            seen.append("%d: %.4f" % (feature, accuracy))
            assert abs(accuracy - plain) <= 0.005, (feature, accuracy, plain)
    return "%.4f, %s" % (plain, ", ".join(seen))


@law
def rcv1_reaches_960():
    with folder() as place:
        path = os.path.join(place, "rcv1.svm")
        with lzma.open(rcv1) as old, open(path, "wb") as new:
            new.write(old.read())
        accuracy = train(path, "--valid-fraction", 0.2)["valid_accuracy"]
    assert accuracy >= 0.960, accuracy
    return "%.4f" % accuracy


@law
def mnist_softmax_reaches_920():
    accuracy = train(images, "--labels", labels, "--valid", images_t, "--valid-labels", labels_t,
                     "--model", "softmax")["valid_accuracy"]
    assert accuracy >= 0.920, accuracy
    return "%.4f" % accuracy


@law
def california_housing_explains_60_percent():
    r2 = train(housing, "--label", "median_house_value", "--missing", "mean", "--valid-fraction",
               0.2)["valid_r2"]
    assert r2 >= 0.60, r2
    return "%.4f" % r2


@law
def kddcup99_reaches_997():
    accuracy = train(kdd, "--valid-fraction", 0.2)["valid_accuracy"]
    assert accuracy >= 0.997, accuracy
    return "%.4f" % accuracy


finish()
