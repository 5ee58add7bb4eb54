#include "transport/mailbox.h"
#include "base/clock.h"
#include "base/memory.h"
#include "server/compute_times.h"
#include "server/network.h"

#include <time.h>

void sdr_mailbox_open(struct sdr_mailbox *mailbox)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&mailbox->lock, NULL);
    pthread_cond_init(&mailbox->changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

void sdr_mailbox_free(struct sdr_mailbox *mailbox)
{
    for (; mailbox->count; mailbox->count--, mailbox->from = (mailbox->from + 1) % mailbox->room)
        sdr_body_drop(mailbox->ring[mailbox->from].body);
    sdr_release(mailbox->ring);
    pthread_cond_destroy(&mailbox->changed);
    pthread_mutex_destroy(&mailbox->lock);
}

enum sdr_status sdr_mailbox_put(struct sdr_mailbox *mailbox, const struct sdr_message *message)
{
    pthread_mutex_lock(&mailbox->lock);
    enum sdr_status status = sdr_grow(&mailbox->ring, &mailbox->from, mailbox->count,
                                      &mailbox->room, sizeof *mailbox->ring, "messages");
    if (status == SDR_OK) {
        mailbox->ring[(mailbox->from + mailbox->count++) % mailbox->room] = *message;
        if (message->flags & SDR_URGENT)
            atomic_fetch_add(&mailbox->urgent, 1);
        pthread_cond_broadcast(&mailbox->changed); /* a helper may wait, too */
    }
    pthread_mutex_unlock(&mailbox->lock);
    if (status != SDR_OK)
        sdr_body_drop(message->body);
    return status;
}

static struct timespec at(int64_t time)
{
    return (struct timespec){time / 1000000000, time % 1000000000};
}

bool sdr_mailbox_take(struct sdr_mailbox *mailbox, int64_t nanoseconds, struct sdr_message *message)
{
    struct timespec until = at(sdr_clock_now() + nanoseconds);
    int late = nanoseconds == 0;
    pthread_mutex_lock(&mailbox->lock);
    while (!mailbox->count && !mailbox->closed && !late) {
        if (nanoseconds < 0)
            pthread_cond_wait(&mailbox->changed, &mailbox->lock);
        else
            late = pthread_cond_timedwait(&mailbox->changed, &mailbox->lock, &until);
    }
    bool any = mailbox->count > 0 && !mailbox->closed;
    if (any) {
        *message = mailbox->ring[mailbox->from];
        mailbox->from = (mailbox->from + 1) % mailbox->room;
        mailbox->count--;
        if (message->flags & SDR_URGENT)
            atomic_fetch_sub(&mailbox->urgent, 1);
    }
    pthread_mutex_unlock(&mailbox->lock);
    return any;
}

bool sdr_mailbox_any(struct sdr_mailbox *mailbox)
{
    pthread_mutex_lock(&mailbox->lock);
    bool any = mailbox->count > 0;
    pthread_mutex_unlock(&mailbox->lock);
    return any;
}

void sdr_mailbox_wait(struct sdr_mailbox *mailbox, int64_t nanoseconds)
{
    struct timespec until = at(sdr_clock_now() + nanoseconds);
    int late = 0;
    pthread_mutex_lock(&mailbox->lock);
    while (!mailbox->count && !mailbox->closed && !late)
        late = pthread_cond_timedwait(&mailbox->changed, &mailbox->lock, &until);
    pthread_mutex_unlock(&mailbox->lock);
}

void sdr_mailbox_sleep(struct sdr_mailbox *mailbox, int64_t nanoseconds)
{
    int64_t end = sdr_clock_now() + nanoseconds;
    struct timespec until = at(end);
    pthread_mutex_lock(&mailbox->lock);
    while (!atomic_load(&mailbox->urgent) && !mailbox->closed && sdr_clock_now() < end)
        pthread_cond_timedwait(&mailbox->changed, &mailbox->lock, &until);
    pthread_mutex_unlock(&mailbox->lock);
}

void sdr_mailbox_close(struct sdr_mailbox *mailbox)
{
    pthread_mutex_lock(&mailbox->lock);
    mailbox->closed = true;
    atomic_fetch_add(&mailbox->urgent, 1);
    pthread_cond_broadcast(&mailbox->changed);
    pthread_mutex_unlock(&mailbox->lock);
}

enum sdr_status sdr_mailbox_compute(struct sdr_mailbox *mailbox, struct sdr_node *node,
                                    struct sdr_work *work, bool *done)
{
    int64_t before = sdr_clock_now();
    SDR_TRY(work->run(work->argument, work->next, &mailbox->urgent));
    int64_t more = sdr_compute_delay(node, work, sdr_clock_now() - before);
    if (more > 0)
        sdr_mailbox_sleep(mailbox, more);
    *done = !atomic_load(&mailbox->urgent);
    work->next += *done;
    return SDR_OK;
}
