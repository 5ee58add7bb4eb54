/* --sync auto: a strategy for all cores whose model does not depend on how many there are. What it
   chooses follows from the model, the rows and the options alone, never from the machine.

   the model's own         networks: bsp, the bits of one worker. mf: rotation. k-means: rounds over
                           all rows (Lloyd)
   dense, several outputs  bsp with batches of 128 rows, from 30 000 rows on. Measured against single
                           rows on one worker, with 1.4 times as many epochs: training loss of
                           Fashion-MNIST −0.4 %, of half of it +0.1 %, of a third of it +0.3 %; of
                           housing's 20 640 rows +0.7 %, of 8 000 rows of MNIST +2.6 %. Sparse rows
                           of rare classes need single steps: KDD Cup 99, accuracy 0.9955 (0.9977)
   --batch, 128 or more    bsp: two leaves or more, which cores compute together; the bits of one
                           worker
   one row at a time       hogwild with lanes, if there are enough rows a feature, or 100 000 rows and
                           no more than 50 times as many features: a lane trains a copy, and
                           copies are merged in order. Two lanes: a9a and 450 000 dense rows 0.00 %,
                           800 000 sparse ones −0.05 %; four: +0.4 % on the last, so they are for
                           data where there is time to gain. RCV1, which has twice as many features
                           as rows, would come out 0.7 % higher, held out 3 %. Other losses need more
                           rows and epochs: see too_few_for_lanes. Merging moves weights that --l1
                           holds at zero: not with it
   else                    serial */
#include "base/memory.h"
#include "base/text.h"
#include "run/defaults.h"
#include "run/registry.h"
#include "run/run.h"
#include "run/run_plugins.h"

#include <stdio.h>
#include <string.h>

enum {
    ROWS_TOGETHER = 128, /* of a batch that several cores compute */
    ROWS_LEAST = 2048,   /* below, training takes milliseconds */
    ROWS_OF_BATCHES = 30000,
    MANY_ROWS = 100000,
    FEATURES_TO_ROWS = 50,
    ROWS_IF_STEEP = 10,   /* a feature, for losses of curvature 1 and more, and ... */
    EPOCHS_IF_STEEP = 10, /* ... the fewest epochs */
    VISITS = 20,          /* rows a feature and epochs, multiplied */
    VISITS_IF_KINKED = 30,
    MANY_ENTRIES = 100000000 /* from here on there are four lanes */
};

