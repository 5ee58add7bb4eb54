/* The public handle: data from the caller's arrays, its properties, streaming hints, and the key
   that tells whether two data sets are equal. */
#define _GNU_SOURCE /* madvise */
#include "base/file.h"
#include "base/hash.h"
#include "data/cache.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>

enum { MOST_FEATURES = 0x7FFFFFFF };

void sdr_data_destroy(struct sdr_data *data)
{
    if (!data)
        return;
    sdr_file_unmap(data->map, data->map_bytes);
    sdr_release(data->checked);
    sdr_release(data->cache_path);
    sdr_region_free(&data->start);
    sdr_region_free(&data->index);
    sdr_region_free(&data->value);
    sdr_region_free(&data->dense);
    sdr_region_free(&data->label);
    sdr_region_free(&data->weight);
    sdr_schema_free(&data->schema);
    sdr_release(data->name);
    sdr_release(data->source_key);
    sdr_release(data);
}

size_t sdr_data_rows(const struct sdr_data *data)
{
    return (size_t)data->rows.count;
}

size_t sdr_data_features(const struct sdr_data *data)
{
    return data->rows.features;
}

uint64_t sdr_data_nonzeros(const struct sdr_data *data)
{
    return data->nonzeros;
}

uint64_t sdr_data_bytes(const struct sdr_data *data)
{
    const struct sdr_rows *rows = &data->rows;
    uint64_t bytes = rows->dense ? rows->count * rows->stride * sizeof(float)
                                 : (rows->count + 1) * sizeof(uint64_t) +
                                       data->nonzeros * (rows->index16 ? 6 : 8);
    bytes += rows->label ? rows->count * sizeof(float) : 0;
    return bytes + (rows->weight ? rows->count * sizeof(float) : 0);
}

void sdr_data_limit(struct sdr_data *data, uint64_t memory)
{
    uint64_t bytes = sdr_data_bytes(data), rows = data->rows.count;
    data->streams = memory && bytes > memory;
    data->stream_rows = 0;
    if (!data->streams || rows == 0)
        return;
    double share = (double)memory / 4 / (double)bytes; /* of the data per block */
    data->stream_rows = (uint64_t)(share * (double)rows);
    if (data->stream_rows == 0)
        data->stream_rows = 1;
}

/* ---- streaming ---- */

/* madvise for elements [first, end): whole pages inside the range to drop them, all touched pages
   to read them. */
static void advise(const void *array, uint64_t first, uint64_t end, size_t size, int advice)
{
    if (!array || first >= end)
        return;
    uintptr_t from = (uintptr_t)array + (uintptr_t)(first * size);
    uintptr_t to = (uintptr_t)array + (uintptr_t)(end * size), page = 4096;
    from = (advice == MADV_DONTNEED ? from + page - 1 : from) & ~(page - 1);
    to = (advice == MADV_DONTNEED ? to : to + page - 1) & ~(page - 1);
    if (from < to)
        (void)madvise((void *)from, to - from, advice);
}

static void advise_rows(const struct sdr_data *data, uint64_t first, uint64_t end, int advice)
{
    const struct sdr_rows *rows = &data->rows;
    if (!data->map || !data->streams)
        return;
    end = end < rows->count ? end : rows->count;
    if (first >= end)
        return;
    if (rows->dense) {
        advise(rows->dense, first * rows->stride, end * rows->stride, sizeof(float), advice);
    } else {
        uint64_t from = rows->start[first], to = rows->start[end];
        advise(rows->index16, from, to, sizeof(uint16_t), advice);
        advise(rows->index32, from, to, sizeof(uint32_t), advice);
        advise(rows->value, from, to, sizeof(float), advice);
        advise(rows->start, first, end, sizeof(uint64_t), advice);
    }
    advise(rows->label, first, end, sizeof(float), advice);
    advise(rows->weight, first, end, sizeof(float), advice);
}

void sdr_data_will_need(const struct sdr_data *data, uint64_t first, uint64_t end)
{
    advise_rows(data, first, end, MADV_WILLNEED);
}

void sdr_data_done_with(const struct sdr_data *data, uint64_t first, uint64_t end)
{
    advise_rows(data, first, end, MADV_DONTNEED);
}

/* ---- the key ---- */

