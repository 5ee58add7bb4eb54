/* Bookkeeping of peers that are alone: nobody waits for others. Peer 0 counts rows as they are
   reported. An epoch is as many rows as the data has; it ends when peer 0 has done its own part.
   The run ends when all live peers have reported their last batch. */
#include "peer/peers.h"
#include "run/order.h"
#include "run/point.h"
#include "run/run.h"
#include "server/traffic.h"
#include "team/accounting.h"

#include <math.h>

static struct sdr_peer_books *books_of(const struct sdr_node *node)
{
    return &node->run->network->peers->books;
}

/* ---- reports ---- */
/* The rows of a lost peer are left out; the others count for it. */
enum sdr_status sdr_peer_enter_alone(struct sdr_run *run, int from, uint64_t number,
                                     const struct sdr_peer_report *report)
{
    struct sdr_network *net = run->network;
    struct sdr_peer_books *books = &net->peers->books;
    uint64_t at;
    sdr_peer_log_report(run, from, number, report);
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

/* Reports of thousands of peers would fill the network of peer 0. Points of a curve and --updates
   need all of them. */
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

/* ---- counting, at peer 0 ---- */
/* Whether peer 0 is done with its part of an epoch: before that the epoch does not end. */
static bool is_past(const struct sdr_node *node, uint64_t epoch)
{
    uint64_t at,
        own = sdr_divide(&node->run->network->policy.epochs, sdr_peer_of(node)->number, &at);
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

/* At the end of an epoch those of all shards, although some peers may be ahead and others behind;
   before that a part of those that were reported. Of lost peers nobody knows. */
static void count_updates(struct sdr_node *node, bool ends, double part)
{
    struct sdr_run *run = node->run;
    struct sdr_peer_books *books = books_of(node);
    uint64_t version = run->parameters.version, workers = (uint64_t)node->workers, shards = 0;
    for (uint64_t w = 0; w < workers; w++)
        shards += (sdr_shard_start(run, (int)w + 1) - sdr_shard_start(run, (int)w) +
                   run->pace.update_rows - 1) /
                  run->pace.update_rows;
    uint64_t end = books->version + shards;
    bool all = run->network->lead.alive == node->workers;
    uint64_t counted = version + (uint64_t)fmax(0, (double)books->updates * part);
    if (all && (ends || counted > end))
        counted = end;
    books->updates -= (int64_t)(counted - version);
    run->parameters.version = counted;
    books->version = ends ? counted : books->version;
}

/* Counts some of the rows that were reported, up to the end of the present epoch, and their part of
   the rest. */
static enum sdr_status count_rows(struct sdr_node *node, uint64_t rows)
{
    struct sdr_run *run = node->run;
    const struct sdr_network *net = run->network;
    struct sdr_peer_report *sum = &books_of(node)->sum;
    bool ends = run->progress.at + rows == run->set.train_rows.count;
    uint64_t epoch = run->progress.epoch;
    double part = (double)rows / (double)sum->rows, loss = sum->loss * part,
           weight = sum->weight * part;
    sum->rows -= rows;
    sum->loss -= loss;
    sum->weight -= weight;
    run->progress.loss_sum.loss += loss;
    run->progress.loss_sum.weight += weight;
    count_updates(node, ends, part);
    if (ends) {
        SDR_TRY(sdr_peer_take_states(node));
        for (uint64_t n = epoch * net->policy.per_epoch; n < (epoch + 1) * net->policy.per_epoch;
             n++)
            if (sdr_network_share_exists(run, n))
                SDR_TRY(sdr_peer_mark_applied(run, n));
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
    uint64_t whole = run->set.train_rows.count, more = (uint64_t)books->credit,
             reported = books->sum.rows;
    books->credit -= (double)more;
    books->sum.rows += more;
    if (all_done(node)) /* rounding, and rows of lost peers */
        books->sum.rows = (run->pace.epochs - run->progress.epoch) * whole - run->progress.at;
    books->untrained += books->sum.rows - reported;
    while (!run->end.over) {
        uint64_t left = whole - run->progress.at,
                 rows = books->sum.rows < left ? books->sum.rows : left;
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
    return sdr_peer_dismiss(node);
}

enum sdr_status sdr_peer_await_end(struct sdr_node *node)
{
    for (;;) {
        if (node->id == 0)
            SDR_TRY(count_alone(node));
        SDR_TRY(sdr_peer_pump(node));
    }
}

enum sdr_status sdr_peer_account_alone(struct sdr_node *node, uint64_t number, bool ends)
{
    struct sdr_peer *peer = sdr_peer_of(node);
    if (node->id > 0)
        return ends || is_report_due(node) ? sdr_peer_send_report(node, number) : SDR_OK;
    SDR_TRY(sdr_peer_enter_alone(node->run, 0, number, &peer->report));
    peer->report = (struct sdr_peer_report){0};
    return count_alone(node);
}
