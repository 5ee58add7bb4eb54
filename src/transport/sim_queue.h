/* The event queue of virtual time: a heap of events, and the messages in flight. */
#ifndef SDR_TRANSPORT_SIM_QUEUE_H
#define SDR_TRANSPORT_SIM_QUEUE_H

#include "server/message.h"

/* Events are ordered by (time, sequence): ties go by order of creation. */
struct sdr_sim_event {
    int64_t time;
    uint64_t sequence;
    int32_t node;
    /* SDR_SIM_WORK_ENDS, SDR_SIM_DEATH, or SDR_SIM_DELIVERY + the place of a message. */
    uint32_t what;
};
enum { SDR_SIM_WORK_ENDS, SDR_SIM_DEATH, SDR_SIM_DELIVERY };

struct sdr_sim_in_flight;
struct sdr_sim_queue {
    struct sdr_sim_event *heap; /* owned: a heap with four children per event */
    uint64_t count, room;
    uint64_t sequence;                   /* of the next event */
    struct sdr_sim_in_flight *in_flight; /* owned */
    uint64_t in_flights, in_flight_room;
    uint32_t in_flight_free; /* the first free slot, + 1; 0: none */
};

/* The caller sets the event's sequence, from queue->sequence++. */
enum sdr_status sdr_sim_push(struct sdr_sim_queue *queue, const struct sdr_sim_event *event);
/* The first event; there must be one. */
struct sdr_sim_event sdr_sim_pop(struct sdr_sim_queue *queue);
/* Schedules the delivery of a message. On failure the caller keeps the message. */
enum sdr_status sdr_sim_push_delivery(struct sdr_sim_queue *queue, int64_t time,
                                      const struct sdr_message *message);
/* The message of a popped delivery; owned by the caller. */
struct sdr_message sdr_sim_take_delivery(struct sdr_sim_queue *queue,
                                         const struct sdr_sim_event *event);
/* Frees the queue, with the messages in flight. */
void sdr_sim_queue_free(struct sdr_sim_queue *queue);

#endif
