/* Vectors of doubles as wide as the registers of the CPU level, loaded from floats. Every operation
   gives the same bits at every level: no fused multiply-add, and one order of summation over
   SDR_DOUBLE_CHAINS chains. */
#ifndef SDR_KERNEL_DOUBLES_H
#define SDR_KERNEL_DOUBLES_H

#include "kernel/lanes.h"

enum { SDR_DOUBLE_CHAINS = 8 };

/* doubles_tail: the first n of DOUBLES floats, 1 ≤ n ≤ DOUBLES; zeros behind them. doubles_sum: the
   sum of SDR_DOUBLE_CHAINS chains in PARTS vectors: chains 4 apart, then 2, then 1. */
#if defined(__AVX512F__)
enum { DOUBLES = 8, PARTS = SDR_DOUBLE_CHAINS / DOUBLES };
typedef __m512d doubles;
SDR_INLINE doubles doubles_all(double x)
{
    return _mm512_set1_pd(x);
}
SDR_INLINE doubles doubles_load(const double *from)
{
    return _mm512_loadu_pd(from);
}
SDR_INLINE void doubles_store(double *to, doubles v)
{
    _mm512_storeu_pd(to, v);
}
SDR_INLINE doubles doubles_floats(const float *from)
{
    return _mm512_cvtps_pd(_mm256_loadu_ps(from));
}
SDR_INLINE doubles doubles_tail(const float *from, uint32_t n)
{
    LANES_READS(float, from, n);
    return _mm512_cvtps_pd(_mm256_maskz_loadu_ps((__mmask8)(0xFFu >> (8 - n)), from));
}
SDR_INLINE double doubles_sum(const doubles *part)
{
    __m256d four =
        _mm256_add_pd(_mm512_castpd512_pd256(part[0]), _mm512_extractf64x4_pd(part[0], 1));
    __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(two) + _mm_cvtsd_f64(_mm_unpackhi_pd(two, two));
}
#elif defined(__AVX2__)
enum { DOUBLES = 4, PARTS = SDR_DOUBLE_CHAINS / DOUBLES };
typedef __m256d doubles;
SDR_INLINE doubles doubles_all(double x)
{
    return _mm256_set1_pd(x);
}
SDR_INLINE doubles doubles_load(const double *from)
{
    return _mm256_loadu_pd(from);
}
SDR_INLINE void doubles_store(double *to, doubles v)
{
    _mm256_storeu_pd(to, v);
}
SDR_INLINE doubles doubles_floats(const float *from)
{
    return _mm256_cvtps_pd(_mm_loadu_ps(from));
}
SDR_INLINE doubles doubles_tail(const float *from, uint32_t n)
{
    static const int32_t mask[8] = {-1, -1, -1, -1, 0, 0, 0, 0};
    LANES_READS(float, from, n);
    return _mm256_cvtps_pd(
        _mm_maskload_ps(from, _mm_loadu_si128((const __m128i *)(const void *)(mask + 4 - n))));
}
SDR_INLINE double doubles_sum(const doubles *part)
{
    __m256d four = _mm256_add_pd(part[0], part[1]);
    __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(two) + _mm_cvtsd_f64(_mm_unpackhi_pd(two, two));
}
#else
enum { DOUBLES = 2, PARTS = SDR_DOUBLE_CHAINS / DOUBLES };
typedef double doubles __attribute__((vector_size(16)));
SDR_INLINE doubles doubles_all(double x)
{
    return (doubles){x, x};
}
SDR_INLINE doubles doubles_load(const double *from)
{
    doubles v;
    memcpy(&v, from, sizeof v);
    return v;
}
SDR_INLINE void doubles_store(double *to, doubles v)
{
    memcpy(to, &v, sizeof v);
}
SDR_INLINE doubles doubles_floats(const float *from)
{
    return (doubles){from[0], from[1]};
}
SDR_INLINE doubles doubles_tail(const float *from, uint32_t n)
{
    return (doubles){from[0], n > 1 ? from[1] : 0.0};
}
SDR_INLINE double doubles_sum(const doubles *part)
{
    doubles two = (part[0] + part[2]) + (part[1] + part[3]);
    return two[0] + two[1];
}
#endif

#endif
