/* What a run does where its options leave it open: workers and rows of an update, length,
   averaging, step.

   Numbers below are from real data, one worker, seed 1, everything else as it is without options.
   Data sets (rows × features, model): a9a (32 561 × 123, logistic; its test set), RCV1 (23 749 × 47
   236, logistic), MNIST (the 10 000 test digits × 784, softmax), housing (20 640 × 9 columns,
   squared; R²). One row in five is held out where there is no test set. */
#include "run/defaults.h"
#include "base/thread.h"
#include "peer/role.h"
#include "run/features.h"
#include "run/record.h"
#include "run/rules.h"
#include "run/run_plugins.h"
#include "server/placement.h"

#include <math.h>
#include <string.h>

/* Requested workers: --workers, or those of the record, or one per process of a job, or one per
   core (base/thread.h: those that the process may use). */
static int workers_wanted(const struct sdr_run *run)
{
    const struct sdr_settings *s = &run->options.settings;
    return !run->use.strategy->many ? 1
           : run->race.replay       ? (int)run->race.replay->workers
           : s->workers             ? (int)s->workers
           : run->processes > 1     ? sdr_workers_of_job(run)
                                    : sdr_thread_limit();
}

/* A model's own batch; for networks no more than a hundredth of the rows, but 8 at least: few rows
   need many steps. Houses (400 rows, mlp of 16 units, 20 epochs), R² on the test rows: 0.89 with
   batches of 128, 0.97 with 8. */
static uint64_t usual_batch(const struct sdr_model_kind *kind, uint64_t rows)
{
    enum { LEAST = 8, PART = 100 };
    uint64_t most = rows / PART > LEAST ? rows / PART : LEAST;
    return kind->layered && kind->defaults.batch > most ? most : kind->defaults.batch;
}

/* Workers that compute one gradient wait for each other in every update: with single rows they
   would do nothing else (two of them train at a fiftieth of serial's speed). Two leaves, or one a
   worker. */
static void choose_joint_batch(struct sdr_run *run)
{
    struct sdr_settings *s = &run->options.settings;
    s->batch = s->deterministic ? 2 * SDR_LEAF_ROWS : SDR_LEAF_ROWS;
    if (run->set.train_rows.count <= s->batch)
        return; /* the data is one batch */
    sdr_note(&run->options,
             "--sync %s: batches of %llu rows%s, since workers wait for each other in every one "
             "(--batch N)",
             run->use.strategy->name, (unsigned long long)s->batch,
             s->deterministic ? "" : " a worker");
}

/* Rows of an update: --batch; of all workers if they compute one gradient, or of the quorum
   whose gradients are averaged. No batch has more rows than the data. */
static enum sdr_status choose_update(struct sdr_run *run)
{
    const struct sdr_settings *s = &run->options.settings;
    const struct sdr_strategy *strategy = run->use.strategy;
    uint64_t workers = (uint64_t)run->workers, rows = run->set.train_rows.count, quorum = 1;
    bool windows = strategy->team && strategy->team->windows;
    if (strategy->full_batch) { /* --batch stays as it is: a printed config must not name it */
        run->pace.update_rows = 1;
        return SDR_OK;
    }
    if (s->batch == 0 && run->use.kind->defaults.batch && !windows)
        run->options.settings.batch = usual_batch(run->use.kind, rows);
    else if (s->batch == 0 && strategy->joint)
        choose_joint_batch(run);
    else if (s->batch == 0)
        run->options.settings.batch = 1;
    run->pace.update_rows = s->batch;
    if (strategy->joint) { /* one batch, of which every worker computes a part */
        run->pace.update_rows *= s->deterministic ? 1 : workers;
    } else if (sdr_by_messages(run)) {
        SDR_TRY(sdr_choose_quorum(run, workers, &quorum));
        uint64_t together = s->batch * sdr_local_steps(run);
        run->pace.update_rows = (together < rows ? together : rows) * quorum;
    }
    if (run->pace.update_rows > rows * quorum)
        run->pace.update_rows = rows * quorum;
    return SDR_OK;
}

enum sdr_status sdr_choose_workers(struct sdr_run *run)
{
    const char *replay = run->options.settings.replay;
    SDR_TRY(sdr_rules_ask(run, SDR_RULES_STRATEGY));
    if (replay)
        SDR_TRY(sdr_replay_open(replay, &run->race.replay));
    run->workers = workers_wanted(run);
    SDR_TRY(sdr_rules_ask(run, SDR_RULES_WORKERS));
    bool shards = run->use.strategy->peer && run->use.strategy->peer->local && run->processes == 1;
    if ((uint32_t)run->workers > run->set.train_rows.count && (shards || !sdr_by_messages(run)))
        run->workers = (int)run->set.train_rows.count; /* at least one row per worker */
    SDR_TRY(choose_update(run));
    return sdr_rules_ask(run, SDR_RULES_UPDATE);
}

