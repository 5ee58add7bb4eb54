/* Laws of the queue of batches: every number is applied once, whatever is returned and in whatever
   order workers bring them, and a queue that was saved and resumed at any moment hands out exactly
   what is left. */
#include "base/memory.h"
#include "base/rng.h"
#include "server/batch_queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { NUMBERS = 5000, BUSY = 40 };

/* Works the queue off with up to BUSY numbers in flight; a straggler keeps the very first number to
   the end. */
static void work(struct sdr_batch_queue *queue, struct sdr_stream *random, unsigned char *applied,
                 uint64_t until)
{
    uint64_t flight[BUSY], count = 0, done = 0;
    while (queue->unapplied && done < until) {
        while (count < BUSY && sdr_batch_queue_waiting(queue) > 0)
            flight[count++] = sdr_batch_queue_take(queue);
        uint64_t at = count > 1 ? 1 + sdr_stream_below(random, (uint32_t)count - 1) : 0;
        uint64_t number = flight[at];
        flight[at] = flight[--count];
        if (sdr_stream_below(random, 10) == 0) {
            assert_int_equal(sdr_batch_queue_return(queue, number), SDR_OK);
            continue;
        }
        assert_int_equal(applied[number]++, 0);
        assert_int_equal(sdr_batch_queue_mark_applied(queue, number), SDR_OK);
        done++;
    }
}

static void every_number_once(void **state)
{
    (void)state;
    struct sdr_batch_queue queue;
    unsigned char *applied;
    struct sdr_stream random = sdr_stream_open(7, SDR_FOR_TEST, 0);
    assert_int_equal(sdr_allocate(&applied, NUMBERS, 1, "numbers"), SDR_OK);
    sdr_batch_queue_start(&queue, 0, NUMBERS);
    for (int stop = 0; queue.unapplied; stop++) {
        work(&queue, &random, applied, 700);
        uint64_t open = 0, saved = sdr_batch_queue_saved_count(&queue);
        double *numbers;
        assert_int_equal(sdr_allocate(&numbers, saved, sizeof *numbers, "numbers"), SDR_OK);
        sdr_batch_queue_save(&queue, numbers);
        sdr_batch_queue_free(&queue);
        assert_int_equal(sdr_batch_queue_resume(&queue, numbers, saved, NUMBERS), SDR_OK);
        for (uint64_t i = 0; i < NUMBERS; i++)
            open += !applied[i];
        assert_int_equal(queue.unapplied, open);
        sdr_release(numbers);
        assert_true(stop < 100);
    }
    assert_int_equal(sdr_batch_queue_waiting(&queue), 0);
    for (uint64_t i = 0; i < NUMBERS; i++)
        assert_int_equal(applied[i], 1);
    sdr_batch_queue_free(&queue);
    sdr_release(applied);
}

static void bad_numbers_are_refused(void **state)
{
    (void)state;
    static const double bad[][3] = {{-1, 0, 0}, {5, 3, 3},   {5, 4, 3},
                                    {5, 1, 5},  {5, 1.5, 2}, {5, -1, 2}};
    struct sdr_batch_queue queue;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(sdr_batch_queue_resume(&queue, bad[i], 3, 10), SDR_BAD_FILE);
    assert_int_equal(sdr_batch_queue_resume(&queue, bad[0], 0, 10), SDR_BAD_FILE);
    /* A run that is resumed with fewer epochs: numbers from the new end on are not worked on. */
    static const double longer[] = {20, 3, 8, 10, 15};
    assert_int_equal(sdr_batch_queue_resume(&queue, longer, 5, 10), SDR_OK);
    assert_int_equal(queue.unapplied, 2);
    assert_int_equal(sdr_batch_queue_take(&queue), 3);
    assert_int_equal(sdr_batch_queue_take(&queue), 8);
    assert_int_equal(sdr_batch_queue_waiting(&queue), 0);
    sdr_batch_queue_free(&queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_number_once),
                                       cmocka_unit_test(bad_numbers_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
