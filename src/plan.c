/* How the work of a run is shared: what the strategy decides, and the workers, copies and shared memory it
   asked for. */
#include "base/memory.h"
#include "base/place.h"
#include "run.h"
#include "turns.h"

#include <math.h>

/* Which feature is the busiest, and a part of the features for every worker. */
static enum sdr_status look_at_features(struct sdr_run *run)
{
    uint32_t features = run->data->rows.features, workers = (uint32_t)run->workers;
    uint32_t *touched, count, most = 0;
    SDR_TRY(sdr_allocate(&run->frequency, features, sizeof *run->frequency, "frequencies"));
    SDR_TRY(sdr_allocate(&run->cut, workers + 1, sizeof *run->cut, "parts of features"));
    SDR_TRY(sdr_features_touched(run, &touched, &count));
    sdr_features_cut(touched, features, workers, run->cut);
    for (uint32_t j = 0; j < features; j++) {
        most = touched[j] > most ? touched[j] : most;
        run->frequency[j] = (float)touched[j] / (float)count;
    }
    sdr_release(touched);
    run->plan.busiest = (double)most / count;
    return SDR_OK;
}

/* Lets the strategy decide, and refuses what does not go with its decision. */
static enum sdr_status ask_strategy(struct sdr_run *run)
{
    const struct sdr_settings *s = &run->options.settings;
    SDR_TRY(look_at_features(run));
    if (run->strategy->windows && !run->plan.all_conflict)
        SDR_TRY(sdr_window_choose(run, &run->plan.window));
    SDR_TRY(run->strategy->plan(run->strategy_options, &run->plan));
    run->workers = run->plan.workers;
    if (run->kind->task == SDR_CLUSTERS) /* sums are never too much */
        run->plan.damped = false;
    if (run->plan.remark)
        sdr_note(&run->options, "%s", run->plan.remark);
    if (run->plan.shards && s->updates)
        return sdr_fail(SDR_USAGE,
                        "--updates does nothing with --sync %s, whose workers go over rows "
                        "of their own: give --epochs",
                        run->strategy->name);
    if (run->plan.rotates && s->shuffle != SDR_SHUFFLE_AUTO && s->shuffle != SDR_SHUFFLE_NONE)
        return sdr_fail(SDR_USAGE,
                        "--shuffle does nothing with --sync %s but 'none': rows come by cells",
                        run->strategy->name);
    if (run->plan.in_place && run->average_from != UINT64_MAX)
        return sdr_fail(SDR_USAGE, "--average needs updates one after the other: %s with one lock",
                        run->strategy->name);
    if (run->data->streams && (run->plan.windows || run->plan.shards || run->plan.rotates))
        return sdr_fail(SDR_USAGE, "--sync %s needs the data in memory: give more --memory",
                        run->strategy->name);
    return SDR_OK;
}

enum sdr_status sdr_plan_make(struct sdr_run *run)
{
    const struct sdr_settings *s = &run->options.settings;
    const struct sdr_parameters *p = &run->parameters;
    double entries = run->data->rows.dense
                         ? run->problem.features
                         : (double)run->data->nonzeros / (double)run->data->rows.count;
    run->plan = (struct sdr_plan){.workers = run->workers,
                                  .nodes = sdr_places_nodes(),
                                  .deterministic = s->deterministic,
                                  .all_conflict = p->whole,
                                  .model = run->kind->name,
                                  .pairs = run->kind->pairs,
                                  .penalty = p->charged != NULL,
                                  .group_penalty = p->penalty.group > 0,
                                  .walks = s->batch == 1 && run->problem.outputs == 1 &&
                                           (run->kind->linear || run->rank),
                                  .rows = run->train_rows.count,
                                  .batch = s->batch,
                                  .parameters = p->count,
                                  .values = p->count * (uint64_t)(1 + run->optimizer->slots),
                                  .row_values = entries * p->block[0].cols};
    if (run->strategy->plan)
        SDR_TRY(ask_strategy(run));
    if ((s->record || s->replay) && !run->plan.races)
        return sdr_fail(SDR_USAGE,
                        "--%s is for workers that race, and this run is the same each time: "
                        "%s",
                        s->record ? "record" : "replay",
                        !run->strategy->plan || !run->strategy->can_repeat || run->strategy->joint
                            ? "give --sync hogwild"
                        : s->deterministic ? "leave out --deterministic"
                                           : "give --workers 2 or more");
    return SDR_OK;
}

