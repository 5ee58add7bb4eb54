/* Sending and checking messages. */
#ifndef SDR_SERVER_TRAFFIC_H
#define SDR_SERVER_TRAFFIC_H

#include "server/message.h"

struct sdr_node;
struct sdr_run;
struct sdr_network;

struct sdr_traffic {
    uint64_t events;                      /* virtual time: deliveries and ends of work */
    atomic_uint_fast64_t bytes, messages; /* sent */
    int64_t waited;                       /* nanoseconds, of all workers */
    int present;                          /* workers of this process: those that waited counts */
    atomic_uint_fast64_t refused;         /* messages that could not be what they said */
};

/* Sequence numbers between two nodes a < b. Index 0: messages from a to b, 1: from b to a. `sent`:
   the next number to send; `heard`: the next number expected. */
struct sdr_channel {
    uint16_t sent[2], heard[2];
};
enum sdr_status sdr_channels_create(struct sdr_run *run);

/* For what does not travel as a message. */
void sdr_count_bytes(struct sdr_network *net, uint64_t bytes);
enum sdr_status sdr_send(struct sdr_node *node, struct sdr_message *message);
/* Checks a message from any sender: kind, sender and receiver go together, numbers are within
   bounds. Callers drop a message that fails. */
bool sdr_message_sound(const struct sdr_node *node, const struct sdr_message *message);
/* For transports: whether a message may go into the mailbox of its receiver. It is sound, and the
   next one of its sender: a copy, a message of another run or of the wrong sender is not. Those are
   dropped before they can cancel anything. Called once for every message that was sent, in the
   order of arrival. A PUT is written to its slot, and goes no further. */
bool sdr_message_admitted(struct sdr_network *net, const struct sdr_message *message);

#endif
