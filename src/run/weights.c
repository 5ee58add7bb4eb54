#include "run/weights.h"
#include "base/memory.h"
#include "peer/role.h"
#include "run/evaluate.h"
#include "server/network.h"
#include "server/placement.h"
#include "train.h"

#include <string.h>

/* Whether some values live in other processes. */
static bool apart(const struct sdr_run *run)
{
    return run->network && sdr_servers_apart(run->network);
}

/* The array in this process: all values, or its share. */
static float *array_here(const struct sdr_run *run, enum sdr_array which)
{
    return which == SDR_ARRAY_GOOD   ? run->kept.good
           : which == SDR_ARRAY_BEST ? run->kept.best
                                     : run->parameters.ready;
}

/* The end of a piece that begins at a position: at most SDR_PIECE values, whole rows of blocks. */
static uint64_t piece_end(const struct sdr_layout *layout, uint64_t at)
{
    uint64_t end = at + SDR_PIECE;
    if (end >= layout->count)
        return layout->count;
    int b = layout->blocks - 1;
    while (end < layout->block[b].offset)
        b--;
    const struct sdr_block *block = &layout->block[b];
    uint64_t row = (end - block->offset) / block->cols;
    return block->offset + (row < block->rows ? row : block->rows) * block->cols;
}

/* ---- present and kept weights ---- */
enum sdr_status sdr_weights_ready(struct sdr_run *run, bool *finite)
{
    bool others = true;
    sdr_parameters_ready(&run->parameters);
    if (apart(run))
        SDR_TRY(sdr_shards_order(run, SDR_ORDER_READY, &others));
    *finite = others && sdr_parameters_finite(&run->parameters);
    return SDR_OK;
}

enum sdr_status sdr_weights_keep(struct sdr_run *run, enum sdr_array as)
{
    sdr_parameters_keep(&run->parameters, array_here(run, as));
    return apart(run)
               ? sdr_shards_order(
                     run, as == SDR_ARRAY_GOOD ? SDR_ORDER_KEEP_GOOD : SDR_ORDER_KEEP_BEST, NULL)
               : SDR_OK;
}

enum sdr_status sdr_weights_reset(struct sdr_run *run)
{
    sdr_parameters_reset(&run->parameters, run->kept.good);
    for (int c = 0; c < run->shared.replicas; c++)
        run->shared.replica[c].in_cells = false; /* they pull again */
    return apart(run) ? sdr_shards_order(run, SDR_ORDER_RESET, NULL) : SDR_OK;
}

enum sdr_status sdr_weights_save(struct sdr_run *run, struct sdr_saved *saved)
{
    SDR_TRY(sdr_parameters_save(&run->parameters, saved));
    return apart(run) ? sdr_shards_order(run, SDR_ORDER_SAVE, NULL) : SDR_OK;
}

enum sdr_status sdr_weights_restore(struct sdr_run *run, struct sdr_saved *saved)
{
    sdr_parameters_restore(&run->parameters, saved);
    return apart(run) ? sdr_shards_order(run, SDR_ORDER_RESTORE, NULL) : SDR_OK;
}

enum sdr_status sdr_weights_end_epoch(struct sdr_run *run)
{
    const struct sdr_block *block = run->layout.block;
    float *copy = NULL;
    const float *w;
    const struct sdr_peer_ops *peer = run->use.strategy->peer;
    /* With peers that are alone each replica has ended its epochs, and the model is made of
       these. */
    if (!run->use.kind->epoch_end || run->use.strategy->full_batch ||
        (run->network && peer && peer->alone))
        return SDR_OK;
    if (!apart(run)) {
        run->use.kind->epoch_end(block, run->parameters.value);
        for (int c = 0; c < run->shared.replicas && run->shared.plan.shards; c++)
            run->use.kind->epoch_end(block, run->shared.replica[c].value);
        return SDR_OK; /* other replicas pull again */
    }
    enum sdr_status status = sdr_weights_all(run, SDR_ARRAY_VALUE, &copy, &w);
    if (status == SDR_OK)
        run->use.kind->epoch_end(block, copy);
    struct sdr_span span = {0, 0};
    for (; span.first < run->layout.count && status == SDR_OK; span.first = span.end) {
        span.end = piece_end(&run->layout, span.first);
        status = sdr_shards_write(run, SDR_ARRAY_VALUE, span, copy + span.first);
    }
    sdr_release(copy);
    return status;
}

/* ---- all values ---- */
enum sdr_status sdr_weights_visit(struct sdr_run *run, enum sdr_array array, sdr_visit_piece visit,
                                  void *context)
{
    uint64_t count = run->layout.count;
    float *piece;
    SDR_TRY(sdr_allocate(&piece, SDR_PIECE, sizeof *piece, "values of other processes"));
    enum sdr_status status = SDR_OK;
    struct sdr_span span = {0, 0};
    for (; span.first < count && status == SDR_OK; span.first = span.end) {
        span.end = piece_end(&run->layout, span.first);
        status = sdr_shards_read(run, array, span, piece);
        if (status == SDR_OK)
            status = visit(context, span, piece);
    }
    sdr_release(piece);
    return status;
}

