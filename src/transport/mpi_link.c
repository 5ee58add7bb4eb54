#include "transport/mpi_link.h"
#include "base/memory.h"
#include "run/run.h"
#include "server/network.h"
#include "server/placement.h"
#include "transport/mpi_memory.h"

enum { HEADER_TAG = 7, BODY_TAG = 8 };

/* A message being sent. */
struct sdr_mpi_sending {
    unsigned char header[SDR_WIRE_MOST];
    unsigned char request[2][SDR_MPI_REQUEST_BYTES]; /* of the header, and of a separate body */
    bool done[2];
    struct sdr_body *body; /* owned */
    atomic_uint *freed;    /* the body stays, until this is not 0; NULL: it is sent */
    int process;           /* the receiver */
    /* a one-sided write: the next one to this process waits until it has arrived */
    bool put;
    struct sdr_mpi_sending *next;
};

static struct sdr_mpi_job *const job = &sdr_mpi_job;

static size_t bytes_of_set(void)
{
    return ((size_t)job->processes + 7) / 8;
}

enum sdr_status sdr_mpi_links_open(struct sdr_run *run, struct sdr_mpi_links *links)
{
    size_t count = (size_t)job->processes;
    SDR_TRY(sdr_node_threads_open(run, &links->threads));
    SDR_TRY(sdr_allocate(&links->receiving, count, sizeof *links->receiving, "MPI"));
    for (int p = 0; p < job->processes; p++)
        job->mpi->clear(links->receiving[p]);
    if (job->process == 0)
        SDR_TRY(sdr_allocate(&links->talked, count, bytes_of_set(), "MPI"));
    sdr_mpi_memory_begin(run->network->pool, job->share);
    return sdr_allocate(&links->link, count, sizeof *links->link, "MPI");
}

void sdr_mpi_links_free(struct sdr_mpi_links *links)
{
    pthread_mutex_lock(&job->calls);
    for (int p = 0; p < job->processes && links->link; p++) {
        struct sdr_mpi_link *link = &links->link[p];
        if (link->listening && !atomic_load(&job->lost) && !job->mpi->cancel(links->receiving[p]))
            atomic_store(&job->lost, true);
        if (!link->lost && !(link->listening && atomic_load(&job->lost)))
            sdr_body_drop(link->message.body);
    }
    pthread_mutex_unlock(&job->calls);
    for (struct sdr_mpi_sending *sending; (sending = links->out); sdr_release(sending)) {
        links->out = sending->next;
        sdr_body_drop(sending->body);
        if (sending->freed) /* its receiver ends this run before the next one begins */
            sdr_mpi_memory_recycle(sending->freed);
    }
    for (struct sdr_mpi_sending *sending; (sending = links->spare); sdr_release(sending))
        links->spare = sending->next;
    sdr_node_threads_free(&links->threads);
    sdr_mpi_memory_end();
    sdr_release(links->talked);
    sdr_release(links->receiving);
    if (!atomic_load(&job->lost)) /* otherwise MPI may still write a late message into it */
        sdr_release(links->link);
}

/* ---- deaths; from here on the caller holds job->calls ---- */
/* Tells the nodes of this process that those of another one are lost. */
static enum sdr_status tell_nodes(struct sdr_run *run, int process)
{
    const struct sdr_network *net = run->network;
    struct sdr_mpi_links *links = run->network->shared;
    for (int dead = 0; dead < net->nodes; dead++)
        for (int to = 0; to < net->nodes && sdr_process_of(net, dead) == process; to++) {
            struct sdr_message word = {.kind = SDR_MESSAGE_LOST,
                                       .from = dead,
                                       .to = to,
                                       .about = dead < net->servers ? -1 : dead - net->servers,
                                       .batch = (uint64_t)process,
                                       .value = job->peer[process].silent};
            if (sdr_process_of(net, to) == job->process && sdr_hears_of_deaths(net, to))
                SDR_TRY(sdr_mailbox_put(&links->threads.mailbox[to], &word));
        }
    return SDR_OK;
}

