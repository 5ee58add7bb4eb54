/* The quick reader of LIBSVM text for CPUs with AVX-512 VBMI and VBMI2, 64 bytes at a time.

   Masks give the positions of digits, colons, points, minuses and blanks. Adding the first bits of
   digit runs to the mask of digits carries each bit to the byte after its run, so a few additions
   scan all entries of the block at once:

       830:0.04814 2814:-1.5 37      text
       s  cf m    es   c f m e       start, colon, first digit, middle (point or end), end

   If these positions do not match the text exactly, the block contains something that is not plain,
   and the AVX2 reader takes it. Numbers are converted eight at a time: the up to eight digits
   before an end move to a lane of eight bytes, and three multiplications combine them. */
#include "data/libsvm.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define WIDE                                                                                       \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi,"         \
                          "popcnt")))

/* Positions of a block's entries, as masks of its bytes. */
struct marks {
    uint64_t start, colon, first, middle, end;
};

/* Fills the marks; false if the block contains something that is not plain, or no end of an
   entry. */
WIDE static inline __attribute__((always_inline)) bool mark(__m512i text, __m512i digit,
                                                            struct marks *marks)
{
    uint64_t digits = _mm512_cmple_epu8_mask(digit, _mm512_set1_epi8(9));
    uint64_t blank = _mm512_cmpeq_epi8_mask(text, _mm512_set1_epi8(' '));
    uint64_t line = _mm512_cmpeq_epi8_mask(text, _mm512_set1_epi8('\n'));
    uint64_t colon = _mm512_cmpeq_epi8_mask(text, _mm512_set1_epi8(':'));
    uint64_t point = _mm512_cmpeq_epi8_mask(text, _mm512_set1_epi8('.'));
    uint64_t minus = _mm512_cmpeq_epi8_mask(text, _mm512_set1_epi8('-'));
    line &= -line; /* the first newline ends the row; a blank before it ended the entry */
    uint64_t end = (blank & (line - 1)) | (line & ~(blank << 1));
    if (end == 0)
        return false;
    uint64_t within = ~0ull >> __builtin_clzll(end);
    uint64_t start = (end << 1 | 1) & within;
    uint64_t behind_index = (start + digits) & ~digits;
    uint64_t value = behind_index << 1, negative = value & minus;
    uint64_t first = value + negative; /* skips a minus */
    uint64_t middle = (first + digits) & ~digits, points = middle & point;
    uint64_t fraction = points << 1;
    uint64_t last = (((fraction & digits) + digits) | fraction) & ~digits;
    *marks = (struct marks){start, behind_index, first, middle, end};
    return (((start | first) & ~digits) | (behind_index ^ (colon & within)) |
            (negative ^ (minus & within)) | (points ^ (point & within)) |
            ((last | (middle ^ points)) ^ end)) == 0;
}

/* Converts the `length` (0 … 8) digits before `end` of eight entries; `spread` distributes the
   bytes of both over the lanes. */
WIDE static inline __attribute__((always_inline)) __m512i numbers(__m512i digit, __m512i spread,
                                                                  __m512i end, __m512i length)
{
    const __m512i back = _mm512_set1_epi64(0x0102030405060708); /* 8 … 1 from the first byte on */
    __m512i place = _mm512_sub_epi8(_mm512_permutexvar_epi8(spread, end), back);
    __mmask64 has = _mm512_cmpge_epu8_mask(_mm512_permutexvar_epi8(spread, length), back);
    __m512i d = _mm512_maskz_permutexvar_epi8(has, place, digit);
    d = _mm512_maddubs_epi16(d, _mm512_set1_epi16(1 << 8 | 10));
    d = _mm512_madd_epi16(d, _mm512_set1_epi32(1 << 16 | 100));
    return _mm512_add_epi64(_mm512_mul_epu32(d, _mm512_set1_epi64(10000)),
                            _mm512_srli_epi64(d, 32));
}

WIDE static inline __attribute__((always_inline)) __m512i places(uint64_t mask)
{
    const __m512i all = _mm512_set_epi64(0x3F3E3D3C3B3A3938, 0x3736353433323130, 0x2F2E2D2C2B2A2928,
                                         0x2726252423222120, 0x1F1E1D1C1B1A1918, 0x1716151413121110,
                                         0x0F0E0D0C0B0A0908, 0x0706050403020100);
    return _mm512_maskz_compress_epi8(mask, all);
}

