/* Hogwild! (Niu, Recht, Ré and Wright, 2011): workers train one model without locks.

   exchange=0  as published: every step writes to the shared model, and concurrent steps on one
               weight may be lost. With kernels this fast the cache lines of busy features bounce
               between cores, and two workers are slower than one.
   exchange=N  a worker trains on a private replica for N rows, then adds its changes to the shared
               model atomically. Nothing is lost, and cache lines move N times less often.
   auto        chooses N by the sizes of model and rows, or 0 for many features of which none is
               busy. Changes of more than two workers to busy features are damped.

   Damping. Each worker has made the whole correction on a busy feature, so the sum of their changes
   would overshoot. A change to a feature that occurs in a fraction f of the rows is multiplied by
       max(2/P, min(1, 64/(f·R))),   P: replicas that changed it, R: rows of all replicas between
                                     two exchanges.
   The factor is 1 with two workers, and for features that all of them together see at most 64 times
   between exchanges. A feature of every row, exchanged after 26 rows of each of 3, 4, 8 workers,
   has the factor 0.82, 0.62, 0.31. Measured: loss relative to serial after three epochs of 20 000
   sparse rows (5 000 features, 40 non-zeros), 4 and 8 lanes: with damping 1.001 and 1.003
   (adagrad), 1.000 and 1.000 (sgd); without it 1.066 and 1.112, 1.052 and 1.104. damping=no adds
   all changes, as published.

   Deterministic: the replicas belong to `lanes` instead of workers. All lanes start from the same
   model, each trains on N rows, and the changes are added in the order of the lanes. So it does not
   matter which thread ran which lane, or when. The first rounds are shorter, and grow to N rows
   with the rows seen (team/next_batch.c). */
#include "base/text.h"
#include "team/role.h"

#include <math.h>
#include <string.h>

struct options {
    char *exchange;
    uint64_t lanes;
    bool damping;
};
static const struct sdr_option table[] = {
    {"exchange", SDR_TEXT, "auto", "N", 0, 0,
     "rows a worker trains on a copy of its own before it adds its changes to the shared model; 0: "
     "it steps on the shared model; auto: by the size of model and rows",
     offsetof(struct options, exchange), 0},
    {"lanes", SDR_INTEGER, "0", "N", 0, 1024,
     "with --deterministic: number of model copies trained in parallel; at most this many workers "
     "are used; 0: 2",
     offsetof(struct options, lanes), 0},
    {"damping", SDR_FLAG, "yes", NULL, 0, 0,
     "with more than two copies, and exchange=auto or --deterministic: add a fraction of the "
     "changes "
     "to busy features, so that their sum does not overshoot; no: add all",
     offsetof(struct options, damping), 0},
    {0}};

static uint64_t lanes_of(const struct options *o)
{
    return o->lanes ? o->lanes : 2;
}

/* Two copies of a model with one output and no more weights than rows are as good as one worker
   however rarely they are merged after the first rounds. Training loss relative to serial, lanes
   merged 16 and 4 times an epoch: 800 000 sparse rows 0.995 and 0.986, a9a 1.000 and 1.000.
   Otherwise they are not: RCV1 with two weights a row 1.007, MNIST with ten outputs 1.06. */
enum { MANY = 100000 };
static bool few_merges_suffice(const struct sdr_plan *plan, uint64_t copies)
{
    return copies == 2 && plan->known.fused && !plan->known.pairs &&
           (plan->known.parameters <= plan->known.rows || plan->known.rows >= MANY);
}

/* An upper bound: wide models are merged by the features that occur (update/numbering.c). */
static double exchange_cost(const struct sdr_plan *plan) /* ns */
{
    return (plan->known.deterministic ? 0.7 : 3) * (double)plan->known.values;
}

static double row_cost(const struct sdr_plan *plan) /* ns */
{
    return 20 + 3 * plan->known.row_values;
}

/* Rows between two exchanges that take this share of their time. */
static double cheap_rows(const struct sdr_plan *plan, double share)
{
    return exchange_cost(plan) / (share * row_cost(plan));
}

/* Rows between two exchanges: N = max(16, min(cheap, often, close)).
     cheap  an exchange costs 4 % of the time of the rows before it
     often  16 exchanges per worker and epoch (8 for many sparse rows; two workers of which few
            exchanges are asked have 4, and this bound alone)
     close  18 touches per weight between exchanges (36 for sparse rows, where most touches fall on
            few weights), so that replicas stay close on dense and small problems */
static uint64_t choose_rows(const struct sdr_plan *plan, uint64_t copies, bool *straight)
{
    double cost = exchange_cost(plan), row = row_cost(plan), cheap = cheap_rows(plan, 0.04);
    double rarely =
        (double)plan->known.parameters / plan->known.row_values; /* rows per touch of a weight */
    bool sparse = rarely > 64, large = plan->known.rows > 100000;
    bool racing = !plan->known.deterministic,
         seldom = few_merges_suffice(plan, copies) && (!racing || (sparse && large));
    double times = racing && sparse && large ? (seldom ? 4 : 8) : 16; /* per epoch */
    double often = (double)plan->known.rows / (times * (double)copies);
    if (seldom && !racing) /* a merge may take 10 % of the time */
        return (uint64_t)fmax(
            fmin(fmax(often, cheap_rows(plan, 0.1)), (double)(plan->known.rows / copies)), 1);
    double close = (sparse ? 36 : 18) * rarely;
    /* For a large model with few values per row, exchanges would take longer than the rows between
       them, while direct writes of different workers rarely hit the same cache line. */
    *straight = cost > 0.2 * often * row && plan->known.busiest < 0.25 && plan->known.fused &&
                !plan->known.penalty && plan->known.nodes == 1; /* NUMA: cache lines travel far */
    double rows = cheap < often ? cheap : often;
    rows = seldom ? often : rows < close ? rows : close;
    return rows < 16 ? 16 : (uint64_t)rows;
}

