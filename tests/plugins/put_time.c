/* For bench/asgd: how long a one-sided write of a state takes, against memcpy, without training.
   Worker 0 prints a line of JSON. */
#include "base/memory.h"
#include "peer/role.h"

#include <stdio.h>
#include <string.h>

struct options {
    uint64_t times;
};
static const struct sdr_option table[] = {{"times", SDR_INTEGER, "0", "N", 0, 1e6,
                                           "writes; 0: it is not for training",
                                           offsetof(struct options, times), 0},
                                          {0}};

static uint64_t local(const void *options, const struct sdr_facts *facts)
{
    (void)options, (void)facts;
    return 1;
}

static int slots(const void *options)
{
    (void)options;
    return 1;
}

/* They take turns, and a tenth more come first. */
static enum sdr_status measure(struct sdr_node *node, const float *state, float *copy)
{
    const struct options *options = sdr_peer_options(node);
    uint64_t first = options->times / 10 + 1,
             bytes = sdr_peer_state_shape(node).values * sizeof *state;
    int64_t put = 0, plain = 0;
    for (uint64_t i = 0; i < first + options->times; i++) {
        bool sent;
        int64_t a = sdr_peer_now(node);
        SDR_TRY(sdr_peer_put_state(node, 1, state, NULL, &sent));
        int64_t b = sdr_peer_now(node);
        memcpy(copy, state, bytes);
        int64_t c = sdr_peer_now(node);
        put += i < first ? 0 : b - a;
        plain += i < first ? 0 : c - b;
    }
    printf("{\"bytes\": %llu, \"put\": %.9g, \"memcpy\": %.9g}\n", (unsigned long long)bytes,
           (double)put * 1e-9 / (double)options->times,
           (double)plain * 1e-9 / (double)options->times);
    return SDR_OK;
}

static enum sdr_status peer(struct sdr_node *node)
{
    const struct options *options = sdr_peer_options(node);
    float *state = NULL, *copy = NULL;
    enum sdr_status status;
    uint64_t values = sdr_peer_state_shape(node).values;
    SDR_CHECK(options->times ? SDR_OK : sdr_fail(SDR_USAGE, "put-time needs times=N"));
    SDR_CHECK(sdr_allocate(&state, values, sizeof *state, "a test"));
    SDR_CHECK(sdr_allocate(&copy, values, sizeof *copy, "a test"));
    memset(state, 1, values * sizeof *state);
    if (sdr_peer_id(node) == 0)
        SDR_CHECK(measure(node, state, copy));
    sdr_peer_stop(node, "measured");
    for (;;) {
        struct sdr_batch batch;
        struct sdr_work work;
        SDR_CHECK(sdr_peer_next_batch(node, &batch));
        sdr_peer_train(node, &batch, &work);
        while (work.next < work.steps)
            SDR_CHECK(sdr_peer_compute(node, &work));
        SDR_CHECK(sdr_peer_account(node));
    }
cleanup:
    sdr_release(state);
    sdr_release(copy);
    return status;
}

static enum sdr_status publish(struct sdr_node *node)
{
    (void)node;
    return SDR_OK;
}

static const struct sdr_peer_ops peers = {
    .local = local, .alone = true, .slots = slots, .publish = publish, .peer = peer};
SDR_REGISTER(strategy, put_time) = {
    .name = "put-time",
    .summary = "for benchmarks: how long a one-sided write takes",
    .options = table,
    .options_size = sizeof(struct options),
    .many = true,
    .peer = &peers,
};