/* Hashes a per-row array; releases its pages behind if the data streams. */
static void hash_array(struct sdr_hasher *hasher, const struct sdr_data *data, const void *array,
                       uint64_t bytes)
{
    enum { STEP = 4 << 20 };
    for (uint64_t done = 0; array && done < bytes; done += STEP) {
        uint64_t count = bytes - done < STEP ? bytes - done : STEP;
        sdr_hasher_add(hasher, (const char *)array + done, (size_t)count);
        if (data->streams)
            advise(array, done, done + count, 1, MADV_DONTNEED);
    }
}

/* Reading one value may have mapped a huge page of the file. */
static void drop_around(const struct sdr_data *data, const void *place)
{
    const uintptr_t huge = (uintptr_t)2 << 20;
    uintptr_t from = (uintptr_t)place & ~(huge - 1), to = from + huge;
    uintptr_t map = (uintptr_t)data->map, end = map + data->map_bytes;
    if (!data->streams || !data->map)
        return;
    from = from > map ? from : map;
    to = to < end ? to : end;
    (void)madvise((void *)from, to - from, MADV_DONTNEED);
}

/* Hashes 64 values besides row offsets and labels: data sets that agree in these are equal,
   accidents apart. Hashing every value would cost as much as an epoch. */
static void hash_samples(struct sdr_hasher *hasher, const struct sdr_data *data)
{
    enum { SAMPLES = 64 };
    const struct sdr_rows *rows = &data->rows;
    uint64_t count = rows->dense ? rows->count * rows->features : data->nonzeros;
    for (uint64_t i = 0; count && i < SAMPLES; i++) {
        uint64_t at = i * (count - 1) / (SAMPLES - 1);
        uint32_t index = 0;
        float value;
        if (rows->dense) {
            index = (uint32_t)(at % rows->features);
            const float *place = rows->dense + at / rows->features * rows->stride + index;
            value = *place;
            drop_around(data, place);
        } else {
            index = rows->index16 ? rows->index16[at] : rows->index32[at];
            value = rows->value[at];
            drop_around(data, rows->value + at);
            drop_around(data, rows->index16 ? (const void *)(rows->index16 + at)
                                            : (const void *)(rows->index32 + at));
        }
        sdr_hasher_add(hasher, &index, sizeof index);
        sdr_hasher_add(hasher, &value, sizeof value);
    }
}

enum sdr_status sdr_data_sign(struct sdr_data *data)
{
    const struct sdr_rows *rows = &data->rows;
    uint64_t counts[5] = {rows->count, rows->features, data->nonzeros, rows->label != NULL,
                          rows->weight != NULL};
    char text[33];
    struct sdr_hasher *hasher = sdr_hasher_create();
    if (!hasher)
        return sdr_fail(SDR_RUNTIME, "out of memory: the key of the data");
    sdr_hasher_add(hasher, counts, sizeof counts);
    hash_array(hasher, data, rows->start, (rows->count + 1) * sizeof(uint64_t));
    hash_array(hasher, data, rows->label, rows->count * sizeof(float));
    hash_array(hasher, data, rows->weight, rows->count * sizeof(float));
    hash_samples(hasher, data);
    sdr_hasher_text(hasher, text);
    sdr_hasher_destroy(hasher);
    sdr_release(data->source_key);
    data->source_key = NULL;
    return sdr_copy_string(&data->source_key, text);
}

/* ---- the caller's arrays ---- */

static enum sdr_status use_labels(struct sdr_data *data, const float *label, const float *weight,
                                  size_t rows)
{
    struct sdr_schema *schema = &data->schema;
    struct sdr_label_finder finder = {0};
    enum sdr_status status = SDR_OK;
    for (size_t r = 0; status == SDR_OK && label && r < rows; r++) {
        uint32_t number;
        if (!isfinite(label[r]))
            status = sdr_fail(SDR_BAD_DATA, "label of row %zu is not a finite number", r);
        else if (!schema->many_labels)
            status = sdr_label_find(&finder, &schema->labels, &schema->label_value, label[r], NULL,
                                    0, &number);
        if (status == SDR_OK && !schema->many_labels)
            schema->many_labels = number == UINT32_MAX;
    }
    sdr_label_free(&finder);
    if (schema->many_labels) {
        sdr_dictionary_free(&schema->labels);
        sdr_release(schema->label_value);
        schema->label_value = NULL;
    }
    for (size_t r = 0; status == SDR_OK && weight && r < rows; r++)
        if (!(weight[r] >= 0 && isfinite(weight[r])))
            status = sdr_fail(SDR_BAD_DATA, "weight of row %zu is not a number of at least 0", r);
    data->has_labels = label != NULL;
    data->rows.label = label;
    data->rows.weight = weight;
    return status;
}

