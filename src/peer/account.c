/* Bookkeeping of a run without a server: every peer reports its part of an update to peer 0. */
#include "base/memory.h"
#include "peer/peers.h"
#include "run/checkpoint.h"
#include "run/order.h"
#include "run/point.h"
#include "run/run.h"
#include "server/network.h"
#include "server/traffic.h"
#include "team/accounting.h"

#include <math.h>
#include <string.h>

static struct sdr_peer_books *books_of(const struct sdr_node *node)
{
    return &node->run->network->peers->books;
}

/* ---- reports ---- */
static void log_report(struct sdr_run *run, int worker, uint64_t number,
                       const struct sdr_peer_report *report)
{
    uint64_t version = run->parameters.version;
    struct sdr_ledger_record record = {.worker = (uint32_t)worker,
                                       .waited_for = -1,
                                       .read = version ? version - 1 : 0,
                                       .applied = version ? version - 1 : 0,
                                       .batch = number,
                                       .bytes = (uint32_t)report->bytes,
                                       .computing = report->computing,
                                       .waiting = report->waiting};
    run->network->lead.applied++;
    if (sdr_ledger_note(&run->network->lead.ledger, &record) != SDR_OK)
        sdr_network_lose(run);
}

static enum sdr_status mark_applied(struct sdr_run *run, uint64_t number)
{
    struct sdr_batch_queue *queue = &run->network->lead.queue;
    uint64_t first = number;
    while (run->network->policy.share && first > 0 && !sdr_network_share_exists(run, first - 1))
        first--; /* numbers without a share */
    for (uint64_t n = first; n <= number && n < queue->end; n++) {
        queue->next = n >= queue->next ? n + 1 : queue->next;
        SDR_TRY(sdr_batch_queue_mark_applied(queue, n));
    }
    return SDR_OK;
}

/* If nobody waits for others. The rows of a lost peer are left out; the others count for it. */
static enum sdr_status enter_alone(struct sdr_run *run, int from, uint64_t number, const struct sdr_peer_report *report)
{
    struct sdr_network *net = run->network;
    struct sdr_peer_books *books = &net->peers->books;
    uint64_t at;
    books->sum.rows += report->rows;
    books->updates += (int64_t)report->updates;
    books->sum.loss += report->loss;
    books->sum.weight += report->weight;
    books->credit += (double)report->rows * (net->workers - net->lead.alive) / net->lead.alive;
    books->done[from] = sdr_network_ends_epoch(run, number) &&
                        sdr_divide(&net->policy.epochs, number, &at) + 1 == run->pace.epochs;
    net->states.sent += report->states.sent;
    net->states.accepted += report->states.accepted;
    net->states.rejected += report->states.rejected;
    net->states.torn += report->states.torn;
    if (!net->peers->peer[from]) /* what other processes send is counted where it arrives */
        sdr_count_bytes(net, report->states.bytes);
    return SDR_OK;
}

/* Joint batches are applied when all peers have reported, others when their own peer has. */
static enum sdr_status enter(struct sdr_run *run, int from, uint64_t number,
                             const struct sdr_peer_report *report)
{
    struct sdr_peer_books *books = &run->network->peers->books;
    struct sdr_peer_report *sum = &books->report[from];
    books->missing -= !books->told[from];
    if (!books->told[from])
        *sum = (struct sdr_peer_report){0};
    books->told[from] = true;
    sum->loss += report->loss;
    sum->weight += report->weight;
    sum->rows += report->rows;
    sum->bytes = report->bytes;
    sum->hash = report->hash;
    sum->computing = report->computing;
    sum->waiting = report->waiting;
    sum->updates += report->updates;
    if (run->network->policy.joint)
        return SDR_OK;
    log_report(run, from, number, report);
    return run->use.strategy->peer->alone ? enter_alone(run, from, number, report) : mark_applied(run, number);
}

