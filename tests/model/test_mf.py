"""Matrix factorisation: its steps against numpy, planted ratings recovered, recommendations by brute force,
and real ratings (Jester) against means."""
import csv
import io
import json
import os
import sys
import zipfile

import numpy as np

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import laws
from laws import MODEL as FILE, expect, path_of, run
from tensors import read_tensors

random = np.random.default_rng(5)


class Model:
    """Factors, biases and ids of a model file."""

    def __init__(self, path):
        tensors, metadata = read_tensors(path)
        self.ids = json.loads(metadata["schema"])["categories"]
        self.factor = np.hstack([tensors[name].reshape(len(self.ids), -1) for name in ("factor", "bias") if name in tensors]).astype(float)
        self.intercept = float(tensors["intercept"].ravel()[0])
        self.place = {name: i for i, name in enumerate(self.ids)}

    def rating(self, user, item, rank):
        a, b = self.factor[self.place["user:" + user]], self.factor[self.place["item:" + item]]
        return self.intercept + a[:rank] @ b[:rank] + a[rank:].sum() + b[rank:].sum()


def train(path, *options):
    if "--sync" not in options:
        options += ("--sync", "serial")
    return laws.train(path, *options)[0], Model(FILE)


def write(name, ratings):
    path = path_of(name)
    with open(path, "w") as file:
        file.writelines("%s %s %.4f\n" % rating for rating in ratings)
    return path


# ---- the steps, one by one ----
RANK, RATE, L2 = 5, 0.02, 0.1
users, items = ["Ann", "Bob", "Ümit", "d4"], ["tea", "cocoa", "x:1"]
ratings = [(users[random.integers(4)], items[random.integers(3)], float(random.normal(3, 1))) for _ in range(60)]
path = write("small.triples", ratings)
PLAIN = ["--model", "mf:rank=%d,l2=%g" % (RANK, L2), "--optimizer", "sgd", "--schedule", "constant", "--scale",
         "none", "--shuffle", "none"]
_, begin = train(path, *PLAIN, "--lr", 1e-30, "--epochs", 1)
result, end = train(path, *PLAIN, "--lr", RATE, "--epochs", 2)
expect("factors start small and different", 0.05 < begin.factor[:, :RANK].std() < 1 and
       len(np.unique(begin.factor[:, :RANK])) == begin.factor[:, :RANK].size)
w, mean = begin.factor.copy(), begin.intercept
for user, item, rating in ratings * 2:
    a, b = begin.place["user:" + user], begin.place["item:" + item]
    wa, wb = w[a].copy(), w[b].copy()
    slope = mean + wa[:RANK] @ wb[:RANK] + wa[RANK] + wb[RANK] - round(rating, 4)
    w[a] -= RATE * (slope * np.append(wb[:RANK], 1) + L2 * wa)
    w[b] -= RATE * (slope * np.append(wa[:RANK], 1) + L2 * wb)
expect("steps are numpy's", np.allclose(end.factor, w, rtol=1e-4, atol=1e-5) and abs(end.intercept - np.mean([round(r, 4) for _, _, r in ratings])) < 1e-4,
       "%.1e" % abs(end.factor - w).max())


def objective(model, l2, l2_item):
    """Mean of half the squared error, and of l2/2 of the rows of factors and biases, of a rating."""
    terms = []
    for user, item, rating in ratings:
        a, b = (model.factor[model.place[name]] for name in ("user:" + user, "item:" + item))
        error = model.intercept + a[:RANK] @ b[:RANK] + a[RANK] + b[RANK] - round(rating, 4)
        terms.append((error ** 2 + l2 * (a @ a) + l2_item * (b @ b)) / 2)
    return np.mean(terms)


