/* Statistics of features: how many rows touch them, and their scales. */
#include "run/features.h"
#include "base/memory.h"
#include "base/rng.h"
#include "base/thread.h"
#include "run/evaluate.h"
#include "run/job.h"
#include "run/rules.h"
#include "train.h"

#include <math.h>

/* ---- touches ---- */
enum sdr_status sdr_sample_rows(const struct sdr_row_list *list, uint32_t most, uint64_t seed,
                                struct sdr_row_list *sample)
{
    sample->count = list->count < most ? list->count : most;
    SDR_TRY(sdr_allocate(&sample->row, sample->count, sizeof *sample->row, "a sample of rows"));
    sdr_sample(seed, list->count, sample->count, sample->row);
    for (uint32_t i = 0; i < sample->count; i++)
        sample->row[i] = sdr_listed(list, sample->row[i]);
    return SDR_OK;
}

enum sdr_status sdr_features_touched(const struct sdr_run *run, uint32_t **touched,
                                     uint32_t *looked_at)
{
    enum { LOOKED_AT = 20000, PASS = 256 };
    const struct sdr_rows *rows = &run->data->rows;
    struct sdr_row_list sample;
    SDR_TRY(sdr_sample_rows(&run->set.train_rows, LOOKED_AT, run->options.settings.seed, &sample));
    *looked_at = sample.count;
    enum sdr_status status =
        sdr_allocate(touched, rows->features, sizeof **touched, "counts of features");
    uint32_t passed = 0;
    for (uint32_t i = 0; i < sample.count && !rows->dense && status == SDR_OK; i++) {
        struct sdr_sparse_row r = sdr_sparse_row(rows, sample.row[i]);
        for (uint32_t n = 0; n < r.n; n++)
            (*touched)[sdr_row_index(&r, n)]++;
        if (i % PASS == PASS - 1 ||
            i == sample.count - 1) { /* streamed rows of a sample lie far apart */
            sdr_rows_release(rows, passed, (uint64_t)sample.row[i] + 1);
            passed = sample.row[i] + 1;
        }
    }
    for (uint32_t j = 0; j < rows->features && rows->dense && status == SDR_OK; j++)
        (*touched)[j] = sample.count;
    sdr_release(sample.row);
    return status;
}

/* ---- scales ---- */
/* Features are measured range by range: sums for all of them would take four times the memory of
   a model with one value per feature. Every range takes one pass over the rows. */
enum { RANGE = 1 << 22 };
struct moment {
    _Alignas(2 * sizeof(double)) double square;
    double count; /* of non-zero values */
};
struct moments {
    uint32_t first, end; /* the range */
    struct moment *of;   /* owned: from `first` on */
    double *sum;         /* owned: likewise; NULL: not needed */
};
struct moments_job {
    const struct sdr_run *run;
    uint64_t leaves;
    const struct moments *moments; /* of the range, leaf after leaf */
};

static void add_row(struct moment *m, double *sum, const struct sdr_sparse_row *r, uint32_t first)
{
    for (uint32_t n = 0; n < r->n; n++) {
        struct moment *of = &m[sdr_row_index(r, n) - first];
        of->square += (double)r->x[n] * r->x[n];
        of->count += 1;
    }
    for (uint32_t n = 0; sum && n < r->n; n++)
        sum[sdr_row_index(r, n) - first] += r->x[n];
}

static void add_dense_row(struct moment *m, double *sum, const float *x, uint32_t features)
{
    for (uint32_t j = 0; j < features; j++) {
        m[j].square += (double)x[j] * x[j];
        m[j].count += x[j] != 0;
    }
    for (uint32_t j = 0; sum && j < features; j++)
        sum[j] += x[j];
}