static enum sdr_status create(size_t rows, size_t features, struct sdr_data **data)
{
    struct sdr_data *d;
    *data = NULL;
    if (rows == 0 || features == 0)
        return sdr_fail(SDR_BAD_DATA, "the data is empty: %zu rows, %zu features", rows, features);
    if (features > MOST_FEATURES)
        return sdr_fail(SDR_BAD_DATA, "too many features: %zu", features);
    SDR_TRY(sdr_allocate(&d, 1, sizeof *d, "the data"));
    d->rows.count = rows;
    d->rows.features = d->schema.features = d->schema.numbers = (uint32_t)features;
    enum sdr_status status = sdr_copy_string(&d->name, "arrays");
    if (status == SDR_OK)
        status = sdr_copy_string(&d->schema.format, "arrays");
    if (status != SDR_OK) {
        sdr_data_destroy(d);
        return status;
    }
    *data = d;
    return SDR_OK;
}

enum sdr_status sdr_data_dense(const float *x, size_t rows, size_t features, size_t stride,
                               const float *label, const float *weight, struct sdr_data **data)
{
    struct sdr_data *d;
    enum sdr_status status;
    if (!x || stride < features)
        return sdr_fail(SDR_USAGE, "dense data needs an array with stride ≥ features");
    SDR_TRY(create(rows, features, data));
    d = *data;
    for (size_t r = 0; r < rows; r++) {
        const float *row = x + r * stride;
        uint64_t nonzeros = 0;
        bool finite = true;
        for (size_t i = 0; i < features; i++) {
            nonzeros += row[i] != 0.0f;
            finite &= fabsf(row[i]) <= 3.4028234663852886e38f;
        }
        if (!finite)
            SDR_CHECK(sdr_fail(SDR_BAD_DATA, "row %zu has a value that is not a finite number", r));
        d->nonzeros += nonzeros;
    }
    d->rows.dense = x;
    d->rows.stride = stride;
    SDR_CHECK(use_labels(d, label, weight, rows));
    SDR_CHECK(sdr_data_sign(d));
    return SDR_OK;
cleanup:
    sdr_data_destroy(d);
    *data = NULL;
    return status;
}

static enum sdr_status check_row(const uint64_t *start, const uint32_t *column, const float *value,
                                 size_t r, size_t features)
{
    if (start[r + 1] < start[r])
        return sdr_fail(SDR_BAD_DATA, "row %zu: the offsets decrease", r);
    for (uint64_t i = start[r]; i < start[r + 1]; i++) {
        if (column[i] >= features)
            return sdr_fail(SDR_BAD_DATA, "row %zu: column %u of %zu", r, column[i], features);
        if (i > start[r] && column[i] <= column[i - 1])
            return sdr_fail(SDR_BAD_DATA, "row %zu: columns must increase, %u follows %u", r,
                            column[i], column[i - 1]);
        if (!isfinite(value[i]))
            return sdr_fail(SDR_BAD_DATA, "row %zu, column %u: not a finite number", r, column[i]);
    }
    return SDR_OK;
}

enum sdr_status sdr_data_csr(const uint64_t *start, const uint32_t *column, const float *value,
                             size_t rows, size_t features, const float *label, const float *weight,
                             struct sdr_data **data)
{
    struct sdr_data *d;
    enum sdr_status status;
    if (!start || ((!column || !value) && start[rows] > 0))
        return sdr_fail(SDR_USAGE, "sparse data needs the arrays start, column and value");
    SDR_TRY(create(rows, features, data));
    d = *data;
    if (start[0] != 0)
        SDR_CHECK(sdr_fail(SDR_BAD_DATA, "the offsets must begin with 0"));
    for (size_t r = 0; r < rows; r++)
        SDR_CHECK(check_row(start, column, value, r, features));
    d->nonzeros = start[rows];
    d->rows.start = start;
    d->rows.index32 = column;
    d->rows.value = value;
    SDR_CHECK(use_labels(d, label, weight, rows));
    SDR_CHECK(sdr_data_sign(d));
    return SDR_OK;
cleanup:
    sdr_data_destroy(d);
    *data = NULL;
    return status;
}