/* ⌈rows / b⌉ / K: b rows of a gradient, K gradients of an update. */
double sdr_updates_an_epoch(const struct sdr_run *run)
{
    const struct sdr_settings *s = &run->options.settings;
    double rows = run->set.train_rows.count, quorum = 1;
    double batch = run->use.strategy->full_batch ? rows : fmin((double)run->pace.update_rows, rows);
    if (sdr_by_messages(run) &&
        !run->use.strategy->joint) { /* K gradients, of two epochs perhaps */
        batch = fmin((double)s->batch * (double)sdr_local_steps(run), rows);
        quorum = (double)run->pace.update_rows / batch;
    }
    return ceil(rows / batch) / quorum;
}

/* How many epochs, and how long the schedule of the step is: up to --epochs or --updates, whichever
   ends first.

   Left open: epochs = ⌈300 000 / rows⌉, from 2 to 20, and no fewer than the model asks for. Few
   rows need several epochs, many rows few. The three numbers balance time against the last digits.
   Held out, by epochs (in brackets: near the default):
                1        2        5        10       20       40
       a9a      0.8504   0.8501   0.8498  [0.8501]  0.8498   0.8501
       RCV1     0.9642   0.9658   0.9669   0.9673  [0.9654]  0.9642     (16; it overfits from 10 on)
       MNIST    0.9126   0.9151   0.9240   0.9265  [0.9275]  0.9275
       housing  0.6463   0.6494   0.6504   0.6504  [0.6506]  0.6506     (19)
   Batches take 1.4 times as many, from 2 to 32: see automatic.c. Full batches read all rows once an
   epoch: 1000 times at most, k-means 100 times. They end by themselves before that, once the
   objective no longer falls (sync/batch.c, sync/lbfgs.c) or no center moves. */
double sdr_usual_epochs(const struct sdr_run *run, bool batches)
{
    double few = ceil((batches ? 420000 : 300000) / (double)run->set.train_rows.count);
    return fmax(fmin(fmax(few, 2), batches ? 32 : 20), (double)run->use.kind->defaults.epochs);
}

void sdr_choose_length(struct sdr_run *run)
{
    const struct sdr_settings *s = &run->options.settings;
    double rows = run->set.train_rows.count;
    double by_updates = (double)s->updates / sdr_updates_an_epoch(run);
    bool batches = !run->use.kind->layered && run->use.kind->sense != SDR_STATISTIC &&
                   s->batch >= SDR_LEAF_ROWS;
    if (s->epochs)
        run->pace.epochs = s->epochs;
    else if (s->updates)
        run->pace.epochs = (uint64_t)ceil(by_updates) + 1; /* --updates ends it */
    else if (run->use.strategy->full_batch)
        run->pace.epochs =
            run->use.kind->sense == SDR_STATISTIC || !sdr_own_steps(run) ? 100 : 1000;
    else
        run->pace.epochs = (uint64_t)sdr_usual_epochs(run, batches);
    run->pace.per_row = 1 / rows;
    run->pace.length = (double)run->pace.epochs;
    if (s->updates && by_updates < run->pace.length)
        run->pace.length = by_updates;
}

/* Averaging (Polyak and Ruppert) from the end of an epoch on: off unless --average asks for it,
   since the schedule ends at 0 and does what averaging would.

   An addition to the average costs `features` operations, an update of b rows costs b·n, with n the
   non-zeros of a row. Adding after every k-th update, k = ⌊features / (b·n)⌋ and at least 1, costs
   no more than the steps themselves. */
enum sdr_status sdr_choose_averaging(struct sdr_run *run)
{
    uint64_t from;
    SDR_TRY(sdr_rules_ask(run, SDR_RULES_LENGTH));
    run->pace.average_from =
        sdr_parse_u64(run->options.settings.average, &from) ? from : UINT64_MAX; /* auto, no: off */
    uint64_t features = run->problem.features, rows = run->data->rows.count;
    double per_row =
        run->data->rows.dense ? (double)features : (double)run->data->nonzeros / (double)rows;
    double every = (double)features / fmax(per_row * (double)run->pace.update_rows, 1);
    run->pace.average_every = every > 1 ? (uint64_t)every : 1;
    return SDR_OK;
}

/* Plain gradient steps on a loss that grows without bound (curvature κ ≥ 1: squares) throw a long
   row further out than it was. A step η on row x with slope κ·r leaves the residual (1 − ηκ‖x‖²)·r:
   it is overshot from η = 1/(κ‖x‖²) on, and grows from twice that on. 3c/(κ·max‖x‖²) is for sgd, c
   = 0.5, three quarters of the way to where the longest row would diverge; momentum's c is a tenth,
   and its steps add up to ten times as much. Measured: at twice the automatic step housing is still
   right, a9a with squared-hinge is not; at four times both diverge. */
