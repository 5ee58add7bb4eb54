#include "data/array.h"

#include <string.h>

static const struct {
    size_t size;
    bool whole;
} types[] = {
    [SDR_ARRAY_BOOL] = {1, true}, [SDR_ARRAY_U8] = {1, true},   [SDR_ARRAY_I8] = {1, true},
    [SDR_ARRAY_U16] = {2, true},  [SDR_ARRAY_I16] = {2, true},  [SDR_ARRAY_U32] = {4, true},
    [SDR_ARRAY_I32] = {4, true},  [SDR_ARRAY_U64] = {8, true},  [SDR_ARRAY_I64] = {8, true},
    [SDR_ARRAY_F32] = {4, false}, [SDR_ARRAY_F64] = {8, false},
};

size_t sdr_array_size(enum sdr_array_type type)
{
    return types[type].size;
}

bool sdr_array_is_whole(enum sdr_array_type type)
{
    return types[type].whole;
}

enum sdr_status sdr_array_measure(const char *name, struct sdr_array *array)
{
    uint64_t bytes;
    array->rows = array->dims ? array->shape[0] : 1;
    array->width = 1;
    for (uint32_t d = 1; d < array->dims; d++)
        if (__builtin_mul_overflow(array->width, array->shape[d], &array->width))
            return sdr_fail(SDR_BAD_DATA, "%s: the shape in its header is impossibly large", name);
    if (__builtin_mul_overflow(array->width, array->rows, &bytes) ||
        __builtin_mul_overflow(bytes, (uint64_t)sizeof(double), &bytes) ||
        bytes > (uint64_t)1 << 62)
        return sdr_fail(SDR_BAD_DATA, "%s: the shape in its header is impossibly large", name);
    return SDR_OK;
}

static inline uint64_t load(const unsigned char *from, size_t size, bool big)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < size; i++)
        bits |= (uint64_t)from[i] << 8 * (big ? size - 1 - i : i);
    return bits;
}

static inline float bits_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline double bits_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* One loop per type with a constant size, so that the loads become single instructions. */
#define EACH(size, expression)                                                                     \
    for (size_t i = 0; i < count; i++) {                                                           \
        const unsigned char *at = bytes + i * (size);                                              \
        uint64_t bits = big ? load(at, size, true) : load(at, size, false);                        \
        to[i] = (expression);                                                                      \
    }                                                                                              \
    break

void sdr_array_floats(const struct sdr_array *array, const void *from, size_t count, float *to)
{
    const unsigned char *bytes = from;
    bool big = array->big_endian;
    switch (array->type) {
    case SDR_ARRAY_BOOL: EACH(1, bits != 0);
    case SDR_ARRAY_U8: EACH(1, (float)(uint8_t)bits);
    case SDR_ARRAY_I8: EACH(1, (float)(int8_t)bits);
    case SDR_ARRAY_U16: EACH(2, (float)(uint16_t)bits);
    case SDR_ARRAY_I16: EACH(2, (float)(int16_t)bits);
    case SDR_ARRAY_U32: EACH(4, (float)(uint32_t)bits);
    case SDR_ARRAY_I32: EACH(4, (float)(int32_t)bits);
    case SDR_ARRAY_U64: EACH(8, (float)bits);
    case SDR_ARRAY_I64: EACH(8, (float)(int64_t)bits);
    case SDR_ARRAY_F32: EACH(4, bits_float((uint32_t)bits));
    case SDR_ARRAY_F64: EACH(8, (float)bits_double(bits));
    }
}

/* Unsigned 64-bit values beyond the signed range become negative, which callers refuse. */
void sdr_array_integers(const struct sdr_array *array, const void *from, size_t count, int64_t *to)
{
    const unsigned char *bytes = from;
    bool big = array->big_endian;
    switch (array->type) {
    case SDR_ARRAY_BOOL:
    case SDR_ARRAY_U8: EACH(1, (int64_t)bits);
    case SDR_ARRAY_I8: EACH(1, (int8_t)bits);
    case SDR_ARRAY_U16: EACH(2, (int64_t)bits);
    case SDR_ARRAY_I16: EACH(2, (int16_t)bits);
    case SDR_ARRAY_U32: EACH(4, (int64_t)bits);
    case SDR_ARRAY_I32: EACH(4, (int32_t)bits);
    case SDR_ARRAY_U64:
    case SDR_ARRAY_I64: EACH(8, (int64_t)bits);
    case SDR_ARRAY_F32:
    case SDR_ARRAY_F64: memset(to, 0xFF, count * sizeof *to); /* −1: not an integer type */
    }
}

bool sdr_idx_is(const char *bytes, size_t count)
{
    static const char known[] = {8, 9, 0xB, 0xC, 0xD, 0xE};
    return count >= 8 && bytes[0] == 0 && bytes[1] == 0 && memchr(known, bytes[2], sizeof known) &&
           bytes[3] >= 1 && bytes[3] <= SDR_ARRAY_DIMS;
}

/* IDX (LeCun): two zero bytes, the type, the number of dimensions, the dimensions in four bytes
   each, the numbers; all big-endian. */
enum sdr_status sdr_idx_header(const char *name, const char *bytes, size_t count,
                               struct sdr_array *array)
{
    static const enum sdr_array_type type[] = {
        [8] = SDR_ARRAY_U8,    [9] = SDR_ARRAY_I8,    [0xB] = SDR_ARRAY_I16,
        [0xC] = SDR_ARRAY_I32, [0xD] = SDR_ARRAY_F32, [0xE] = SDR_ARRAY_F64};
    const unsigned char *head = (const unsigned char *)bytes;
    *array = (struct sdr_array){.big_endian = true};
    if (!sdr_idx_is(bytes, count))
        return sdr_fail(SDR_BAD_DATA, "%s: not an IDX file", name);
    array->type = type[head[2]];
    array->dims = head[3];
    array->header = 4 + 4 * (size_t)array->dims;
    if (count < array->header)
        return sdr_fail(SDR_BAD_DATA, "%s: truncated: the IDX header ends early", name);
    for (uint32_t d = 0; d < array->dims; d++)
        array->shape[d] = load(head + 4 + 4 * d, 4, true);
    return sdr_array_measure(name, array);
}
