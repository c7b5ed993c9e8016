/* Weighted sums in 16-bit fixed point.
 *
 * The upper half of a product of two 16-bit numbers is one instruction for a whole register. The
 * result is a whole number, the same on every machine. */
#ifndef SHIFTCAL_FIXED_POINT_H
#define SHIFTCAL_FIXED_POINT_H
#include "borders.h"

/* Sums of so many values are kept in registers; rows of 32, 64 and 224 pixels are whole blocks. */
enum { SUMS = 96 };

ALWAYS_INLINE uint16_t upper_half(uint16_t a, uint16_t b)
{
    return (uint16_t)((uint32_t)a * b >> 16);
}

/* A symmetric kernel of 2 radius + 1 weights that sum to 2^16, from the centre outwards: that of
 * the centre in units of 2^-16, those of the pairs in units of 2^-17. bias: what is added to sums
 * down the columns and along the rows, since every product is cut to a whole number. */
typedef struct {
    const uint16_t *weights, *bias;
    int64_t radius;
    int border;
} smoothing;

/* sums[i] = bias + the sum over k of (centre[i - k step] + centre[i + k step]) weights[k] >> 16,
 * each term cut by itself; k runs from 0, so that the centre counts twice. */
ALWAYS_INLINE void weigh_block(uint16_t *restrict sums, int64_t n, const uint16_t *centre,
                               int64_t step, const uint16_t *weights, int64_t radius, uint16_t bias)
{
    for (int64_t i = 0; i < n; i++) sums[i] = bias;
    for (int64_t k = 0; k <= radius; k++) {
        const uint16_t *before = centre - k * step, *after = centre + k * step, w = weights[k];
        for (int64_t i = 0; i < n; i++)
            sums[i] = (uint16_t)(sums[i] + upper_half((uint16_t)(before[i] + after[i]), w));
    }
}

/* Call the inlined function `block` as block(at, n, ...) so that blocks of n values from `at` on
 * cover 0 .. size - 1. All are of SUMS values, a number that the compiler knows; the last overlaps
 * the one before it, and is shorter only where it is the only one. */
#define IN_BLOCKS(size, block, ...)                                                                \
    for (int64_t at_ = 0; at_ < (size); at_ += SUMS)                                               \
        if ((size) < SUMS)                                                                         \
            block(0, size, __VA_ARGS__);                                                           \
        else                                                                                       \
            block(least(at_, (size)-SUMS), SUMS, __VA_ARGS__)

enum { BAND = 16 }; /* rows smoothed down the columns before they are along the rows */

/* What smooth_band needs to work in, in uint16. */
static int64_t band_memory(int64_t width, int64_t radius) { return BAND * 3 * (width + 2 * radius); }

ALWAYS_INLINE void smooth_down(int64_t at, int64_t n, uint16_t *work, int64_t padded,
                               const uint16_t *plane, int64_t rows, int64_t size,
                               const smoothing *s)
{
    for (int64_t y = 0; y < rows; y++) {
        uint16_t sums[SUMS], *restrict to = work + y * padded + 3 * s->radius + at;
        weigh_block(sums, n, plane + (y + s->radius) * size + at, size, s->weights, s->radius,
                    s->bias[0]);
        for (int64_t i = 0; i < n; i++) to[i] = sums[i] >> 1;
    }
}

ALWAYS_INLINE void smooth_along(int64_t at, int64_t n, uint8_t *image, const uint16_t *row,
                                const smoothing *s, const uint16_t *extra, uint16_t below)
{
    uint16_t sums[SUMS];
    uint8_t *restrict to = image + at;
    weigh_block(sums, n, row + 3 * s->radius + at, 3, s->weights, s->radius, s->bias[1]);
    if (extra == NULL)
        for (int64_t i = 0; i < n; i++) to[i] = (uint8_t)(sums[i] >> 8);
    else
        for (int64_t i = 0; i < n; i++) {
            uint16_t total = (uint16_t)((sums[i] >> 1) + extra[at + i]);
            total = (uint16_t)((total > below ? total - below : 0) >> 7);
            to[i] = (uint8_t)(total < 255 ? total : 255);
        }
}

/* Smooth `rows` rows of `width` pixels: down the columns into work, which is padded, and along the
 * rows into image. plane: uint16 in multiples of 1/128 of a level; begins `radius` rows above. If
 * extra is not NULL, extra - below is added to the result in the plane's unit. */
static void smooth_band(uint8_t *image, const uint16_t *plane, int64_t rows, int64_t width,
                        const smoothing *s, uint16_t *work, const uint16_t *extra, uint16_t below)
{
    int64_t size = 3 * width, padded = size + 6 * s->radius;
    IN_BLOCKS(size, smooth_down, work, padded, plane, rows, size, s);
    for (int64_t y = 0; y < rows; y++) {
        pad_row_u2(work + y * padded, width, s->radius, s->border);
        IN_BLOCKS(size, smooth_along, image + y * size, work + y * padded, s,
                  extra ? extra + y * size : NULL, below);
    }
}

/* A symmetric kernel of three by three pixels by the differences from the centre:
 * x + edge (sum of the 4 nearest - 4 x) + corner (sum of the 4 diagonal ones - 4 x), cut to whole
 * levels. Where a kernel is all but a single point, the sign of a very small difference decides
 * between two levels, and here it is exact.
 *
 * weights: edge and corner in units of 2^-22, with which a sum of differences fits 32 bits; 2^-12
 * of a level is added, more than their rounding can take from a sum. framed: uint8 to work in, room
 * for the image with one more pixel on each side. */
static void weigh_neighbours(uint8_t *out, const uint8_t *image, int64_t height, int64_t width,
                             const int32_t *weights, int border, uint8_t *framed)
{
    int64_t size = 3 * width, padded = size + 6;
    int32_t edge = weights[0], corner = weights[1];
    for (int64_t y = -1; y <= height; y++) {
        uint8_t *row = framed + (y + 1) * padded;
        memcpy(row + 3, image + border_index(y, height, border) * size, (size_t)size);
        pad_row_u1(row, width, 1, border);
    }
    for (int64_t y = 0; y < height; y++) {
        const uint8_t *above = framed + y * padded, *line = above + padded, *below = line + padded;
        uint8_t *restrict to = out + y * size;
        for (int64_t i = 0; i < size; i++) {
            int16_t four = (int16_t)(4 * line[i + 3]);
            int16_t near = (int16_t)(above[i + 3] + line[i] + line[i + 6] + below[i + 3] - four);
            int16_t far = (int16_t)(above[i] + above[i + 6] + below[i] + below[i + 6] - four);
            int32_t change = near * edge + far * corner + (1 << 10);
            to[i] = (uint8_t)(line[i + 3] + (change >> 22));
        }
    }
}
#endif
