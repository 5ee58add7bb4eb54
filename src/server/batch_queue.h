/* The batches of a run by number: the next one, those that were cancelled or lost and must be
   recomputed, and those applied. Every number before `end` is applied exactly once, in any order
   of arrival. */
#ifndef SDR_BATCH_QUEUE_H
#define SDR_BATCH_QUEUE_H

#include "base/fail.h"
#include <stdbool.h>
#include <stdint.h>

struct sdr_batch_queue {
    uint64_t next, end; /* the next number never assigned; the first that will not be */
    uint64_t unapplied; /* numbers before `end` that are not applied */
    uint64_t *returned; /* owned: a ring of numbers */
    uint64_t returned_from, returned_count, returned_room;
    uint64_t oldest;  /* all numbers before it are applied */
    uint64_t *window; /* owned: a ring of bits, one per number from `oldest` on: applied */
    uint64_t words;   /* of the ring, a power of two */
};

/* Numbers from `first` to `end` − 1. */
void sdr_batch_queue_start(struct sdr_batch_queue *queue, uint64_t first, uint64_t end);
void sdr_batch_queue_free(struct sdr_batch_queue *queue);
/* Numbers that can be taken. */
static inline uint64_t sdr_batch_queue_waiting(const struct sdr_batch_queue *queue)
{
    return queue->returned_count + (queue->next < queue->end ? queue->end - queue->next : 0);
}
/* Takes the next number, returned ones first. At least one must be waiting. */
uint64_t sdr_batch_queue_take(struct sdr_batch_queue *queue);
/* Puts a number back: its work was cancelled or lost. */
enum sdr_status sdr_batch_queue_return(struct sdr_batch_queue *queue, uint64_t number);
enum sdr_status sdr_batch_queue_mark_applied(struct sdr_batch_queue *queue, uint64_t number);

/* For checkpoints: `next`, then the numbers before it that are not applied. saved_count: length
   of that array; save: fills it. */
uint64_t sdr_batch_queue_saved_count(const struct sdr_batch_queue *queue);
void sdr_batch_queue_save(const struct sdr_batch_queue *queue, double *saved);
/* Fails with SDR_BAD_FILE unless the numbers are those of a queue. Numbers from `end` on are
   dropped. */
enum sdr_status sdr_batch_queue_resume(struct sdr_batch_queue *queue, const double *saved,
                                       uint64_t count, uint64_t end);

#endif
