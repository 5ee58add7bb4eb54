/* Conversions of all staged rows: widening or shifting indices, sparse to dense and back, replacing
   missing cells by means. Each works in place or releases old pages as it proceeds, so there is
   never a second copy of the data. */
#define _GNU_SOURCE /* madvise */
#include "data/build.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>

enum { BLOCK = 4096, GIVE_BACK = 32 << 20 };

/* Releases the pages of [*from, to) once they are worth a system call. Called with rising `to`. */
static void release_pages(struct sdr_region *region, size_t *from, size_t to)
{
    to &= ~(size_t)((2 << 20) - 1); /* multiple of huge pages */
    if (to < *from + GIVE_BACK)
        return;
    (void)madvise(region->bytes + *from, to - *from, MADV_DONTNEED);
    *from = to;
}

/* From the last element to the first: the wider array overlaps its source. */
enum sdr_status sdr_layout_widen(struct sdr_builder *b)
{
    uint16_t narrow[BLOCK];
    uint32_t wide[BLOCK];
    size_t left = b->staged.index.used / sizeof *narrow;
    SDR_TRY(sdr_region_reserve(&b->staged.index, b->staged.index.used + SDR_ALIGN));
    b->staged.index.used = left * sizeof *wide;
    while (left) {
        size_t count = left % BLOCK ? left % BLOCK : BLOCK;
        left -= count;
        memcpy(narrow, b->staged.index.bytes + left * sizeof *narrow, count * sizeof *narrow);
        for (size_t i = 0; i < count; i++)
            wide[i] = narrow[i];
        memcpy(b->staged.index.bytes + left * sizeof *wide, wide, count * sizeof *wide);
    }
    b->wide = true;
    return SDR_OK;
}

enum sdr_status sdr_layout_shift_up(struct sdr_builder *b)
{
    if (b->is_dense)
        SDR_TRY(sdr_layout_to_sparse(b));
    if (!b->wide && b->width >= NARROW_FEATURES)
        SDR_TRY(sdr_layout_widen(b));
    if (b->wide) {
        uint32_t *index = (uint32_t *)(void *)b->staged.index.bytes;
        for (size_t i = 0; i < b->staged.index.used / sizeof *index; i++)
            index[i]++;
    } else {
        uint16_t *index = (uint16_t *)(void *)b->staged.index.bytes;
        for (size_t i = 0; i < b->staged.index.used / sizeof *index; i++)
            index[i]++;
    }
    return SDR_OK;
}

enum sdr_status sdr_layout_to_dense(struct sdr_builder *b, uint32_t features)
{
    uint64_t stride = sdr_stride(features);
    const uint64_t *start = (const uint64_t *)(const void *)b->staged.start.bytes;
    const uint16_t *index16 = (const uint16_t *)(const void *)b->staged.index.bytes;
    const uint32_t *index32 = (const uint32_t *)(const void *)b->staged.index.bytes;
    const float *value = (const float *)(const void *)b->staged.value.bytes;
    size_t bytes, index_gone = 0, value_gone = 0;
    if (__builtin_mul_overflow(b->rows * sizeof(float), stride, &bytes))
        return sdr_fail(SDR_RUNTIME, "out of memory: %llu dense rows", (unsigned long long)b->rows);
    SDR_TRY(sdr_region_reserve(&b->staged.dense, bytes + SDR_ALIGN));
    float *row = (float *)(void *)b->staged.dense.bytes;
    for (uint64_t r = 0; r < b->rows; r++, row += stride) {
        for (uint64_t i = start[r]; i < start[r + 1]; i++)
            row[b->wide ? index32[i] : index16[i]] = value[i];
        release_pages(&b->staged.value, &value_gone, start[r + 1] * sizeof(float));
        release_pages(&b->staged.index, &index_gone, start[r + 1] * (b->wide ? 4 : 2));
    }
    b->staged.dense.used = bytes;
    b->is_dense = true;
    b->dense_width = features;
    sdr_region_free(&b->staged.start);
    sdr_region_free(&b->staged.index);
    sdr_region_free(&b->staged.value);
    return SDR_OK;
}