struct choice {
    char sync[64];
    uint64_t batch;  /* 0: as it is */
    const char *why; /* NULL: no note */
    bool alone;      /* serial */
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

/* Whether an option is given that rounds over all rows take no notice of. */
static bool against_rounds(const struct sdr_run *run)
{
    static const char *const names[] = {"updates",  "optimizer", "lr", "lr-batch",
                                        "schedule", "shuffle",   NULL};
    return run->options.settings.batch > 0 || given(run, names);
}

/* Why the model's own strategy does not fit the run; NULL: it does. */
static const char *against_own(const struct sdr_run *run)
{
    const struct sdr_settings *s = &run->options.settings;
    const char *own = run->use.kind->defaults.sync;
    if (strcmp(own, "batch") == 0)
        return against_rounds(run)  ? "rounds over all rows do not use the step options given"
               : run->data->streams ? "the rows do not fit --memory, and every round needs them all"
                                    : NULL;
    if (strcmp(own, "rotation") != 0)
        return NULL;
    return s->l1 > 0      ? "blocks of ratings do not take --l1"
           : s->l2 > 0    ? "blocks of ratings do not take --l2"
           : s->batch > 1 ? "blocks of ratings are for single rows, not for --batch"
           : run->data->streams
               ? "the rows do not fit --memory, and blocks of ratings need them all"
           : s->shuffle != SDR_SHUFFLE_AUTO && s->shuffle != SDR_SHUFFLE_NONE
               ? "blocks of ratings have an order of their own, not that of --shuffle"
               : NULL;
}

static int lanes_for(const struct sdr_run *run)
{
    uint64_t entries = run->data->rows.dense
                           ? (uint64_t)run->set.train_rows.count * run->problem.features
                           : run->data->nonzeros;
    return entries < MANY_ENTRIES ? 2 : 4;
}

/* Why copies that are trained apart, and merged, end at a higher loss than one worker; NULL: they
   do not. Two lanes
   relative to serial, training loss, generated rows of 40 entries:

       loss            rows a feature × epochs
       logistic        3.6 × 1 +0.7 %, 14 × 1 +0.6 %, 29 × 1 −0.0 %, 3.6 × 5 −0.3 %
       hinge           3.6 × 3 +0.6 %, 14 × 1 +3 %, 29 × 1 +0.4 %, 14 × 5 −0.4 %
       squared hinge   29 × 1 +1.5 %, 288 × 1 +0.9 %, 29 × 3 and 14 × 12 0.0 %
       squared, huber  29 × 1 +2.6 %, 96 × 3 +4.6 %, 27 × 5 +1.6 %, 27 × 12 and 90 × 12 0.0 %

   From 100 000 rows on logistic loss has lanes with fewer rows a feature, too: there is time to
   gain. */
static const char *too_few_for_lanes(const struct sdr_run *run)
{
    static const char *const few_rows =
        "too few rows a feature: copies that are merged end at a higher loss";
    static const char *const few_epochs =
        "too few epochs: copies that are merged end at a higher loss";
    double rows = run->set.train_rows.count, features = run->problem.features;
    double epochs = run->options.settings.epochs ? (double)run->options.settings.epochs
                                                 : sdr_usual_epochs(run, false);
    double curvature = run->use.kind->curvature;
    if (curvature >= 1)
        return rows < ROWS_IF_STEEP * features ? few_rows
               : epochs < EPOCHS_IF_STEEP      ? few_epochs
                                               : NULL;
    if (curvature > 0 && rows >= MANY_ROWS && features <= FEATURES_TO_ROWS * rows)
        return NULL;
    if (rows < features)
        return few_rows;
    double visits = curvature > 0 ? VISITS : VISITS_IF_KINKED;
    return rows * epochs < visits * features ? few_epochs : NULL;
}

/* Why the changes of copies, added up, go too far; NULL: they do not. Steps must shrink: with the
   sum of squared gradients (AdaGrad), and to zero at the end. Two lanes relative to
   one worker, training loss, a9a: adagrad 0.0 %, sgd +0.7 %, adam 0.0 %, adam with constant steps
   +33 %; 20 000 rows of 50 features that correlate: adam +1.2 %, ftrl +3.6 %, adagrad with
   constant steps +6.4 %. */
static const char *overshoots(const struct sdr_run *run)
{
    const struct sdr_optimizer *o = run->use.optimizer;
    return !o->sums || o->own_penalty
               ? "merging copies needs the shrinking steps of --optimizer adagrad"
           : !run->use.schedule->needs_end ? "merging copies needs a schedule that ends at zero"
                                           : NULL;
}

static struct choice serial(const char *why)
{
    return (struct choice){.sync = "serial", .why = why, .alone = true};
}

static struct choice choose(const struct sdr_run *run)
{
    const char *together = "all cores compute each batch, the same model for any number of them";
    const struct sdr_settings *s = &run->options.settings;
    const struct sdr_model_kind *kind = run->use.kind;
    uint64_t rows = run->set.train_rows.count;
    bool several = run->problem.outputs > 1, dense = run->data->rows.dense;
    struct choice c = {.sync = "bsp", .why = together};
    if (only_serial(run))
        return serial(NULL);
    if (kind->defaults.sync) {
        if (against_own(run))
            return serial(against_own(run));
        snprintf(c.sync, sizeof c.sync, "%s", kind->defaults.sync);
        c.why = kind->layered ? together : "all cores, the same model for any number of them";
        return c;
    }
    if (rows < ROWS_LEAST)
        return serial(s->workers > 1 ? "fewer than 2048 rows train in milliseconds" : NULL);
    if (!kind->fused || kind->bilinear)
        return serial("steps of this model are taken in order");
    if (s->batch >= ROWS_TOGETHER)
        return c;
    if (s->batch > 1)
        return serial("batches of fewer than 128 rows are not worth sharing");
    if (several && !dense)
        return serial(
            "several classes of sparse rows, of which some may be rare, need single steps");
    if (several && s->batch == 1)
        return serial("--batch 1 asks for single steps, of several outputs each");
    if (several && rows < ROWS_OF_BATCHES)
        return serial("batches that cores share pay from 30000 rows on");
    if (several) {
        c.batch = ROWS_TOGETHER;
        return c;
    }
    if (s->l1 > 0)
        return serial("merging copies would move weights that --l1 holds at zero");
    if (overshoots(run))
        return serial(overshoots(run));
    if (too_few_for_lanes(run))
        return serial(too_few_for_lanes(run));
    c = (struct choice){.why = "the same model for any number of workers"};
    snprintf(c.sync, sizeof c.sync, "hogwild:lanes=%d", lanes_for(run));
    return c;
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

/* What to type for another choice, in brackets. */
static const char *other(const struct sdr_run *run, const struct choice *c)
{
    const struct sdr_settings *s = &run->options.settings;
    bool rows_apart = run->use.kind->fused && s->batch <= 1 && !run->data->rows.dense;
    if (c->alone && s->l1 > 0 && !against_rounds(run) && run->use.kind->full)
        return " (--sync batch: all cores)";
    if (c->alone)
        return rows_apart
                   ? " (--sync hogwild: all cores nevertheless, other last digits in every run)"
                   : " (--sync bsp: all cores nevertheless)";
    if (run->use.kind->defaults.sync && !run->use.kind->layered)
        return s->workers == 1 ? "" : " (--workers 1: one core)";
    return c->batch ? " (--sync serial: one worker, single rows)" : " (--sync serial: one worker)";
}

static void tell(const struct sdr_run *run, const struct choice *c)
{
    const struct sdr_settings *s = &run->options.settings;
    if (only_serial(run) && !s->replay && !s->record)
        sdr_note(&run->options, "--sync auto takes serial, one worker, because of --%s",
                 only_serial(run));
    if (!c->why)
        return;
    if (c->alone)
        sdr_note(&run->options, "--sync auto: serial, one worker: %s%s", c->why, other(run, c));
    else if (c->batch)
        sdr_note(&run->options, "--sync auto: %s, batches of %llu rows: %s%s", c->sync,
                 (unsigned long long)c->batch, c->why, other(run, c));
    else
        sdr_note(&run->options, "--sync auto: %s%s: %s%s", c->sync,
                 strncmp(c->sync, "hogwild", 7) == 0 ? " --deterministic" : "", c->why,
                 other(run, c));
}

enum sdr_status sdr_choose_strategy(struct sdr_run *run)
{
    struct sdr_settings *s = &run->options.settings;
    const struct sdr_plugin *plugin;
    if (strcmp(s->sync, "auto") != 0)
        return SDR_OK;
    if (of_messages(run) && !run->use.kind->layered)
        return sdr_fail(SDR_USAGE,
                        "--sync auto does not exchange messages, which --%s is for: name a "
                        "strategy that does, such as --sync bsp or --sync async",
                        of_messages(run));
    struct choice c = choose(run);
    sdr_plugin_free(run->use.strategy, run->use.strategy_options);
    run->use.strategy_options = NULL;
    SDR_TRY(sdr_plugin_choose("strategy", sdr_strategy_table, c.sync, &plugin,
                              &run->use.strategy_options));
    run->use.strategy = (const struct sdr_strategy *)plugin;
    s->deterministic |= run->use.strategy->can_repeat;
    tell(run, &c);
    if (c.batch)
        s->batch = c.batch;
    if (!of_messages(run))
        use_threads(run);
    sdr_release(s->sync);
    s->sync = NULL;
    return sdr_copy_string(&s->sync, c.sync);
}
