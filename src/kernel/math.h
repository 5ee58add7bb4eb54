/* exp and log with the same bits on every machine; the C library selects code by CPU. */
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

/* exp(x): x = (64k + i)·ln 2/64 + r, |r| ≤ ln 2/128; table value times the Taylor polynomial of
   degree 5: relative error < 1e-15. Short dependency chains, since every step waits for the
   result. */
static inline double sdr_exp(double x)
{
    if (x > 709.0)
        x = 709.0;
    if (!(x >= -708.0))
        return x < -708.0 ? 0.0 : x;                                     /* NaN stays NaN */
    double shifted = x * (64 * 1.4426950408889634) + 6755399441055744.0; /* 1.5·2⁵²: rounds */
    double n = shifted - 6755399441055744.0;
    double r = (x - n * (0.693147180369123816490 / 64)) - n * (1.90821492927058770002e-10 / 64);
    double square = r * r;
    double p = r + square * ((0.5 + r * (1.0 / 6)) + square * (1.0 / 24 + r * (1.0 / 120)));
    int64_t whole = (int64_t)n, bits = ((whole >> 6) + 1023) * ((int64_t)1 << 52);
    double power;
    memcpy(&power, &bits, sizeof power);
    double near = sdr_exp_table[whole & 63] * power; /* ready before p is */
    return near + near * p;
}

/* {c, −log c}: c = 1/m rounded to nine bits, m the middle of [1 + i/64, 1 + (i+1)/64); c = 1
   exactly for i = 0. */
