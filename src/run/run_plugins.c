/* The plug-ins of a run: chosen by its options and its model; and properties that follow from
   them. */
#include "run/run_plugins.h"
#include "base/memory.h"
#include "base/text.h"
#include "run/registry.h"
#include "run/run.h"

#include <string.h>

enum sdr_status sdr_choose_plugins(struct sdr_run *run)
{
    const struct sdr_settings *s = &run->options.settings;
    const struct sdr_plugin *plugin;
    bool automatic = strcmp(s->optimizer, "auto") == 0;
    SDR_TRY(sdr_plugin_choose("strategy", sdr_strategy_table,
                              strcmp(s->sync, "auto") == 0 ? "serial" : s->sync, &plugin,
                              &run->use.strategy_options));
    run->use.strategy = (const struct sdr_strategy *)plugin;
    SDR_TRY(sdr_plugin_choose("optimizer", sdr_optimizers(), automatic ? "adagrad" : s->optimizer,
                              &plugin, &run->use.optimizer_options));
    run->use.optimizer = (const struct sdr_optimizer *)plugin;
    /* Constant steps end in the noise of single rows. FTRL's weights are sums over all steps: a
       shrinking step would shrink them. */
    const char *schedule = s->schedule;
    if (strcmp(schedule, "auto") == 0)
        schedule = run->use.optimizer->own_penalty ? "constant" : "linear";
    SDR_TRY(sdr_plugin_choose("schedule", sdr_schedule_table, schedule, &plugin,
                              &run->use.schedule_options));
    run->use.schedule = (const struct sdr_schedule *)plugin;
    SDR_TRY(sdr_plugin_choose("transport", sdr_transport_table, s->transport, &plugin,
                              &run->use.transport_options));
    run->use.transport = (const struct sdr_transport *)plugin;
    SDR_TRY(sdr_plugin_choose("aggregate", sdr_aggregate_table, s->aggregate, &plugin,
                              &run->use.aggregate_options));
    run->use.aggregate = (const struct sdr_aggregate *)plugin;
    SDR_TRY(
        sdr_plugin_choose("codec", sdr_codec_table, s->codec, &plugin, &run->use.codec_options));
    run->use.codec = (const struct sdr_codec *)plugin;
    if (strcmp(run->use.codec->name, "none") == 0) /* plain floats need no codec, and no copies */
        run->use.codec = NULL;
    run->processes = 1;
    if (run->use.transport->join)
        SDR_TRY(
            run->use.transport->join(run->use.transport_options, &run->process, &run->processes));
    if (run->process > 0) { /* the first process reports, writes and resumes */
        run->options.report = NULL;
        sdr_release(run->options.settings.run);
        run->options.settings.run = NULL;
        run->options.settings.resume = false;
    }
    return SDR_OK;
}

enum sdr_status sdr_choose_by_model(struct sdr_run *run)
{
    const struct sdr_settings *s = &run->options.settings;
    const struct sdr_plugin *plugin;
    if (run->use.kind->defaults.optimizer && strcmp(s->optimizer, "auto") == 0) {
        sdr_plugin_free(run->use.optimizer, run->use.optimizer_options);
        run->use.optimizer_options = NULL;
        SDR_TRY(sdr_plugin_choose("optimizer", sdr_optimizers(), run->use.kind->defaults.optimizer,
                                  &plugin, &run->use.optimizer_options));
        run->use.optimizer = (const struct sdr_optimizer *)plugin;
    }
    if (run->use.kind->defaults.schedule && strcmp(s->schedule, "auto") == 0) {
        sdr_plugin_free(run->use.schedule, run->use.schedule_options);
        run->use.schedule_options = NULL;
        SDR_TRY(sdr_plugin_choose("schedule", sdr_schedule_table, run->use.kind->defaults.schedule,
                                  &plugin, &run->use.schedule_options));
        run->use.schedule = (const struct sdr_schedule *)plugin;
    }
    return SDR_OK;
}

bool sdr_by_messages(const struct sdr_run *run)
{
    const struct sdr_options *o = &run->options;
    return (run->use.strategy->server || run->use.strategy->peer) &&
           (!run->use.strategy->team || strcmp(run->use.transport->name, "threads") != 0 ||
            o->settings.servers > 1 || run->use.codec || sdr_options_given(o, "delay") ||
            sdr_options_given(o, "slow"));
}

enum sdr_status sdr_choose_quorum(const struct sdr_run *run, uint64_t workers, uint64_t *quorum)
{
    *quorum = run->use.strategy->joint ? workers : 1;
    return run->use.strategy->peer
               ? SDR_OK
               : run->use.strategy->server->quorum(run->use.strategy_options, workers, quorum);
}

bool sdr_own_steps(const struct sdr_run *run)
{
    return run->use.strategy->own_steps && run->use.strategy->own_steps(run->use.strategy_options);
}

uint64_t sdr_local_steps(const struct sdr_run *run)
{
    return run->use.strategy->server && run->use.strategy->server->local
               ? run->use.strategy->server->local(run->use.strategy_options)
               : 1;
}

bool sdr_keeps_values(const struct sdr_run *run)
{
    return run->use.strategy->server && run->use.strategy->server->keeps &&
           run->use.strategy->server->keeps(run->use.strategy_options);
}

bool sdr_sends_steps(const struct sdr_run *run)
{
    return (run->use.strategy->server && run->use.strategy->server->steps) ||
           sdr_local_steps(run) > 1 || sdr_keeps_values(run);
}
