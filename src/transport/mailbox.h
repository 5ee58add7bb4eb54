/* A node's mailbox: messages for a loop that runs as a thread. */
#ifndef SDR_TRANSPORT_MAILBOX_H
#define SDR_TRANSPORT_MAILBOX_H

#include "kind/transport.h"
#include "server/message.h"
#include <pthread.h>

/* Nanoseconds between polls of a waiting coordinator: the caller may have asked the run to end. */
enum { SDR_LOOK_EVERY = 100000000 };

struct sdr_mailbox {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct sdr_message *ring; /* owned */
    uint64_t from, count, room;
    atomic_uint urgent; /* urgent messages in the mailbox: they cancel the computation */
    bool closed;        /* waits return at once */
};

void sdr_mailbox_open(struct sdr_mailbox *mailbox);
void sdr_mailbox_free(struct sdr_mailbox *mailbox);
/* Takes ownership of the message, also on failure. */
enum sdr_status sdr_mailbox_put(struct sdr_mailbox *mailbox, const struct sdr_message *message);
/* Takes the first message; false: none came within `nanoseconds` (negative: no limit), or the
   mailbox is closed. */
bool sdr_mailbox_take(struct sdr_mailbox *mailbox, int64_t nanoseconds,
                      struct sdr_message *message);
/* Whether there is a message. */
bool sdr_mailbox_any(struct sdr_mailbox *mailbox);
/* Waits until there is one, up to so long. */
void sdr_mailbox_wait(struct sdr_mailbox *mailbox, int64_t nanoseconds);
/* Sleeps, until something urgent comes at the latest. */
void sdr_mailbox_sleep(struct sdr_mailbox *mailbox, int64_t nanoseconds);
/* Ends all waits, and the computation. */
void sdr_mailbox_close(struct sdr_mailbox *mailbox);
/* Runs the next step of a node's work, with the delay of the options; *done is false if
   something urgent came. */
enum sdr_status sdr_mailbox_compute(struct sdr_mailbox *mailbox, struct sdr_node *node,
                                    struct sdr_work *work, bool *done);

#endif