for spec, l2, l2_item in (("", L2, L2), (",l2-item=0.7", L2, 0.7), (",l2-item=0", L2, 0)):
    own = [option + spec if option == PLAIN[1] else option for option in PLAIN]
    result, model = train(path, *own, "--lr", RATE, "--epochs", 2, "--evaluate-every", 120, "--run", path_of("run" + spec))
    exact, bare = objective(model, l2, l2_item), objective(model, 0, 0)
    with open(os.path.join(path_of("run" + spec), "metrics.jsonl")) as file:
        last = [json.loads(line) for line in file if '"point"' in line][-1]
    expect("the objective has the penalties of ratings" + spec,
           abs(result["objective"] / exact - 1) < 1e-5 and abs(result["train_loss"] / bare - 1) < 1e-5 and
           abs(result["penalty"] / (exact - bare) - 1) < 1e-4 and last["updates"] == 120 and
           abs(last["objective"] / exact - 1) < 1e-5,
           "%.6f, numpy %.6f, curve %.6f" % (result["objective"], exact, last["objective"]))
result, model = train(path, *PLAIN, "--lr", RATE, "--epochs", 50, "--evaluate-every", 20, "--target", 0.5)
expect("a target is of the whole objective", abs(result["objective"] / objective(model, L2, L2) - 1) < 1e-5 and
       (result["objective"] <= 0.5) == (result["stopped"] == "the target was reached"),
       "%.4f, loss %.4f: %s" % (result["objective"], result["train_loss"], result["stopped"]))
# A rating of weight n is n ratings: its error and its penalty. 60 rows in one update, or all copies of them.
times = random.integers(1, 4, len(ratings))
lines = ["%.4f %d | %s %s\n" % (r, n, u, i.replace(":", "_")) for (u, i, r), n in zip(ratings, times)]
for name, text in (("heavy.vw", lines), ("often.vw", [line.replace(" %d |" % n, " 1 |") for line, n in zip(lines, times) for _ in range(n)])):
    with open(path_of(name), "w") as file:
        file.writelines(text)
heavy, often = (laws.train(path_of(name), *PLAIN, "--lr", 0.3, "--epochs", 20, "--batch", 1000)
                for name in ("heavy.vw", "often.vw"))
expect("a rating of weight n is n ratings", abs(heavy[0]["objective"] / often[0]["objective"] - 1) < 1e-5 and
       np.allclose(heavy[1]["factor"], often[1]["factor"], rtol=1e-4, atol=1e-5),
       "%.6f %.6f" % (heavy[0]["objective"], often[0]["objective"]))
sides = [option if option != PLAIN[1] else "mf:rank=%d,l2=%g,l2-item=%g" % (RANK, L2, 7 * L2) for option in PLAIN]
for batch in (1, 4):
    result, end = train(path, *sides, "--lr", RATE, "--epochs", 1, "--batch", batch)
    w, mean = begin.factor.copy(), begin.intercept
    for first in range(0, 60, batch):
        g = np.zeros_like(w)
        for user, item, rating in ratings[first:first + batch]:
            a, b = begin.place["user:" + user], begin.place["item:" + item]
            slope = mean + w[a][:RANK] @ w[b][:RANK] + w[a][RANK] + w[b][RANK] - round(rating, 4)
            g[a] += (slope * np.append(w[b][:RANK], 1) + L2 * w[a]) / batch
            g[b] += (slope * np.append(w[a][:RANK], 1) + 7 * L2 * w[b]) / batch
        w -= RATE * g
    expect("users and items have penalties of their own, by %d" % batch, np.allclose(end.factor, w, rtol=1e-4, atol=1e-5),
           "%.1e" % abs(end.factor - w).max())
result, end = train(path, *PLAIN, "--lr", RATE, "--batch", 20, "--epochs", 1)
w, mean = begin.factor.copy(), begin.intercept
for first in range(0, 60, 20):
    g = np.zeros_like(w)
    for user, item, rating in ratings[first:first + 20]:
        a, b = begin.place["user:" + user], begin.place["item:" + item]
        slope = mean + w[a][:RANK] @ w[b][:RANK] + w[a][RANK] + w[b][RANK] - round(rating, 4)
        g[a] += (slope * np.append(w[b][:RANK], 1) + L2 * w[a]) / 20
        g[b] += (slope * np.append(w[a][:RANK], 1) + L2 * w[b]) / 20
    w -= RATE * g
