"""The data of test_hashes.py: text and arrays from a generator of their own, the same on every machine."""
import math
import struct


class Numbers:
    """A linear congruential generator (Knuth's MMIX), its upper 32 bits."""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2 ** 64
        return (self.state >> 32) * n >> 32

    def value(self):
        """In [−2, 2], a multiple of 1/256: sums and products of a few are exact."""
        return (self.below(1025) - 512) / 256

    def some(self, count, n):
        return sorted({self.below(n) for _ in range(count)})


def truth(j):
    return (j * 7 % 11 - 5) / 4


def labels(score):
    """Of two classes, of four, and a number."""
    return {"two": 1 if score > 0 else -1, "four": min(max(math.floor(score) + 3, 1), 4), "real": score}


def sparse_rows(seed, count, features, most):
    """Entries, labels and a weight of every row."""
    numbers = Numbers(seed)
    for _ in range(count):
        row = [(j, numbers.value()) for j in numbers.some(1 + numbers.below(most), features)]
        yield row, labels(sum(v * truth(j) for j, v in row) + numbers.value() / 2), 0.5 + numbers.below(8) / 4


def dense_rows(seed, count, features):
    numbers = Numbers(seed)
    for _ in range(count):
        row = [numbers.value() + 4 * (j == 3) for j in range(features)]
        score = sum(v * truth(j) for j, v in enumerate(row)) / 2
        yield row, labels(score + numbers.value() / 2), 0.25 + numbers.below(8) / 4


def write_lines(name, lines):
    with open(name, "w") as file:
        file.writelines(line + "\n" for line in lines)


def write_npy(name, shape, values):
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }" % (shape,)
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(name, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        file.write(struct.pack("<%df" % len(values), *values))


def write_linear(kind):
    """Rows of one kind of label in every format. Their numbers do not divide by the batches."""
    def svm(name, rows):
        write_lines(name, ("%g" % y[kind] + "".join(" %d:%g" % (j + 1, v) for j, v in row) for row, y, _ in rows))

    svm(kind + ".svm", sparse_rows(11, 203, 37, 9))
    svm(kind + "-apart.svm", sparse_rows(12, 701, 4001, 3))  # few rows have a feature in common: windows of cyclades
    svm(kind + "-long.svm", sparse_rows(13, 97, 90000, 40))  # longer than sixteen lanes, indices of more than 16 bits
    write_lines(kind + ".vw", ("%g %g |x%s" % (y[kind], w, "".join(" f%d:%g" % e for e in row))
                               for row, y, w in sparse_rows(14, 151, 29, 7)))
    text = {"four": "%.0fth", "two": "%.0f", "real": "%g"}[kind]
    write_lines(kind + ".csv", [",".join("x%d" % j for j in range(9)) + ",y,w"] + [
        ",".join("%g" % v for v in row) + ",%s,%g" % (text % y[kind], w) for row, y, w in dense_rows(15, 137, 9)])
    rows = list(dense_rows(16, 119, 21))
    write_npy(kind + ".npy", (119, 21), [v for row, _, _ in rows for v in row])
    write_npy(kind + "-y.npy", (119,), [y[kind] for _, y, _ in rows])


def write_ratings(name, seed, count, users, items):
    numbers = Numbers(seed)
    pairs = {(numbers.below(users), numbers.below(items)) for _ in range(count)}
    write_lines(name, ("u%d i%d %g" % (u, i, 3 + truth(u) * truth(i) / 2 + numbers.value() / 2)
                       for u, i in sorted(pairs, key=lambda e: ((e[0] * 31 + e[1] * 17) % 101, e))))


def write_edges(name, seed, pairs):
    numbers = Numbers(seed)
    write_lines(name, ("%g %d:1 %d:1" % ((1 + numbers.below(64)) / 64, a, b)
                       for a, b in sorted(pairs, key=lambda e: ((e[0] * 37 + e[1] * 11) % 103, e))))


def write_files():
    """All of them, in the current folder."""
    for kind in ("two", "four", "real"):
        write_linear(kind)
    write_lines("many.svm", ("%d%s" % (y["two"], "".join(" %d:%g" % (j + 1, v) for j, v in row))
                             for row, y, _ in sparse_rows(17, 3001, 13, 6)))  # lanes whose rounds grow
    write_ratings("ratings.triples", 21, 260, 23, 17)
    write_ratings("ratings-apart.triples", 22, 701, 1301, 1103)
    write_edges("edges.svm", 23, [(t, v) for t in (1, 2, 3) for v in range(4, 40)] +
                [(v, v + d) for v in range(4, 34) for d in (1, 5)])
    numbers = Numbers(24)
    write_edges("edges-apart.svm", 25, {(a, a + 1 + numbers.below(900)) for a in (1 + numbers.below(2000) for _ in range(701))})
    centers = [(numbers.below(3) * 4, numbers.below(3) * 5) for _ in range(173)]
    write_lines("points.csv", ["x,y,z"] + ["%g,%g,%g" % (a + numbers.value(), b + numbers.value(), numbers.value())
                                           for a, b in centers])
    write_lines("times.txt", ("%d %g" % (numbers.below(4), 0.5 + numbers.below(100) / 64) for _ in range(60)))