/* Stores the entries of a block; false if a number is too long or an index does not rise. */
WIDE static inline __attribute__((always_inline)) bool store(struct sdr_libsvm_scan *scan,
                                                             __m512i digit,
                                                             const struct marks *marks)
{
    const __m512i eight = _mm512_set_epi64(
        0x0707070707070707, 0x0606060606060606, 0x0505050505050505, 0x0404040404040404,
        0x0303030303030303, 0x0202020202020202, 0x0101010101010101, 0);
    const __m512d low = _mm512_set_pd(1e7, 1e6, 1e5, 1e4, 1e3, 1e2, 1e1, 1e0);
    const __m512d high = _mm512_set1_pd(1e8);
    unsigned count =
        (unsigned)__builtin_popcountll(marks->end); /* at least four bytes each: ≤ 16 */
    __m512i colon = places(marks->colon), middle = places(marks->middle), end = places(marks->end);
    __m512i first = places(marks->first);
    __m512i index_length = _mm512_sub_epi8(colon, places(marks->start));
    __m512i whole_length = _mm512_sub_epi8(middle, first);
    __m512i fraction_length = _mm512_subs_epu8(end, _mm512_add_epi8(middle, _mm512_set1_epi8(1)));
    __m512i longest = _mm512_max_epu8(_mm512_max_epu8(index_length, whole_length), fraction_length);
    __m512i both = _mm512_add_epi8(whole_length, fraction_length);
    if (_mm512_cmpgt_epu8_mask(longest, _mm512_set1_epi8(8)) |
        _mm512_cmpgt_epu8_mask(both, _mm512_set1_epi8(15))) /* below 2^53 */
        return false;
    uint64_t signs = _mm512_cmpgt_epu8_mask(_mm512_sub_epi8(first, colon), _mm512_set1_epi8(1));
    uint32_t *index = scan->index + scan->count;
    float *value = scan->value + scan->count;
    int last = (int)scan->last;
    for (unsigned done = 0; done < count; done += 8, signs >>= 8) {
        __m512i spread = _mm512_add_epi8(eight, _mm512_set1_epi8((char)done));
        __m256i rising = _mm512_cvtepi64_epi32(numbers(digit, spread, colon, index_length));
        __m512i lengths = _mm512_and_epi64(_mm512_permutexvar_epi8(spread, fraction_length),
                                           _mm512_set1_epi64(0xFF));
        __m512d power = _mm512_permutex2var_pd(low, lengths, high);
        __m512d whole = _mm512_cvtepi64_pd(numbers(digit, spread, middle, whole_length));
        __m512d fraction = _mm512_cvtepi64_pd(numbers(digit, spread, end, fraction_length));
        /* Digits and powers are exact, so the quotient is rounded once. */
        __m512d quotient =
            _mm512_div_pd(_mm512_add_pd(_mm512_mul_pd(whole, power), fraction), power);
        quotient = _mm512_mask_xor_pd(quotient, (__mmask8)signs, quotient, _mm512_set1_pd(-0.0));
        _mm256_storeu_ps(value + done, _mm512_cvtpd_ps(quotient));
        _mm256_storeu_si256((__m256i *)(void *)(index + done), rising);
        unsigned here = count - done < 8 ? count - done : 8;
        __m256i before = _mm256_alignr_epi32(rising, _mm256_set1_epi32(last), 7);
        if (_mm256_cmple_epi32_mask(rising, before) & (0xFFu >> (8 - here)))
            return false;
        last = (int)index[done + here - 1];
    }
    scan->last = last;
    scan->count += count;
    return true;
}

/* Numbers are stored eight at a time, up to seven places beyond a block's entries: parse() in
   libsvm.c reserves 64 extra. */
WIDE const char *sdr_libsvm_wide(struct sdr_libsvm_scan *scan, const char *at)
{
    struct sdr_libsvm_scan local = *scan;
    while (local.end - at >= 64) {
        struct marks marks;
        __m512i text = _mm512_loadu_si512(at);
        __m512i digit = _mm512_sub_epi8(text, _mm512_set1_epi8('0'));
        if (!mark(text, digit, &marks) || !store(&local, digit, &marks))
            break;
        at += 63 - __builtin_clzll(marks.end);
        if (*at != '\n')
            at++;
        if (at < local.end && *at == '\n') {
            *scan = local;
            return at;
        }
    }
    *scan = local;
    return sdr_libsvm_avx2(scan, at);
}
#endif
