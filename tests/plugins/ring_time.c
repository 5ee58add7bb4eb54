/* For bench/allreduce: how long a sum over all workers takes, without training. Worker 0 prints a
   line of JSON. */
#include "base/memory.h"
#include "sync/ring.h"

#include <stdio.h>

struct options {
    uint64_t bytes, times, bucket;
    bool transport;
};
static const struct sdr_option table[] = {
    {"bytes", SDR_SIZE, "16M", "SIZE", 0, 0, "length of the vector",
     offsetof(struct options, bytes), 0},
    {"times", SDR_INTEGER, "0", "N", 0, 1e6, "sums; 0: it is not for training",
     offsetof(struct options, times), 0},
    {"bucket", SDR_SIZE, "1M", "SIZE", 0, 0, "size of the pieces", offsetof(struct options, bucket),
     0},
    {"transport", SDR_FLAG, "no", NULL, 0, 0, "the transport sums up",
     offsetof(struct options, transport), 0},
    {0}};

/* A tenth more sums come first, to warm up. */
static enum sdr_status measure(struct sdr_node *node, struct sdr_ring *ring,
                               struct sdr_body **vector, double *seconds)
{
    const struct options *options = sdr_peer_options(node);
    uint64_t first = options->times / 10 + 1;
    int64_t began = 0;
    for (uint64_t i = 0; i < first + options->times; i++) {
        if (i == first)
            began = sdr_peer_now(node);
        sdr_ring_begin(ring, vector[i % 2]);
        SDR_TRY(sdr_ring_finish(ring));
    }
    *seconds = (double)(sdr_peer_now(node) - began) * 1e-9 / (double)options->times;
    return SDR_OK;
}

static enum sdr_status end(struct sdr_node *node, float *gradient)
{
    struct sdr_batch batch;
    struct sdr_work work;
    SDR_TRY(sdr_peer_next_batch(node, &batch));
    sdr_peer_gradient(node, &batch, gradient, &work);
    while (work.next < work.steps)
        SDR_TRY(sdr_peer_compute(node, &work));
    sdr_peer_stop(node, "measured");
    SDR_TRY(sdr_peer_account(node));
    for (int from;;) { /* until worker 0 says so */
        int32_t tag;
        struct sdr_body *body;
        SDR_TRY(sdr_peer_receive_any(node, &from, &tag, &body));
        sdr_body_drop(body);
    }
}

static enum sdr_status peer(struct sdr_node *node)
{
    const struct options *options = sdr_peer_options(node);
    uint64_t values = options->bytes / sizeof(float);
    struct sdr_ring ring = {0};
    struct sdr_body *vector[2] = {0};
    float *gradient = NULL;
    double seconds;
    enum sdr_status status;
    for (int i = 0; i < 2; i++)
        SDR_CHECK(sdr_peer_body(node, values * sizeof(float), &vector[i]));
    SDR_CHECK(sdr_allocate(&gradient, sdr_peer_values(node), sizeof *gradient, "a test"));
    SDR_CHECK(options->times ? SDR_OK : sdr_fail(SDR_USAGE, "ring-time needs times=N"));
    SDR_CHECK(sdr_ring_create(node, values, options->bucket, &ring));
    ring.by_transport = options->transport;
    sdr_ring_join(&ring, 0);
    SDR_CHECK(measure(node, &ring, vector, &seconds));
    if (sdr_peer_id(node) == 0)
        printf("{\"seconds\": %.9g}\n", seconds);
    status = end(node, gradient);
cleanup:
    sdr_body_drop(vector[0]);
    sdr_body_drop(vector[1]);
    sdr_release(gradient);
    sdr_ring_free(&ring);
    return status;
}

SDR_REGISTER(strategy, ring_time) = {
    .name = "ring-time",
    .summary = "for benchmarks: sums over all workers, without training",
    .options = table,
    .options_size = sizeof(struct options),
    .many = true,
    .joint = true,
    .peer = &(const struct sdr_peer_ops){.peer = peer},
};
