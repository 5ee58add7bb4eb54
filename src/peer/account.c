/* Bookkeeping of a run without a server: every peer reports its part of an update to peer 0. */
#include "base/memory.h"
#include "peer/peers.h"
#include "run/checkpoint.h"
#include "run/run.h"
#include "server/network.h"
#include "server/traffic.h"
#include "team/accounting.h"

#include <string.h>

static struct sdr_peer_books *books_of(const struct sdr_node *node)
{
    return &node->run->network->peers->books;
}

/* ---- reports ---- */
void sdr_peer_log_report(struct sdr_run *run, int worker, uint64_t number,
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

enum sdr_status sdr_peer_mark_applied(struct sdr_run *run, uint64_t number)
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
    if (run->network->policy.joint)
        return SDR_OK;
    sdr_peer_log_report(run, from, number, report);
    return sdr_peer_mark_applied(run, number);
}

/* Whether a report can be of a part of the batch. Losses may be no numbers: training may
   diverge. */
static bool report_sound(const struct sdr_run *run, const struct sdr_message *message,
                         const struct sdr_peer_report *report)
{
    uint64_t most = run->use.strategy->peer->alone ? run->set.train_rows.count
                                                   : sdr_network_rows(run, message->batch);
    return report->rows <= most && report->computing >= 0 && report->waiting >= 0;
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
    return node->run->use.strategy->peer->alone
               ? sdr_peer_enter_alone(node->run, message->from, message->batch, &report)
               : enter(node->run, message->from, message->batch, &report);
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
    /* The step is taken: the checkpoint is of the next batch. If replicas differ, there is none but
       at ends of epochs. */
    if (peer->accounting && !run->network->peers->saves) {
        uint64_t number = peer->number - 1;
        SDR_TRY(sdr_peer_mark_applied(run, number));
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
                 group->lost[group->told].peer,
                 (unsigned long long)group->lost[group->told].process,
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
    SDR_TRY(sdr_grow(&peer->group.lost, NULL, peer->group.losses, &peer->group.lost_room,
                     sizeof *peer->group.lost, "workers"));
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
            sdr_peer_log_report(run, p, number, report);
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
    enum sdr_status status = sdr_fail(SDR_RUNTIME,
                                      "after update %llu the replicas of workers %s differ from "
                                      "that of worker 0: a broken machine, or different programs",
                                      (unsigned long long)run->parameters.version, names);
    sdr_release(names);
    return status;
}

enum sdr_status sdr_peer_dismiss(struct sdr_node *node)
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
    SDR_TRY(run->network->policy.joint ? sdr_peer_mark_applied(run, number)
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
    return run->end.over ? sdr_peer_dismiss(node) : open_books(node);
}

/* The end of an epoch for a replica. Peer 0 charges all penalties then: bits depend on when they
   are charged. Of replicas that are the run's parameters it also takes care of the model's part. */
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

enum sdr_status sdr_peer_send_report(struct sdr_node *node, uint64_t number)
{
    struct sdr_peer *peer = sdr_peer_of(node);
    struct sdr_message message = {.kind = SDR_MESSAGE_REPORT, .to = 0, .batch = number};
    SDR_TRY(sdr_peer_body(node, sizeof peer->report, &message.body));
    memcpy(message.body->data, &peer->report, sizeof peer->report);
    peer->report = (struct sdr_peer_report){0};
    return sdr_send(node, &message);
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
    if (node->run->use.strategy->peer->alone)
        return sdr_peer_account_alone(node, number, ends);
    if (node->id > 0)
        return sdr_peer_send_report(node, number);
    SDR_TRY(keep_books(node, &report, number));
    peer->report = (struct sdr_peer_report){0};
    return SDR_OK;
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
