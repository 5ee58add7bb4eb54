/* --sync auto: a strategy for all cores whose model does not depend on how many there are. What it
   chooses follows from the model, the rows and the options alone, never from the machine.

     the model's own        networks: bsp, the bits of one worker. mf: rotation. k-means: rounds over all rows (Lloyd)
     dense, several outputs bsp with batches of 128 rows, from 20 000 rows on. Measured against single rows on one worker,
                            with 1.4 times as many epochs: training loss of Fashion-MNIST −0.2 %, of
                            four fifths of it +0.3 %, and of 8 000 rows of MNIST +2.6 %. Sparse rows of rare classes need single
                            steps: KDD Cup 99, accuracy 0.9955 (0.9977)
     --batch of 128 or more bsp: two leaves or more, which cores compute together; the bits of one worker
     one row at a time      hogwild with lanes, if there are more rows than features, or 100 000 rows and no more than 50
                            times as many features: a lane trains a copy, and copies are merged in order. Two lanes: a9a and
                            450 000 dense rows 0.00 %, 800 000 sparse ones −0.05 %; four: +0.4 % on the last, so they are
                            for data where there is time to gain. RCV1, which has twice as many features as rows, would come out 0.7 %
                            higher, held out 3 %. Numbers need ten rows a feature: with 20, 10 and 2 the training loss
                            is 0.02 %, 0.06 % and 8 to 16 % higher. Merging moves weights that --l1 holds at zero: not with it
     else                   serial */
#include "base/memory.h"
#include "base/text.h"
#include "run/registry.h"
#include "run/run.h"
#include "run/run_plugins.h"

#include <stdio.h>
#include <string.h>

enum {
    ROWS_TOGETHER = 128, /* of a batch that several cores compute */
    ROWS_LEAST = 2048,   /* below, training takes milliseconds */
    ROWS_OF_BATCHES = 20000,
    MANY_ROWS = 100000,
    FEATURES_TO_ROWS = 50,
    ROWS_OF_REGRESSION = 10, /* a feature */
    MANY_ENTRIES = 100000000 /* from here on there are four lanes */
};

struct choice {
    char sync[32];
    uint64_t batch;  /* 0: as it is */
    const char *why; /* NULL: no note */
};

/* The first of these options that is given; NULL: none. */
static const char *given(const struct sdr_run *run, const char *const *names)
{
    while (*names && !sdr_options_given(&run->options, *names))
        names++;
    return *names;
}

/* The first option given that is for workers that exchange messages; NULL: none. */
static const char *of_messages(const struct sdr_run *run)
{
    const struct sdr_settings *s = &run->options.settings;
    return strcmp(run->use.transport->name, "threads") != 0 ? "transport"
           : s->servers > 1                                 ? "servers"
           : s->dedicated_servers                           ? "dedicated-servers"
           : strcmp(s->codec, "none") != 0                  ? "codec"
           : strcmp(s->aggregate, "mean") != 0              ? "aggregate"
           : s->delay                                       ? "delay"
           : s->slow                                        ? "slow"
           : s->compute                                     ? "compute"
                                                            : NULL;
}

/* The option given that needs updates one by one; NULL: none. Networks count theirs with bsp,
   too. */
static const char *only_serial(const struct sdr_run *run)
{
    const struct sdr_settings *s = &run->options.settings;
    bool counts = !run->use.kind->layered;
    uint64_t every;
    return counts && s->updates                                               ? "updates"
           : counts && sdr_parse_u64(s->evaluate_every, &every) && every > 0  ? "evaluate-every"
           : strcmp(s->average, "no") != 0 && strcmp(s->average, "auto") != 0 ? "average"
           : s->replay                                                        ? "replay"
           : s->record                                                        ? "record"
           : s->restarts                                                      ? "restarts"
           : s->group_lasso > 0                                               ? "group-lasso"
                                                                              : NULL;
}

/* What rounds over all rows take no notice of. */
static bool against_rounds(const struct sdr_run *run)
{
    static const char *const names[] = {"updates",  "optimizer", "lr", "lr-batch",
                                        "schedule", "shuffle",   NULL};
    return run->data->streams || run->options.settings.batch > 0 || given(run, names);
}

static int lanes_for(const struct sdr_run *run)
{
    uint64_t entries = run->data->rows.dense
                           ? (uint64_t)run->set.train_rows.count * run->problem.features
                           : run->data->nonzeros;
    return entries < MANY_ENTRIES ? 2 : 4;
}

static bool bears_lanes(const struct sdr_run *run)
{
    uint64_t rows = run->set.train_rows.count, features = run->problem.features;
    if (run->use.kind->truth == SDR_REGRESSION)
        return rows >= ROWS_OF_REGRESSION * features;
    return rows >= features || (rows >= MANY_ROWS && features <= FEATURES_TO_ROWS * rows);
}

