/* The laws of a rotation: every two blocks meet in one cell, the cells of a round have no block in
   common, and blocks have about the same load. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "schedule/blocks.h"

static void two_blocks_meet_in_one_cell_and_nobody_else_is_there(void **unused)
{
    (void)unused;
    static int visitors[SDR_ROUNDS][SDR_CELLS];
    for (uint32_t a = 0; a < SDR_BLOCKS; a++)
        for (uint32_t b = 0; b < a; b++) {
            uint32_t cell = sdr_blocks_cell(a, b);
            assert_int_equal(cell, sdr_blocks_cell(b, a));
            assert_true(cell < SDR_ROUNDS * SDR_CELLS);
            visitors[cell / SDR_CELLS][cell % SDR_CELLS]++;
        }
    for (int round = 0; round < SDR_ROUNDS; round++)
        for (int cell = 0; cell < SDR_CELLS; cell++)
            assert_int_equal(visitors[round][cell], 1);
}

static void cells_of_a_round_have_no_block_in_common(void **unused)
{
    (void)unused;
    int cell_of[SDR_ROUNDS][SDR_BLOCKS];
    for (int round = 0; round < SDR_ROUNDS; round++)
        for (int b = 0; b < SDR_BLOCKS; b++)
            cell_of[round][b] = -1;
    for (uint32_t a = 0; a < SDR_BLOCKS; a++)
        for (uint32_t b = 0; b <= a; b++) { /* a block and itself too */
            uint32_t at = sdr_blocks_cell(a, b), round = at / SDR_CELLS;
            int cell = (int)(at % SDR_CELLS);
            assert_true(cell_of[round][a] == -1 || cell_of[round][a] == cell);
            cell_of[round][a] = cell;
            assert_true(cell_of[round][b] == -1 || cell_of[round][b] == cell);
            cell_of[round][b] = cell;
        }
}

static void blocks_have_the_same_load(void **unused)
{
    enum { ROWS = 20000, FEATURES = 1000 };
    static uint64_t start[ROWS + 1];
    static uint32_t index[2 * ROWS];
    static float value[2 * ROWS];
    static uint8_t block[FEATURES];
    uint64_t load[SDR_BLOCKS] = {0}, most = 0, least = UINT64_MAX;
    struct sdr_stream stream = sdr_stream_open(1, SDR_FOR_TEST, 0);
    (void)unused;
    for (uint32_t row = 0; row <= ROWS; row++)
        start[row] = 2 * row;
    for (uint32_t row = 0; row < ROWS; row++) { /* some features are ten times as busy as others */
        double u = sdr_stream_uniform(&stream), v = sdr_stream_uniform(&stream);
        index[2 * row] = (uint32_t)(FEATURES / 2 * u * u);
        index[2 * row + 1] = FEATURES / 2 + (uint32_t)(FEATURES / 2 * v * v);
    }
    struct sdr_rows rows = {
        .count = ROWS, .features = FEATURES, .start = start, .index32 = index, .value = value};
    double repeats;
    assert_int_equal(sdr_blocks_assign(&rows, NULL, ROWS, block, &repeats), SDR_OK);
    static uint32_t touched[FEATURES];
    double busier = 0;
    for (uint32_t i = 0; i < 2 * ROWS; i++)
        touched[index[i]]++;
    for (uint32_t row = 0; row < ROWS; row++) {
        uint32_t one = touched[index[2 * row]], two = touched[index[2 * row + 1]];
        busier += one > two ? one : two;
    }
    assert_true(fabs(repeats - busier / ROWS / SDR_BLOCKS) < 1e-9 * repeats);
    for (uint32_t i = 0; i < 2 * ROWS; i++) {
        assert_true(block[index[i]] < SDR_BLOCKS);
        load[block[index[i]]]++;
    }
    for (int b = 0; b < SDR_BLOCKS; b++) {
        most = load[b] > most ? load[b] : most;
        least = load[b] < least ? load[b] : least;
    }
    assert_true(most < 1.1 * (double)least);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_blocks_meet_in_one_cell_and_nobody_else_is_there),
        cmocka_unit_test(cells_of_a_round_have_no_block_in_common),
        cmocka_unit_test(blocks_have_the_same_load),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
