/* Vectors as wide as the registers of the CPU level, for products of matrices. Every operation
   gives the same bits at every level: multiply_add rounds once, with an instruction or without. */
#ifndef SDR_KERNEL_VECTOR_H
#define SDR_KERNEL_VECTOR_H

#include "kernel/lanes.h"

#if defined(__AVX512F__)
enum { WIDE = 16 };
typedef __m512 vector;
typedef __mmask16 tail;
SDR_INLINE tail tail_of(uint32_t n)
{
    return (tail)(0xFFFFu >> (WIDE - n));
}
SDR_INLINE vector load(const float *from)
{
    return _mm512_loadu_ps(from);
}
SDR_INLINE vector load_tail(const float *from, tail t)
{
    LANES_READS(float, from, (uint32_t)__builtin_popcount(t));
    return _mm512_maskz_loadu_ps(t, from);
}
SDR_INLINE void store(float *to, vector v)
{
    _mm512_storeu_ps(to, v);
}
SDR_INLINE void store_tail(float *to, vector v, tail t)
{
    LANES_WRITES(to, v, (uint32_t)__builtin_popcount(t));
    _mm512_mask_storeu_ps(to, t, v);
}
SDR_INLINE vector all(float x)
{
    return _mm512_set1_ps(x);
}
SDR_INLINE vector multiply_add(vector a, vector b, vector c)
{
    return _mm512_fmadd_ps(a, b, c);
}
SDR_INLINE vector larger(vector a, vector b)
{
    return _mm512_max_ps(a, b);
}
SDR_INLINE vector where_equal(vector a, vector b, vector v)
{
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ), v);
}
SDR_INLINE vector where_positive(vector a, vector v)
{
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(a, _mm512_setzero_ps(), _CMP_GT_OQ), v);
}
SDR_INLINE vector not_negative(vector v)
{
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_NLT_UQ), v);
}
#elif defined(__AVX2__)
enum { WIDE = 8 };
typedef __m256 vector;
typedef __m256i tail;
SDR_INLINE tail tail_of(uint32_t n)
{
    static const int32_t mask[2 * WIDE] = {-1, -1, -1, -1, -1, -1, -1, -1};
    return _mm256_loadu_si256((const __m256i *)(const void *)(mask + WIDE - n));
}
SDR_INLINE uint32_t tail_length(tail t)
{
    return (uint32_t)__builtin_popcount((unsigned)_mm256_movemask_ps((__m256)t));
}
SDR_INLINE vector load(const float *from)
{
    return _mm256_loadu_ps(from);
}
SDR_INLINE vector load_tail(const float *from, tail t)
{
    LANES_READS(float, from, tail_length(t));
    return _mm256_maskload_ps(from, t);
}
SDR_INLINE void store(float *to, vector v)
{
    _mm256_storeu_ps(to, v);
}
SDR_INLINE void store_tail(float *to, vector v, tail t)
{
    LANES_WRITES(to, v, tail_length(t));
    _mm256_maskstore_ps(to, t, v);
}
SDR_INLINE vector all(float x)
{
    return _mm256_set1_ps(x);
}
SDR_INLINE vector multiply_add(vector a, vector b, vector c)
{
    return _mm256_fmadd_ps(a, b, c);
}
SDR_INLINE vector larger(vector a, vector b)
{
    return _mm256_max_ps(a, b);
}
SDR_INLINE vector where_equal(vector a, vector b, vector v)
{
    return _mm256_and_ps(_mm256_cmp_ps(a, b, _CMP_EQ_OQ), v);
}
SDR_INLINE vector where_positive(vector a, vector v)
{
    return _mm256_and_ps(_mm256_cmp_ps(a, _mm256_setzero_ps(), _CMP_GT_OQ), v);
}
SDR_INLINE vector not_negative(vector v)
{
    return _mm256_and_ps(_mm256_cmp_ps(v, _mm256_setzero_ps(), _CMP_NLT_UQ), v);
}
#else
enum { WIDE = 4 };
typedef float vector __attribute__((vector_size(16)));
typedef uint32_t tail;
SDR_INLINE tail tail_of(uint32_t n)
{
    return n;
}
SDR_INLINE vector load(const float *from)
{
    vector v;
    memcpy(&v, from, sizeof v);
    return v;
}
SDR_INLINE vector load_tail(const float *from, tail t)
{
    return lanes_load(from, t);
}
SDR_INLINE void store(float *to, vector v)
{
    memcpy(to, &v, sizeof v);
}
SDR_INLINE void store_tail(float *to, vector v, tail t)
{
    lanes_store(to, v, t);
}
SDR_INLINE vector all(float x)
{
    return (vector){x, x, x, x};
}
typedef int32_t vector_bits __attribute__((vector_size(16)));
/* a > b ? a : b */
SDR_INLINE vector larger(vector a, vector b)
{
    vector_bits mask = a > b;
    return (vector)((mask & (vector_bits)a) | (~mask & (vector_bits)b));
}
/* v where it holds, else 0 */
SDR_INLINE vector where_equal(vector a, vector b, vector v)
{
    return (vector)((a == b) & (vector_bits)v);
}
SDR_INLINE vector where_positive(vector a, vector v)
{
    return (vector)((a > 0) & (vector_bits)v);
}
/* max(v, 0) that keeps NaN */
SDR_INLINE vector not_negative(vector v)
{
    return (vector)(~(v < 0) & (vector_bits)v);
}
#if defined(__ARM_NEON)
SDR_INLINE vector multiply_add(vector a, vector b, vector c)
{
    return vfmaq_f32(c, a, b);
}
#else
#define VECTOR_EMULATED
typedef double pair __attribute__((vector_size(16)));
typedef int64_t pair_bits __attribute__((vector_size(16)));
/* a·b + c rounded once, without an instruction for it. The product of two floats is exact in
   double. The sum with c is rounded to odd, so that rounding it again to float is as if it were
   done once (Boldo and Melquiond). */
SDR_INLINE pair odd_sum(pair product, pair c)
{
    pair sum = product + c, back = sum - product;
    pair error = (product - (sum - back)) + (c - back);
    pair_bits bits = (pair_bits)sum;
    /* and the last bit is even; of an infinite sum the error is NaN */
    pair_bits inexact = (pair_bits)((error < 0) | (error > 0)) & ((bits & 1) - 1);
    pair_bits away = (pair_bits)((error > 0) == (sum > 0)) | 1; /* −1: grows, 1: shrinks */
    return (pair)(bits - (inexact & away));
}
SDR_INLINE vector multiply_add(vector a, vector b, vector c)
{
    pair low = odd_sum((pair){a[0], a[1]} * (pair){b[0], b[1]}, (pair){c[0], c[1]});
    pair high = odd_sum((pair){a[2], a[3]} * (pair){b[2], b[3]}, (pair){c[2], c[3]});
    return (vector){(float)low[0], (float)low[1], (float)high[0], (float)high[1]};
}
#endif
#endif

#endif
