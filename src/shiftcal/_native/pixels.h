/* Red, green and blue of pixels apart and together again: loops over one channel at a time are
 * loops over whole registers. */
#ifndef SHIFTCAL_PIXELS_H
#define SHIFTCAL_PIXELS_H
#include "kernels.h"

enum { RUN = 512 }; /* pixels that are taken apart at a time: the channels stay in the cache */

#if defined(__AVX2__)
#include <immintrin.h>

/* Of 16 pixels in three registers, every channel has five or six bytes in each register, at places
 * that are free in the other two: two choices gather a channel, and one shuffle sorts it. */
ALWAYS_INLINE __m128i every_third(__m128i a, __m128i b, __m128i c)
{
    const __m128i second = _mm_setr_epi8(0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0);
    const __m128i third = _mm_setr_epi8(0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0);
    return _mm_blendv_epi8(_mm_blendv_epi8(a, b, second), c, third);
}

ALWAYS_INLINE void split_16_pixels(uint8_t *r, uint8_t *g, uint8_t *b, const uint8_t *pixels)
{
    const __m128i reds = _mm_setr_epi8(0, 3, 6, 9, 12, 15, 2, 5, 8, 11, 14, 1, 4, 7, 10, 13);
    const __m128i greens = _mm_setr_epi8(1, 4, 7, 10, 13, 0, 3, 6, 9, 12, 15, 2, 5, 8, 11, 14);
    const __m128i blues = _mm_setr_epi8(2, 5, 8, 11, 14, 1, 4, 7, 10, 13, 0, 3, 6, 9, 12, 15);
    __m128i x = _mm_loadu_si128((const __m128i *)pixels);
    __m128i y = _mm_loadu_si128((const __m128i *)(pixels + 16));
    __m128i z = _mm_loadu_si128((const __m128i *)(pixels + 32));
    _mm_storeu_si128((__m128i *)r, _mm_shuffle_epi8(every_third(x, z, y), reds));
    _mm_storeu_si128((__m128i *)g, _mm_shuffle_epi8(every_third(y, x, z), greens));
    _mm_storeu_si128((__m128i *)b, _mm_shuffle_epi8(every_third(z, y, x), blues));
}

ALWAYS_INLINE void join_16_pixels(uint8_t *pixels, const uint8_t *r, const uint8_t *g,
                                  const uint8_t *b)
{
    const __m128i reds = _mm_setr_epi8(0, 11, 6, 1, 12, 7, 2, 13, 8, 3, 14, 9, 4, 15, 10, 5);
    const __m128i greens = _mm_setr_epi8(5, 0, 11, 6, 1, 12, 7, 2, 13, 8, 3, 14, 9, 4, 15, 10);
    const __m128i blues = _mm_setr_epi8(10, 5, 0, 11, 6, 1, 12, 7, 2, 13, 8, 3, 14, 9, 4, 15);
    __m128i x = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)r), reds);
    __m128i y = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)g), greens);
    __m128i z = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)b), blues);
    _mm_storeu_si128((__m128i *)pixels, every_third(x, y, z));
    _mm_storeu_si128((__m128i *)(pixels + 16), every_third(y, z, x));
    _mm_storeu_si128((__m128i *)(pixels + 32), every_third(z, x, y));
}
#else
ALWAYS_INLINE void split_16_pixels(uint8_t *restrict r, uint8_t *restrict g, uint8_t *restrict b,
                                   const uint8_t *restrict pixels)
{
    for (int i = 0; i < 16; i++) r[i] = pixels[3 * i], g[i] = pixels[3 * i + 1], b[i] = pixels[3 * i + 2];
}

ALWAYS_INLINE void join_16_pixels(uint8_t *restrict pixels, const uint8_t *restrict r,
                                  const uint8_t *restrict g, const uint8_t *restrict b)
{
    for (int i = 0; i < 16; i++) pixels[3 * i] = r[i], pixels[3 * i + 1] = g[i], pixels[3 * i + 2] = b[i];
}
#endif

/* The channels of n pixels. */
static void split_pixels(uint8_t *r, uint8_t *g, uint8_t *b, const uint8_t *pixels, int64_t n)
{
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) split_16_pixels(r + i, g + i, b + i, pixels + 3 * i);
    for (; i < n; i++) r[i] = pixels[3 * i], g[i] = pixels[3 * i + 1], b[i] = pixels[3 * i + 2];
}

/* n pixels of these channels. */
static void join_pixels(uint8_t *pixels, const uint8_t *r, const uint8_t *g, const uint8_t *b, int64_t n)
{
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) join_16_pixels(pixels + 3 * i, r + i, g + i, b + i);
    for (; i < n; i++) pixels[3 * i] = r[i], pixels[3 * i + 1] = g[i], pixels[3 * i + 2] = b[i];
}
#endif
