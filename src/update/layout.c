/* Layout of the values, and spans of them: see update.h. */
#include "base/memory.h"
#include "update/update.h"

#include <math.h>
#include <string.h>

enum { BLOCK_ALIGN = SDR_ALIGN / sizeof(float) };

/* ---- layout ---- */
void sdr_layout_make(struct sdr_layout *layout, const struct sdr_block *block, int blocks)
{
    *layout = (struct sdr_layout){.blocks = blocks};
    memcpy(layout->block, block, (size_t)blocks * sizeof *block);
    for (int b = 0; b < blocks; b++) {
        uint64_t size = (uint64_t)block[b].rows * block[b].cols;
        layout->block[b].offset = layout->count;
        layout->count += (size + BLOCK_ALIGN - 1) / BLOCK_ALIGN * BLOCK_ALIGN;
        layout->first_row[b] = layout->rows;
        layout->rows += block[b].rows;
    }
}

void sdr_rows_cut(const struct sdr_block *block, struct sdr_span span, uint32_t *first,
                  uint32_t *end)
{
    uint64_t begin = block->offset, size = (uint64_t)block->rows * block->cols;
    uint64_t from = span.first > begin ? span.first - begin : 0;
    uint64_t to = span.end > begin ? span.end - begin : 0;
    *first = (uint32_t)(from < size ? (from + block->cols - 1) / block->cols : block->rows);
    *end = (uint32_t)(to < size ? (to + block->cols - 1) / block->cols : block->rows);
    *end = *end < *first ? *first : *end;
}

/* The cost of a row: its number of values, times how often it is touched. */
static uint64_t row_cost(const struct sdr_block *block, uint32_t row, const uint32_t *touched,
                         uint32_t of)
{
    return (uint64_t)block->cols *
           (block->per_feature && touched ? touched[row] + 1ull : of + 1ull);
}

/* Whether a span may begin with this row. Large blocks are cut at whole cache lines, of the values
   and of dense examples: workers that write to the same line wait for each other, and loads across
   lines are slow. Measured, softmax of 784 features, two workers: 3 % of the time. */
static bool may_cut(const struct sdr_block *block, uint32_t row, uint32_t spans)
{
    enum { LINE = 16, LARGE = 4 * LINE };
    return row % LINE == 0 || block->rows < LARGE * spans;
}

void sdr_cut_spans(const struct sdr_layout *layout, const uint32_t *touched, uint32_t of,
                   double by_size, uint32_t spans, struct sdr_span *span)
{
    uint64_t work = 0, size = 0, total, sum = 0, per_value = 0;
    uint32_t p = 0;
    for (int b = 0; b < layout->blocks; b++)
        for (uint32_t j = 0; j < layout->block[b].rows; j++) {
            work += row_cost(&layout->block[b], j, touched, of);
            size += layout->block[b].cols;
        }
    if (by_size > 0) /* so that size · per_value is that share of the total */
        per_value = (uint64_t)ceil(by_size / (1 - by_size) * (double)work / (double)size);
    total = work + size * per_value;
    span[0].first = 0;
    for (int b = 0; b < layout->blocks; b++)
        for (uint32_t j = 0; j < layout->block[b].rows; j++) {
            const struct sdr_block *block = &layout->block[b];
            uint64_t at = block->offset + (uint64_t)j * block->cols;
            while (p + 1 < spans && sum >= total / spans * (p + 1) && may_cut(block, j, spans)) {
                span[p].end = at;
                span[++p].first = at;
            }
            sum += row_cost(block, j, touched, of) + block->cols * per_value;
        }
    for (; p < spans; p++) {
        span[p].end = layout->count;
        if (p + 1 < spans)
            span[p + 1].first = layout->count;
    }
}

static bool cuts_no_row(const struct sdr_layout *layout, uint64_t at)
{
    for (int b = 0; b < layout->blocks; b++) {
        const struct sdr_block *block = &layout->block[b];
        uint64_t size = (uint64_t)block->rows * block->cols;
        if (at > block->offset && at < block->offset + size && (at - block->offset) % block->cols)
            return false;
    }
    return true;
}

bool sdr_spans_sound(const struct sdr_layout *layout, const struct sdr_span *span, uint32_t spans)
{
    uint64_t end = 0;
    for (uint32_t p = 0; p < spans; p++) {
        if (span[p].first != end || span[p].end < end || !cuts_no_row(layout, span[p].end))
            return false;
        end = span[p].end;
    }
    return end == layout->count;
}
