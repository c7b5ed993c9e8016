/* Random fields of float32, smoothed by symmetric weights. */
#ifndef SHIFTCAL_FIELD_H
#define SHIFTCAL_FIELD_H
#include "borders.h"

enum { FIELD = 32 }; /* sums that are kept in registers */

/* out[i] = the sum over k of weights[k] * source[i + k step], i < n <= FIELD; weights: (2 r + 1),
 * symmetric. Taps are added from the middle outwards, both sides at once, at every point in that
 * order. */
ALWAYS_INLINE void convolve_block(float *restrict out, int64_t n, const float *source,
                                  int64_t step, const float *weights, int64_t r)
{
    const float *centre = source + r * step;
    float sums[FIELD];
    for (int64_t i = 0; i < n; i++) sums[i] = centre[i] * weights[r];
    for (int64_t k = 1; k <= r; k++) {
        const float *before = centre - k * step, *after = centre + k * step, w = weights[r + k];
        for (int64_t i = 0; i < n; i++) sums[i] += (before[i] + after[i]) * w;
    }
    for (int64_t i = 0; i < n; i++) out[i] = sums[i];
}

static void convolve(float *out, int64_t n, const float *source, int64_t step,
                     const float *weights, int64_t r)
{
    if (n < FIELD) convolve_block(out, n, source, step, weights, r);
    for (int64_t start = 0; n >= FIELD && start < n; start += FIELD) {
        int64_t at = least(start, n - FIELD);
        convolve_block(out + at, FIELD, source + at, step, weights, r);
    }
}

/* How many float32 smooth_field and smooth_rows need to work in. */
static int64_t field_memory(int64_t height, int64_t width, int64_t taps)
{
    return (height + taps - 1) * width + width + taps - 1;
}

/* Convolve every row of a plane with the weights, in place. */
static void smooth_rows(float *field, int64_t height, int64_t width, const float *weights,
                        int64_t taps, int border, float *work)
{
    int64_t r = taps / 2;
    for (int64_t y = 0; r > 0 && y < height; y++) {
        float *row = field + y * width;
        memcpy(work + r, row, (size_t)width * sizeof *row);
        for (int64_t k = 0; k < r; k++) {
            work[k] = row[border_index(k - r, width, border)];
            work[r + width + k] = row[border_index(width + k, width, border)];
        }
        convolve(row, width, work, 1, weights, r);
    }
}

/* The same along both axes, columns first. r may exceed the plane. */
static void smooth_field(float *field, int64_t height, int64_t width, const float *weights,
                         int64_t taps, int border, float *work)
{
    int64_t r = taps / 2;
    for (int64_t y = 0; r > 0 && y < height + 2 * r; y++)
        memcpy(work + y * width, field + border_index(y - r, height, border) * width,
               (size_t)width * sizeof *field);
    if (r > 0) convolve(field, height * width, work, width, weights, r);
    smooth_rows(field, height, width, weights, taps, border, work + (height + 2 * r) * width);
}

/* Uniform noise from numbers first, first + step, ... of a stream. Of each number the halves k
 * give amplitude * ((2 k + 1) / 65536 - 1): the lower one goes to low, the upper one to high. */
static void noise_row(float *restrict low, float *restrict high, int64_t n, uint32_t first,
                      uint32_t step, float amplitude, uint32_t a, uint32_t b)
{
    float scale = amplitude * 0x1p-15f, lowest = amplitude * (float)(0x1p-16 - 1.0);
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits = random_word(first + step * (uint32_t)i, a, b);
        low[i] = (float)(int32_t)(bits & 0xFFFF) * scale + lowest;
        high[i] = (float)(int32_t)(bits >> 16) * scale + lowest;
    }
}
#endif
