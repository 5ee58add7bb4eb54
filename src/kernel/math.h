/* exp and log that give the same bits on every machine: the C library's choose code by CPU. */
#ifndef SDR_KERNEL_MATH_H
#define SDR_KERNEL_MATH_H

#include <stdint.h>
#include <string.h>

/* 2^(i/64) */
static const double sdr_exp_table[64] = {
    0x1.0000000000000p+0, 0x1.02c9a3e778061p+0, 0x1.059b0d3158574p+0, 0x1.0874518759bc8p+0,
    0x1.0b5586cf9890fp+0, 0x1.0e3ec32d3d1a2p+0, 0x1.11301d0125b51p+0, 0x1.1429aaea92de0p+0,
    0x1.172b83c7d517bp+0, 0x1.1a35beb6fcb75p+0, 0x1.1d4873168b9aap+0, 0x1.2063b88628cd6p+0,
    0x1.2387a6e756238p+0, 0x1.26b4565e27cddp+0, 0x1.29e9df51fdee1p+0, 0x1.2d285a6e4030bp+0,
    0x1.306fe0a31b715p+0, 0x1.33c08b26416ffp+0, 0x1.371a7373aa9cbp+0, 0x1.3a7db34e59ff7p+0,
    0x1.3dea64c123422p+0, 0x1.4160a21f72e2ap+0, 0x1.44e086061892dp+0, 0x1.486a2b5c13cd0p+0,
    0x1.4bfdad5362a27p+0, 0x1.4f9b2769d2ca7p+0, 0x1.5342b569d4f82p+0, 0x1.56f4736b527dap+0,
    0x1.5ab07dd485429p+0, 0x1.5e76f15ad2148p+0, 0x1.6247eb03a5585p+0, 0x1.6623882552225p+0,
    0x1.6a09e667f3bcdp+0, 0x1.6dfb23c651a2fp+0, 0x1.71f75e8ec5f74p+0, 0x1.75feb564267c9p+0,
    0x1.7a11473eb0187p+0, 0x1.7e2f336cf4e62p+0, 0x1.82589994cce13p+0, 0x1.868d99b4492edp+0,
    0x1.8ace5422aa0dbp+0, 0x1.8f1ae99157736p+0, 0x1.93737b0cdc5e5p+0, 0x1.97d829fde4e50p+0,
    0x1.9c49182a3f090p+0, 0x1.a0c667b5de565p+0, 0x1.a5503b23e255dp+0, 0x1.a9e6b5579fdbfp+0,
    0x1.ae89f995ad3adp+0, 0x1.b33a2b84f15fbp+0, 0x1.b7f76f2fb5e47p+0, 0x1.bcc1e904bc1d2p+0,
    0x1.c199bdd85529cp+0, 0x1.c67f12e57d14bp+0, 0x1.cb720dcef9069p+0, 0x1.d072d4a07897cp+0,
    0x1.d5818dcfba487p+0, 0x1.da9e603db3285p+0, 0x1.dfc97337b9b5fp+0, 0x1.e502ee78b3ff6p+0,
    0x1.ea4afa2a490dap+0, 0x1.efa1bee615a27p+0, 0x1.f50765b6e4540p+0, 0x1.fa7c1819e90d8p+0,
};

/* exp(x): x = (64k + i)·ln 2/64 + r, |r| ≤ ln 2/128; table times Taylor to degree 5: relative error
   < 1e-15. Short chains of dependent operations: a step waits for this. */
static inline double sdr_exp(double x)
{
    if (x > 709.0)
        x = 709.0;
    if (!(x >= -708.0))
        return x < -708.0 ? 0.0 : x; /* NaN stays NaN */
    double shifted = x * (64 * 1.4426950408889634) + 6755399441055744.0; /* 1.5·2⁵²: rounds */
    double n = shifted - 6755399441055744.0;
    double r = (x - n * (0.693147180369123816490 / 64)) - n * (1.90821492927058770002e-10 / 64);
    double square = r * r;
    double p = r + square * ((0.5 + r * (1.0 / 6)) + square * (1.0 / 24 + r * (1.0 / 120)));
    int64_t whole = (int64_t)n, bits = ((whole >> 6) + 1023) * ((int64_t)1 << 52);
    double power, step = sdr_exp_table[whole & 63];
    memcpy(&power, &bits, sizeof power);
    return (step + step * p) * power;
}

/* log(x), x > 0 and normal: x = m·2ᵏ with m in [√½, √2), then 2·atanh((m−1)/(m+1)). */
static inline double sdr_log(double x)
{
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int64_t k = (bits - 0x3FE6A09E667F3BCD) >> 52;
    bits -= k * ((int64_t)1 << 52);
    double m;
    memcpy(&m, &bits, sizeof m);
    double s = (m - 1.0) / (m + 1.0), z = s * s, z2 = z * z, z4 = z2 * z2;
    double low = (1.0 + z * (1.0 / 3)) + z2 * (1.0 / 5 + z * (1.0 / 7));
    double middle = (1.0 / 9 + z * (1.0 / 11)) + z2 * (1.0 / 13 + z * (1.0 / 15));
    double high = (1.0 / 17 + z * (1.0 / 19)) + z2 * (1.0 / 21);
    double p = low + z4 * (middle + z4 * high);
    return 2.0 * s * p + (double)k * 0.693147180559945309417;
}

/* log(1 + e) for e = exp(x) already at hand; accurate also where e is tiny or huge. */
static inline double sdr_log1p_of_exp(double x, double e)
{
    if (x > 36.0)
        return x;
    return e < 1e-5 ? e * (1.0 - e * (0.5 - e * (1.0 / 3))) : sdr_log(1.0 + e);
}

#endif