/* Whether a report can be of a part of the batch. Losses may be no numbers: training may diverge. */
static bool report_sound(const struct sdr_run *run, const struct sdr_message *message,
                         const struct sdr_peer_report *report)
{
    uint64_t most = run->use.strategy->peer->alone ? run->set.train_rows.count : sdr_network_rows(run, message->batch);
    return report->rows <= most && report->computing >= 0 &&
           report->waiting >= 0;
}

/* Of peers that are ahead with a joint batch the next report has to wait. */
enum sdr_status sdr_peer_file_report(struct sdr_node *node, struct sdr_message *message)
{
    struct sdr_peer_books *books = books_of(node);
    struct sdr_peer_report report;
    bool sound = node->id == 0 && message->body && message->body->bytes == sizeof report;
    if (sound)
        memcpy(&report, message->body->data, sizeof report);
    if (sound && sdr_peer_is_lost(node, message->from)) { /* its part is counted no more */
        sdr_body_drop(message->body);
        return SDR_OK;
    }
    if (!sound || !report_sound(node->run, message, &report)) {
        sdr_body_drop(message->body);
        return sdr_fail(SDR_RUNTIME, "worker %d sent a report that makes no sense", message->from);
    }
    if (books->told[message->from] && node->run->network->policy.joint)
        return sdr_peer_keep(sdr_peer_of(node), message);
    sdr_body_drop(message->body);
    return enter(node->run, message->from, message->batch, &report);
}

/* Begins the next update, with the reports that have already arrived. */
static enum sdr_status open_books(struct sdr_node *node)
{
    struct sdr_peer_books *books = books_of(node);
    struct sdr_peer *peer = sdr_peer_of(node);
    memset(books->told, 0, (size_t)node->workers * sizeof *books->told);
    books->missing = node->run->network->lead.alive;
    for (uint64_t left = peer->count; left > 0; left--) { /* once around the ring */
        struct sdr_message message = peer->pending[peer->from];
        peer->from = (peer->from + 1) % peer->room;
        peer->count--;
        SDR_TRY(message.kind == SDR_MESSAGE_REPORT ? sdr_peer_file_report(node, &message)
                                                   : sdr_peer_keep(peer, &message));
    }
    return SDR_OK;
}

/* ---- deaths ---- */
static enum sdr_status end_without(struct sdr_node *node, int lost)
{
    struct sdr_run *run = node->run;
    struct sdr_peer *peer = sdr_peer_of(node);
    const char *rest = "";
    /* The step is taken: the checkpoint is of the next batch. If replicas differ, there is none but at ends of epochs. */
    if (peer->accounting && !run->network->peers->saves) {
        uint64_t number = peer->number - 1;
        SDR_TRY(mark_applied(run, number));
        SDR_TRY(sdr_account(run, sdr_network_rows(run, number)));
        peer->accounting = false;
    }
    if (run->network->peers->saves)
        rest = "; go on with --resume if there is a checkpoint";
    else if (run->options.settings.run)
        rest = sdr_checkpoint_write(run) == SDR_OK
                   ? "; a checkpoint was written, go on with --resume"
                   : "; the checkpoint could not be written";
    return sdr_fail(SDR_PEER_LOST, "worker %d was lost, and --sync %s needs all %d of them%s", lost,
                    run->use.strategy->name, node->workers, rest);
}

void sdr_peer_tell_losses(struct sdr_node *node)
{
    struct sdr_peer_group *group = &sdr_peer_of(node)->group;
    for (; node->id == 0 && group->told < group->losses; group->told++)
        sdr_note(&node->run->options, "worker %d is gone: process %llu was silent for %.1f s",
                 group->lost[group->told].peer, (unsigned long long)group->lost[group->told].process,
                 group->lost[group->told].silent);
}

