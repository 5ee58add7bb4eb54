/* Work distribution: asks the strategy for its plan, and creates the workers, replicas and shared
   memory it needs. */
#include "team/plan.h"
#include "base/affinity.h"
#include "base/memory.h"
#include "run/features.h"
#include "run/rules.h"
#include "team/turns.h"
#include "train.h"

#include <math.h>

/* Measures how often features occur, and cuts the values into one span per worker. */
static enum sdr_status measure_features(struct sdr_run *run)
{
    uint32_t features = run->data->rows.features, workers = (uint32_t)run->workers;
    uint32_t *touched, count, most = 0;
    SDR_TRY(sdr_allocate(&run->shared.frequency, features, sizeof *run->shared.frequency,
                         "frequencies"));
    SDR_TRY(sdr_allocate(&run->shared.span, workers, sizeof *run->shared.span, "spans of values"));
    SDR_TRY(sdr_features_touched(run, &touched, &count));
    sdr_cut_spans(&run->layout, touched, count, 0, workers, run->shared.span);
    for (uint32_t j = 0; j < features; j++) {
        most = touched[j] > most ? touched[j] : most;
        run->shared.frequency[j] = (float)touched[j] / (float)count;
    }
    sdr_release(touched);
    run->shared.plan.known.busiest = (double)most / count;
    return SDR_OK;
}

static enum sdr_status ask_strategy(struct sdr_run *run)
{
    SDR_TRY(measure_features(run));
    if (run->use.strategy->team->windows && !run->shared.plan.known.all_conflict)
        SDR_TRY(sdr_window_choose(run, &run->shared.plan.known.window));
    SDR_TRY(run->use.strategy->team->plan(run->use.strategy_options, &run->shared.plan));
    run->workers = run->shared.plan.workers;
    if (run->use.kind->sense == SDR_STATISTIC) { /* statistics are exact sums */
        run->shared.plan.damped = false;
        run->shared.plan.first_share = 0;
    }
    if (run->shared.plan.remark)
        sdr_note(&run->options, "%s", run->shared.plan.remark);
    return SDR_OK;
}

/* Values that one non-zero of a row touches. */
static double row_values(const struct sdr_layout *layout)
{
    double values = 0;
    for (int b = 0; b < layout->blocks; b++)
        values += layout->block[b].per_feature ? layout->block[b].cols : 0;
    return values;
}

enum sdr_status sdr_plan_make(struct sdr_run *run)
{
    const struct sdr_settings *s = &run->options.settings;
    const struct sdr_parameters *p = &run->parameters;
    double entries = run->data->rows.dense
                         ? run->problem.features
                         : (double)run->data->nonzeros / (double)run->data->rows.count;
    run->shared.plan = (struct sdr_plan){
        .workers = run->workers,
        .known = {.nodes = sdr_affinity_nodes(),
                  .model = run->use.kind->name,
                  .deterministic = s->deterministic,
                  .all_conflict = run->use.kind->reads == SDR_READS_ALL || run->use.kind->layered,
                  .pairs = run->use.kind->needs & SDR_NEEDS_PAIRS,
                  .penalty = p->penalty_paid != NULL,
                  .group_penalty = p->rule.penalty.group > 0,
                  .fused =
                      s->batch == 1 && run->problem.outputs == 1 && run->use.kind->fused != NULL,
                  .rows = run->set.train_rows.count,
                  .batch = s->batch ? s->batch : 1, /* 0: all rows at once */
                  .parameters = p->layout->count,
                  .values = p->layout->count * (uint64_t)(1 + run->use.optimizer->slots),
                  .row_values = entries * row_values(p->layout)}};
    if (run->use.strategy->team->plan)
        SDR_TRY(ask_strategy(run));
    return sdr_rules_ask(run, SDR_RULES_PLAN);
}

/* The lower bound of the damping factor for each value, min(1, 64/(f·R)): 1 if the replicas
   together touch it so rarely that none is likely to have corrected it fully. Formula and
   measurement: sync/hogwild.c. */
static enum sdr_status compute_damping(struct sdr_run *run)
{
    const struct sdr_parameters *p = &run->parameters;
    const double touches = 64; /* too few to correct a value fully, on sparse and dense data */
    double rows =
        (double)run->shared.plan.share * (run->shared.plan.known.deterministic ? 1 : run->workers);
    SDR_TRY(sdr_allocate(&run->shared.damping, p->layout->count, sizeof *run->shared.damping,
                         "the merging of replicas"));
    for (uint64_t i = 0; i < p->layout->count; i++)
        run->shared.damping[i] = (float)fmin(touches / rows, 1);
    for (int b = 0; b < p->layout->blocks; b++) {
        const struct sdr_block *block = &p->layout->block[b];
        uint64_t size = (uint64_t)block->rows * block->cols;
        for (uint64_t i = 0; i < size && block->per_feature; i++)
            run->shared.damping[block->offset + i] =
                (float)fmin(touches / fmax(run->shared.frequency[i / block->cols] * rows, 1e-9), 1);
    }
    return SDR_OK;
}

/* Wide models have cells for the features that occur alone. Workers that copy the arrays for every
   share would have to go through all numbers each time: not with them. A second index is not part
   of what --memory allows. */