/* How much of the sum of several copies' changes a value takes at least, min(1, 64/(f·R)): all of it where
   the copies together touch it so seldom that none of them is likely to have corrected it fully. The whole
   formula, and what it was measured to do, is in sync/hogwild.c. */
static enum sdr_status find_calm(struct sdr_run *run)
{
    const struct sdr_parameters *p = &run->parameters;
    const double touches = 64; /* that leave a value far from corrected, on sparse and dense data */
    double rows = (double)run->plan.share * (run->plan.deterministic ? 1 : run->workers);
    SDR_TRY(sdr_allocate(&run->calm, p->count, sizeof *run->calm, "the merging of copies"));
    for (uint64_t i = 0; i < p->count; i++) {
        uint64_t feature = i / p->block[0].cols;
        double often = feature < p->block[0].rows ? run->frequency[feature] : 1;
        run->calm[i] = (float)fmin(touches / fmax(often * rows, 1e-9), 1);
    }
    return SDR_OK;
}

enum sdr_status sdr_plan_carry_out(struct sdr_run *run, uint64_t batch)
{
    const struct sdr_plan *plan = &run->plan;
    int twins = plan->copies ? plan->copies : plan->in_place ? run->workers : 0;
    size_t slopes = plan->joint ? run->update_rows * run->example_floats : 0;
    run->tallies = twins > run->workers ? twins : run->workers;
    if (plan->tallies > run->tallies)
        run->tallies = plan->tallies;
    SDR_TRY(sdr_allocate(&run->copy, (size_t)twins, sizeof *run->copy, "copies of the model"));
    SDR_TRY(sdr_allocate(&run->copied, (size_t)run->tallies, sizeof *run->copied, "losses"));
    SDR_TRY(sdr_allocate(&run->joint, slopes, sizeof(float), "slopes"));
    while (run->twins < twins) /* counted first: one that is half made is freed with the others */
        SDR_TRY(sdr_parameters_twin(&run->copy[run->twins++], &run->parameters, plan->copies > 0,
                                    !plan->deterministic && !plan->shards));
    if (plan->damped)
        SDR_TRY(find_calm(run));
    if (plan->windows)
        SDR_TRY(sdr_window_create(run));
    if (plan->rotates)
        SDR_TRY(sdr_rotation_create(run));
    SDR_TRY(sdr_allocate(&run->node, (size_t)run->workers, sizeof *run->node, "workers"));
    run->nodes = run->workers;
    for (int w = 0; w < run->workers; w++) {
        struct sdr_node *node = &run->node[w];
        *node = (struct sdr_node){.run = run,
                                  .id = w,
                                  .worker = w,
                                  .workers = run->workers,
                                  .options = run->strategy_options,
                                  .plan = plan,
                                  .parameters = twins ? &run->copy[w % twins] : &run->parameters,
                                  .tally = run->strategy->team && !plan->turns ? &run->copied[w]
                                                                               : &run->tally};
        if (!plan->joint)
            SDR_TRY(
                sdr_allocate(&node->scratch, batch * run->example_floats, sizeof(float), "scores"));
        if (plan->snapshots)
            SDR_TRY(sdr_allocate(&node->snapshot, run->parameters.count, sizeof(float),
                                 "a worker's view"));
    }
    if (plan->turns)
        SDR_TRY(sdr_turns_create(run));
    if (plan->shards)
        SDR_TRY(sdr_allocate(&run->progress, SDR_PROGRESS * (size_t)run->workers, sizeof(double),
                             "workers"));
    return sdr_allocate(&run->node[0].state, run->strategy->state_size, 1, "strategy state");
}
