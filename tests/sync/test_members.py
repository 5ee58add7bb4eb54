"""Workers that join a run: whoever is there at time 0 was always there; later ones work from then on; every batch is
applied once, whoever comes and goes."""
import os
import sys

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from laws import expect, finish, run, some_rows, train

ROWS, BATCH, EPOCHS = 603, 20, 3
rows = some_rows(ROWS)
plain = ["--workers", 4, "--batch", BATCH, "--epochs", EPOCHS]
batches = EPOCHS * -(-ROWS // BATCH)


def simulate(sync, transport, *options):
    return train(rows, *plain, "--sync", sync, "--transport", transport, *options)[0]


# essp hands out batches ahead of time: who is told of a joiner when decides which ones.
for sync in ("async", "k-async:2", "k-batch-async:2", "k-sync:3", "k-batch-sync:2", "backup:2", "ssp:2", "essp:2"):
    servers = (1,) if sync.startswith("essp") else (1, 2)
    for count in servers:
        there = simulate(sync, "sim", "--servers", count)
        first = simulate(sync, "sim:joins=3@0", "--servers", count)
        if not sync.startswith("essp"):
            expect("joined_at_once_%s_%d" % (sync, count), first["model_hash"] == there["model_hash"])
        late = simulate(sync, "sim:joins=3@11", "--servers", count)
        gradients = [worker["gradients"] + worker["dropped"] for worker in late["workers_detail"]]
        applied = sum(worker["gradients"] for worker in late["workers_detail"])
        expect("joins_later_%s_%d" % (sync, count),
               applied == batches and late["epochs"] == EPOCHS and late["workers_lost"] == 0, "%s of %d" % (gradients, batches))
    if sync in ("async", "ssp:2"):  # one gradient a second: it has missed eleven
        expect("not_before_it_joined_%s" % sync, gradients[0] - gradients[3] in (11, 12), str(gradients))
    both = simulate(sync, "sim:joins=3@5,dies=0@9")
    applied = sum(worker["gradients"] for worker in both["workers_detail"])
    expect("one_comes_one_goes_%s" % sync, applied == batches and both["workers_lost"] == 1, "%d of %d" % (applied, batches))
    again = simulate(sync, "sim:joins=3@5,dies=0@9")
    expect("the_same_again_%s" % sync, both["model_hash"] == again["model_hash"])

gone = simulate("async", "sim:dies=2@3,joins=2@5")
expect("who_died_does_not_join", gone["workers_lost"] == 1 and gone["workers_detail"][2]["gradients"] == 0)
alone = simulate("async", "sim:joins=1@30+2@30+3@30")
expect("one_begins_alone", [w["gradients"] for w in alone["workers_detail"]][0] >= 30)
for sync in ("bsp", "k-sync:4"):
    said = run("train", rows, *plain, "--sync", sync, "--transport", "sim:joins=3@5", code=2)
    expect("needs_all_%s" % sync, "leaves 3 workers at the start" in said, said)
said = run("train", rows, *plain, "--sync", "async", "--transport", "sim:joins=4@5", code=2)
expect("unknown_worker", "sim:joins takes WORKER@SECONDS" in said, said)
finish()