/* Stops listening to a lost process. Without process 0 the job cannot continue. */
static enum sdr_status lose(struct sdr_run *run, int process)
{
    struct sdr_mpi_links *links = run->network->shared;
    struct sdr_mpi_link *link = &links->link[process];
    if (link->lost || link->bye)
        return SDR_OK;
    sdr_mpi_lose(process);
    link->lost = true;
    link->listening = false;
    job->mpi->clear(links->receiving[process]);
    if (links->parting && job->process == 0) /* the strategy has ended */
        sdr_note(&run->options, "process %d was lost when training was over: silent for %.1f s",
                 process, job->peer[process].silent);
    if (process > 0)
        SDR_TRY(tell_nodes(run, process));
    return sdr_mpi_ended();
}

/* Finds processes whose heartbeats have stopped. */
static enum sdr_status look_for_deaths(struct sdr_run *run)
{
    for (int p = 0; p < job->processes; p++)
        if (job->peer[p].lost)
            SDR_TRY(lose(run, p));
    return sdr_mpi_ended();
}

/* ---- receiving ---- */
static enum sdr_status listen(struct sdr_run *run, int from)
{
    struct sdr_mpi_links *links = run->network->shared;
    struct sdr_mpi_link *link = &links->link[from];
    link->listening = true;
    link->message = (struct sdr_message){0};
    if (job->mpi->receive(from, HEADER_TAG, link->header, sizeof link->header,
                          links->receiving[from]))
        return lose(run, from);
    return SDR_OK;
}

enum sdr_status sdr_mpi_listen(struct sdr_run *run)
{
    for (int p = 0; p < job->processes; p++)
        if (p != job->process && !job->peer[p].lost)
            SDR_TRY(listen(run, p));
    return SDR_OK;
}

static enum sdr_status makes_no_sense(int from)
{
    return sdr_fail(SDR_RUNTIME, "process %d sent a message that makes no sense", from);
}

/* Who has sent to whom: process 0 gets that from all, and tells every process about itself. */
static enum sdr_status take_set(struct sdr_mpi_links *links, int from, const struct sdr_body *body)
{
    size_t bytes = bytes_of_set();
    if (job->process > 0 && from > 0)
        return SDR_OK;
    if (!body || body->bytes != bytes)
        return makes_no_sense(from);
    for (int p = 0; p < job->processes; p++) {
        bool is_there = body->data[p / 8] >> p % 8 & 1;
        if (job->process == 0 && is_there)
            links->talked[(size_t)p * bytes + (size_t)from / 8] |= (unsigned char)(1 << from % 8);
        else if (is_there && p != job->process)
            links->link[p].awaited = true;
    }
    return SDR_OK;
}

static enum sdr_status take_bye(struct sdr_run *run, int from, const struct sdr_message *bye)
{
    struct sdr_mpi_links *links = run->network->shared;
    links->link[from].listening = false;
    links->link[from].bye = true;
    if (bye->about)
        atomic_store(&job->lost, true);
    if (bye->flags != 0)
        return sdr_fail(SDR_PEER_LOST, "process %d has ended the run: %s", from,
                        sdr_status_text((enum sdr_status)bye->flags));
    atomic_fetch_add_explicit(&run->network->traffic.bytes, bye->version, memory_order_relaxed);
    return take_set(links, from, bye->body);
}

static enum sdr_status deliver(struct sdr_run *run, int from)
{
    struct sdr_mpi_links *links = run->network->shared;
    struct sdr_message message = links->link[from].message;
    enum sdr_status status;
    links->link[from].message.body = NULL;
    if (message.kind == SDR_WIRE_BYE) {
        status = take_bye(run, from, &message);
        sdr_body_drop(message.body);
        return status;
    }
    atomic_fetch_add_explicit(&run->network->traffic.bytes, sdr_message_bytes(&message),
                              memory_order_relaxed);
    if (sdr_process_of(run->network, message.from) != from ||
        sdr_process_of(run->network, message.to) != job->process) {
        sdr_body_drop(message.body);
        return makes_no_sense(from);
    }
    if (sdr_message_admitted(run->network, &message))
        SDR_TRY(sdr_mailbox_put(&links->threads.mailbox[message.to], &message));
    else
        sdr_body_drop(message.body);
    return listen(run, from);
}

