/* The contract of every codec: what is decoded, what is left out, lengths, bytes that are anything.
   And half precision against a reference of its own. */
#include "conform/reference.h"

#include "kind/codec.h"
#include "run/registry.h"
#include "run/settings.h"

enum { MOST = 700, GUARD = 16 };

struct subject {
    const struct sdr_codec *codec;
    void *options; /* owned */
};

static struct subject subject_open(const struct sdr_codec *codec)
{
    struct subject s = {.codec = codec};
    const struct sdr_plugin *plugin;
    assert_int_equal(sdr_plugin_choose("codec", sdr_codec_table, codec->name, &plugin, &s.options),
                     SDR_OK);
    assert_ptr_equal(plugin, codec);
    return s;
}

static void subject_close(struct subject *s)
{
    sdr_plugin_free(s->codec, s->options);
    s->codec = NULL;
}

#define FOR_EVERY_CODEC(s)                                                                         \
    for (const struct sdr_codec *const *c_ = sdr_codec_table; *c_; c_++)                           \
        for (struct subject s = subject_open(*c_); s.codec; subject_close(&s))

/* Encodes into memory of exactly the bound, with a guard behind it; the bytes are given away. */
static unsigned char *encode(const struct subject *s, const float *value, uint64_t count,
                             float *residual, uint64_t seed, uint64_t *bytes)
{
    uint64_t bound = s->codec->bound(s->options, count);
    unsigned char *room = exactly(bound + GUARD);
    memset(room + bound, 0xa5, GUARD);
    *bytes = s->codec->encode(s->options, value, count, residual, seed, room);
    if (*bytes > bound)
        fail_msg("%s: %llu bytes of %llu values, with a bound of %llu", s->codec->name,
                 (unsigned long long)*bytes, (unsigned long long)count, (unsigned long long)bound);
    for (int i = 0; i < GUARD; i++)
        assert_int_equal(room[bound + (uint64_t)i], 0xa5);
    unsigned char *exact = exactly(*bytes);
    memcpy(exact, room, *bytes);
    free(room);
    return exact;
}

static float *decode(const struct subject *s, const unsigned char *bytes, uint64_t count,
                     uint64_t length)
{
    float *value = exactly(count * sizeof *value);
    if (s->codec->decode(s->options, bytes, length, value, count) != SDR_OK)
        fail_msg("%s: what it encoded cannot be decoded: %s", s->codec->name, sdr_error());
    return value;
}

/* Values of one size, of many (up to 2¹⁴: some codecs end at 65 504), few that are not zero,
   denormal ones, all zero. */
enum { PATTERNS = 5 };
static void fill(float *value, uint64_t count, int pattern)
{
    for (uint64_t i = 0; i < count; i++)
        value[i] = pattern == 0   ? random_float(1)
                   : pattern == 1 ? ldexpf(random_float(1), (int)random_below(45) - 30)
                   : pattern == 2 ? (random_below(10) ? 0 : random_float(3))
                   : pattern == 3 ? ldexpf(random_float(1), -140)
                                  : 0;
}

static const uint64_t counts[] = {0, 1, 2, 3, 7, 8, 511, 512, 513, MOST};
enum { COUNTS = sizeof counts / sizeof *counts };

static void what_was_encoded_is_decoded(void **unused)
{
    (void)unused;
    FOR_EVERY_CODEC(s)
    for (int c = 0; c < COUNTS; c++)
        for (int pattern = 0; pattern < PATTERNS; pattern++) {
            uint64_t bytes, count = counts[c];
            float *value = exactly(count * sizeof *value), *kept = exactly(count * sizeof *kept);
            fill(value, count, pattern);
            memcpy(kept, value, count * sizeof *value);
            unsigned char *encoded = encode(&s, value, count, NULL, 3, &bytes);
            float *decoded = decode(&s, encoded, count, bytes);
            assert_memory_equal(value, kept, count * sizeof *value); /* only read */
            if (!s.codec->lossy)
                assert_memory_equal(decoded, value, count * sizeof *value);
            for (uint64_t i = 0; i < count; i++) {
                if (!isfinite(decoded[i]))
                    fail_msg("%s: %g became %g", s.codec->name, value[i], decoded[i]);
                if (pattern == PATTERNS - 1 && decoded[i] != 0)
                    fail_msg("%s: zeros became %g", s.codec->name, decoded[i]);
            }
            free(value);
            free(kept);
            free(decoded);
            free(encoded);
        }
}

