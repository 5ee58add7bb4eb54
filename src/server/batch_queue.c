#include "server/batch_queue.h"
#include "base/memory.h"

enum { BITS = 64, WORDS_LEAST = 16 };

void sdr_batch_queue_start(struct sdr_batch_queue *queue, uint64_t first, uint64_t end)
{
    *queue = (struct sdr_batch_queue){
        .next = first, .end = end, .unapplied = first < end ? end - first : 0, .oldest = first};
}

void sdr_batch_queue_free(struct sdr_batch_queue *queue)
{
    sdr_release(queue->returned);
    sdr_release(queue->window);
    *queue = (struct sdr_batch_queue){0};
}

uint64_t sdr_batch_queue_take(struct sdr_batch_queue *queue)
{
    if (!queue->returned_count)
        return queue->next++;
    uint64_t number = queue->returned[queue->returned_from];
    queue->returned_from = (queue->returned_from + 1) % queue->returned_room;
    queue->returned_count--;
    return number;
}

enum sdr_status sdr_batch_queue_return(struct sdr_batch_queue *queue, uint64_t number)
{
    SDR_TRY(sdr_grow(&queue->returned, &queue->returned_from, queue->returned_count,
                     &queue->returned_room, sizeof *queue->returned, "batches"));
    queue->returned[(queue->returned_from + queue->returned_count++) % queue->returned_room] =
        number;
    return SDR_OK;
}

/* ---- applied numbers ---- */
static uint64_t *word_of(const struct sdr_batch_queue *queue, uint64_t number)
{
    return &queue->window[number / BITS & (queue->words - 1)];
}

static bool is_applied(const struct sdr_batch_queue *queue, uint64_t number)
{
    if (number < queue->oldest)
        return true;
    bool in_window = number / BITS - queue->oldest / BITS < queue->words;
    return in_window && *word_of(queue, number) >> (number % BITS) & 1;
}

/* The ring holds a bit for every number from `oldest` to `number`. */
static enum sdr_status make_room(struct sdr_batch_queue *queue, uint64_t number)
{
    uint64_t needed = number / BITS - queue->oldest / BITS + 1;
    if (needed <= queue->words)
        return SDR_OK;
    struct sdr_batch_queue larger = *queue;
    for (larger.words = queue->words ? queue->words : WORDS_LEAST; larger.words < needed;)
        larger.words *= 2;
    SDR_TRY(sdr_allocate(&larger.window, larger.words, sizeof *larger.window, "batches"));
    for (uint64_t i = 0; i < queue->words; i++) {
        uint64_t at = (queue->oldest / BITS + i) * BITS;
        *word_of(&larger, at) = *word_of(queue, at);
    }
    sdr_release(queue->window);
    queue->window = larger.window; /* and no more: other threads read `end` */
    queue->words = larger.words;
    return SDR_OK;
}

enum sdr_status sdr_batch_queue_mark_applied(struct sdr_batch_queue *queue, uint64_t number)
{
    SDR_TRY(make_room(queue, number));
    *word_of(queue, number) |= (uint64_t)1 << number % BITS;
    queue->unapplied--;
    while (queue->oldest < queue->next && is_applied(queue, queue->oldest)) {
        if (queue->oldest % BITS == BITS - 1) /* the word is free for later numbers */
            *word_of(queue, queue->oldest) = 0;
        queue->oldest++;
    }
    return SDR_OK;
}

/* ---- checkpoints ---- */
uint64_t sdr_batch_queue_saved_count(const struct sdr_batch_queue *queue)
{
    uint64_t count = 1;
    for (uint64_t number = queue->oldest; number < queue->next; number++)
        count += !is_applied(queue, number);
    return count;
}

void sdr_batch_queue_save(const struct sdr_batch_queue *queue, double *saved)
{
    uint64_t count = 0;
    saved[count++] = (double)queue->next;
    for (uint64_t number = queue->oldest; number < queue->next; number++)
        if (!is_applied(queue, number))
            saved[count++] = (double)number;
}

/* A saved number is an integer, and larger than the one before it. */
static bool is_sound(const double *saved, uint64_t count)
{
    if (count == 0)
        return false;
    for (uint64_t i = 0; i < count; i++) {
        if (!(saved[i] >= 0 && saved[i] < 0x1p53) || saved[i] != (double)(uint64_t)saved[i])
            return false;
        if ((i > 1 && saved[i] <= saved[i - 1]) || (i > 0 && saved[i] >= saved[0]))
            return false;
    }
    return true;
}

enum sdr_status sdr_batch_queue_resume(struct sdr_batch_queue *queue, const double *saved,
                                       uint64_t count, uint64_t end)
{
    if (!is_sound(saved, count))
        return sdr_fail(SDR_BAD_FILE, "the checkpoint's batches are not of this run");
    uint64_t first = (uint64_t)saved[0];
    if (first > end) { /* the run is shorter now than it was */
        first = end;
        while (count > 1 && (uint64_t)saved[count - 1] >= end)
            count--;
    }
    sdr_batch_queue_start(queue, first, end);
    queue->unapplied += count - 1;
    for (uint64_t i = 1; i < count; i++)
        SDR_TRY(sdr_batch_queue_return(queue, (uint64_t)saved[i]));
    if (count == 1)
        return SDR_OK;
    /* Numbers between the first saved one and `first` are applied, except those listed. */
    queue->oldest = (uint64_t)saved[1];
    SDR_TRY(make_room(queue, first));
    uint64_t open = 1;
    for (uint64_t number = queue->oldest; number < first; number++) {
        if (open < count && number == (uint64_t)saved[open])
            open++;
        else
            *word_of(queue, number) |= (uint64_t)1 << number % BITS;
    }
    return SDR_OK;
}
