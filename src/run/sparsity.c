/* Conflicts between rows: the quantities in the bounds of the Hogwild! paper, and the components
   that cyclades would find. */
#include "base/json.h"
#include "base/memory.h"
#include "base/rng.h"
#include "data/data.h"
#include "schedule/components.h"

#include <stdio.h>

enum { ROWS_MOST = 20000, PROBES = 200, PROBED = 5000, WINDOW_MOST = 4096, BINS = 16 };

struct sparsity {
    uint64_t omega; /* entries of the longest row: Ω */
    double delta;   /* the largest fraction of rows that touch one feature: Δ */
    double rho;     /* the largest fraction of rows that one row shares a feature with: ρ */
    double rho_mean;
};

/* Random samples, drawn independently: the same figures for the same data. */
struct sample {
    uint32_t count;
    uint32_t row[ROWS_MOST];
};
enum { FOR_DELTA = 1, FOR_PROBES, FOR_PROBED, FOR_WINDOWS };

static void draw(const struct sdr_rows *rows, int seed, uint32_t most, struct sample *sample)
{
    uint32_t all = rows->count < UINT32_MAX ? (uint32_t)rows->count : UINT32_MAX;
    sample->count = all < most ? all : most;
    sdr_sample((uint64_t)seed, all, sample->count, sample->row);
}

static void measure_omega(const struct sdr_rows *rows, struct sparsity *s)
{
    for (uint64_t row = 0; row < rows->count; row++) {
        uint64_t entries = rows->dense ? rows->features : sdr_sparse_row(rows, row).n;
        s->omega = entries > s->omega ? entries : s->omega;
    }
}

static void measure_delta(const struct sdr_rows *rows, uint32_t *touched, struct sample *sample,
                          struct sparsity *s)
{
    uint32_t most = 0;
    draw(rows, FOR_DELTA, ROWS_MOST, sample);
    for (uint32_t i = 0; i < sample->count; i++) {
        struct sdr_sparse_row r = sdr_sparse_row(rows, sample->row[i]);
        for (uint32_t n = 0; n < r.n; n++) {
            uint32_t times = ++touched[sdr_row_index(&r, n)];
            most = times > most ? times : most;
        }
    }
    s->delta = sample->count ? (double)most / sample->count : 0;
}

static bool touches(const struct sdr_rows *rows, uint64_t row, const uint32_t *mark, uint32_t own)
{
    struct sdr_sparse_row r = sdr_sparse_row(rows, row);
    for (uint32_t n = 0; n < r.n; n++)
        if (mark[sdr_row_index(&r, n)] == own)
            return true;
    return false;
}

static void measure_rho(const struct sdr_rows *rows, uint32_t *mark, struct sample *probe,
                        struct sample *probed, struct sparsity *s)
{
    draw(rows, FOR_PROBES, PROBES, probe);
    draw(rows, FOR_PROBED, PROBED, probed);
    for (uint32_t i = 0; i < probe->count; i++) {
        uint32_t number = UINT32_MAX - i, met = 0; /* no count of touches is as large as number */
        struct sdr_sparse_row r = sdr_sparse_row(rows, probe->row[i]);
        for (uint32_t n = 0; n < r.n; n++)
            mark[sdr_row_index(&r, n)] = number;
        for (uint32_t k = 0; k < probed->count; k++)
            met += touches(rows, probed->row[k], mark, number);
        double share = (double)met / probed->count;
        s->rho = share > s->rho ? share : s->rho;
        s->rho_mean += share / probe->count;
    }
}

static enum sdr_status measure_conflicts(const struct sdr_rows *rows, struct sparsity *s)
{
    uint32_t *touched = NULL;
    struct sample *sample = NULL;
    enum sdr_status status;
    SDR_CHECK(sdr_allocate(&touched, rows->features, sizeof *touched, "counts of features"));
    SDR_CHECK(sdr_allocate(&sample, 2, sizeof *sample, "samples of rows"));
    measure_delta(rows, touched, &sample[0], s);
    measure_rho(rows, touched, &sample[0], &sample[1], s);
cleanup:
    sdr_release(touched);
    sdr_release(sample);
    return status;
}

/* The fraction of a window's work in its largest component, for windows of growing size. */
static enum sdr_status measure_components(const struct sdr_rows *rows, json_t *object)
{
    struct sdr_components c = {0};
    struct sample *sample = NULL;
    uint8_t *bin = NULL;
    enum sdr_status status;
    SDR_CHECK(sdr_components_create(&c, rows->features, WINDOW_MOST));
    SDR_CHECK(sdr_allocate(&sample, 1, sizeof *sample, "a window"));
    SDR_CHECK(sdr_allocate(&bin, rows->count, 1, "a window"));
    for (uint32_t size = 64; size <= WINDOW_MOST && size <= rows->count; size *= 4) {
        char key[48];
        draw(rows, FOR_WINDOWS, size, sample);
        snprintf(key, sizeof key, "largest_component_of_%u_rows", size);
        sdr_json_set(object, key,
                     json_real(sdr_components_find(&c, rows, sample->row, size, BINS, bin)));
    }
cleanup:
    sdr_components_destroy(&c);
    sdr_release(sample);
    sdr_release(bin);
    return status;
}

enum sdr_status sdr_data_sparsity(const struct sdr_data *data, char **json)
{
    const struct sdr_rows *rows = &data->rows;
    struct sparsity s = {.delta = 1, .rho = 1, .rho_mean = 1};
    enum sdr_status status = SDR_OK;
    *json = NULL;
    measure_omega(rows, &s);
    if (!rows->dense) {
        s = (struct sparsity){.omega = s.omega};
        SDR_TRY(measure_conflicts(rows, &s));
    }
    json_t *object = sdr_json_begin(
        json_pack("{s:I, s:I, s:I, s:f, s:f, s:f}", "rows", (json_int_t)rows->count, "features",
                  (json_int_t)rows->features, "omega", (json_int_t)s.omega, "delta", s.delta, "rho",
                  s.rho, "rho_mean", s.rho_mean));
    if (!rows->dense && rows->count <= UINT32_MAX)
        status = measure_components(rows, object);
    if (status == SDR_OK)
        return sdr_json_text(object, json);
    json_decref(object);
    return status;
}