/* Of values that are not lossy every bit is kept, of numbers and others. */
static void a_codec_that_loses_nothing_keeps_every_bit(void **unused)
{
    (void)unused;
    FOR_EVERY_CODEC(s)
    for (int tries = 0; tries < 50 && !s.codec->lossy; tries++) {
        uint64_t bytes;
        float value[MOST];
        for (int i = 0; i < MOST; i++) {
            uint32_t bits = random_bits();
            memcpy(&value[i], &bits, sizeof bits);
        }
        unsigned char *encoded = encode(&s, value, MOST, NULL, 3, &bytes);
        float *decoded = decode(&s, encoded, MOST, bytes);
        assert_memory_equal(decoded, value, sizeof value);
        free(decoded);
        free(encoded);
    }
}

/* decoded + what is left out = value + what was left out before. The two sums are rounded once
   each. */
static void nothing_is_lost_with_a_residual(void **unused)
{
    (void)unused;
    FOR_EVERY_CODEC(s)
    for (int pattern = 0; pattern < 4; pattern++)
        for (int c = 0; c < COUNTS; c++) {
            uint64_t bytes, count = counts[c];
            float *value = exactly(count * sizeof *value);
            float *residual = exactly(count * sizeof *residual);
            float *before = exactly(count * sizeof *before);
            for (uint64_t message = 0; message < 20; message++) {
                fill(value, count, pattern);
                memcpy(before, residual, count * sizeof *before);
                unsigned char *encoded = encode(&s, value, count, residual, message, &bytes);
                float *decoded = decode(&s, encoded, count, bytes);
                for (uint64_t i = 0; i < count; i++) {
                    double size = fabs(value[i]) + fabs(before[i]) + fabs(decoded[i]);
                    assert_near((double)decoded[i] + residual[i], (double)value[i] + before[i],
                                0x1p-23 * size + 0x1p-148, "%s: value %llu of message %llu",
                                s.codec->name, (unsigned long long)i, (unsigned long long)message);
                    if (!s.codec->lossy)
                        assert_true(residual[i] == 0);
                }
                free(encoded);
                free(decoded);
            }
            free(value);
            free(residual);
            free(before);
        }
}

static void the_same_arguments_give_the_same_bytes(void **unused)
{
    (void)unused;
    FOR_EVERY_CODEC(s)
    for (int tries = 0; tries < 40; tries++) {
        uint64_t one_bytes, two_bytes, count = counts[tries % COUNTS], seed = random_bits();
        float *value = exactly(count * sizeof *value);
        float *one = exactly(count * sizeof *one), *two = exactly(count * sizeof *two);
        fill(value, count, tries % PATTERNS);
        for (uint64_t i = 0; i < count; i++)
            one[i] = two[i] = random_float(0.1f);
        unsigned char *first = encode(&s, value, count, one, seed, &one_bytes);
        unsigned char *second = encode(&s, value, count, two, seed, &two_bytes);
        assert_int_equal(one_bytes, two_bytes);
        assert_memory_equal(first, second, one_bytes);
        assert_memory_equal(one, two, count * sizeof *one);
        free(value);
        free(one);
        free(two);
        free(first);
        free(second);
    }
}

/* A run that diverged must be seen to: what is no number does not become one on the way. */
static void values_that_are_no_numbers_are_not_hidden(void **unused)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    (void)unused;
    FOR_EVERY_CODEC(s)
    for (int b = 0; b < 3; b++)
        for (int c = 1; c < COUNTS; c++)
            for (int with = 0; with < 2; with++) {
                uint64_t bytes, count = counts[c];
                float *value = exactly(count * sizeof *value);
                float *residual = exactly(count * sizeof *residual);
                bool seen = false;
                fill(value, count, 0);
                value[random_below((uint32_t)count)] = bad[b];
                unsigned char *encoded =
                    encode(&s, value, count, with ? residual : NULL, 3, &bytes);
                float *decoded = decode(&s, encoded, count, bytes);
                for (uint64_t i = 0; i < count; i++)
                    seen |= !isfinite(decoded[i]);
                if (!seen)
                    fail_msg("%s: %g among %llu values was not seen", s.codec->name, bad[b],
                             (unsigned long long)count);
                free(value);
                free(residual);
                free(encoded);
                free(decoded);
            }
}

