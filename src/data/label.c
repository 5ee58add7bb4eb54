/* The distinct values of numeric labels, each with its first text: the classes of a classifier.
   Regression data soon exceeds the limit, and then nothing is kept. */
#include "data/data.h"

#include <math.h>
#include <string.h>

enum { FEW = 8, SLOTS = 4 * SDR_LABELS_MOST };

static uint32_t home(float value)
{
    uint32_t bits;
    value += 0.0f; /* turns −0 into 0 */
    memcpy(&bits, &value, sizeof bits);
    return bits * 2654435761u >> 18; /* 14 bits, log2 of SLOTS */
}

static uint32_t seek(const uint16_t *slot, const float *values, float value)
{
    uint32_t at = home(value);
    while (slot[at] && values[slot[at] - 1] != value)
        at = (at + 1) & (SLOTS - 1);
    return at;
}

/* The value's number; UINT32_MAX if it is new. */
static uint32_t find_number(const struct sdr_label_finder *finder, const float *values,
                            uint32_t count, float value)
{
    if (finder->slot) {
        uint32_t found = finder->slot[seek(finder->slot, values, value)];
        return found ? found - 1 : UINT32_MAX;
    }
    for (uint32_t i = 0; i < count; i++)
        if (values[i] == value)
            return i;
    return UINT32_MAX;
}

static enum sdr_status make_slots(struct sdr_label_finder *finder, const float *values,
                                  uint32_t count)
{
    SDR_TRY(sdr_allocate(&finder->slot, SLOTS, sizeof *finder->slot, "the labels"));
    for (uint32_t i = 0; i < count; i++)
        finder->slot[seek(finder->slot, values, values[i])] = (uint16_t)(i + 1);
    return SDR_OK;
}

enum sdr_status sdr_label_find(struct sdr_label_finder *finder, struct sdr_dictionary *labels,
                               float **label_value, float value, const char *text, size_t length,
                               uint32_t *number)
{
    uint32_t count = labels->count;
    if (finder->last < count && (*label_value)[finder->last] == value) {
        *number = finder->last;
        return SDR_OK;
    }
    if (!finder->slot && count > FEW)
        SDR_TRY(make_slots(finder, *label_value, count));
    *number = find_number(finder, *label_value, count, value);
    if (*number == UINT32_MAX && count < SDR_LABELS_MOST) {
        if (!*label_value)
            SDR_TRY(sdr_allocate(label_value, SDR_LABELS_MOST, sizeof(float), "the labels"));
        char printed[SDR_NUMBER_TEXT];
        if (!text) {
            length = sdr_print_float(printed, value);
            text = printed;
        }
        SDR_TRY(sdr_dictionary_find(labels, text, length, true, number));
        if (*number != count) /* the same text with another value: a malformed file */
            return sdr_fail(SDR_BAD_DATA, "the label '%.*s' stands for two values",
                            (int)(length < 80 ? length : 80), text);
        (*label_value)[count] = value;
        if (finder->slot)
            finder->slot[seek(finder->slot, *label_value, value)] = (uint16_t)(count + 1);
    }
    if (*number != UINT32_MAX)
        finder->last = *number;
    return SDR_OK;
}

bool sdr_label_exact(float value, const char *text, size_t length)
{
    uint64_t whole = 0;
    size_t i = length && (*text == '-' || *text == '+');
    float size = fabsf(value);
    if (size < 0x1p24f || i == length)
        return true;
    for (; i < length && text[i] >= '0' && text[i] <= '9'; i++)
        if (__builtin_mul_overflow(whole, (uint64_t)10, &whole) ||
            __builtin_add_overflow(whole, (uint64_t)(text[i] - '0'), &whole))
            whole = UINT64_MAX; /* equals no float */
    bool point = i < length && text[i] == '.';
    size_t zeros = i + point;
    while (point && zeros < length && text[zeros] == '0')
        zeros++;
    if (point && zeros < length && text[zeros] >= '1' && text[zeros] <= '9')
        return false; /* floats of this size are whole numbers */
    return zeros < length || (size < 0x1p64f && (uint64_t)size == whole);
}

void sdr_label_clear(struct sdr_label_finder *finder)
{
    if (finder->slot)
        memset(finder->slot, 0, SLOTS * sizeof *finder->slot);
    finder->last = 0;
}

void sdr_label_free(struct sdr_label_finder *finder)
{
    sdr_release(finder->slot);
    *finder = (struct sdr_label_finder){0};
}