/* Rows of a lane in the first rounds: few, since steps are largest there. Where few merges suffice,
   merging takes no more than 4 % of the time of these rounds. 450 000 dense rows, two lanes, one
   epoch: the training loss is 1.000 of serial's, and 1.006 of it if all rounds are alike. */
static uint64_t first_rows(const struct sdr_plan *plan, bool rarely)
{
    enum { LEAST = 16 };
    double cheap = cheap_rows(plan, 0.04);
    return (rarely && cheap > LEAST ? (uint64_t)cheap : LEAST) * plan->known.batch;
}

static enum sdr_status plan(const void *options, struct sdr_plan *plan)
{
    const struct options *o = options;
    uint64_t copies = plan->known.deterministic ? lanes_of(o) : (uint64_t)plan->workers;
    uint64_t rows = 1024;
    bool straight = false, chosen = strcmp(o->exchange, "auto") == 0;
    if (chosen)
        rows = choose_rows(plan, copies, &straight);
    else if (!sdr_parse_u64(o->exchange, &rows))
        return sdr_fail(SDR_USAGE, "hogwild:exchange takes a number of rows or auto, not '%s'",
                        o->exchange);
    straight = (straight || rows == 0) && !plan->known.deterministic;
    if (straight && (!plan->known.fused || plan->known.penalty) && plan->workers > 1)
        return sdr_fail(SDR_USAGE, "hogwild:exchange=0 is for single rows, one output and no "
                                   "penalty; leave hogwild:exchange to itself");
    if (o->lanes && !plan->known.deterministic)
        return sdr_fail(SDR_USAGE, "hogwild:lanes=%llu needs --deterministic",
                        (unsigned long long)o->lanes);
    if (plan->known.deterministic && rows == 0)
        return sdr_fail(SDR_USAGE, "--deterministic needs an exchange: hogwild:exchange=N");
    if (copies > 1 && plan->known.group_penalty)
        return sdr_fail(SDR_USAGE, "--group-lasso shrinks whole rows of weights, which cannot be "
                                   "added up from several workers: use --sync serial or batch");
    if (rows == 0)
        rows = 256;
    if (rows > plan->known.rows)
        rows = plan->known.rows;
    rows = (rows + plan->known.batch - 1) / plan->known.batch * plan->known.batch;
    if (plan->known.deterministic && (uint64_t)plan->workers > copies) {
        plan->workers = (int)copies;
        plan->remark = "each lane keeps one worker busy; for more, at a slightly higher loss: "
                       "--sync hogwild:lanes=N --deterministic";
    }
    plan->in_place = straight && plan->workers > 1;
    plan->races = !plan->known.deterministic && plan->workers > 1;
    plan->copies = straight || copies == 1 ? 0 : (int)copies;
    plan->share = plan->known.deterministic ? rows * copies : rows;
    bool rarely = chosen && plan->known.deterministic && few_merges_suffice(plan, copies);
    if (plan->copies && plan->known.deterministic)
        plan->first_share = first_rows(plan, rarely) * copies;
    plan->damped = o->damping && plan->copies && !rarely &&
                   (plan->known.deterministic || (chosen && copies > 2));
    return SDR_OK;
}

static enum sdr_status racing(struct sdr_node *node)
{
    for (;;) {
        struct sdr_batch share;
        bool more;
        SDR_TRY(sdr_next_share(node, &share, &more));
        if (!more)
            return SDR_OK;
        sdr_pull_replica(node, &share);
        SDR_TRY(sdr_train(node, &share));
        sdr_push_delta(node);
    }
}

/* One thread replays the recorded events of all workers in their order. */
static enum sdr_status replaying(struct sdr_node *node)
{
    for (;;) {
        struct sdr_batch share;
        bool more;
        SDR_TRY(sdr_next_recorded(node, &share, &more));
        if (!more)
            return SDR_OK;
        if (share.count) {
            sdr_pull_replica(node, &share);
            SDR_TRY(sdr_train(node, &share));
        } else {
            sdr_push_delta(node);
        }
    }
}

static enum sdr_status in_lanes(struct sdr_node *node)
{
    uint64_t lanes = lanes_of(node->options);
    uint64_t lane, part, parts = (uint64_t)node->workers * 2;
    for (;;) {
        struct sdr_batch round;
        bool more;
        SDR_TRY(sdr_next_round(node, &round, &more));
        if (!more)
            return SDR_OK;
        uint64_t batches = (round.count + node->plan->known.batch - 1) / node->plan->known.batch;
        uint64_t rows = (batches + lanes - 1) / lanes * node->plan->known.batch;
        while (sdr_next_piece(node, lanes, &lane)) {
            struct sdr_batch share = sdr_part(node, &round, lane * rows, rows);
            sdr_use_replica(node, lane);
            sdr_pull_replica(node, &share);
            SDR_TRY(sdr_train(node, &share));
            sdr_catch_up(node);
        }
        SDR_TRY(sdr_barrier(node));
        while (sdr_next_piece(node, parts, &part))
            sdr_merge(node, (int)lanes, part, parts);
    }
}

static enum sdr_status worker(struct sdr_node *node)
{
    if (sdr_replays(node))
        return replaying(node);
    return node->plan->known.deterministic && node->plan->copies ? in_lanes(node) : racing(node);
}

SDR_REGISTER(strategy, hogwild) = {
    .name = "hogwild",
    .summary = "Hogwild!: all cores on one model, without locks",
    .options = table,
    .options_size = sizeof(struct options),
    .many = true,
    .can_repeat = true,
    .team = &(const struct sdr_team_ops){.plan = plan, .worker = worker},
};
