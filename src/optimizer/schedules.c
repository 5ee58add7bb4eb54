/* Step-size schedules: the factor on --lr as a function of the (fractional) epoch, hence
   independent of the batch size. All have a warm-up (Goyal et al. 2017): the factor is multiplied
   by min(epoch / warmup, 1). */
#include "kind/rate_schedule.h"

#include <math.h>

struct options {
    double warmup, decay, every, factor, least;
};
#define WARMUP                                                                                     \
    {                                                                                              \
        "warmup", SDR_NUMBER, "0", "EPOCHS", 0, 1e9,                                               \
            "epochs over which the step first rises from 0; 0: none",                              \
            offsetof(struct options, warmup), 0                                                    \
    }
#define DECAY                                                                                      \
    {                                                                                              \
        "decay", SDR_NUMBER, "1", NULL, 0, 1e9,                                                    \
            "decay rate per epoch; larger: the step falls faster",                                 \
            offsetof(struct options, decay), 0                                                     \
    }

static inline double constant(const void *options, double epoch, double epochs)
{
    (void)options;
    (void)epoch;
    (void)epochs;
    return 1.0;
}

static inline double inverse(const void *options, double epoch, double epochs)
{
    (void)epochs;
    const struct options *o = options;
    return 1.0 / (1.0 + o->decay * epoch);
}

static inline double inverse_root(const void *options, double epoch, double epochs)
{
    (void)epochs;
    const struct options *o = options;
    return 1.0 / sqrt(1.0 + o->decay * epoch);
}

static inline double stairs(const void *options, double epoch, double epochs)
{
    (void)epochs;
    const struct options *o = options;
    return pow(o->factor, floor(epoch / o->every));
}

/* The completed fraction of the run. */
static double passed(double epoch, double epochs)
{
    return epochs > 0 ? epoch < epochs ? epoch / epochs : 1.0 : 0.0;
}

static inline double cosine(const void *options, double epoch, double epochs)
{
    const struct options *o = options;
    double part = passed(epoch, epochs);
    return o->least + (1 - o->least) * 0.5 * (1 + cos(3.141592653589793 * part));
}

static inline double linear(const void *options, double epoch, double epochs)
{
    const struct options *o = options;
    double part = passed(epoch, epochs);
    return o->least + (1 - o->least) * (1 - part);
}

/* For sums that are halved after every epoch: later rows weigh more, without a jump at its end. */
static inline double recent(const void *options, double epoch, double epochs)
{
    (void)options;
    (void)epochs;
    return 1 + epoch - floor(epoch);
}

static inline double warmup(const void *options, double epoch)
{
    const struct options *o = options;
    return epoch < o->warmup ? epoch / o->warmup : 1.0;
}

/* Evaluates many positions per call: a call for each would cost more than the formula. */
#define ALL(name)                                                                                  \
    static void name##_all(const void *options, const struct sdr_schedule_time *when,              \
                           uint32_t count, double *factor)                                         \
    {                                                                                              \
        for (uint32_t i = 0; i < count; i++) {                                                     \
            double epoch = when->epoch + (when->at + i) * when->per_row;                           \
            factor[i] = warmup(options, epoch) * name(options, epoch, when->epochs);               \
        }                                                                                          \
    }
ALL(constant)
ALL(inverse)
ALL(inverse_root)
ALL(stairs)
ALL(cosine)
ALL(linear)
ALL(recent)

static const struct sdr_option warmup_only[] = {WARMUP, {0}};
static const struct sdr_option decaying[] = {DECAY, WARMUP, {0}};
static const struct sdr_option stepping[] = {
    {"every", SDR_NUMBER, "1", "EPOCHS", 1e-9, 1e9, "epochs between two cuts",
     offsetof(struct options, every), 0},
    {"factor", SDR_NUMBER, "0.5", NULL, 1e-9, 1, "what a cut multiplies the step by",
     offsetof(struct options, factor), 0},
    WARMUP,
    {0}};
static const struct sdr_option ending[] = {
    {"least", SDR_NUMBER, "0", NULL, 0, 1,
     "step at the end of the run, as a fraction of the full one", offsetof(struct options, least),
     0},
    WARMUP,
    {0}};

SDR_REGISTER(schedule, constant) = {
    .name = "constant",
    .summary = "the same step size throughout",
    .options = warmup_only,
    .options_size = sizeof(struct options),
    .factors = constant_all,
};
SDR_REGISTER(schedule, inverse) = {
    .name = "1/t",
    .summary = "step / (1 + decay·epoch)",
    .options = decaying,
    .options_size = sizeof(struct options),
    .factors = inverse_all,
};
SDR_REGISTER(schedule, inverse_root) = {
    .name = "1/sqrt",
    .summary = "step / √(1 + decay·epoch)",
    .options = decaying,
    .options_size = sizeof(struct options),
    .factors = inverse_root_all,
};
SDR_REGISTER(schedule, stairs) = {
    .name = "step",
    .summary = "the step is cut by a factor at regular intervals",
    .options = stepping,
    .options_size = sizeof(struct options),
    .factors = stairs_all,
};
SDR_REGISTER(schedule, cosine) = {
    .name = "cosine",
    .summary = "from the full step to 0 over the run, along half a cosine",
    .options = ending,
    .options_size = sizeof(struct options),
    .needs_end = true,
    .factors = cosine_all,
};
SDR_REGISTER(schedule, linear) = {
    .name = "linear",
    .summary = "from the full step to 0 over the run, linearly",
    .options = ending,
    .options_size = sizeof(struct options),
    .needs_end = true,
    .factors = linear_all,
};
SDR_REGISTER(schedule, recent) = {
    .name = "recent",
    .summary = "kmeans only: later rows of an epoch count up to twice",
    .options = warmup_only,
    .options_size = sizeof(struct options),
    .factors = recent_all,
};
