/* 2^t for -126 <= t <= 0: a polynomial for the fraction, the exponent by its bits.
 *
 * Exact at zero, where every row has its maximum; elsewhere the relative error is below 1.1e-7 in
 * single and 4.5e-16 in double precision. The coefficients are those of least relative error for
 * 2^f - 1 on [-1/2, 1/2]. Adding 1.5 * 2^23 (2^52 in double) to a whole number puts it into the low
 * bits, from where it moves to the exponent's place. */
#ifndef SHIFTCAL_EXP2_H
#define SHIFTCAL_EXP2_H
#include "kernels.h"

ALWAYS_INLINE float exp2_f4(float t)
{
    float n = floorf(t + 0.5f), f = t - n, shifted = n + 12582912.0f;
    float p = 0.0001559467816132662f;
    p = p * f + 0.0013406643902351759f;
    p = p * f + 0.009617692972993062f;
    p = p * f + 0.05550310551013797f;
    p = p * f + 0.24022652782887738f;
    p = p * f + 0.6931472149680279f;
    p = p * f + 1.0f;
    uint32_t bits, exponent;
    memcpy(&bits, &p, sizeof bits);
    memcpy(&exponent, &shifted, sizeof exponent);
    bits += exponent << 23;
    memcpy(&p, &bits, sizeof p);
    return p;
}

ALWAYS_INLINE double exp2_f8(double t)
{
    double n = floor(t + 0.5), f = t - n, shifted = n + 6755399441055744.0;
    double p = 7.111758687557852e-09;
    p = p * f + 1.0210506458816145e-07;
    p = p * f + 1.321523563477604e-06;
    p = p * f + 1.525264774769592e-05;
    p = p * f + 0.00015403530800818256;
    p = p * f + 0.001333355824648072;
    p = p * f + 0.009618129107380715;
    p = p * f + 0.05550410866434658;
    p = p * f + 0.24022650695910472;
    p = p * f + 0.6931471805599516;
    p = p * f + 1.0;
    uint64_t bits, exponent;
    memcpy(&bits, &p, sizeof bits);
    memcpy(&exponent, &shifted, sizeof exponent);
    bits += exponent << 52;
    memcpy(&p, &bits, sizeof p);
    return p;
}
#endif
