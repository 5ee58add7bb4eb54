#include "transport/node_threads.h"
#include "base/clock.h"
#include "base/memory.h"
#include "run/run.h"
#include "server/network.h"

#include <stdio.h>

enum sdr_status sdr_node_threads_open(struct sdr_run *run, struct sdr_node_threads *threads)
{
    pthread_mutex_init(&threads->lock, NULL);
    SDR_TRY(sdr_allocate(&threads->mailbox, (size_t)run->network->nodes, sizeof *threads->mailbox,
                         "threads"));
    for (; threads->nodes < run->network->nodes; threads->nodes++) {
        sdr_mailbox_open(&threads->mailbox[threads->nodes]);
        run->network->node[threads->nodes].endpoint = &threads->mailbox[threads->nodes];
    }
    return SDR_OK;
}

void sdr_node_threads_free(struct sdr_node_threads *threads)
{
    for (int i = 0; i < threads->nodes; i++)
        sdr_mailbox_free(&threads->mailbox[i]);
    sdr_release(threads->mailbox);
    sdr_release(threads->slots);
    pthread_mutex_destroy(&threads->lock);
}

enum sdr_status sdr_node_threads_expose(struct sdr_run *run)
{
    struct sdr_node_threads *threads = run->network->shared;
    const struct sdr_slots *slots = &run->network->slots;
    SDR_TRY(
        sdr_allocate(&threads->slots, (size_t)run->network->nodes, sdr_slots_size(slots), "slots"));
    sdr_slots_place(slots, run->network->nodes, threads->slots);
    return SDR_OK;
}

void sdr_node_threads_abort(struct sdr_node_threads *threads, enum sdr_status status)
{
    pthread_mutex_lock(&threads->lock);
    if (threads->status == SDR_OK) {
        threads->status = status;
        snprintf(threads->sentence, sizeof threads->sentence, "%s", sdr_error());
    }
    pthread_mutex_unlock(&threads->lock);
    atomic_store(&threads->broken, true);
    for (int i = 0; i < threads->nodes; i++)
        sdr_mailbox_close(&threads->mailbox[i]);
}

enum sdr_status sdr_node_threads_status(struct sdr_node_threads *threads)
{
    pthread_mutex_lock(&threads->lock);
    enum sdr_status status = threads->status;
    pthread_mutex_unlock(&threads->lock);
    return status == SDR_OK ? SDR_OK : sdr_fail(status, "%s", threads->sentence);
}

static void *run_node(void *argument)
{
    struct sdr_node *node = argument;
    struct sdr_node_threads *threads = node->run->network->shared;
    enum sdr_status status = threads->loop(node);
    if (status != SDR_OK)
        sdr_node_threads_abort(threads, status);
    return NULL;
}

enum sdr_status sdr_node_threads_launch(struct sdr_run *run,
                                        enum sdr_status (*loop)(struct sdr_node *node),
                                        bool (*lives_here)(const struct sdr_node *node))
{
    struct sdr_network *net = run->network;
    struct sdr_node_threads *threads = net->shared;
    pthread_t *thread;
    int started = 0, wanted = 0;
    struct sdr_node *own =
        NULL; /* the first node runs in this thread: it calls the user's functions */
    SDR_TRY(sdr_allocate(&thread, (size_t)net->nodes, sizeof *thread, "threads"));
    threads->loop = loop;
    threads->launched = sdr_clock_now();
    for (int i = 0; i < net->nodes && started == wanted; i++) {
        if (!lives_here(&net->node[i]))
            continue;
        if (!own) {
            own = &net->node[i];
            continue;
        }
        wanted++;
        started += pthread_create(&thread[started], NULL, run_node, &net->node[i]) == 0;
    }
    if (started < wanted) {
        sdr_fail(SDR_RUNTIME, "no more than %d threads can be started: give fewer --workers",
                 started + 1);
        sdr_node_threads_abort(threads, SDR_RUNTIME);
    } else if (own) {
        run_node(own);
    }
    for (int i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
    sdr_release(thread);
    return sdr_node_threads_status(threads);
}