static double longest_row_limit(const struct sdr_run *run)
{
    return 3 * run->use.optimizer->rate / (run->use.kind->curvature * sdr_longest_row(run));
}

/* The step η without --lr, so that the same model is found at the same speed in any units.

   Let L² be the mean squared length of a row, in the scaled units in which steps are taken. If all
   rows were k times as long, weights would have to be k times as small for the same scores. So
   would their steps:
       plain gradient steps, which grow k times themselves     η = c / L²     sgd, momentum, nesterov
       steps normalised by the size of gradients               η = c / L      adagrad, adam, rmsprop, ftrl …
       steps that find their size by themselves                η = c          adadelta
   c is the optimizer's `rate`, and the power of L its `rate_power`. In plain words: a plain step
   with c = 0.5 moves the score of a typical row half the way to its label where the loss is
   squared; momentum's c = 0.05 comes to the same, for its steps add up to 1/(1 − 0.9) of one. The
   first step of adagrad changes every weight of a row by η, its score by η·Σ|x_j|: c·√n for n
   entries of size one.

   - Labels k times as large need weights k times as large. Plain steps grow with them; normalised
     ones are given the labels' standard deviation as their unit (1 where labels are classes).
   - softmax decides by the difference of two scores: normalised steps are doubled, for a lower
     training loss after the same epochs (MNIST: 0.122 after 20, not 0.158) at the same accuracy
     held out (the table).
   - Factors (mf) multiply: for ratings of size k they are of size √k, and the second derivative of
     the loss by a factor is the other factor's square, of size k. Plain steps are divided by k. The
     model's own `step`, 0.35, leaves room for both factors of a product moving at once. Jester,
     433 092 ratings of 6 000 users: R² held out is 0.345, 0.344, 0.319 and 0.315 at 1/4, 1/2, 1 and
     2 times that (the training loss falls from 7.8 to 5.2: mf overfits), and 4 times that diverges.

   Held out, at multiples of the automatic step:
                            1/16     1/4      1/2      1        2        4        16
       a9a      adagrad     0.8468   0.8504   0.8499   0.8501   0.8505   0.8509   0.8502
                sgd         0.8518   0.8513   0.8511   0.8504   0.8501   0.8496   0.8493
       RCV1     adagrad     0.9562   0.9662   0.9677   0.9656   0.9617   0.9589   0.9556
                sgd         0.9460   0.9564   0.9606   0.9623   0.9637   0.9627   0.9602
       MNIST    adagrad     0.9151   0.9240   0.9270   0.9275   0.9250   0.9141   0.9026
                sgd         0.8982   0.9126   0.9165   0.9235   0.9260   0.9250   0.9101
       housing  adagrad     0.6423   0.6502   0.6505   0.6506   0.6505   0.6506   0.6508
                sgd         0.6220   0.6410   0.6468   0.6496   0.6504   diverges
   Within a factor of two to either side little changes. Adam and momentum look like these two. */
double sdr_automatic_rate(const struct sdr_run *run)
{
    const struct sdr_optimizer *o = run->use.optimizer;
    double length = sqrt(run->set.typical_row), rate = o->rate / pow(length, o->rate_power);
    if (run->use.kind->layered)
        return o->rate_layers /
               (o->rate_power == 2 ? run->set.target_size * run->set.target_size : 1);
    if (o->rate_power == 2 && run->use.kind->curvature >= 1 &&
        run->process == 0) /* reported by the first process only */
        rate = fmin(rate, longest_row_limit(run));
    if (o->rate_power == 1) {
        rate *= run->set.target_size;
        if (run->use.kind->truth == SDR_CLASSES)
            rate *= 2;
    }
    if (run->use.kind->defaults.step > 0)
        rate *= run->use.kind->defaults.step;
    if (o->rate_power == 2 && run->use.kind->bilinear)
        rate /= run->set.target_size;
    return rate;
}

/* The linear scaling rule (Krizhevsky 2014; Goyal et al. 2017): the mean gradient of B rows
   replaces B/N gradients of N rows each, at about the same weights, so its step is B/N times as
   long. All rows of an epoch move the weights as far as before. It holds while the weights change
   little within B rows; early in training they do not, which is what the warm-up of a schedule is
   for. */
static double given_rate(const struct sdr_run *run)
{
    const struct sdr_settings *s = &run->options.settings;
    double rows = (double)run->pace.update_rows / (double)sdr_local_steps(run);
    if (run->use.strategy->full_batch)
        rows = run->set.train_rows.count;
    return s->lr_batch ? s->lr * rows / (double)s->lr_batch : s->lr;
}

/* Sums of rows (kmeans) are not scaled: their step is 1. */
void sdr_choose_rate(struct sdr_run *run)
{
    double given = given_rate(run);
    bool statistic = run->use.kind->sense == SDR_STATISTIC;
    run->pace.rate = statistic ? 1 : given > 0 ? given : sdr_automatic_rate(run);
}
