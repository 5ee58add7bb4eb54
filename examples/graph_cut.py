#!/usr/bin/env python3
"""Segments a noisy image by a graph cut, on all cores.

    examples/graph_cut.py [SOUNDER [OUT.png [SIDE]]]

Generates an image with `sounder generate image` and turns it into a graph: edges join every pixel to its four
neighbours, with weights that grow with their similarity, and to the two terminals, dark and bright. Cuts the
graph with `sounder train --model graph-cut --sync hogwild`, and draws the image, its threshold per pixel, and
the cut side by side. Needs numpy."""
import argparse
import atexit
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

try:
    import numpy as np
except ImportError:
    sys.exit("graph_cut.py: there is no numpy for this Python (Debian: python3-numpy, and /usr/bin/python3)")

parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("sounder", nargs="?", default="build/sounder", help="the program (build/sounder)")
parser.add_argument("out", nargs="?", default="graph-cut.png", help="the picture to write (graph-cut.png)")
parser.add_argument("side", nargs="?", type=int, default=256, help="pixels of a side (256)")
arguments = parser.parse_args()
SOUNDER, OUT, SIDE, NOISE = arguments.sounder, arguments.out, arguments.side, 0.25
if not shutil.which(SOUNDER):
    parser.error("there is no program '%s'" % SOUNDER)
WORK = tempfile.mkdtemp(prefix="sounder-graph-cut-")
atexit.register(shutil.rmtree, WORK)


def run(*arguments):
    return subprocess.run([SOUNDER, *map(str, arguments)], check=True, stdout=subprocess.PIPE, text=True).stdout


def read_pgm(path):
    with open(path, "rb") as file:
        magic, size, most, pixels = file.read().split(b"\n", 3)
    assert magic == b"P5" and most == b"255"
    width, height = map(int, size.split())
    return np.frombuffer(pixels, np.uint8).reshape(height, width)


def write_png(path, grey):
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    height, width = grey.shape
    lines = b"".join(b"\0" + line.tobytes() for line in grey.astype(np.uint8))
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)) +
                   chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b""))


def edges(picture, dark, bright):
    """Edges as (vertex, vertex, weight). Vertices 1 and 2 are the terminals; pixels follow."""
    grey = picture.astype(float)
    number = np.arange(grey.size).reshape(grey.shape) + 3
    for level, terminal in ((dark, 1), (bright, 2)):
        likely = np.exp(-((grey - level) / 85) ** 2)
        yield np.full(grey.size, terminal), number.ravel(), 0.6 * likely.ravel()
    for a, b in ((np.s_[:, :-1], np.s_[:, 1:]), (np.s_[:-1, :], np.s_[1:, :])):
        alike = np.exp(-((grey[a] - grey[b]) / 170) ** 2)
        yield number[a].ravel(), number[b].ravel(), alike.ravel()


picture_path, graph, model = (os.path.join(WORK, name) for name in ("picture.pgm", "graph.svm", "model"))
run("generate", "image", picture_path, "--rows", SIDE, "--features", SIDE, "--noise", NOISE)
picture, truth = read_pgm(picture_path), read_pgm(picture_path + ".truth.pgm") > 127
with open(graph, "w") as file:
    for one, other, weight in edges(picture, 85, 170):
        file.writelines("%.4f %d:1 %d:1\n" % edge for edge in zip(weight, one, other))
result = json.loads(run("train", graph, "--format", "libsvm", "--model", "graph-cut", "--sync", "hogwild",
                        "--epochs", 20, "--out", model, "--json", "--quiet"))
with open(model, "rb") as file:
    raw = file.read()
size = struct.unpack("<Q", raw[:8])[0]
place = json.loads(raw[8:8 + size])["part"]["data_offsets"]
part = np.frombuffer(raw[8 + size + place[0]:8 + size + place[1]], "<f4").reshape(-1, 2)
cut = part[2:].argmax(1).reshape(picture.shape).astype(bool)
alone = picture > 127
write_png(OUT, np.hstack([picture, 255 * alone, 255 * cut]))
print("%d edges, %d workers: cut %.4f an edge" % (result["rows"], result["workers"], result["train_loss"]))
print("pixels on the wrong side: %.2f %% judged one by one, %.2f %% after the cut" %
      (100 * np.mean(alone != truth), 100 * np.mean(cut != truth)))
print("written: %s (the picture, pixels one by one, the cut)" % OUT)
