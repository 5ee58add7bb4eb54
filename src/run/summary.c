/* Results of a run, and contents of a model, as JSON. */
#include "base/clock.h"
#include "base/json.h"
#include "run/evaluate.h"
#include "run/features.h"
#include "server/network.h"
#include "train.h"
#include "trained/model.h"

#include <math.h>
#include <string.h>

static void set_integer(json_t *object, const char *key, uint64_t value)
{
    sdr_json_set(object, key, json_integer((json_int_t)value));
}

/* Of the first block, and of all that penalties act on. */
static uint64_t count_nonzero(const struct sdr_model *model)
{
    uint64_t count = 0;
    for (int b = 0; b < model->blocks; b++) {
        const struct sdr_block *block = &model->block[b];
        uint64_t size = (uint64_t)block->rows * block->cols;
        const float *value = model->value + block->offset;
        if (block->fixed || (b > 0 && !block->penalised))
            continue;
        for (uint64_t at = 0; at < size; at += SDR_PIECE) {
            uint64_t end = at + SDR_PIECE < size ? at + SDR_PIECE : size;
            for (uint64_t i = at; i < end; i++)
                count += value[i] != 0;
            sdr_model_passed(model, value + at, end - at);
        }
    }
    return count;
}

/* Non-zeros of the training rows. */
static uint64_t count_entries(const struct sdr_run *run)
{
    const struct sdr_rows *rows = &run->data->rows;
    const struct sdr_row_list *list = &run->set.train_rows;
    uint64_t count = 0;
    if (!list->row)
        return run->data->nonzeros;
    for (uint32_t i = 0; i < list->count; i++) {
        if (rows->start)
            count += rows->start[list->row[i] + 1] - rows->start[list->row[i]];
        for (uint32_t j = 0; j < rows->features && rows->dense; j++)
            count += sdr_dense_row(rows, list->row[i])[j] != 0;
    }
    return count;
}

enum sdr_status sdr_run_summary(const struct sdr_run *run, char **json)
{
    json_t *object = sdr_json_begin(json_object());
    set_integer(object, "rows", run->set.train_rows.count);
    set_integer(object, "features", run->problem.features);
    set_integer(object, "nonzeros", count_entries(run));
    set_integer(object, "workers", (uint64_t)run->workers);
    if (run->use.strategy->full_batch)
        set_integer(object, "threads", (uint64_t)sdr_run_threads(run));
    sdr_json_set(object, "sync", json_string(run->options.settings.sync));
    sdr_json_set(object, "cpu", json_string(sdr_cpu_name(run->cpu)));
    set_integer(object, "epochs", run->progress.epoch);
    set_integer(object, "updates", run->parameters.version);
    sdr_json_set(object, "seconds_read", json_real(run->data->seconds));
    sdr_json_set(object, "seconds_train", json_real(run->log.seconds_train));
    sdr_json_set(object, "seconds_total",
                 json_real(run->data->seconds + (double)sdr_clock_now() * 1e-9 -
                           run->log.seconds_total_start));
    if (run->result.model) {
        sdr_evaluation_json(&run->result.train, run->use.kind, "train_", object);
        if (isfinite(run->result.objective))
            sdr_json_set(object, "objective", json_real(run->result.objective));
        double penalty = run->result.objective - sdr_evaluation_loss(&run->result.train);
        if (isfinite(penalty) && (run->parameters.penalty_paid || run->result.train.penalty > 0))
            sdr_json_set(object, "penalty", json_real(penalty));
        if (run->valid) {
            set_integer(object, "valid_rows", run->set.valid_rows.count);
            sdr_evaluation_json(&run->result.valid, run->use.kind, "valid_", object);
        }
        sdr_json_set(object, "model_hash", json_string(run->result.model->hash));
        set_integer(object, "weights_nonzero", count_nonzero(run->result.model));
    }
    if (run->shared.raced > 0)
        sdr_json_set(object, "updates_lost", json_real(run->shared.lost / run->shared.raced));
    if (run->race.replay && run->result.model) {
        sdr_json_set(object, "replay_difference", json_real(run->race.difference));
        sdr_json_set(object, "recorded_loss", json_real(run->race.replay->loss));
    }
    if (run->kept.has_best)
        set_integer(object, "best_epoch", run->progress.best_epoch);
    if (run->end.why_over)
        sdr_json_set(object, "stopped", json_string(run->end.why_over));
    set_integer(object, "peak_rss_bytes", sdr_peak_rss_bytes());
    uint64_t steps = 0, missed = 0, most = 0;
    for (int w = 0; w < run->shared.nodes; w++) {
        steps += run->shared.node[w].steps;
        missed += run->shared.node[w].staleness;
        most = run->shared.node[w].stalest > most ? run->shared.node[w].stalest : most;
    }
    double waited = 0;
    const struct sdr_network *net = run->network;
    if (net) {
        double time = (double)net->lead.ended * net->traffic.present;
        steps = net->lead.applied;
        missed = net->lead.staleness;
        most = net->lead.stalest;
        waited = time > 0 ? (double)net->traffic.waited / time : 0;
        set_integer(object, "gradients_dropped", net->lead.dropped);
        set_integer(object, "workers_lost", (uint64_t)(net->workers - net->lead.alive));
        if (run->use.transport->simulated)
            set_integer(object, "events", net->traffic.events);
        if (net->slots.count) {
            const struct sdr_state_counts *states = &net->states;
            set_integer(object, "states_sent", states->sent);
            set_integer(object, "states_accepted", states->accepted);
            set_integer(object, "states_rejected", states->rejected);
            set_integer(object, "states_torn", states->torn);
            /* of a worker that died more may be found than it has reported */
            uint64_t found = states->accepted + states->rejected;
            set_integer(object, "states_lost", states->sent > found ? states->sent - found : 0);
        }
        sdr_ledger_json(&net->lead.ledger, object);
    }
    set_integer(object, "bytes_sent",
                net ? atomic_load(&net->traffic.bytes) : 0); /* else memory is shared */
    sdr_json_set(object, "staleness_mean", json_real(steps ? (double)missed / (double)steps : 0));
    set_integer(object, "staleness_max", most);
    if (net && !run->use.transport->simulated && net->lead.ended > run->log.paused_then) {
        /* Time spent waiting during evaluation is not waiting for others. */
        double paused = (double)run->log.paused_then / (double)net->lead.ended;
        waited = fmax(0, (waited - paused) / (1 - paused));
    }
    sdr_json_set(object, "wait_fraction", json_real(waited));
    json_t *options = json_object();
    for (const struct sdr_option *row = sdr_settings_table; row->key; row++)
        if (row->commands & SDR_TRAIN)
            sdr_json_set(options, row->key, sdr_option_json(&run->options, row->key));
    sdr_json_set(options, "model", json_string(run->use.kind->name));
    sdr_json_set(options, "optimizer", json_string(run->use.optimizer->name));
    sdr_json_set(options, "schedule", json_string(run->use.schedule->name));
    sdr_json_set(options, "lr", json_real(run->pace.rate));
    sdr_json_set(options, "epochs", json_integer((json_int_t)run->pace.epochs));
    sdr_json_set(object, "options", options);
    return sdr_json_text(object, json);
}

