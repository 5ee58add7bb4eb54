#include "sync/worker_loop.h"

enum sdr_status sdr_worker_loop(struct sdr_node *node)
{
    for (;;) {
        bool more, done;
        SDR_TRY(sdr_await_task(node, &more));
        if (!more)
            return SDR_OK;
        SDR_TRY(sdr_compute_gradient(node, &done));
        if (done)
            SDR_TRY(sdr_push_gradient(node));
    }
}
