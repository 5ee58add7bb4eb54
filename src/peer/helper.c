/* A thread that handles messages while its peer computes, so that sums go around a ring under the
   backward pass. It sleeps unless something has arrived: a thread that spins would take a core from
   those that compute. */
#include "base/memory.h"
#include "peer/peers.h"
#include "run/run.h"

#include <pthread.h>
#include <stdio.h>

struct sdr_helper {
    struct sdr_node *node;
    pthread_t thread;
    pthread_mutex_t lock; /* whoever has it may handle messages of the node */
    pthread_cond_t begins;
    struct sdr_work *work; /* borrowed, while the peer computes; else NULL */
    bool over;
    enum sdr_status status; /* of the last call of progress */
    char sentence[1024];
};

static void *help(void *argument)
{
    enum { AT_MOST = 5000000 }; /* nanoseconds: the end of the run may have come */
    struct sdr_helper *helper = argument;
    const struct sdr_transport *transport = helper->node->run->use.transport;
    pthread_mutex_lock(&helper->lock);
    while (!helper->over) {
        if (!helper->work || helper->status != SDR_OK) {
            pthread_cond_wait(&helper->begins, &helper->lock);
            continue;
        }
        pthread_mutex_unlock(&helper->lock);
        transport->wait(helper->node, AT_MOST);
        pthread_mutex_lock(&helper->lock);
        if (!helper->work || helper->status != SDR_OK || !transport->any(helper->node))
            continue;
        helper->status = helper->work->progress(helper->work->context);
        if (helper->status != SDR_OK)
            snprintf(helper->sentence, sizeof helper->sentence, "%s", sdr_error());
    }
    pthread_mutex_unlock(&helper->lock);
    return NULL;
}

static enum sdr_status start(struct sdr_node *node, struct sdr_helper **result)
{
    struct sdr_helper *helper;
    SDR_TRY(sdr_allocate(&helper, 1, sizeof *helper, "a thread"));
    helper->node = node;
    pthread_mutex_init(&helper->lock, NULL);
    pthread_cond_init(&helper->begins, NULL);
    if (pthread_create(&helper->thread, NULL, help, helper) != 0) {
        pthread_cond_destroy(&helper->begins);
        pthread_mutex_destroy(&helper->lock);
        sdr_release(helper);
        return sdr_fail(SDR_RUNTIME, "cannot start a thread");
    }
    *result = helper;
    return SDR_OK;
}

void sdr_helper_destroy(struct sdr_helper *helper)
{
    if (!helper)
        return;
    pthread_mutex_lock(&helper->lock);
    helper->over = true;
    pthread_cond_signal(&helper->begins);
    pthread_mutex_unlock(&helper->lock);
    pthread_join(helper->thread, NULL);
    pthread_cond_destroy(&helper->begins);
    pthread_mutex_destroy(&helper->lock);
    sdr_release(helper);
}

bool sdr_helper_works(const struct sdr_helper *helper)
{
    return helper && helper->work;
}

enum sdr_status sdr_helper_compute(struct sdr_node *node, struct sdr_work *work, bool *done)
{
    struct sdr_peer *peer = sdr_peer_of(node);
    if (!peer->helper)
        SDR_TRY(start(node, &peer->helper));
    struct sdr_helper *helper = peer->helper;
    pthread_mutex_lock(&helper->lock);
    helper->work = work;
    helper->status = SDR_OK;
    pthread_cond_signal(&helper->begins);
    pthread_mutex_unlock(&helper->lock);
    enum sdr_status status = node->run->use.transport->compute(node, work, done);
    pthread_mutex_lock(&helper->lock);
    helper->work = NULL;
    enum sdr_status helped = helper->status;
    pthread_mutex_unlock(&helper->lock);
    sdr_peer_tell_losses(node);
    if (status == SDR_OK && helped != SDR_OK && helped < SDR_PEER_OVER)
        return sdr_fail(helped, "%s", helper->sentence);
    return status == SDR_OK ? helped : status;
}
