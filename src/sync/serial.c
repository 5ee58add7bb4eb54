/* One worker, one example or mini-batch at a time: w ← step(w, ∇loss of the batch at w). */
#include "team/role.h"

/* Batch size 1: fused steps, since the overhead of separate calls would dominate. */
static enum sdr_status row_by_row(struct sdr_node *node)
{
    struct sdr_batch chunk = {0};
    for (;;) {
        bool more;
        SDR_TRY(sdr_next_chunk(node, &chunk, &more));
        if (!more)
            return SDR_OK;
        sdr_fused_steps(node, &chunk);
    }
}

static enum sdr_status worker(struct sdr_node *node)
{
    struct sdr_batch batch = {0};
    struct sdr_view view;
    struct sdr_update gradient;
    if (sdr_can_fuse(node))
        return row_by_row(node);
    for (;;) {
        bool more;
        SDR_TRY(sdr_next_batch(node, &batch, &more));
        if (!more)
            return SDR_OK;
        sdr_pull(node, &batch, &view);
        SDR_TRY(sdr_gradient(node, &view, &batch, &gradient));
        sdr_commit(node, &gradient);
    }
}

SDR_REGISTER(strategy, serial) = {
    .name = "serial",
    .summary = "one worker, one row or mini-batch per update",
    .repeatable = true,
    .ordered = true,
    .team = &(const struct sdr_team_ops){.worker = worker},
};
