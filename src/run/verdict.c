/* Notes after training: a full-batch method has not converged; the model does not beat a constant;
   --lr is far below the automatic step. */
#include "run/defaults.h"
#include "run/evaluate.h"
#include "run/run.h"
#include "run/run_plugins.h"
#include "train.h"

#include <math.h>
#include <string.h>

/* Accuracy of the most frequent class, or R² of the mean: the best without features. */
static double baseline(const struct sdr_evaluation *e, enum sdr_truth task)
{
    return task == SDR_REGRESSION ? 0 : e->majority / e->counted;
}

static void compare_with_constant(const struct sdr_run *run)
{
    const struct sdr_evaluation *e = run->valid ? &run->result.valid : &run->result.train;
    const char *rows = run->valid ? "validation" : "training";
    double metric = sdr_evaluation_metric(e, run->use.kind->truth), rounding = 1e-9;
    bool reweighted = strcmp(run->options.settings.class_weight, "none") != 0;
    if (!(metric <= baseline(e, run->use.kind->truth) + rounding) || reweighted)
        return; /* class weights trade accuracy for other goals */
    if (run->use.kind->truth == SDR_REGRESSION)
        sdr_note(&run->options,
                 "the model is no better than the mean of the labels (r2 %.3g on the %s rows)",
                 metric, rows);
    else
        sdr_note(&run->options,
                 "the model is no better than always predicting the most frequent class (accuracy "
                 "%.4g on the %s rows; the constant gets %.4g)",
                 metric, rows, baseline(e, run->use.kind->truth));
}

/* "Barely moved": less than a twentieth of the way from a constant to a perfect model, by a step of
   less than a tenth of the automatic one. */
static void compare_steps(const struct sdr_run *run)
{
    double start = baseline(&run->result.train, run->use.kind->truth);
    double gained = sdr_evaluation_metric(&run->result.train, run->use.kind->truth) - start;
    if (run->options.settings.lr == 0 || !(gained < 0.05 * (1 - start)))
        return;
    double automatic = sdr_automatic_rate(run);
    if (automatic > 10 * run->pace.rate)
        sdr_note(&run->options,
                 "training barely moved: --lr %g is less than a tenth of the automatic step %.5g",
                 run->options.settings.lr, automatic);
}

/* Full-batch methods end by themselves at the optimum; the number of epochs is a limit. */
static void tell_unfinished(const struct sdr_run *run)
{
    const struct sdr_settings *s = &run->options.settings;
    bool ends = run->use.strategy->full_batch &&
                (run->use.kind->sense == SDR_STATISTIC || sdr_own_steps(run));
    if (ends && !run->end.enough && !run->end.ended_early && !s->epochs && !s->updates)
        sdr_note(&run->options, "not at the optimum yet after %llu epochs: --epochs %llu",
                 (unsigned long long)run->pace.epochs, (unsigned long long)run->pace.epochs * 10);
}

void sdr_verdict(const struct sdr_run *run)
{
    tell_unfinished(run);
    if (run->use.kind->truth == SDR_UNSUPERVISED)
        return;
    compare_with_constant(run);
    compare_steps(run);
}
