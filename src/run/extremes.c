/* Features whose values are too large to compute with, whose largest value exceeds the others by
   more than float precision, or whose values differ by little more than float precision.

   What floats can do decides. Kernels multiply a value by the slope of its row, and then by the
   scale of its feature: the product must stay below 3.4e38, and slopes are of the labels' size,
   some hundred times that while a model is bad. So scaled features may reach 1e35 over the labels'
   deviation. Without scales values are squared, by optimizers with state and by distances: 1e18.

   A largest value of more than 2^24 times the others' size is told: beside it a float keeps no
   digit of them. Told, too, are large values that all lie within 2^12 steps of float precision:
   times in seconds since 1970, all of the same few days, are rounded to multiples of 128. */
#include "base/memory.h"
#include "run/evaluate.h"
#include "run/features.h"
#include "trained/model.h"

#include <math.h>
#include <string.h>

struct extreme {
    uint32_t feature;
    float largest, low, high; /* zeros aside */
    int64_t exponents;        /* Σ of the binary exponents of its values, zeros aside */
    uint64_t count;
};

static void look_at(struct extreme *e, float x)
{
    if (x == 0)
        return;
    e->largest = fmaxf(e->largest, fabsf(x));
    e->low = e->count ? fminf(e->low, x) : x;
    e->high = e->count ? fmaxf(e->high, x) : x;
    e->exponents += ilogbf(x);
    e->count++;
}

/* of[j] is 1 + the position of feature j in the list; 0: not listed. */
static void look_at_rows(const struct sdr_run *run, const uint32_t *of, struct extreme *list,
                         uint32_t count)
{
    enum { PASS = 8192 };
    const struct sdr_rows *rows = &run->data->rows;
    uint32_t passed = 0;
    for (uint32_t i = 0; i < run->set.train_rows.count; i++) {
        uint32_t row = sdr_listed(&run->set.train_rows, i);
        if (row >= passed + PASS) {
            sdr_rows_release(rows, passed, row);
            passed = row;
        }
        for (uint32_t c = 0; c < count && rows->dense; c++)
            look_at(&list[c], sdr_dense_row(rows, row)[list[c].feature]);
        if (rows->dense)
            continue;
        struct sdr_sparse_row r = sdr_sparse_row(rows, row);
        for (uint32_t n = 0; n < r.n; n++)
            if (of[sdr_row_index(&r, n)])
                look_at(&list[of[sdr_row_index(&r, n)] - 1], r.x[n]);
    }
    sdr_rows_release(rows, passed, rows->count);
}

static double limit(const struct sdr_run *run)
{
    double labels = fmax(run->set.target_size, 1);
    if (run->use.kind->sense == SDR_STATISTIC)
        return 9e18 / sqrt(run->data->rows.features); /* (2x)² of every feature */
    return run->set.scale ? 1e35 / labels : run->use.optimizer->slots ? 1e18 / labels : 1e18;
}

static enum sdr_status refuse(const struct sdr_run *run, const char *name, float largest)
{
    return sdr_fail(
        SDR_BAD_DATA, "%s: %s holds values up to %.3g: %s", run->data->name, name, (double)largest,
        run->set.scale ? "products with them overflow; divide them by a constant"
        : run->use.kind->sense == SDR_STATISTIC
            ? "their squares overflow; divide them by a constant"
            : "their squares overflow; use --scale feature, or divide them by a constant");
}

/* Whether the values lie close together, for their size. Whole numbers below 2^24 lose nothing. */
static bool is_narrow(const struct extreme *e)
{
    double range = (double)e->high - e->low;
    return e->largest >= 0x1p24 && range > 0 && range < 0x1p-12 * e->largest;
}

static void tell(const struct sdr_run *run, const char *name, const struct extreme *e,
                 double others)
{
    if (is_narrow(e))
        sdr_note(
            &run->options,
            "%s: its values, about %.3g, are rounded to multiples of %g, and differ by %.3g at "
            "most: subtract a constant from them",
            name, (double)e->largest, exp2(ilogbf(e->largest) - 23), (double)e->high - e->low);
    else
        sdr_note(&run->options,
                 "%s: the largest value %.3g is over 2^24 times the typical %.1g: the rest is "
                 "lost to rounding (data error?)",
                 name, (double)e->largest, others);
}

static enum sdr_status judge(const struct sdr_run *run, const struct extreme *list, uint32_t count)
{
    enum { TOLD = 3 };
    const struct sdr_schema *schema = &run->data->schema;
    uint32_t told = 0;
    for (uint32_t c = 0; c < count; c++) {
        const struct extreme *e = &list[c];
        double others = e->count ? exp2((double)e->exponents / (double)e->count) : 0;
        bool refused = e->largest > limit(run), dwarfs = e->largest > 0x1p24 * others;
        bool noted = dwarfs || is_narrow(e);
        struct sdr_text name = {0};
        char *text;
        if (!refused && (!noted || told++ >= TOLD))
            continue;
        sdr_text_add(&name, schema->columns ? "column '" : "feature ");
        sdr_feature_name(schema, e->feature, &name);
        sdr_text_add(&name, schema->columns ? "'" : "");
        SDR_TRY(sdr_text_take(&name, &text));
        enum sdr_status status = SDR_OK;
        if (refused)
            status = refuse(run, text, e->largest);
        else
            tell(run, text, e, others);
        sdr_release(text);
        SDR_TRY(status);
    }
    return SDR_OK;
}

enum sdr_status sdr_extremes_check(const struct sdr_run *run, const uint32_t *feature,
                                   uint32_t count)
{
    struct extreme *list = NULL;
    uint32_t *of = NULL;
    enum sdr_status status = SDR_OK;
    if (!count)
        return SDR_OK;
    SDR_CHECK(sdr_allocate(&list, count, sizeof *list, "sizes of features"));
    SDR_CHECK(sdr_allocate(&of, run->data->rows.features, sizeof *of, "sizes of features"));
    for (uint32_t c = 0; c < count; c++) {
        list[c].feature = feature[c];
        of[feature[c]] = c + 1;
    }
    look_at_rows(run, of, list, count);
    status = judge(run, list, count);
cleanup:
    sdr_release(list);
    sdr_release(of);
    return status;
}