enum sdr_status sdr_layout_to_sparse(struct sdr_builder *b)
{
    uint64_t stride = sdr_stride(b->dense_width), entries = 0;
    size_t gone = 0;
    bool wide = b->dense_width > NARROW_FEATURES;
    SDR_TRY(sdr_region_reserve(&b->staged.start, (b->rows + 1) * sizeof(uint64_t)));
    SDR_TRY(sdr_region_reserve(&b->staged.index, b->nonzeros * (wide ? 4 : 2) + SDR_ALIGN));
    SDR_TRY(sdr_region_reserve(&b->staged.value, b->nonzeros * sizeof(float) + SDR_ALIGN));
    uint64_t *start = (uint64_t *)(void *)b->staged.start.bytes;
    uint16_t *index16 = (uint16_t *)(void *)b->staged.index.bytes;
    uint32_t *index32 = (uint32_t *)(void *)b->staged.index.bytes;
    float *value = (float *)(void *)b->staged.value.bytes;
    const float *row = (const float *)(const void *)b->staged.dense.bytes;
    start[0] = 0;
    for (uint64_t r = 0; r < b->rows; r++, row += stride) {
        for (uint32_t i = 0; i < b->dense_width; i++) {
            if (row[i] == 0.0f)
                continue;
            if (wide)
                index32[entries] = i;
            else
                index16[entries] = (uint16_t)i;
            value[entries++] = row[i];
        }
        start[r + 1] = entries;
        release_pages(&b->staged.dense, &gone, (size_t)((r + 1) * stride * sizeof(float)));
    }
    b->staged.start.used = (size_t)(b->rows + 1) * sizeof(uint64_t);
    b->staged.index.used = (size_t)entries * (wide ? 4 : 2);
    b->staged.value.used = (size_t)entries * sizeof(float);
    b->nonzeros = entries;
    b->wide = wide;
    b->is_dense = false;
    sdr_region_free(&b->staged.dense);
    return SDR_OK;
}

/* ---- missing cells ---- */

void sdr_layout_sum(const uint32_t *index32, const uint16_t *index16, const float *value,
                    uint64_t count, uint32_t shift, double *sum, uint64_t *missing)
{
    for (uint64_t i = 0; i < count; i++) {
        uint32_t feature = index32 ? index32[i] - shift : index16[i];
        if (value[i] == value[i])
            sum[feature] += (double)value[i];
        else
            missing[feature]++;
    }
}

/* An absent entry of a sparse row is a zero, not a missing cell. */
enum sdr_status sdr_layout_means(const struct sdr_builder *b, const double *sum,
                                 const uint64_t *missing)
{
    uint32_t features = b->schema->features;
    SDR_TRY(sdr_allocate(&b->schema->mean, features, sizeof(float), "the means"));
    for (uint32_t i = 0; i < features; i++) {
        uint64_t present = b->rows - missing[i];
        b->schema->mean[i] = present ? (float)(sum[i] / (double)present) : 0.0f;
    }
    b->schema->missing = SDR_MISSING_MEAN;
    return SDR_OK;
}

static enum sdr_status find_means(const struct sdr_builder *b)
{
    uint32_t features = b->schema->features;
    double *sum;
    uint64_t *missing;
    SDR_TRY(sdr_allocate(&sum, features, sizeof *sum, "the means"));
    enum sdr_status status = sdr_allocate(&missing, features, sizeof *missing, "the means");
    if (status == SDR_OK && b->is_dense) {
        const float *row = (const float *)(const void *)b->staged.dense.bytes;
        for (uint64_t r = 0; r < b->rows; r++, row += sdr_stride(features))
            for (uint32_t i = 0; i < features; i++) {
                sum[i] += row[i] == row[i] ? (double)row[i] : 0.0;
                missing[i] += row[i] != row[i];
            }
    } else if (status == SDR_OK) {
        sdr_layout_sum(b->wide ? (const uint32_t *)(const void *)b->staged.index.bytes : NULL,
                       (const uint16_t *)(const void *)b->staged.index.bytes,
                       (const float *)(const void *)b->staged.value.bytes, b->nonzeros, 0, sum,
                       missing);
    }
    if (status == SDR_OK)
        status = sdr_layout_means(b, sum, missing);
    sdr_release(sum);
    sdr_release(missing);
    return status;
}

/* Filled cells stay stored even if the mean is 0. */
static void fill(struct sdr_builder *b)
{
    const float *mean = b->schema->mean;
    uint32_t features = b->schema->features;
    if (b->is_dense) {
        float *row = (float *)(void *)b->staged.dense.bytes;
        for (uint64_t r = 0; r < b->rows; r++, row += sdr_stride(features))
            for (uint32_t i = 0; i < features; i++)
                row[i] = row[i] == row[i] ? row[i] : mean[i];
        return;
    }
    float *value = (float *)(void *)b->staged.value.bytes;
    const uint16_t *index16 = (const uint16_t *)(const void *)b->staged.index.bytes;
    const uint32_t *index32 = (const uint32_t *)(const void *)b->staged.index.bytes;
    for (uint64_t i = 0; i < b->nonzeros; i++)
        if (value[i] != value[i])
            value[i] = mean[b->wide ? index32[i] : index16[i]];
}

enum sdr_status sdr_layout_known_means(const struct sdr_builder *b)
{
    if (b->schema->mean)
        return SDR_OK;
    return sdr_fail(SDR_BAD_DATA, "cells are missing, but the data the model was trained on lacked "
                                  "none: there is no mean to fill in (use --missing zero)");
}

enum sdr_status sdr_layout_fill_missing(struct sdr_builder *b)
{
    SDR_TRY(b->known ? sdr_layout_known_means(b) : find_means(b));
    fill(b);
    return SDR_OK;
}
