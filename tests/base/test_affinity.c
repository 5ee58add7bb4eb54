/* Laws of places: workers are spread over nodes, then cores; nobody shares a CPU; more workers than
   CPUs have no places. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/affinity.h"

static const char *const described = "node:2 core:4 pu:2"; /* CPUs 0 … 15, two to a core */

static void workers_are_spread_over_nodes_then_cores(void **unused)
{
    (void)unused;
    for (int workers = 1; workers <= 16; workers++) {
        struct sdr_affinity *places;
        int of_node[2] = {0}, of_core[8] = {0}, of_cpu[16] = {0};
        assert_int_equal(sdr_affinity_open(described, workers, &places), SDR_OK);
        assert_non_null(places);
        for (int w = 0; w < workers; w++) {
            int cpu = sdr_places_cpu(places, w), node = sdr_places_node(places, w);
            assert_in_range(cpu, 0, 15);
            assert_int_equal(node, cpu / 8);
            of_cpu[cpu]++;
            of_core[cpu / 2]++;
            of_node[node]++;
        }
        for (int i = 0; i < 16; i++)
            assert_true(of_cpu[i] <= 1);
        for (int i = 0; i < 8 && workers <= 8; i++)
            assert_true(of_core[i] <= 1);
        assert_true(of_node[0] - of_node[1] <= 1 && of_node[1] - of_node[0] <= 1);
        sdr_affinity_close(places);
    }
}

static void too_many_workers_have_no_places(void **unused)
{
    struct sdr_affinity *places;
    (void)unused;
    assert_int_equal(sdr_affinity_open(described, 17, &places), SDR_OK);
    assert_null(places);
    assert_int_equal(sdr_affinity_open("nonsense", 1, &places), SDR_USAGE);
    assert_null(places);
}

static void this_machine_has_a_place_and_gives_it_back(void **unused)
{
    struct sdr_affinity *places;
    static char memory[1 << 16];
    (void)unused;
    assert_true(sdr_affinity_nodes() >= 1);
    assert_int_equal(sdr_affinity_open(NULL, 1, &places), SDR_OK);
    assert_non_null(places);
    sdr_affinity_pin(places, 0);
    sdr_affinity_move(places, 0, memory, sizeof memory);
    sdr_affinity_restore(places);
    sdr_affinity_close(places);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_are_spread_over_nodes_then_cores),
        cmocka_unit_test(too_many_workers_have_no_places),
        cmocka_unit_test(this_machine_has_a_place_and_gives_it_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