expect("batches are numpy's", np.allclose(end.factor, w, rtol=1e-4, atol=1e-5), "%.1e" % abs(end.factor - w).max())
_, plain = train(path, "--model", "mf:rank=3,bias=no", "--epochs", 1)
expect("without biases a row is its factors", plain.factor.shape == (7, 3))

# ---- ids, predictions, recommendations ----
expect("ids come back", sorted(end.ids) == sorted(["user:" + u for u in users] + ["item:" + i for i in items]))
model = FILE
result, fitted = train(path, "--model", "mf:rank=4", "--epochs", 30)
pairs = path_of("pairs.triples")
with open(pairs, "w") as file:
    file.write("Ann tea\nÜmit x:1\nnobody cocoa\nBob nothing\nnobody nothing\n")
got = [float(line) for line in run("predict", model, pairs, "--quiet").split()]
bias = lambda name: fitted.factor[fitted.place[name]][4]
wanted = [fitted.rating("Ann", "tea", 4), fitted.rating("Ümit", "x:1", 4), fitted.intercept + bias("item:cocoa"),
          fitted.intercept + bias("user:Bob"), fitted.intercept]
expect("predictions, also of strangers", np.allclose(got, wanted, rtol=1e-4), str(np.subtract(got, wanted)))
seen = {(user, item) for user, item, _ in ratings if user != "Ann" or item == "tea"}
asked = write("asked.triples", [(user, item, 1.0) for user, item in sorted(seen)])
lines = [line.split("\t") for line in run("predict", model, asked, "--top", 2, "--quiet").splitlines()]
wanted = []
for user in dict.fromkeys(user for user, _ in sorted(seen)):
    rest = sorted(((fitted.rating(user, item, 4), item) for item in items if (user, item) not in seen), reverse=True)
    wanted += [(user, item, score) for score, item in rest[:2]]
expect("recommendations are the best of what is new",
       [line[:2] for line in lines] == [[u, i] for u, i, _ in wanted] and
       np.allclose([float(line[2]) for line in lines], [s for _, _, s in wanted], rtol=1e-4), str(lines[:2]))
run("predict", model, asked, "--top", "many", code=2)
dense = path_of("dense.csv")
with open(dense, "w") as file:
    file.write("a,b,y\n" + "".join("%d,%d,%d\n" % (i, i * i % 7, i % 5) for i in range(50)))
expect("tables are refused", "triples" in run("train", dense, "--model", "mf", code=3))

# ---- planted ratings ----
# ---- a table whose columns say so is ratings ----
table, asked = path_of("ratings.csv"), path_of("asked.csv")
rows = [(u, i, 3 + (u % 3 - 1) * (i % 3 - 1)) for u in range(30) for i in range(20) if (u + 2 * i) % 5]
with open(table, "w") as file:
    file.write("userId,movieId,rating,timestamp\n" + "".join("%d,%d,%g,%d\n" % (*row, n) for n, row in enumerate(rows)))
with open(asked, "w") as file:
    file.write("userId,movieId\n" + "".join("%d,%d\n" % row[:2] for row in rows[:40]))
result, _ = train(table, "--epochs", 40)
expect("ratings by their columns' names", result["options"]["model"] == "mf" and result["features"] == 50 and
       result["train_r2"] > 0.9, "%s %d %g" % (result["options"]["model"], result["features"], result["train_r2"]))
given = np.array(run("predict", FILE, asked).split(), dtype=float)
expect("a table of users and items is predicted", len(given) == 40 and
       abs(given - [row[2] for row in rows[:40]]).mean() < 0.3, str(len(given)))
expect("and one with ratings", abs(json.loads(run("eval", FILE, table, "--json"))["r2"] - result["train_r2"]) < 1e-5)
result, _ = laws.train(table, "--model", "squared", "--label", "rating")
expect("a linear model takes columns", result["features"] == 3)
result, _ = laws.train(table, "--label", "rating")
expect("an option of tables makes it one", result["features"] == 3 and result["options"]["model"] != "mf")
planted = path_of("planted.triples")
run("generate", "ratings", planted, "--rows", 60000, "--features", 1600, "--nnz", 4, "--noise", 0.1, "--seed", 3)
result, _ = train(planted, "--model", "mf:rank=8", "--valid-fraction", 0.1, "--epochs", 20)
spread = np.std([float(line.split()[2]) for line in open(planted)])
expect("planted ratings are found", result["valid_rmse"] < 0.55 * spread,
       "%.3f of %.3f" % (result["valid_rmse"], spread))