static enum sdr_status number_features(struct sdr_run *run, int copies, double most)
{
    const struct sdr_plan *plan = &run->shared.plan;
    const struct sdr_row_list *list = &run->set.train_rows;
    bool copied = plan->copies && (plan->shards || !plan->known.deterministic);
    if (!run->data->rows.index32 || run->data->streams || copied ||
        run->options.settings.memory > 0)
        return SDR_OK;
    return sdr_numbering_create(&run->shared.numbering, &run->data->rows, list->row, list->count,
                                (uint64_t)copies * sdr_cell_bytes(&run->parameters), most,
                                sdr_run_threads(run));
}

/* Cells, where fused steps on sparse rows touch the model often enough between two looks at it: an
   entry of a row for every five cells. */
static enum sdr_status allocate_cells(struct sdr_run *run)
{
    const struct sdr_plan *plan = &run->shared.plan;
    const struct sdr_numbering *numbering = &run->shared.numbering;
    uint64_t rows = plan->known.rows;
    bool alone = run->workers == 1 && !plan->copies;
    if (plan->copies)
        rows = plan->known.deterministic ? plan->share / (uint64_t)plan->copies : plan->share;
    double most = 5 * (double)rows * plan->known.row_values;
    if (!plan->known.fused || run->data->rows.dense || plan->known.pairs || plan->in_place ||
        plan->windows || plan->joint || plan->turns)
        return SDR_OK;
    SDR_TRY(number_features(run, run->shared.replicas + alone, most));
    if (!numbering->index && run->problem.features > most)
        return SDR_OK;
    if (!numbering->index)
        numbering = NULL;
    for (int c = 0; c < run->shared.replicas; c++)
        SDR_TRY(sdr_cells_allocate(&run->shared.replica[c], numbering));
    /* Merging will write to all of them. Measured, 10⁶ features and 3 epochs of 8 million entries,
       two workers: 1.2 times as fast. */
    if (run->shared.replicas && !numbering)
        sdr_parameters_populate(&run->parameters);
    return alone ? sdr_cells_allocate(&run->parameters, numbering) : SDR_OK;
}

enum sdr_status sdr_plan_carry_out(struct sdr_run *run)
{
    const struct sdr_plan *plan = &run->shared.plan;
    int replicas = plan->copies ? plan->copies : plan->in_place ? run->workers : 0;
    uint32_t leaves = plan->joint ? sdr_leaves((uint32_t)run->pace.update_rows) : 0;
    run->shared.loss_count = replicas > run->workers ? replicas : run->workers;
    if (plan->loss_sums > run->shared.loss_count)
        run->shared.loss_count = plan->loss_sums;
    SDR_TRY(sdr_allocate(&run->shared.replica, (size_t)replicas, sizeof *run->shared.replica,
                         "copies of the model"));
    SDR_TRY(sdr_allocate(&run->shared.losses, (size_t)run->shared.loss_count,
                         sizeof *run->shared.losses, "losses"));
    SDR_TRY(sdr_allocate(&run->shared.leaf, leaves, sizeof *run->shared.leaf, "gradients"));
    while (run->shared.leaves < (int)leaves) /* counted first, so that a failed one is freed */
        SDR_TRY(sdr_gradient_space_create(&run->shared.leaf[run->shared.leaves++], run->use.kind,
                                          &run->problem, &run->layout));
    if (plan->joint)
        SDR_TRY(sdr_sum_create(&run->shared.joint, &run->layout));
    while (run->shared.replicas < replicas) /* counted first, so that a failed one is freed */
        SDR_TRY(sdr_parameters_replicate(&run->shared.replica[run->shared.replicas++],
                                         &run->parameters, plan->copies > 0,
                                         !plan->known.deterministic && !plan->shards));
    SDR_TRY(allocate_cells(run));
    if (plan->damped)
        SDR_TRY(compute_damping(run));
    if (plan->windows)
        SDR_TRY(sdr_window_create(run));
    if (plan->rotates)
        SDR_TRY(sdr_rotation_create(run));
    SDR_TRY(
        sdr_allocate(&run->shared.node, (size_t)run->workers, sizeof *run->shared.node, "workers"));
    run->shared.nodes = run->workers;
    for (int w = 0; w < run->workers; w++) {
        struct sdr_node *node = &run->shared.node[w];
        *node = (struct sdr_node){
            .run = run,
            .id = w,
            .worker = w,
            .workers = run->workers,
            .options = run->use.strategy_options,
            .plan = plan,
            .parameters = replicas ? &run->shared.replica[w % replicas] : &run->parameters,
            .loss_sum = run->use.strategy->many && !plan->turns ? &run->shared.losses[w]
                                                                : &run->progress.loss_sum};
        if (!plan->joint) {
            SDR_TRY(sdr_allocate(&node->space, 1, sizeof *node->space, "gradients"));
            SDR_TRY(
                sdr_gradient_space_create(node->space, run->use.kind, &run->problem, &run->layout));
        }
        if (plan->snapshots)
            SDR_TRY(
                sdr_allocate(&node->snapshot, run->layout.count, sizeof(float), "a worker's view"));
    }
    if (plan->turns)
        SDR_TRY(sdr_turns_create(run));
    if (plan->shards)
        SDR_TRY(sdr_allocate(&run->shared.shard_progress, SDR_PROGRESS * (size_t)run->workers,
                             sizeof(double), "workers"));
    return sdr_allocate(&run->shared.node[0].state, run->use.strategy->state_size, 1,
                        "strategy state");
}