/* Peer 0 decides whether the run goes on; other peers wait for its message. */
enum sdr_status sdr_peer_lose(struct sdr_node *node, const struct sdr_message *message)
{
    struct sdr_network *net = node->run->network;
    struct sdr_peer *peer = sdr_peer_of(node);
    enum sdr_status (*lost)(struct sdr_node * node, int peer) = node->run->use.strategy->peer->lost;
    if (sdr_peer_is_lost(node, message->from))
        return SDR_OK;
    SDR_TRY(
        sdr_grow(&peer->group.lost, NULL, peer->group.losses, &peer->group.lost_room, sizeof *peer->group.lost, "workers"));
    atomic_store(&net->slots.losses, true);
    peer->group.lost[peer->group.losses++] =
        (struct sdr_peer_loss){message->from, message->batch, message->value};
    if (message->from == 0)
        return sdr_fail(SDR_PEER_LOST,
                        "worker 0, which keeps the books of the run, was lost: go on "
                        "with --resume if there is a checkpoint");
    if (node->id == 0) {
        net->lead.alive--;
        net->peers->books.missing -= !net->peers->books.told[message->from];
        if (!sdr_helper_works(peer->helper))
            sdr_peer_tell_losses(node);
    }
    return lost ? lost(node, message->from) : sdr_peer_give_up(node, message->from);
}

enum sdr_status sdr_peer_give_up(struct sdr_node *node, int lost)
{
    return node->id == 0 ? end_without(node, lost) : SDR_OK;
}

/* ---- updates ---- */
/* Sums are in the order of the peers: the same on every transport. */
static uint64_t count_reports(struct sdr_run *run, uint64_t number)
{
    const struct sdr_peer_books *books = &run->network->peers->books;
    uint64_t rows = 0;
    for (int p = 0; p < run->network->workers; p++) {
        const struct sdr_peer_report *report = &books->report[p];
        if (!books->told[p])
            continue;
        run->progress.loss_sum.loss += report->loss;
        run->progress.loss_sum.weight += report->weight;
        rows += report->rows;
        if (run->network->policy.joint)
            log_report(run, p, number, report);
    }
    /* Of the rows of a worker that was lost meanwhile nobody may have told. */
    if (run->network->policy.joint && run->network->lead.alive < run->network->workers)
        return sdr_network_rows(run, number);
    return rows;
}

/* Replicas take the same steps: they are the same to the bit, unless something is broken. */
static enum sdr_status compare_replicas(const struct sdr_node *node)
{
    const struct sdr_run *run = node->run;
    const struct sdr_peer_books *books = &run->network->peers->books;
    struct sdr_text others = {0};
    char *names = NULL;
    for (int p = 1; p < run->network->workers; p++)
        if (books->told[p] && !sdr_peer_is_lost(node, p) &&
            books->report[p].hash != books->report[0].hash)
            sdr_text_add(&others, "%s%d", others.length ? ", " : "", p);
    if (!others.length)
        return SDR_OK;
    SDR_TRY(sdr_text_take(&others, &names));
    enum sdr_status status = sdr_fail(
        SDR_RUNTIME, "after update %llu the replicas of workers %s differ from that of worker 0: a broken machine, or different programs",
        (unsigned long long)run->parameters.version, names);
    sdr_release(names);
    return status;
}

static enum sdr_status dismiss(struct sdr_node *node)
{
    for (int to = 1; to < node->workers; to++) {
        struct sdr_message stop = {.kind = SDR_MESSAGE_STOP, .flags = SDR_URGENT, .to = to};
        SDR_TRY(sdr_send(node, &stop));
    }
    sdr_peer_of(node)->over = true;
    return SDR_PEER_OVER;
}

static enum sdr_status keep_books(struct sdr_node *node, const struct sdr_peer_report *own,
                                  uint64_t number)
{
    struct sdr_run *run = node->run;
    struct sdr_peer_books *books = books_of(node);
    bool any;
    struct sdr_peer *peer = sdr_peer_of(node);
    if (!peer->accounting)
        SDR_TRY(enter(run, 0, number, own));
    peer->accounting = true; /* until all are there: the wait may be broken off */
    while (run->network->policy.joint && books->missing > 0)
        SDR_TRY(sdr_peer_pump(node));
    SDR_TRY(run->network->policy.joint ? mark_applied(run, number)
                                       : sdr_peer_any(node, &any)); /* reports that have arrived */
    peer->accounting = false;
    bool ends = sdr_network_ends_epoch(run, number);
    if (ends)
        SDR_TRY(sdr_peer_take_states(node));
    run->log.hold = run->network->peers->saves && !ends;
    if (own->hash)
        SDR_TRY(compare_replicas(node));
    uint64_t rows = count_reports(run, number);
    run->network->lead.ended = run->use.transport->now(node);
    SDR_TRY(sdr_account(run, rows));
    if (books->stop && !run->end.over) {
        run->end.over = run->end.ended_early = true;
        run->end.why_over = books->stop;
    }
    return run->end.over ? dismiss(node) : open_books(node);
}

