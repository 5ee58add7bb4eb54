/* The plug-ins of a run: chosen by its options and its model, and what they mean for how it works. */
#include "base/memory.h"
#include "run/registry.h"
#include "run/run.h"

#include <string.h>

enum sdr_status sdr_choose_plugins(struct sdr_run *run)
{
    const struct sdr_settings *s = &run->options.settings;
    const struct sdr_plugin *plugin;
    bool automatic = strcmp(s->optimizer, "auto") == 0;
    SDR_TRY(sdr_plugin_choose("strategy", sdr_strategy_table, s->sync, &plugin,
                              &run->strategy_options));
    run->strategy = (const struct sdr_strategy *)plugin;
    SDR_TRY(sdr_plugin_choose("optimizer", sdr_optimizers(), automatic ? "adagrad" : s->optimizer,
                              &plugin, &run->optimizer_options));
    run->optimizer = (const struct sdr_optimizer *)plugin;
    /* Steps of constant size end in the noise of single rows. FTRL's weights are sums over all
       steps: a step that shrinks would shrink them. */
    const char *schedule = s->schedule;
    if (strcmp(schedule, "auto") == 0)
        schedule = run->optimizer->own_penalty ? "constant" : "linear";
    SDR_TRY(sdr_plugin_choose("schedule", sdr_schedule_table, schedule, &plugin,
                              &run->schedule_options));
    run->schedule = (const struct sdr_schedule *)plugin;
    SDR_TRY(sdr_plugin_choose("transport", sdr_transport_table, s->transport, &plugin,
                              &run->transport_options));
    run->transport = (const struct sdr_transport *)plugin;
    SDR_TRY(sdr_plugin_choose("aggregate", sdr_aggregate_table, s->aggregate, &plugin,
                              &run->aggregate_options));
    run->aggregate = (const struct sdr_aggregate *)plugin;
    SDR_TRY(sdr_plugin_choose("codec", sdr_codec_table, s->codec, &plugin, &run->codec_options));
    run->codec = (const struct sdr_codec *)plugin;
    if (strcmp(run->codec->name, "none") == 0) /* plain floats need no codec, and no copies */
        run->codec = NULL;
    run->processes = 1;
    if (run->transport->join)
        SDR_TRY(run->transport->join(run->transport_options, &run->process, &run->processes));
    if (run->process > 0) { /* the first process tells, keeps and resumes */
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
    if (run->kind->defaults.optimizer && strcmp(s->optimizer, "auto") == 0) {
        sdr_plugin_free(run->optimizer, run->optimizer_options);
        run->optimizer_options = NULL;
        SDR_TRY(sdr_plugin_choose("optimizer", sdr_optimizers(), run->kind->defaults.optimizer,
                                  &plugin, &run->optimizer_options));
        run->optimizer = (const struct sdr_optimizer *)plugin;
    }
    if (run->kind->defaults.schedule && strcmp(s->schedule, "auto") == 0) {
        sdr_plugin_free(run->schedule, run->schedule_options);
        run->schedule_options = NULL;
        SDR_TRY(sdr_plugin_choose("schedule", sdr_schedule_table, run->kind->defaults.schedule,
                                  &plugin, &run->schedule_options));
        run->schedule = (const struct sdr_schedule *)plugin;
    }
    return SDR_OK;
}

bool sdr_by_messages(const struct sdr_run *run)
{
    const struct sdr_options *o = &run->options;
    return run->strategy->peer ||
           (run->strategy->server &&
            (!run->strategy->team || strcmp(run->transport->name, "threads") != 0 ||
             o->settings.servers > 1 || run->codec || sdr_options_given(o, "delay") ||
             sdr_options_given(o, "slow")));
}

enum sdr_status sdr_choose_quorum(const struct sdr_run *run, uint64_t workers, uint64_t *quorum)
{
    *quorum = run->strategy->joint ? workers : 1;
    return run->strategy->peer
               ? SDR_OK
               : run->strategy->server->quorum(run->strategy_options, workers, quorum);
}

bool sdr_own_steps(const struct sdr_run *run)
{
    return run->strategy->own_steps && run->strategy->own_steps(run->strategy_options);
}

uint64_t sdr_local_steps(const struct sdr_run *run)
{
    return run->strategy->server && run->strategy->server->local
               ? run->strategy->server->local(run->strategy_options)
               : 1;
}

bool sdr_keeps_values(const struct sdr_run *run)
{
    return run->strategy->server && run->strategy->server->keeps &&
           run->strategy->server->keeps(run->strategy_options);
}

bool sdr_sends_steps(const struct sdr_run *run)
{
    return (run->strategy->server && run->strategy->server->steps) || sdr_local_steps(run) > 1 ||
           sdr_keeps_values(run);
}
