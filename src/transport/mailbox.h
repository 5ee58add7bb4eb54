/* A node's box: messages for a loop that runs as a thread. */
#ifndef SDR_TRANSPORT_MAILBOX_H
#define SDR_TRANSPORT_MAILBOX_H

#include "kind/transport.h"
#include "server/message.h"
#include <pthread.h>

/* Nanoseconds after which the server that decides looks up from waiting: somebody may want the run to end. */
enum { SDR_LOOK_EVERY = 100000000 };

struct sdr_mailbox {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct sdr_message *ring; /* owned */
    uint64_t from, count, room;
    atomic_uint urgent; /* messages in the box that end what is computed */
    bool closed;        /* nobody waits any longer */
};

void sdr_mailbox_open(struct sdr_mailbox *mailbox);
void sdr_mailbox_free(struct sdr_mailbox *mailbox);
/* The message is the box's, or if that fails is gone. */
enum sdr_status sdr_mailbox_put(struct sdr_mailbox *mailbox, const struct sdr_message *message);
/* Takes the first message; false: none came within `nanoseconds` (negative: no limit), or the mailbox is closed. */
bool sdr_mailbox_take(struct sdr_mailbox *mailbox, int64_t nanoseconds,
                      struct sdr_message *message);
/* Whether there is one. */
bool sdr_mailbox_any(struct sdr_mailbox *mailbox);
/* Waits, unless something urgent comes. */
void sdr_mailbox_sleep(struct sdr_mailbox *mailbox, int64_t nanoseconds);
/* Ends all waiting, and what is computed. */
void sdr_mailbox_close(struct sdr_mailbox *mailbox);
/* Does the next step of a node's work, and is held up as the options say; *done is false if something urgent came. */
enum sdr_status sdr_mailbox_compute(struct sdr_mailbox *mailbox, struct sdr_node *node,
                                    struct sdr_work *work, bool *done);

#endif