/* ---- nobody waits ---- */
/* Whether peer 0 is done with its part of an epoch: before that the epoch does not end. */
static bool is_past(const struct sdr_node *node, uint64_t epoch)
{
    uint64_t at, own = sdr_divide(&node->run->network->policy.epochs, sdr_peer_of(node)->number, &at);
    return own > epoch || (own == epoch && at >= sdr_shard_shares(node->run, epoch));
}

static bool all_done(const struct sdr_node *node)
{
    const struct sdr_peer_books *books = books_of(node);
    for (int p = 0; p < node->workers; p++)
        if (!books->done[p] && !sdr_peer_is_lost(node, p))
            return false;
    return true;
}

/* At the end of an epoch those of all shards, although some peers may be ahead and others behind; before that a part of those
   that were reported. Of lost peers nobody knows. */
static void count_updates(struct sdr_node *node, bool ends, double part)
{
    struct sdr_run *run = node->run;
    struct sdr_peer_books *books = books_of(node);
    uint64_t version = run->parameters.version, workers = (uint64_t)node->workers, shards = 0;
    for (uint64_t w = 0; w < workers; w++)
        shards += (sdr_shard_start(run, (int)w + 1) - sdr_shard_start(run, (int)w) + run->pace.update_rows - 1) / run->pace.update_rows;
    uint64_t end = books->version + shards;
    bool all = run->network->lead.alive == node->workers;
    uint64_t counted = version + (uint64_t)fmax(0, (double)books->updates * part);
    if (all && (ends || counted > end))
        counted = end;
    books->updates -= (int64_t)(counted - version);
    run->parameters.version = counted;
    books->version = ends ? counted : books->version;
}

/* Counts some of the rows that were reported, up to the end of the present epoch, and their part of the rest. */
static enum sdr_status count_rows(struct sdr_node *node, uint64_t rows)
{
    struct sdr_run *run = node->run;
    const struct sdr_network *net = run->network;
    struct sdr_peer_report *sum = &books_of(node)->sum;
    bool ends = run->progress.at + rows == run->set.train_rows.count;
    uint64_t epoch = run->progress.epoch;
    double part = (double)rows / (double)sum->rows, loss = sum->loss * part, weight = sum->weight * part;
    sum->rows -= rows;
    sum->loss -= loss;
    sum->weight -= weight;
    run->progress.loss_sum.loss += loss;
    run->progress.loss_sum.weight += weight;
    count_updates(node, ends, part);
    if (ends) {
        SDR_TRY(sdr_peer_take_states(node));
        for (uint64_t n = epoch * net->policy.per_epoch; n < (epoch + 1) * net->policy.per_epoch; n++)
            if (sdr_network_share_exists(run, n))
                SDR_TRY(mark_applied(run, n));
    }
    run->log.hold = net->peers->saves && !ends;
    bool due = ends || sdr_point_due(run, false);
    if (due)
        SDR_TRY(run->use.strategy->peer->publish(node));
    run->network->lead.ended = run->use.transport->now(node);
    SDR_TRY(sdr_account(run, rows));
    return run->end.over && !due ? run->use.strategy->peer->publish(node) : SDR_OK;
}