void sdr_feature_name(const struct sdr_schema *schema, uint32_t feature, struct sdr_text *text)
{
    for (uint32_t i = 0; i < schema->columns; i++)
        if (schema->column[i].kind == SDR_COLUMN_NUMBER && schema->column[i].feature == feature) {
            sdr_text_add(text, "%s", schema->column[i].name);
            return;
        }
    if (schema->category.count && feature >= schema->numbers &&
        feature - schema->numbers < schema->category.count)
        sdr_text_add(text, "%s", schema->category.text[feature - schema->numbers]);
    else
        sdr_text_add(text, "%u", feature + (uint32_t)(schema->base > 0 ? schema->base : 0));
}

/* The features with the largest weights: by absolute value, or by norm over the classes. */
static json_t *largest_weights(const struct sdr_model *model)
{
    enum { SHOWN = 20 };
    uint32_t top[SHOWN], count = 0, cols = model->block[0].cols;
    double size[SHOWN];
    for (uint32_t j = 0; j < model->block[0].rows && model->block[0].per_feature; j++) {
        double square = 0;
        for (uint32_t k = 0; k < cols; k++) {
            double w = model->value[model->block[0].offset + (uint64_t)j * cols + k];
            square += w * w;
        }
        uint32_t place = count < SHOWN ? count++ : SHOWN;
        while (place > 0 && size[place - 1] < square) {
            if (place < SHOWN) {
                top[place] = top[place - 1];
                size[place] = size[place - 1];
            }
            place--;
        }
        if (place < SHOWN) {
            top[place] = j;
            size[place] = square;
        }
    }
    json_t *list = json_array();
    for (uint32_t i = 0; i < count && size[i] > 0; i++) {
        struct sdr_text name = {0};
        sdr_feature_name(&model->schema, top[i], &name);
        double shown = cols == 1 ? model->value[model->block[0].offset + top[i]] : sqrt(size[i]);
        sdr_json_append(list, name.failed ? NULL
                                          : json_pack("{s:s, s:f}", "feature", name.bytes,
                                                      cols == 1 ? "weight" : "norm", shown));
        sdr_text_free(&name);
    }
    return list;
}

enum sdr_status sdr_model_inspect(const struct sdr_model *model, char **json)
{
    json_t *training, *schema,
        *object = sdr_json_begin(json_pack(
            "{s:s, s:s, s:I, s:I}", "model", model->kind_spec, "hash", model->hash, "features",
            (json_int_t)model->schema.features, "outputs", (json_int_t)model->outputs));
    json_t *labels = json_array(), *blocks = json_array();
    for (uint32_t k = 0; k < model->classes.count; k++)
        sdr_json_append(labels,
                        sdr_text_to_json(model->classes.text[k], strlen(model->classes.text[k])));
    for (int b = 0; b < model->blocks; b++)
        sdr_json_append(blocks, json_pack("{s:s, s:I, s:I}", "name", model->block[b].name, "rows",
                                          (json_int_t)model->block[b].rows, "cols",
                                          (json_int_t)model->block[b].cols));
    sdr_json_set(object, "labels", labels);
    sdr_json_set(object, "blocks", blocks);
    set_integer(object, "weights_nonzero", count_nonzero(model));
    enum sdr_status status = sdr_json_parse(model->training, strlen(model->training), &training);
    if (status != SDR_RUNTIME) /* files of other programs are not shown */
        sdr_json_set(object, "training", status == SDR_OK ? training : json_null());
    sdr_json_set(object, "largest_weights", largest_weights(model));
    if (status != SDR_RUNTIME)
        status = sdr_schema_to_json(&model->schema, &schema);
    if (status == SDR_OK) {
        sdr_json_set(object, "schema", schema);
        return sdr_json_text(object, json);
    }
    json_decref(object);
    return status;
}