static struct choice choose(const struct sdr_run *run)
{
    const struct sdr_settings *s = &run->options.settings;
    const struct sdr_model_kind *kind = run->use.kind;
    uint64_t rows = run->set.train_rows.count;
    struct choice c = {.sync = "serial"};
    bool penalty = s->l1 > 0 || s->l2 > 0, linear = kind->fused && !kind->bilinear;
    const char *own = kind->defaults.sync;
    if (only_serial(run) || (own && strcmp(own, "batch") == 0 && against_rounds(run)) ||
        (own && strcmp(own, "rotation") == 0 && (penalty || s->batch > 1)))
        return c;
    if (own) {
        snprintf(c.sync, sizeof c.sync, "%s", own);
        c.why = kind->layered ? "all cores compute each batch, the same bits as one worker"
                              : "all cores, the same model for any number of them";
        return c;
    }
    if (!linear || rows < ROWS_LEAST)
        return c;
    bool together = s->batch >= ROWS_TOGETHER, sparse_weights = s->l1 > 0, single = s->batch == 0;
    if (single && run->data->rows.dense && run->problem.outputs > 1) {
        c.batch = rows >= ROWS_OF_BATCHES ? ROWS_TOGETHER : 0;
        together = c.batch > 0;
    }
    if (together) {
        snprintf(c.sync, sizeof c.sync, "bsp");
        c.why = "all cores compute each batch, the same bits as one worker";
    } else if (s->batch <= 1 && run->problem.outputs == 1 && !sparse_weights && bears_lanes(run)) {
        snprintf(c.sync, sizeof c.sync, "hogwild:lanes=%d", lanes_for(run));
        c.why = "the same model for any number of workers";
    }
    return c;
}

/* The reason of choose() for serial, if it is no option of only_serial. NULL: no note, for few rows
   without --workers. */
static const char *why_serial(const struct sdr_run *run)
{
    const struct sdr_settings *s = &run->options.settings;
    const struct sdr_model_kind *kind = run->use.kind;
    if (kind->defaults.sync)
        return strcmp(kind->defaults.sync, "batch") == 0
                   ? "rounds over all rows do not use the step options given"
                   : "blocks of ratings are for single rows without --l1 and --l2";
    if (run->set.train_rows.count < ROWS_LEAST)
        return s->workers > 1 ? "fewer than 2048 rows train in milliseconds" : NULL;
    if (!kind->fused || kind->bilinear)
        return "steps of this model are taken in order";
    if (s->batch > 1)
        return "batches of fewer than 128 rows are not worth sharing";
    if (run->problem.outputs > 1)
        return run->data->rows.dense ? "batches that cores share need 20000 rows"
                                     : "rare classes need single steps in order";
    return s->l1 > 0 ? "merging copies would move weights that --l1 holds at zero"
                     : "too few rows a feature: merged copies would end at a higher loss";
}

/* With one worker --workers says how many threads compute for it. */
static void use_threads(struct sdr_run *run)
{
    struct sdr_settings *s = &run->options.settings;
    if (!run->use.strategy->many && s->workers && !sdr_options_given(&run->options, "threads"))
        s->threads = s->workers;
    if (!run->use.strategy->many)
        s->workers = 0;
}

enum sdr_status sdr_choose_strategy(struct sdr_run *run)
{
    struct sdr_settings *s = &run->options.settings;
    const struct sdr_plugin *plugin;
    const char *serial;
    if (strcmp(s->sync, "auto") != 0)
        return SDR_OK;
    if (of_messages(run) && !run->use.kind->layered)
        return sdr_fail(SDR_USAGE,
                        "--sync auto does not exchange messages, which --%s is for: name a "
                        "strategy that does, such as --sync bsp or --sync async",
                        of_messages(run));
    struct choice c = choose(run);
    serial = why_serial(run); /* before --batch and --workers are filled in */
    sdr_plugin_free(run->use.strategy, run->use.strategy_options);
    run->use.strategy_options = NULL;
    SDR_TRY(sdr_plugin_choose("strategy", sdr_strategy_table, c.sync, &plugin,
                              &run->use.strategy_options));
    run->use.strategy = (const struct sdr_strategy *)plugin;
    s->deterministic |= run->use.strategy->can_repeat;
    if (c.batch)
        s->batch = c.batch;
    if (!of_messages(run))
        use_threads(run);
    if (c.why && c.batch)
        sdr_note(
            &run->options,
            "--sync auto: %s, batches of %llu rows: %s (--sync serial: one worker, single rows)",
            c.sync, (unsigned long long)c.batch, c.why);
    else if (c.why)
        sdr_note(&run->options, "--sync auto: %s%s: %s (--sync serial: one worker)", c.sync,
                 strncmp(c.sync, "hogwild", 7) == 0 ? " --deterministic" : "", c.why);
    else if (only_serial(run) && !s->replay && !s->record)
        sdr_note(&run->options, "--sync auto takes serial, one worker, because of --%s",
                 only_serial(run));
    else if (!c.why && !only_serial(run) && serial)
        sdr_note(&run->options, "--sync auto: serial, one worker: %s (--sync %s: all cores)",
                 serial, run->use.kind->fused && s->batch <= 1 ? "hogwild" : "bsp");
    sdr_release(s->sync);
    s->sync = NULL;
    return sdr_copy_string(&s->sync, c.sync);
}
