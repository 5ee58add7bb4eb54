/* The quick reader of LIBSVM text: runs of plain entries such as "4711:0.01234 ", with at most
   eight digits of index and fifteen bytes of value. No branch depends on the length of a number: a
   mask of the next 32 bytes gives the ends of tokens, the bytes before an end hold its digits
   right-aligned, and a few multiplications convert them. Everything else (exponents, long numbers,
   errors, chunk boundaries) goes to the careful reader in libsvm.c, which gives the same bits. */
#include "data/libsvm.h"
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

static inline uint64_t load8(const char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

/* Masks of the next 32 bytes: bit i is set if byte i is not a digit, a point, a minus. */
struct ahead {
    uint64_t other, point, minus;
};

/* A plain entry as offsets from its first byte: index [0, colon), value [first, end). tail: length
   of the point and the digits after it, 0 without a point. */
struct plain {
    unsigned colon, first, end, tail, negative;
};

/* Locates the entry at p; false if it is not plain. The next entry depends only on `end`;
   everything else runs in parallel. */
static inline __attribute__((always_inline)) bool locate(const char *p, struct ahead ahead,
                                                         struct plain *plain)
{
    uint64_t other = ahead.other | 3ull << 32; /* sentinels: every search ends */
    uint64_t behind = other & (other - 1);     /* without the colon */
    uint64_t stop = behind & ~(ahead.point | ahead.minus);
    plain->end = (unsigned)__builtin_ctzll(stop);
    plain->colon = (unsigned)__builtin_ctzll(other);
    uint64_t inner = behind & ((stop & -stop) - 1);
    uint64_t signs = inner & ahead.minus, points = inner & ahead.point;
    unsigned point = (unsigned)__builtin_ctzll(points | stop);
    plain->negative = signs != 0;
    plain->first = plain->colon + 1 + plain->negative;
    plain->tail = plain->end - point;
    /* At most 15 bytes of value, hence below 2^53. A point needs a digit before it. */
    return !((p[plain->colon] != ':') | (plain->colon - 1 > 7) |
             (plain->end - plain->first - 1 > 14) | (point <= plain->first) |
             (((signs & ~(2ull << plain->colon)) | (points & (points - 1))) != 0));
}

/* Whether an entry may end at this byte; exponents, comments and errors go to the careful
   reader. */
static inline bool ends_entry(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* Stores the entry and returns the byte after it, or NULL if its index does not rise. */
static inline __attribute__((always_inline)) const char *store(struct sdr_libsvm_scan *scan,
                                                               const char *p,
                                                               const struct plain *plain,
                                                               uint64_t index, uint64_t mantissa)
{
    /* By tail, then negated. Digits and powers are exact, so the quotient is rounded once. */
    static const double divisor[32] = {1e0,  1e0,  1e1,  1e2,   1e3,   1e4,   1e5,   1e6,
                                       1e7,  1e8,  1e9,  1e10,  1e11,  1e12,  1e13,  1e14,
                                       -1e0, -1e0, -1e1, -1e2,  -1e3,  -1e4,  -1e5,  -1e6,
                                       -1e7, -1e8, -1e9, -1e10, -1e11, -1e12, -1e13, -1e14};
    if ((int64_t)index <= scan->last)
        return NULL;
    scan->last = (int64_t)index;
    scan->index[scan->count] = (uint32_t)index;
    scan->value[scan->count++] =
        (float)((double)(int64_t)mantissa / divisor[plain->tail + 16 * plain->negative]);
    return p + plain->end;
}

/* The number in the last `length` (0 … 8) of the eight bytes before `end`. */
static inline uint64_t digits_before(const char *end, unsigned length)
{
    uint64_t word = load8(end - 8) & 0x0F0F0F0F0F0F0F0F;
    word = length ? word >> (64 - 8 * length) << (64 - 8 * length) : 0;
    word = word * (10 * 256 + 1) >> 8;                            /* pairs */
    word = (word & 0x00FF00FF00FF00FF) * (100 * 65536 + 1) >> 16; /* fours */
    return (word & 0x0000FFFF0000FFFF) * (10000 * 4294967296ull + 1) >> 32;
}

/* Both levels read 32 bytes ahead (`locate` two more) and at most 16 back. */
enum { AHEAD = 48, BEHIND = 16 };

static const char *entries_portable(struct sdr_libsvm_scan *scan, const char *at)
{
    static const uint64_t ten[9] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
    const uint64_t ones = 0x0101010101010101, low = 0x7F * ones, gather = 0x0102040810204080;
    if (at - scan->begin < BEHIND)
        return at;
    while (scan->end - at >= AHEAD) {
        struct ahead ahead = {0, 0, 0};
        struct plain plain;
        for (unsigned i = 0; i < 4; i++) {
            uint64_t word = load8(at + 8 * i), digit = word ^ '0' * ones;
            uint64_t point = word ^ '.' * ones, minus = word ^ '-' * ones;
            digit = (((digit & low) + (0x80 - 10) * ones) | digit) & ~low; /* high bit: above 9 */
            point = ~(((point & low) + low) | point) & ~low;               /* high bit: zero */
            minus = ~(((minus & low) + low) | minus) & ~low;
            ahead.other |= (digit >> 7) * gather >> 56 << 8 * i;
            ahead.point |= (point >> 7) * gather >> 56 << 8 * i;
            ahead.minus |= (minus >> 7) * gather >> 56 << 8 * i;
        }
        if (!locate(at, ahead, &plain) || !ends_entry(at[plain.end]))
            break;
        unsigned whole = plain.end - plain.tail - plain.first;
        unsigned fraction = plain.tail - (plain.tail > 0);
        if (whole > 8 || fraction > 8)
            break;
        uint64_t mantissa = digits_before(at + plain.first + whole, whole) * ten[fraction] +
                            digits_before(at + plain.end, fraction);
        const char *behind =
            store(scan, at, &plain, digits_before(at + plain.colon, plain.colon), mantissa);
        if (!behind)
            break;
        at = behind;
        if (*at != ' ')
            break;
        at++;
    }
    return at;
}

#if defined(__x86_64__)
/* Converts the index in the lower lane and the value in the upper one together. */
__attribute__((target("avx2,bmi,bmi2"))) const char *sdr_libsvm_avx2(struct sdr_libsvm_scan *scan,
                                                                     const char *at)
{
    /* Row `tail` shifts the digits before the point up by one byte, over it. */
#define BYTE(b, tail) ((b) - ((b) < 17 - (tail)))
#define ROW(tail)                                                                                  \
    {                                                                                              \
        BYTE(0, tail), BYTE(1, tail), BYTE(2, tail), BYTE(3, tail), BYTE(4, tail), BYTE(5, tail),  \
            BYTE(6, tail), BYTE(7, tail), BYTE(8, tail), BYTE(9, tail), BYTE(10, tail),            \
            BYTE(11, tail), BYTE(12, tail), BYTE(13, tail), BYTE(14, tail), BYTE(15, tail)         \
    }
    static const int8_t close_up[16][16] = {ROW(17), ROW(1),  ROW(2),  ROW(3), ROW(4),  ROW(5),
                                            ROW(6),  ROW(7),  ROW(8),  ROW(9), ROW(10), ROW(11),
                                            ROW(12), ROW(13), ROW(14), ROW(15)};
#undef ROW
#undef BYTE
    /* The 16 bytes from `length` on mask all but the last `length` bytes. */
    static const uint8_t keep[32] = {0,    0,    0,    0,    0,    0,    0,    0,
                                     0,    0,    0,    0,    0,    0,    0,    0,
                                     0x0F, 0x0F, 0x0F, 0x0F, 0x0F, 0x0F, 0x0F, 0x0F,
                                     0x0F, 0x0F, 0x0F, 0x0F, 0x0F, 0x0F, 0x0F, 0x0F};
#define LOAD16(from)        _mm_loadu_si128((const __m128i *)(const void *)(from))
#define LANES(lower, upper) _mm256_inserti128_si256(_mm256_castsi128_si256(lower), upper, 1)
    const __m256i shift = _mm256_set1_epi8((char)('0' + 128)), nine = _mm256_set1_epi8(9 - 128);
    const __m256i point = _mm256_set1_epi8('.'), minus = _mm256_set1_epi8('-');
    const __m256i pairs = _mm256_set1_epi16(1 << 8 | 10), fours = _mm256_set1_epi32(1 << 16 | 100);
    const __m256i eights = _mm256_set1_epi32(1 << 16 | 10000);
    struct sdr_libsvm_scan local = *scan;
    if (at - local.begin < BEHIND)
        return at;
    while (local.end - at >= AHEAD) {
        __m256i bytes = _mm256_loadu_si256((const __m256i *)(const void *)at);
        __m256i above = _mm256_cmpgt_epi8(_mm256_sub_epi8(bytes, shift), nine);
        struct ahead ahead = {
            (uint32_t)_mm256_movemask_epi8(above),
            (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(bytes, point)),
            (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(bytes, minus)),
        };
        struct plain plain;
        if (!locate(at, ahead, &plain))
            break;
        const char *end = at + plain.end;
        if (__builtin_expect(*end != ' ', 0) && !ends_entry(*end))
            break;
        __m256i digits = LANES(LOAD16(at + plain.colon - 16), LOAD16(end - 16));
        __m256i mask = LANES(LOAD16(keep + plain.colon), LOAD16(keep + (plain.end - plain.first)));
        __m256i order = LANES(LOAD16(close_up[0]), LOAD16(close_up[plain.tail]));
        digits = _mm256_shuffle_epi8(_mm256_and_si256(digits, mask), order);
        digits = _mm256_madd_epi16(_mm256_maddubs_epi16(digits, pairs), fours);
        digits = _mm256_madd_epi16(_mm256_packus_epi32(digits, digits), eights);
        uint64_t index = (uint64_t)_mm256_extract_epi64(digits, 0) >> 32;
        uint64_t value = (uint64_t)_mm256_extract_epi64(digits, 2);
        if (!store(&local, at, &plain, index, (uint32_t)value * 100000000ull + (value >> 32)))
            break;
        at = end;
        if (*at != ' ')
            break;
        at++;
    }
    *scan = local;
    return at;
#undef LANES
#undef LOAD16
}
#endif

sdr_libsvm_entries *sdr_libsvm_quick(enum sdr_cpu level)
{
#if defined(__x86_64__)
    bool quick =
        level >= SDR_CPU_AVX2 && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    if (quick && level >= SDR_CPU_AVX512 && __builtin_cpu_supports("avx512vbmi") &&
        __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("popcnt"))
        return sdr_libsvm_wide;
    if (quick)
        return sdr_libsvm_avx2;
#endif
    (void)level;
    return entries_portable;
}
