/* Sending and checking messages. */
#ifndef SDR_SERVER_TRAFFIC_H
#define SDR_SERVER_TRAFFIC_H

#include "server/message.h"

struct sdr_node;

struct sdr_traffic {
    uint64_t events;                      /* virtual time: deliveries and ends of work */
    atomic_uint_fast64_t bytes, messages; /* sent */
    int64_t waited;                       /* nanoseconds, of all workers */
    int present;                          /* workers of this process, which `waited` sums over */
    uint64_t refused;                     /* invalid messages */
};

enum sdr_status sdr_send(struct sdr_node *node, struct sdr_message *message);
/* Checks a message from any sender: kind, sender and receiver go together, numbers are within bounds. Callers drop
   a message that fails. */
bool sdr_message_sound(const struct sdr_node *node, const struct sdr_message *message);

#endif