/* A header or a body has arrived from a process. */
static enum sdr_status arrived(struct sdr_run *run, int from, size_t bytes)
{
    struct sdr_mpi_links *links = run->network->shared;
    struct sdr_mpi_link *link = &links->link[from];
    sdr_mpi_heard(from);
    job->peer[from].patience = 0;
    if (link->rest.bytes) {
        bool whole = link->rest.bytes == bytes;
        link->rest.bytes = 0;
        return whole ? deliver(run, from) : makes_no_sense(from);
    }
    SDR_TRY(sdr_wire_unpack(link->header, bytes, run->network->nodes, run->network->pool,
                            &link->message, &link->rest));
    if (link->rest.stays) {
        SDR_TRY(sdr_mpi_memory_borrow(run->network->pool, from, &link->rest, &link->message.body));
        link->rest.bytes = 0;
    }
    if (!link->rest.bytes)
        return deliver(run, from);
    SDR_TRY(sdr_body_create(run->network->pool, link->rest.bytes, &link->message.body));
    /* The sender's heartbeats wait behind a body: allows a second per megabyte. */
    job->peer[from].patience = (double)link->rest.bytes * 1e-6;
    return job->mpi->receive(from, BODY_TAG, link->message.body->data, link->rest.bytes,
                             links->receiving[from])
               ? lose(run, from)
               : SDR_OK;
}

/* Takes at most one arrival per process, in turn. */
static enum sdr_status take_arrivals(struct sdr_run *run, bool *any)
{
    struct sdr_mpi_links *links = run->network->shared;
    *any = false;
    for (int first = 0, which = 0; first < job->processes; first += which + 1) {
        size_t bytes;
        const char *trouble = job->mpi->test_receives(links->receiving[first],
                                                      job->processes - first, &which, &bytes);
        if (which < 0)
            return trouble ? sdr_fail(SDR_RUNTIME, "%s", trouble) : SDR_OK;
        SDR_TRY(trouble ? lose(run, first + which) : arrived(run, first + which, bytes));
        *any = true;
    }
    return SDR_OK;
}

/* ---- sending ---- */
/* Frees completed sends. Sends to a lost process are never freed: MPI may still read them. */
static enum sdr_status let_go(struct sdr_run *run)
{
    struct sdr_mpi_links *links = run->network->shared;
    for (struct sdr_mpi_sending **at = &links->out; *at;) {
        struct sdr_mpi_sending *sending = *at;
        bool lost = links->link[sending->process].lost;
        for (int i = 0; i < 2 && !lost; i++)
            if (!sending->done[i] && !(i && sending->freed) &&
                job->mpi->test(sending->request[i], &sending->done[i]))
                SDR_TRY(lose(run, sending->process));
        if (!sending->done[1] && sending->freed &&
            atomic_load_explicit(sending->freed, memory_order_acquire))
            sending->done[1] = true;
        if (!lost && (!sending->done[0] || !sending->done[1])) {
            at = &sending->next;
            continue;
        }
        *at = sending->next;
        if (lost)
            continue;
        sdr_body_drop(sending->body);
        if (sending->freed)
            sdr_mpi_memory_recycle(sending->freed);
        sending->next = links->spare;
        links->spare = sending;
    }
    return SDR_OK;
}

static enum sdr_status post(struct sdr_run *run, int process, const struct sdr_message *message)
{
    struct sdr_mpi_links *links = run->network->shared;
    struct sdr_mpi_sending *sending = links->spare;
    enum sdr_status status = SDR_OK;
    if (sending)
        links->spare = sending->next;
    else
        status = sdr_allocate(&sending, 1, sizeof *sending, "a message");
    if (status != SDR_OK) {
        sdr_body_drop(message->body);
        return status;
    }
    sending->done[0] = sending->done[1] = true;
    sending->body = message->body;
    sending->freed = NULL;
    sending->process = process;
    sending->put = message->kind == SDR_MESSAGE_PUT;
    sending->next = links->out;
    links->out = sending;
    struct sdr_wire_place place;
    bool large = message->body && message->body->bytes > SDR_WIRE_SMALL,
         stays = large && sdr_mpi_memory_lend(message->body, process, &place, &sending->freed);
    size_t bytes = sdr_wire_pack(message, stays ? &place : NULL, sending->header);
    if ((sending->put ? job->mpi->send_slowly : job->mpi->send)(
            process, HEADER_TAG, sending->header, bytes, sending->request[0]))
        return lose(run, process);
    sending->done[0] = false;
    sending->done[1] = !stays;
    if (!large || stays)
        return SDR_OK;
    if (job->mpi->send(process, BODY_TAG, message->body->data, message->body->bytes,
                       sending->request[1]))
        return lose(run, process);
    sending->done[1] = false;
    return SDR_OK;
}