static enum sdr_status copy_piece(void *context, struct sdr_span span, const float *value)
{
    float *copy = context;
    memcpy(copy + span.first, value, (span.end - span.first) * sizeof *copy);
    return SDR_OK;
}

enum sdr_status sdr_weights_all(struct sdr_run *run, enum sdr_array array, float **copy,
                                const float **w)
{
    *copy = NULL;
    *w = array_here(run, array);
    if (!apart(run))
        return SDR_OK;
    SDR_TRY(sdr_allocate(copy, run->layout.count, sizeof **copy, "a view of all values"));
    *w = *copy;
    return sdr_weights_visit(run, array, copy_piece, *copy);
}

/* ---- evaluation ---- */
struct asked {
    struct sdr_run *run;
    enum sdr_array which;
};

static enum sdr_status pull(void *context, struct sdr_subset *subset)
{
    const struct asked *asked = context;
    return sdr_shards_pull(asked->run, asked->which, subset);
}

/* Dense rows are centered when read; sparse validation rows are not, and need weights for
   uncentered rows. */
static enum sdr_status uncenter(const struct sdr_run *run, const struct sdr_problem *problem,
                                float **copy, const float **w)
{
    const struct sdr_layout *layout = &run->layout;
    if (!run->set.center || !run->use.kind->uncenter || !run->problem.intercept ||
        problem->rows->dense)
        return SDR_OK;
    if (!*copy) {
        SDR_TRY(sdr_allocate(copy, layout->count, sizeof **copy, "weights for sparse rows"));
        memcpy(*copy, *w, layout->count * sizeof **w);
        *w = *copy;
    }
    run->use.kind->uncenter(layout->block, run->set.center, *copy);
    return SDR_OK;
}

static enum sdr_status evaluate(struct sdr_run *run, enum sdr_array which, bool valid,
                                const struct sdr_row_list *rows, struct sdr_evaluation *result)
{
    const struct sdr_problem *problem = valid ? &run->set.valid_problem : &run->problem;
    struct asked asked = {run, which};
    struct sdr_pull by_rows = {pull, &asked, &run->layout};
    float *copy;
    const float *w;
    if (apart(run) && !run->set.center && sdr_subset_suits(run->use.kind, problem))
        return sdr_evaluate_pulled(run->use.kind, problem, &by_rows, rows, sdr_run_threads(run),
                                   result);
    enum sdr_status status = sdr_weights_all(run, which, &copy, &w);
    if (status == SDR_OK && valid)
        status = uncenter(run, problem, &copy, &w);
    if (status == SDR_OK)
        status = sdr_evaluate(run->use.kind, problem, run->layout.block, w, rows,
                              sdr_run_threads(run), result);
    sdr_release(copy);
    return status;
}

enum sdr_status sdr_weights_evaluate(struct sdr_run *run, enum sdr_array which,
                                     const struct sdr_row_list *rows, struct sdr_evaluation *result)
{
    return evaluate(run, which, false, rows, result);
}

enum sdr_status sdr_weights_validate(struct sdr_run *run, enum sdr_array which)
{
    enum sdr_status status = evaluate(run, which, true, &run->set.valid_rows, &run->result.valid);
    run->result.valid_known = status == SDR_OK;
    return status;
}

struct penalties {
    const struct sdr_parameters *parameters;
    struct sdr_penalty_sum sum;
};

static enum sdr_status add_penalty(void *context, struct sdr_span span, const float *value)
{
    struct penalties *penalties = context;
    sdr_penalty_add(penalties->parameters, value, span, &penalties->sum);
    return SDR_OK;
}

enum sdr_status sdr_weights_objective(struct sdr_run *run, enum sdr_array which,
                                      const struct sdr_evaluation *e, double *objective)
{
    const struct sdr_penalty *penalty = &run->parameters.rule.penalty;
    struct penalties penalties = {.parameters = &run->parameters};
    bool any = penalty->l1 > 0 || penalty->l2 > 0 || penalty->group > 0;
    *objective = sdr_evaluation_loss(e) + (e->weight > 0 ? e->penalty / e->weight : 0);
    if (apart(run) && any)
        SDR_TRY(sdr_weights_visit(run, which, add_penalty, &penalties));
    else if (!apart(run))
        sdr_penalty_add(&run->parameters, array_here(run, which), sdr_all(&run->layout),
                        &penalties.sum);
    *objective += sdr_penalty_total(&run->parameters, &penalties.sum);
    return SDR_OK;
}