static const double sdr_log_table[64][2] = {
    {0x1.0000000000000p+0, 0x0.0p+0},
    {0x1.f400000000000p-1, 0x1.8492528c8cabfp-6},
    {0x1.ed00000000000p-1, 0x1.35c8bfaa1306bp-5},
    {0x1.e500000000000p-1, 0x1.bbcebfc68f420p-5},
    {0x1.de00000000000p-1, 0x1.1973bd1465567p-4},
    {0x1.d700000000000p-1, 0x1.55e10050e0384p-4},
    {0x1.d100000000000p-1, 0x1.8a6477a91dc29p-4},
    {0x1.ca00000000000p-1, 0x1.c885801bc4b23p-4},
    {0x1.c400000000000p-1, 0x1.fe89139dbd566p-4},
    {0x1.be00000000000p-1, 0x1.1aa2b7e23f72ap-3},
    {0x1.b800000000000p-1, 0x1.365fcb0159016p-3},
    {0x1.b200000000000p-1, 0x1.527e5e4a1b58dp-3},
    {0x1.ac00000000000p-1, 0x1.6f0128b756abcp-3},
    {0x1.a700000000000p-1, 0x1.871213750e994p-3},
    {0x1.a100000000000p-1, 0x1.a454082e6ab05p-3},
    {0x1.9c00000000000p-1, 0x1.bd087383bd8adp-3},
    {0x1.9700000000000p-1, 0x1.d60a17f903515p-3},
    {0x1.9200000000000p-1, 0x1.ef5ade4dcffe6p-3},
    {0x1.8d00000000000p-1, 0x1.047e60cde83b8p-2},
    {0x1.8800000000000p-1, 0x1.1178e8227e47cp-2},
    {0x1.8400000000000p-1, 0x1.1bf99635a6b95p-2},
    {0x1.7f00000000000p-1, 0x1.2941afb186b7cp-2},
    {0x1.7b00000000000p-1, 0x1.3401e12aecba1p-2},
    {0x1.7600000000000p-1, 0x1.419b423d5e8c7p-2},
    {0x1.7200000000000p-1, 0x1.4c9e09e172c3cp-2},
    {0x1.6e00000000000p-1, 0x1.57bf753c8d1fbp-2},
    {0x1.6a00000000000p-1, 0x1.630030b3aac49p-2},
    {0x1.6600000000000p-1, 0x1.6e60ee6af1972p-2},
    {0x1.6200000000000p-1, 0x1.79e26687cfb3ep-2},
    {0x1.5e00000000000p-1, 0x1.85855776dcbfbp-2},
    {0x1.5b00000000000p-1, 0x1.8e55f9b349b83p-2},
    {0x1.5700000000000p-1, 0x1.9a355c33bd6bap-2},
    {0x1.5400000000000p-1, 0x1.a33440224fa79p-2},
    {0x1.5000000000000p-1, 0x1.af5295248cdd0p-2},
    {0x1.4d00000000000p-1, 0x1.b881aa659bc93p-2},
    {0x1.4900000000000p-1, 0x1.c4e19b84723c2p-2},
    {0x1.4600000000000p-1, 0x1.ce42f18064743p-2},
    {0x1.4300000000000p-1, 0x1.d7ba7ad9e7da0p-2},
    {0x1.4000000000000p-1, 0x1.e148a1a2726cep-2},
    {0x1.3d00000000000p-1, 0x1.eaedd2eac990cp-2},
    {0x1.3a00000000000p-1, 0x1.f4aa7ee03192dp-2},
    {0x1.3700000000000p-1, 0x1.fe7f18eb03d3ep-2},
    {0x1.3400000000000p-1, 0x1.04360be7603adp-1},
    {0x1.3100000000000p-1, 0x1.0938fae5d8e9bp-1},
    {0x1.2e00000000000p-1, 0x1.0e4898611cce1p-1},
    {0x1.2b00000000000p-1, 0x1.1365252bf0865p-1},
    {0x1.2900000000000p-1, 0x1.16d4d38c119fap-1},
    {0x1.2600000000000p-1, 0x1.1c07849ae6007p-1},
    {0x1.2300000000000p-1, 0x1.2147dba47a394p-1},
    {0x1.2100000000000p-1, 0x1.24cfce6f80d9ap-1},
    {0x1.1e00000000000p-1, 0x1.2a2786d0ec107p-1},
    {0x1.1c00000000000p-1, 0x1.2dbf557b0df43p-1},
    {0x1.1900000000000p-1, 0x1.332f4314ad796p-1},
    {0x1.1700000000000p-1, 0x1.36d77e9d34fd7p-1},
    {0x1.1500000000000p-1, 0x1.3a86767257111p-1},
    {0x1.1200000000000p-1, 0x1.4019c2125ca93p-1},
    {0x1.1000000000000p-1, 0x1.43d9ff2f923c5p-1},
    {0x1.0e00000000000p-1, 0x1.47a1527e8a2d3p-1},
    {0x1.0b00000000000p-1, 0x1.4d59d43fdaba2p-1},
    {0x1.0900000000000p-1, 0x1.513356667fc57p-1},
    {0x1.0700000000000p-1, 0x1.55144fdbcbd62p-1},
    {0x1.0500000000000p-1, 0x1.58fcddce004c4p-1},
    {0x1.0300000000000p-1, 0x1.5ced1e17c35c5p-1},
    {0x1.0100000000000p-1, 0x1.60e52f45788e3p-1},
};

/* log(x) for normal x > 0: x = m·2ᵏ, c ≈ 1/m from the table, r = mc − 1, |r| ≤ 1/64; Taylor
   polynomial of degree 8: absolute error < 3e-16·(1 + |log x|), also relative for x slightly above
   1. */
static inline double sdr_log(double x)
{
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int64_t k = (bits >> 52) - 1023;
    bits -= k * ((int64_t)1 << 52);
    double m;
    memcpy(&m, &bits, sizeof m);
    const double *entry = sdr_log_table[bits >> 46 & 63];
    double r = m * entry[0] - 1.0, square = r * r;
    double low = (0.5 - r * (1.0 / 3)) + square * (0.25 - r * 0.2);
    double high = (1.0 / 6 - r * (1.0 / 7)) + square * 0.125;
    double p = low + square * square * high;
    return ((double)k * 0.693147180559945309417 + entry[1]) + (r - square * p);
}

/* log(1 + e) for a given e = exp(x); accurate also for tiny and huge e. */
static inline double sdr_log1p_of_exp(double x, double e)
{
    if (x > 36.0)
        return x;
    return e < 1e-5 ? e * (1.0 - e * (0.5 - e * (1.0 / 3))) : sdr_log(1.0 + e);
}

#endif