for sync in ("hogwild", "hogwild:exchange=0", "hogwild:exchange=300", "locked", "rotation"):
    other, _ = train(planted, "--model", "mf:rank=8", "--valid-fraction", 0.1, "--epochs", 20, "--sync", sync,
                     "--workers", 2)
    expect("planted ratings are found by " + sync, other["valid_rmse"] < 1.03 * result["valid_rmse"],
           "%.4f" % other["valid_rmse"])

# ---- Jester ----
archive = os.path.join(os.environ.get("SOUNDER_DATA", ""), "jester", "jester-data-1.zip")
if not os.path.exists(archive):
    print("skipped: SOUNDER_DATA does not point to a folder with jester")
else:
    with zipfile.ZipFile(archive) as file:
        table = np.array([[float(x) for x in row[1:]] for row in
                          csv.reader(io.StringIO(file.read(file.namelist()[0]).decode()))])
    if os.environ.get("SOUNDER_SANITIZE"):
        table = table[:2000]
    known, held = table != 99, random.random(table.shape) < 0.1
    for name, mask in (("jester.triples", known & ~held), ("jester-held.triples", known & held)):
        with open(path_of(name), "w") as file:
            file.writelines("user%d joke-%d %.2f\n" % (u, j, table[u, j]) for u, j in zip(*np.nonzero(mask)))
    fit, test = np.where(known & ~held, table, np.nan), known & held
    mean = np.nanmean(fit)
    jokes = np.nanmean(fit, axis=0) - mean
    rest = fit - mean - jokes
    people = np.where(np.isnan(rest), 0, rest).sum(1) / (np.sum(~np.isnan(rest), 1) + 1)
    means = (mean + jokes + people[:, None])[test]
    baseline = np.sqrt(np.mean((means - table[test]) ** 2))
    result, _ = train(path_of("jester.triples"), "--model", "mf:rank=10,l2=0.05",
                      "--valid", path_of("jester-held.triples"), "--epochs", 20)
    expect("Jester: factors beat means", result["valid_rmse"] < (0.98 if os.environ.get("SOUNDER_SANITIZE") else 0.96) * baseline,
           "held-out RMSE %.4f, means %.4f" % (result["valid_rmse"], baseline))

    # A hundred jokes: all steps of a joke on one block of users would undo those on the others.
    if not os.environ.get("SOUNDER_SANITIZE"):
        losses = [[train(path_of("jester.triples"), "--sync", sync, "--seed", seed)[0]["train_loss"] for seed in (1, 2)]
                  for sync in ("auto", "serial")]
        expect("Jester: all cores end at the training loss of one worker", sum(losses[0]) <= 1.005 * sum(losses[1]), losses)

# ---- a ratings table is read by the names of its columns, in any order ----
pairs = [(u, i, 1 + (7 * u + 3 * i) % 5) for u in range(30) for i in range(20) if (u + i) % 3]
orders = {"user,item,rating": "{0},{1},{2}", "item,user,rating": "{1},{0},{2}", "rating,userId,movie_id": "{2},{0},{1}",
          "timestamp,user,item,rating": "9,{0},{1},{2}"}
hashes, errors = set(), set()
for number, (header, line) in enumerate(orders.items()):
    path = path_of("order%d.csv" % number)
    with open(path, "w") as file:
        file.write(header + "\n" + "".join(line.format(*pair) + "\n" for pair in pairs))
    if number == 0:
        train(path, "--epochs", 5)
        os.rename(laws.MODEL, path_of("order.model"))
    hashes.add(train(path, "--epochs", 5)[0]["model_hash"])
    errors.add(json.loads(laws.run("eval", path_of("order.model"), path, "--json"))["rmse"])
laws.expect("columns in any order: one model", len(hashes) == 1, str(len(hashes)))
laws.expect("columns in any order: one error", len(errors) == 1, str(errors))

laws.finish()
