#include "transport/sim_queue.h"
#include "base/memory.h"

struct sdr_sim_in_flight {
    struct sdr_message message;
    uint32_t next; /* while it is free */
};

static bool sooner(const struct sdr_sim_event *a, const struct sdr_sim_event *b)
{
    return a->time < b->time || (a->time == b->time && a->sequence < b->sequence);
}

enum sdr_status sdr_sim_push(struct sdr_sim_queue *queue, const struct sdr_sim_event *event)
{
    if (queue->count == queue->room)
        SDR_TRY(sdr_grow(&queue->heap, NULL, queue->count, &queue->room, sizeof *queue->heap,
                         "events"));
    struct sdr_sim_event *heap = queue->heap, new = *event;
    uint64_t at = queue->count++;
    while (at > 0 && sooner(&new, &heap[(at - 1) / 4])) {
        heap[at] = heap[(at - 1) / 4];
        at = (at - 1) / 4;
    }
    heap[at] = new;
    return SDR_OK;
}

struct sdr_sim_event sdr_sim_pop(struct sdr_sim_queue *queue)
{
    struct sdr_sim_event *heap = queue->heap, first = heap[0], last = heap[--queue->count];
    uint64_t at = 0, count = queue->count;
    for (;;) {
        uint64_t least = 4 * at + 1, end = least + 4 < count ? least + 4 : count;
        if (least >= count)
            break;
        for (uint64_t child = least + 1; child < end; child++)
            if (sooner(&heap[child], &heap[least]))
                least = child;
        if (!sooner(&heap[least], &last))
            break;
        heap[at] = heap[least];
        at = least;
    }
    heap[at] = last;
    return first;
}

enum sdr_status sdr_sim_push_delivery(struct sdr_sim_queue *queue, int64_t time,
                                      const struct sdr_message *message)
{
    uint32_t at = queue->in_flight_free;
    if (at) {
        queue->in_flight_free = queue->in_flight[at - 1].next;
    } else {
        SDR_TRY(sdr_grow(&queue->in_flight, NULL, queue->in_flights, &queue->in_flight_room,
                         sizeof *queue->in_flight, "messages"));
        at = (uint32_t)++queue->in_flights;
    }
    queue->in_flight[at - 1].message = *message;
    struct sdr_sim_event event = {time, queue->sequence++, message->to, SDR_SIM_DELIVERY + at - 1};
    return sdr_sim_push(queue, &event);
}

struct sdr_message sdr_sim_take_delivery(struct sdr_sim_queue *queue,
                                         const struct sdr_sim_event *event)
{
    struct sdr_sim_in_flight *in_flight = &queue->in_flight[event->what - SDR_SIM_DELIVERY];
    in_flight->next = queue->in_flight_free;
    queue->in_flight_free = event->what - SDR_SIM_DELIVERY + 1;
    return in_flight->message;
}

void sdr_sim_queue_free(struct sdr_sim_queue *queue)
{
    while (queue->count) {
        struct sdr_sim_event event = sdr_sim_pop(queue);
        if (event.what >= SDR_SIM_DELIVERY)
            sdr_body_drop(sdr_sim_take_delivery(queue, &event).body);
    }
    sdr_release(queue->heap);
    sdr_release(queue->in_flight);
}