enum sdr_status sdr_mpi_post(struct sdr_run *run, int process, const struct sdr_message *message)
{
    struct sdr_mpi_links *links = run->network->shared;
    enum sdr_status status = SDR_OK;
    if (message->body && message->body->bytes > SDR_WIRE_LARGEST) {
        sdr_body_drop(message->body);
        return sdr_fail(SDR_RUNTIME, "a message is larger than 2 GB: give more --%s",
                        run->network->servers ? "servers" : "workers");
    }
    pthread_mutex_lock(&job->calls);
    if (links->link[process].lost) {
        sdr_body_drop(message->body);
    } else {
        links->link[process].sent = true;
        status = post(run, process, message);
    }
    if (status == SDR_OK)
        status = let_go(run);
    pthread_mutex_unlock(&job->calls);
    return status;
}

bool sdr_mpi_idle(struct sdr_run *run, int process)
{
    struct sdr_mpi_links *links = run->network->shared;
    bool idle = true;
    pthread_mutex_lock(&job->calls);
    (void)!let_go(run); /* whoever polls learns of it */
    for (const struct sdr_mpi_sending *sending = links->out; sending; sending = sending->next)
        idle = idle && !(sending->put && sending->process == process);
    pthread_mutex_unlock(&job->calls);
    return idle;
}

enum sdr_status sdr_mpi_poll(struct sdr_run *run, bool *any)
{
    enum { ROUNDS = 64 };
    enum sdr_status status = SDR_OK;
    bool more = true;
    *any = false;
    if (pthread_mutex_trylock(&job->calls) != 0)
        return SDR_OK; /* another thread polls */
    for (int i = 0; i < ROUNDS && more && status == SDR_OK; i++) {
        status = take_arrivals(run, &more);
        *any |= more;
    }
    if (status == SDR_OK)
        status = let_go(run);
    if (status == SDR_OK)
        status = look_for_deaths(run);
    pthread_mutex_unlock(&job->calls);
    return status;
}

/* ---- the end ---- */
enum sdr_status sdr_mpi_say_bye(struct sdr_run *run, int process, enum sdr_status how)
{
    struct sdr_mpi_links *links = run->network->shared;
    struct sdr_message bye = {
        .kind = SDR_WIRE_BYE, .flags = (uint8_t)how, .about = atomic_load(&job->lost)};
    size_t bytes = bytes_of_set();
    links->parting = true;
    if (links->link[process].lost)
        return SDR_OK;
    if (job->process == 0 || process == 0)
        SDR_TRY(sdr_body_create(run->network->pool, bytes, &bye.body));
    if (job->process > 0 && process == 0)
        bye.version = atomic_load(&links->bytes);
    for (size_t i = 0; i < bytes && bye.body; i++)
        bye.body->data[i] =
            job->process == 0 ? links->talked[(size_t)process * bytes + i] : (unsigned char)0;
    for (int p = 1; p < job->processes && bye.body && job->process > 0; p++)
        if (links->link[p].sent)
            bye.body->data[p / 8] |= (unsigned char)(1 << p % 8);
    return post(run, process, &bye);
}

/* A body that stays may be waiting in a mailbox that nobody empties any more. */
bool sdr_mpi_all_sent(const struct sdr_mpi_links *links)
{
    for (const struct sdr_mpi_sending *sending = links->out; sending; sending = sending->next)
        if (!sending->done[0] || (!sending->done[1] && !sending->freed))
            return false;
    return true;
}

bool sdr_mpi_all_said_bye(const struct sdr_mpi_links *links)
{
    for (int p = 0; p < job->processes; p++) {
        const struct sdr_mpi_link *link = &links->link[p];
        bool awaited = job->process == 0 || p == 0 || link->awaited;
        if (p != job->process && awaited && !link->bye && !link->lost)
            return false;
    }
    return sdr_mpi_all_sent(links);
}