/* Decodes bytes that are anything: an error with a sentence, or all values are there. */
static bool decode_anything(const struct subject *s, const unsigned char *bytes, uint64_t length,
                            uint64_t count)
{
    unsigned char *exact = exactly(length);
    float *one = exactly(count * sizeof *one), *two = exactly(count * sizeof *two);
    memcpy(exact, bytes, length);
    memset(two, 0x5a, count * sizeof *two); /* what was there before does not show */
    enum sdr_status status = s->codec->decode(s->options, exact, length, one, count);
    assert_true(status == SDR_OK || (status == SDR_BAD_FILE && *sdr_error()));
    assert_int_equal(s->codec->decode(s->options, exact, length, two, count), status);
    if (status == SDR_OK)
        assert_memory_equal(one, two, count * sizeof *one);
    free(exact);
    free(one);
    free(two);
    return status == SDR_OK;
}

static void bytes_that_are_anything_are_values_or_an_error(void **unused)
{
    (void)unused;
    FOR_EVERY_CODEC(s)
    {
        unsigned char bytes[4 * MOST + 64];
        int refused = 0, cases = 20000;
        for (int i = 0; i < cases; i++) {
            uint64_t count = random_below(40), length;
            float value[40];
            if (i % 2) { /* what it would encode, damaged */
                fill(value, count, i % PATTERNS);
                unsigned char *encoded = encode(&s, value, count, NULL, 3, &length);
                memcpy(bytes, encoded, length);
                free(encoded);
                for (uint32_t k = random_below(4); k > 0 && length; k--)
                    bytes[random_below((uint32_t)length)] = (unsigned char)random_bits();
                if (random_below(3) == 0)
                    length = random_below((uint32_t)length + 9);
            } else {
                length = random_below((uint32_t)s.codec->bound(s.options, count) + 9);
                for (uint64_t k = 0; k < length; k++)
                    bytes[k] = (unsigned char)random_bits();
            }
            refused += !decode_anything(&s, bytes, length, count);
        }
        if (refused < cases / 20)
            fail_msg("%s: only %d of %d were refused", s.codec->name, refused, cases);
    }
}

/* ---- half precision ---- */
/* The value of a pattern, by the standard. */
static double half_value(uint32_t pattern)
{
    uint32_t exponent = pattern >> 10 & 31, fraction = pattern & 1023;
    double size = exponent == 31  ? (fraction ? NAN : INFINITY)
                  : exponent == 0 ? ldexp(fraction, -24)
                                  : ldexp(1024 + fraction, (int)exponent - 25);
    return pattern & 0x8000 ? -size : size;
}

static struct subject half(void)
{
    for (const struct sdr_codec *const *c = sdr_codec_table; *c; c++)
        if (strcmp((*c)->name, "half") == 0)
            return subject_open(*c);
    fail_msg("there is no codec half");
    return (struct subject){0};
}

static void half_decodes_all_patterns(void **unused)
{
    enum { ALL = 65536 };
    (void)unused;
    struct subject s = half();
    uint16_t *pattern = exactly(ALL * sizeof *pattern);
    for (uint32_t i = 0; i < ALL; i++)
        pattern[i] = (uint16_t)i;
    float *value = decode(&s, (const unsigned char *)pattern, ALL, ALL * sizeof *pattern);
    for (uint32_t i = 0; i < ALL; i++) {
        double exact = half_value(i);
        if (isnan(exact) ? !isnan(value[i])
                         : value[i] != exact || !signbit(value[i]) != !signbit(exact))
            fail_msg("pattern %04x is %g, not %g", i, value[i], exact);
    }
    /* and encodes what it decoded to the same patterns */
    uint64_t bytes;
    unsigned char *again = encode(&s, value, ALL, NULL, 0, &bytes);
    assert_int_equal(bytes, ALL * sizeof *pattern);
    for (uint32_t i = 0; i < ALL; i++) {
        uint16_t got;
        memcpy(&got, again + i * sizeof got, sizeof got);
        if (isnan(half_value(i)) ? !isnan(half_value(got)) : got != i)
            fail_msg("pattern %04x became %04x", i, got);
    }
    free(value);
    free(again);
    free(pattern);
    subject_close(&s);
}

