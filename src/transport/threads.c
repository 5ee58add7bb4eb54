/* Nodes as threads of this process: a message is put into the receiver's mailbox, and its body
   is passed by reference. */
#include "base/clock.h"
#include "base/memory.h"
#include "run/run.h"
#include "server/network.h"
#include "transport/node_threads.h"

static enum sdr_status open_threads(struct sdr_run *run, const void *options)
{
    (void)options;
    struct sdr_node_threads *threads;
    SDR_TRY(sdr_allocate(&threads, 1, sizeof *threads, "threads"));
    run->network->shared = threads;
    return sdr_node_threads_open(run, threads);
}

static void close_threads(struct sdr_run *run)
{
    sdr_node_threads_free(run->network->shared);
    sdr_release(run->network->shared);
    run->network->shared = NULL;
}

static bool everywhere(const struct sdr_node *node)
{
    (void)node;
    return true;
}

static enum sdr_status launch(struct sdr_run *run, enum sdr_status (*loop)(struct sdr_node *node))
{
    return sdr_node_threads_launch(run, loop, everywhere);
}

static enum sdr_status send(struct sdr_node *node, struct sdr_message *message)
{
    struct sdr_node_threads *threads = node->run->network->shared;
    if (sdr_message_admitted(node->run->network, message))
        return sdr_mailbox_put(&threads->mailbox[message->to], message);
    sdr_body_drop(message->body);
    return SDR_OK;
}

static enum sdr_status receive(struct sdr_node *node, struct sdr_message *message)
{
    struct sdr_node_threads *threads = node->run->network->shared;
    if (sdr_mailbox_take(node->endpoint, node->id == 0 ? SDR_LOOK_EVERY : -1, message))
        return SDR_OK;
    *message = (struct sdr_message){.kind = SDR_MESSAGE_NONE};
    return sdr_node_threads_status(threads);
}

static enum sdr_status compute(struct sdr_node *node, struct sdr_work *work, bool *done)
{
    return sdr_mailbox_compute(node->endpoint, node, work, done);
}

static bool any(struct sdr_node *node)
{
    return sdr_mailbox_any(node->endpoint);
}

static void await(struct sdr_node *node, int64_t nanoseconds)
{
    sdr_mailbox_wait(node->endpoint, nanoseconds);
}

static bool one_machine(const struct sdr_node *node)
{
    (void)node;
    return true;
}

static int64_t now(const struct sdr_node *node)
{
    return sdr_clock_now() -
           ((const struct sdr_node_threads *)node->run->network->shared)->launched;
}

SDR_REGISTER(transport, threads) = {
    .name = "threads",
    .summary = "nodes are threads of this process",
    .by_reference = true,
    .workers_most = 1024,
    .open = open_threads,
    .launch = launch,
    .send = send,
    .receive = receive,
    .compute = compute,
    .any = any,
    .one_machine = one_machine,
    .wait = await,
    .expose = sdr_node_threads_expose,
    .now = now,
    .close = close_threads,
};