/* Leaves are cut by row number alone: the same sums for any number of threads. */
static enum sdr_status sum_leaf(void *context, size_t leaf)
{
    enum { PASS = 8192 };
    const struct moments_job *job = context;
    const struct sdr_row_list *list = &job->run->set.train_rows;
    const struct sdr_rows *rows = &job->run->data->rows;
    uint32_t from = job->moments->first, until = job->moments->end;
    struct moment *m = job->moments->of + leaf * (until - from);
    double *sum = job->moments->sum ? job->moments->sum + leaf * (until - from) : NULL;
    uint32_t first = (uint32_t)(list->count * leaf / job->leaves);
    uint32_t end = (uint32_t)(list->count * (leaf + 1) / job->leaves);
    uint32_t passed = first < end ? sdr_listed(list, first) : 0;
    for (uint32_t i = first; i < end; i++) {
        uint32_t row = sdr_listed(list, i);
        if (row >= passed + PASS) {
            sdr_rows_release(rows, passed, row);
            passed = row;
        }
        struct sdr_sparse_row r;
        if (rows->dense) {
            add_dense_row(m, sum, sdr_dense_row(rows, row) + from, until - from);
        } else {
            r = sdr_row_within(rows, row, from, until);
            add_row(m, sum, &r, from);
        }
    }
    if (first < end)
        sdr_rows_release(rows, passed, sdr_listed(list, end - 1) + 1);
    return SDR_OK;
}

static void free_moments(struct moments *moments)
{
    sdr_release(moments->of);
    sdr_release(moments->sum);
    moments->of = NULL;
    moments->sum = NULL;
}

/* The range of features from `first` on that is measured together: all, or a range of sparse
   ones. */
static enum sdr_status feature_moments(const struct sdr_run *run, bool sums, uint32_t first,
                                       struct moments *moments)
{
    enum { LEAVES = 16 };
    const struct sdr_rows *rows = &run->data->rows;
    uint32_t end = !rows->dense && rows->features - first > RANGE ? first + RANGE : rows->features;
    uint64_t features = end - first;
    /* With many features, sums of several leaves would take more memory than the rows. */
    bool many = (uint64_t)rows->features * LEAVES * sizeof(struct moment) >
                run->data->nonzeros * sizeof(float);
    struct moments_job job = {.run = run, .leaves = many ? 1 : LEAVES, .moments = moments};
    uint64_t all = features * job.leaves;
    *moments = (struct moments){.first = first, .end = end};
    SDR_TRY(sdr_allocate(&moments->of, all, sizeof *moments->of, "sizes of features"));
    enum sdr_status status = SDR_OK;
    if (sums)
        status = sdr_allocate(&moments->sum, all, sizeof(double), "means of features");
    if (status == SDR_OK)
        status = sdr_parallel(sdr_run_threads(run), job.leaves, sum_leaf, &job);
    for (uint64_t i = features; i < all && status == SDR_OK; i++) {
        moments->of[i % features].square += moments->of[i].square;
        moments->of[i % features].count += moments->of[i].count;
        if (sums)
            moments->sum[i % features] += moments->sum[i];
    }
    if (status != SDR_OK)
        free_moments(moments);
    return status;
}

/* The size of a feature: its standard deviation if rows are dense or the penalty asks for it,
   otherwise the root mean square of its non-zeros. A constant feature has size 1. */
static double feature_size(const struct moments *moments, uint32_t j, double rows, bool deviation)
{
    const struct moment *m = &moments->of[j - moments->first];
    double mean = deviation ? moments->sum[j - moments->first] / rows : 0;
    double variance = deviation      ? m->square / rows - mean * mean
                      : m->count > 0 ? m->square / m->count
                                     : 0;
    double size = sqrt(fmax(variance, 0));
    double noise = 1e-6 * sqrt(m->square / rows); /* a smaller deviation is rounding */
    return size > noise && size > 1e-30 && size < 1e36 ? size : 1.0;
}

