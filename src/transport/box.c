#include "transport/box.h"
#include "base/clock.h"
#include "base/memory.h"
#include "network.h"

#include <time.h>

void sdr_box_open(struct sdr_box *box)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&box->lock, NULL);
    pthread_cond_init(&box->changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

void sdr_box_free(struct sdr_box *box)
{
    for (; box->count; box->count--, box->from = (box->from + 1) % box->room)
        sdr_body_drop(box->ring[box->from].body);
    sdr_release(box->ring);
    pthread_cond_destroy(&box->changed);
    pthread_mutex_destroy(&box->lock);
}

enum sdr_status sdr_box_put(struct sdr_box *box, const struct sdr_message *message)
{
    pthread_mutex_lock(&box->lock);
    enum sdr_status status =
        sdr_grow(&box->ring, &box->from, box->count, &box->room, sizeof *box->ring, "messages");
    if (status == SDR_OK) {
        box->ring[(box->from + box->count++) % box->room] = *message;
        if (message->flags & SDR_URGENT)
            atomic_fetch_add(&box->urgent, 1);
        pthread_cond_signal(&box->changed);
    }
    pthread_mutex_unlock(&box->lock);
    if (status != SDR_OK)
        sdr_body_drop(message->body);
    return status;
}

static struct timespec at(int64_t time)
{
    return (struct timespec){time / 1000000000, time % 1000000000};
}

bool sdr_box_take(struct sdr_box *box, int64_t nanoseconds, struct sdr_message *message)
{
    struct timespec until = at(sdr_clock_now() + nanoseconds);
    int late = nanoseconds == 0;
    pthread_mutex_lock(&box->lock);
    while (!box->count && !box->closed && !late) {
        if (nanoseconds < 0)
            pthread_cond_wait(&box->changed, &box->lock);
        else
            late = pthread_cond_timedwait(&box->changed, &box->lock, &until);
    }
    bool any = box->count > 0 && !box->closed;
    if (any) {
        *message = box->ring[box->from];
        box->from = (box->from + 1) % box->room;
        box->count--;
        if (message->flags & SDR_URGENT)
            atomic_fetch_sub(&box->urgent, 1);
    }
    pthread_mutex_unlock(&box->lock);
    return any;
}

bool sdr_box_any(struct sdr_box *box)
{
    pthread_mutex_lock(&box->lock);
    bool any = box->count > 0;
    pthread_mutex_unlock(&box->lock);
    return any;
}

void sdr_box_rest(struct sdr_box *box, int64_t nanoseconds)
{
    int64_t end = sdr_clock_now() + nanoseconds;
    struct timespec until = at(end);
    pthread_mutex_lock(&box->lock);
    while (!atomic_load(&box->urgent) && !box->closed && sdr_clock_now() < end)
        pthread_cond_timedwait(&box->changed, &box->lock, &until);
    pthread_mutex_unlock(&box->lock);
}

void sdr_box_close(struct sdr_box *box)
{
    pthread_mutex_lock(&box->lock);
    box->closed = true;
    atomic_fetch_add(&box->urgent, 1);
    pthread_cond_broadcast(&box->changed);
    pthread_mutex_unlock(&box->lock);
}

enum sdr_status sdr_box_compute(struct sdr_box *box, struct sdr_node *node,
                                const struct sdr_work *work, bool *done)
{
    int64_t before = sdr_clock_now();
    SDR_TRY(work->run(work->argument, &box->urgent));
    int64_t more = sdr_network_held_up(node, sdr_clock_now() - before);
    if (more > 0)
        sdr_box_rest(box, more);
    *done = !atomic_load(&box->urgent);
    return SDR_OK;
}