/* The pattern nearest to a value, of two the even one; beyond the largest by half a step:
   infinite. */
static uint32_t nearest_half(float value)
{
    double size = fabs((double)value);
    uint32_t low = 0, high = 0x7c00, sign = signbit(value) ? 0x8000 : 0;
    if (isnan(value))
        return sign | 0x7e00;
    if (size >= 65520)
        return sign | 0x7c00;
    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;
        *(half_value(middle) <= size ? &low : &high) = middle;
    }
    double above = high == 0x7c00 ? 65536 : half_value(high);
    double down = size - half_value(low), up = above - size;
    return sign | (down < up || (down == up && low % 2 == 0) ? low : high);
}

static void check_rounding(const struct subject *s, float value)
{
    uint16_t got;
    unsigned char bytes[sizeof got];
    assert_int_equal(s->codec->encode(s->options, &value, 1, NULL, 0, bytes), sizeof got);
    memcpy(&got, bytes, sizeof got);
    uint32_t expected = nearest_half(value);
    if (isnan(value) ? !isnan(half_value(got)) : got != expected)
        fail_msg("%.9g (%a) became %04x, not %04x", value, value, got, expected);
}

static void half_rounds_to_the_nearest_ties_to_even(void **unused)
{
    (void)unused;
    struct subject s = half();
    for (uint32_t i = 0; i < 0x7c00; i++) { /* between every two neighbours */
        double one = half_value(i), two = i + 1 == 0x7c00 ? 65536 : half_value(i + 1);
        float tie = (float)((one + two) / 2);
        const float all[] = {(float)one,
                             tie,
                             nextafterf(tie, 0),
                             nextafterf(tie, INFINITY),
                             nextafterf((float)one, INFINITY),
                             nextafterf((float)two, 0)};
        for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
            check_rounding(&s, all[k]);
            check_rounding(&s, -all[k]);
        }
    }
    for (int i = 0; i < 300000; i++) { /* all of float */
        uint32_t bits = random_bits();
        float value;
        memcpy(&value, &bits, sizeof value);
        check_rounding(&s, value);
    }
    subject_close(&s);
}

/* What half leaves out is a float: with a residual of zero nothing at all is lost. */
static void half_leaves_out_what_a_residual_can_hold(void **unused)
{
    (void)unused;
    struct subject s = half();
    for (int i = 0; i < 100000; i++) {
        float value = ldexpf(random_float(1), (int)random_below(30) - 15), residual = 0, decoded;
        unsigned char bytes[sizeof(uint16_t)];
        s.codec->encode(s.options, &value, 1, &residual, 0, bytes);
        assert_int_equal(s.codec->decode(s.options, bytes, sizeof bytes, &decoded, 1), SDR_OK);
        if ((double)decoded + residual != value)
            fail_msg("%a: %a and %a are left", value, decoded, residual);
        assert_true(fabs(residual) <= fabs(value) * 0x1p-11 + 0x1p-25);
    }
    subject_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_encoded_is_decoded),
        cmocka_unit_test(a_codec_that_loses_nothing_keeps_every_bit),
        cmocka_unit_test(nothing_is_lost_with_a_residual),
        cmocka_unit_test(the_same_arguments_give_the_same_bytes),
        cmocka_unit_test(values_that_are_no_numbers_are_not_hidden),
        cmocka_unit_test(bytes_that_are_anything_are_values_or_an_error),
        cmocka_unit_test(half_decodes_all_patterns),
        cmocka_unit_test(half_rounds_to_the_nearest_ties_to_even),
        cmocka_unit_test(half_leaves_out_what_a_residual_can_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