/* Broadcasts the measurements of the first process: the others do not read all rows. */
static enum sdr_status share_sizes(struct sdr_run *run)
{
    uint32_t features = run->data->rows.features;
    struct {
        double typical;
        bool scaled, centered;
    } found = {run->set.typical_row, run->set.scale != NULL, run->set.center != NULL};
    if (run->processes == 1)
        return SDR_OK;
    SDR_TRY(sdr_share(run, &found, sizeof found));
    run->set.typical_row = found.typical;
    if (found.scaled && run->process > 0)
        SDR_TRY(sdr_allocate(&run->set.scale, features, sizeof(float), "feature scales"));
    if (found.centered && run->process > 0)
        SDR_TRY(sdr_allocate(&run->set.center, features, sizeof(float), "feature means"));
    if (found.scaled)
        SDR_TRY(sdr_share(run, run->set.scale, features * sizeof(float)));
    if (found.centered)
        SDR_TRY(sdr_share(run, run->set.center, features * sizeof(float)));
    bool sound = isfinite(found.typical);
    for (uint32_t j = 0; j < features && sound; j++)
        sound = (!found.scaled || (run->set.scale[j] > 0 && isfinite(run->set.scale[j]))) &&
                (!found.centered || isfinite(run->set.center[j]));
    return sound ? SDR_OK
                 : sdr_fail(SDR_RUNTIME, "process 0 sent sizes of features that make no sense");
}

/* Features that may have a value above LARGE, which is rare, are listed for a check. */
struct suspects {
    uint32_t *feature; /* owned */
    uint64_t count, room;
};

static enum sdr_status list_suspects(const struct moments *moments, struct suspects *suspects)
{
    const double LARGE = 1e7;
    for (uint32_t j = moments->first; j < moments->end; j++)
        if (moments->of[j - moments->first].square > LARGE * LARGE) {
            if (suspects->count == suspects->room)
                SDR_TRY(sdr_grow(&suspects->feature, NULL, suspects->count, &suspects->room,
                                 sizeof *suspects->feature, "sizes of features"));
            suspects->feature[suspects->count++] = j;
        }
    return SDR_OK;
}

static enum sdr_status check_suspects(const struct sdr_run *run, struct suspects *suspects)
{
    enum sdr_status status =
        suspects->count ? sdr_extremes_check(run, suspects->feature, (uint32_t)suspects->count)
                        : SDR_OK;
    sdr_release(suspects->feature);
    return status;
}

/* A shift of all rows does not change distances, but does change rounding. Mostly-zero rows are
   not shifted. */
static enum sdr_status center_rows(struct sdr_run *run)
{
    const struct sdr_rows *rows = &run->data->rows;
    bool center = rows->dense || run->data->nonzeros >= rows->count * rows->features / 2;
    struct suspects suspects = {0};
    struct moments moments;
    enum sdr_status status = SDR_OK;
    if (center)
        SDR_TRY(sdr_allocate(&run->set.center, rows->features, sizeof(float), "feature means"));
    for (uint32_t first = 0; first < rows->features && status == SDR_OK; first = moments.end) {
        status = feature_moments(run, center, first, &moments);
        if (status != SDR_OK)
            break;
        for (uint32_t j = first; j < moments.end && center; j++)
            run->set.center[j] = (float)(moments.sum[j - first] / run->set.train_rows.count);
        status = list_suspects(&moments, &suspects);
        free_moments(&moments);
    }
    enum sdr_status checked = check_suspects(run, &suspects);
    return status == SDR_OK ? checked : status;
}

/* Scales and centers of a range of features, and their contribution to the length of rows. */
static bool measure_range(struct sdr_run *run, const struct moments *moments, bool deviation,
                          double *typical)
{
    double count = run->set.train_rows.count;
    bool all_one = true;
    for (uint32_t j = moments->first; j < moments->end; j++) {
        double size = run->set.scale ? feature_size(moments, j, count, deviation) : 1.0;
        double square = moments->of[j - moments->first].square / count;
        if (run->set.scale)
            run->set.scale[j] = (float)(1 / size);
        if (run->set.center) { /* rows are dense: sums exist */
            double mean = moments->sum[j - moments->first] / count;
            run->set.center[j] = (float)mean;
            square -= mean * mean;
        }
        all_one = all_one && size == 1.0;
        *typical += fmax(square, 0) / (size * size);
    }
    return all_one;
}