/* Counts what has been reported. */
static enum sdr_status count_alone(struct sdr_node *node)
{
    struct sdr_run *run = node->run;
    struct sdr_peer_books *books = books_of(node);
    uint64_t whole = run->set.train_rows.count, more = (uint64_t)books->credit, reported = books->sum.rows;
    books->credit -= (double)more;
    books->sum.rows += more;
    if (all_done(node)) /* rounding, and rows of lost peers */
        books->sum.rows = (run->pace.epochs - run->progress.epoch) * whole - run->progress.at;
    books->untrained += books->sum.rows - reported;
    while (!run->end.over) {
        uint64_t left = whole - run->progress.at, rows = books->sum.rows < left ? books->sum.rows : left;
        if (rows == left && !(is_past(node, run->progress.epoch) && sdr_peer_states_there(node)))
            rows--;
        if (rows == 0)
            break;
        SDR_TRY(count_rows(node, rows));
    }
    if (!run->end.over) {
        SDR_TRY(sdr_poll_requests(run));
        if (!run->end.over)
            return SDR_OK;
        SDR_TRY(run->use.strategy->peer->publish(node));
    }
    run->progress.rows_done -= books->untrained;
    return dismiss(node);
}

enum sdr_status sdr_peer_await_end(struct sdr_node *node)
{
    for (;;) {
        if (node->id == 0)
            SDR_TRY(count_alone(node));
        SDR_TRY(sdr_peer_pump(node));
    }
}

/* The end of an epoch for a replica. Peer 0 charges all penalties then: bits depend on when they are charged. Of replicas that
   are the run's parameters it also takes care of the model's part. */
static enum sdr_status end_epoch(struct sdr_node *node)
{
    const struct sdr_model_kind *kind = node->run->use.kind;
    struct sdr_parameters *p = node->parameters;
    if (node->id > 0)
        sdr_parameters_catch_up_all(p);
    if (kind->epoch_end && p != &node->run->parameters)
        kind->epoch_end(p->layout->block, p->value);
    return sdr_peer_give_state(node);
}

/* If nobody waits: reports of thousands of peers would fill the network of peer 0. Points of a curve and --updates need all of them. */
static bool is_report_due(struct sdr_node *node)
{
    enum { EVERY = 20000000 }; /* nanoseconds */
    const struct sdr_run *run = node->run;
    struct sdr_peer *peer = sdr_peer_of(node);
    int64_t now = run->use.transport->now(node);
    bool due = run->curve.on || run->options.settings.updates || now - peer->reported >= EVERY;
    if (due)
        peer->reported = now;
    return due;
}

enum sdr_status sdr_peer_account(struct sdr_node *node)
{
    struct sdr_peer *peer = sdr_peer_of(node);
    struct sdr_peer_report report = peer->report;
    const struct sdr_policy *policy = &node->run->network->policy;
    uint64_t number = peer->number - (sdr_peers_number_alike(policy) ? 1 : (uint64_t)node->workers);
    bool ends = sdr_network_ends_epoch(node->run, number);
    if (ends && !peer->accounting)
        SDR_TRY(end_epoch(node));
    struct sdr_message message = {.kind = SDR_MESSAGE_REPORT, .to = 0, .batch = number};
    if (node->id == 0) {
        if (node->run->use.strategy->peer->alone) {
            SDR_TRY(enter(node->run, 0, number, &report));
            peer->report = (struct sdr_peer_report){0};
            return count_alone(node);
        }
        SDR_TRY(keep_books(node, &report, number));
        peer->report = (struct sdr_peer_report){0};
        return SDR_OK;
    }
    if (node->run->use.strategy->peer->alone && !ends && !is_report_due(node))
        return SDR_OK;
    peer->report = (struct sdr_peer_report){0};
    SDR_TRY(sdr_peer_body(node, sizeof report, &message.body));
    memcpy(message.body->data, &report, sizeof report);
    return sdr_send(node, &message);
}

void sdr_peer_check_replica(struct sdr_node *node)
{
    sdr_peer_of(node)->report.hash = sdr_peer_hash(node) | 1; /* 0: none */
}

void sdr_peer_stop(struct sdr_node *node, const char *why)
{
    if (node->id == 0)
        books_of(node)->stop = why;
}