static enum sdr_status measure_all(struct sdr_run *run, bool deviation)
{
    uint32_t features = run->data->rows.features;
    struct suspects suspects = {0};
    struct moments moments;
    double typical = 0;
    bool all_one = true;
    enum sdr_status status = SDR_OK;
    for (uint32_t first = 0; first < features && status == SDR_OK; first = moments.end) {
        status = feature_moments(run, deviation, first, &moments);
        if (status != SDR_OK)
            break;
        all_one = measure_range(run, &moments, deviation, &typical) && all_one;
        status = list_suspects(&moments, &suspects);
        free_moments(&moments);
    }
    if (all_one) {
        sdr_release(run->set.scale); /* binary features: nothing to scale */
        run->set.scale = NULL;
    }
    run->set.typical_row = typical > 0 ? typical : 1;
    enum sdr_status checked = check_suspects(run, &suspects);
    return status == SDR_OK ? checked : status;
}

static enum sdr_status measure(struct sdr_run *run)
{
    const struct sdr_settings *s = &run->options.settings;
    const struct sdr_rows *rows = &run->data->rows;
    bool own_penalty = run->use.optimizer->own_penalty && (s->l1 > 0 || s->l2 > 0);
    bool scaled = s->standardize || s->scale == SDR_SCALE_FEATURE ||
                  (s->scale == SDR_SCALE_AUTO && !own_penalty);
    SDR_TRY(sdr_rules_ask(run, SDR_RULES_FEATURES));
    if (run->use.kind->needs & SDR_NEEDS_PAIRS)
        scaled = false;
    if (run->use.kind->sense == SDR_STATISTIC)
        return center_rows(run);
    if (scaled)
        SDR_TRY(sdr_allocate(&run->set.scale, rows->features, sizeof(float), "feature scales"));
    /* Centering dense rows changes the intercept only; it shortens the path to the minimum. */
    if (scaled && rows->dense && s->intercept)
        SDR_TRY(sdr_allocate(&run->set.center, rows->features, sizeof(float), "feature means"));
    return measure_all(run, rows->dense || s->standardize);
}

enum sdr_status sdr_features_measure(struct sdr_run *run)
{
    if (run->process == 0)
        SDR_TRY(measure(run));
    return share_sizes(run);
}

/* Squared length of the longest row, in the units of steps: bounds plain steps on a loss of
   unbounded growth. */
double sdr_longest_row(const struct sdr_run *run)
{
    enum { PASS = 8192 };
    const struct sdr_rows *rows = &run->data->rows;
    double longest = 0;
    uint32_t passed = 0;
    for (uint32_t i = 0; i < run->set.train_rows.count; i++) {
        uint32_t row = sdr_listed(&run->set.train_rows, i);
        if (row >= passed + PASS) {
            sdr_rows_release(rows, passed, row);
            passed = row;
        }
        double square = run->options.settings.intercept ? 1 : 0;
        if (rows->dense) {
            const float *x = sdr_dense_row(rows, row);
            for (uint32_t j = 0; j < rows->features; j++) {
                double v = (double)x[j] - (run->set.center ? run->set.center[j] : 0);
                v *= run->set.scale ? run->set.scale[j] : 1;
                square += v * v;
            }
        } else {
            struct sdr_sparse_row r = sdr_sparse_row(rows, row);
            for (uint32_t n = 0; n < r.n; n++) {
                double v = r.x[n] * (run->set.scale ? run->set.scale[sdr_row_index(&r, n)] : 1);
                square += v * v;
            }
        }
        longest = fmax(longest, square);
    }
    return longest;
}
