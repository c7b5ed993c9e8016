/* Rows and columns of 8 x 8 bytes exchanged. */
#ifndef SHIFTCAL_TRANSPOSE_H
#define SHIFTCAL_TRANSPOSE_H
#include "kernels.h"

#if defined(__SSE2__) || defined(_M_X64)
#include <emmintrin.h>

/* Byte j of row i, at in[i], becomes byte i of row j, at out[j]. All rows are read first. */
ALWAYS_INLINE void transpose_rows(uint8_t *const *out, const uint8_t *const *in)
{
    __m128i pairs[4], fours[4];
    for (int i = 0; i < 4; i++)
        pairs[i] = _mm_unpacklo_epi8(_mm_loadl_epi64((const __m128i *)in[2 * i]),
                                     _mm_loadl_epi64((const __m128i *)in[2 * i + 1]));
    for (int i = 0; i < 2; i++) {
        fours[2 * i] = _mm_unpacklo_epi16(pairs[2 * i], pairs[2 * i + 1]);
        fours[2 * i + 1] = _mm_unpackhi_epi16(pairs[2 * i], pairs[2 * i + 1]);
    }
    for (int i = 0; i < 2; i++) {
        __m128i low = _mm_unpacklo_epi32(fours[i], fours[i + 2]);
        __m128i high = _mm_unpackhi_epi32(fours[i], fours[i + 2]);
        _mm_storel_epi64((__m128i *)out[4 * i], low);
        _mm_storel_epi64((__m128i *)out[4 * i + 1], _mm_unpackhi_epi64(low, low));
        _mm_storel_epi64((__m128i *)out[4 * i + 2], high);
        _mm_storel_epi64((__m128i *)out[4 * i + 3], _mm_unpackhi_epi64(high, high));
    }
}
#else
ALWAYS_INLINE void swap_parts(uint64_t *a, uint64_t *b, int bits, uint64_t mask)
{
    uint64_t change = ((*a >> bits) ^ *b) & mask;
    *b ^= change;
    *a ^= change << bits;
}

ALWAYS_INLINE void transpose_rows(uint8_t *const *out, const uint8_t *const *in)
{
    uint64_t rows[8];
    for (int i = 0; i < 8; i++) memcpy(rows + i, in[i], 8);
    for (int i = 0; i < 4; i++) swap_parts(rows + i, rows + i + 4, 32, 0x00000000FFFFFFFFu);
    for (int i = 0; i < 8; i += i & 1 ? 3 : 1)
        swap_parts(rows + i, rows + i + 2, 16, 0x0000FFFF0000FFFFu);
    for (int i = 0; i < 8; i += 2) swap_parts(rows + i, rows + i + 1, 8, 0x00FF00FF00FF00FFu);
    for (int i = 0; i < 8; i++) memcpy(out[i], rows + i, 8);
}
#endif

/* Write in[stride * i + j] to out[out_stride * j + i]; i and j go from 0 to 7. */
ALWAYS_INLINE void transpose_block(uint8_t *out, int64_t out_stride, const uint8_t *in,
                                   int64_t stride)
{
    uint8_t *to[8];
    const uint8_t *from[8];
    for (int i = 0; i < 8; i++) to[i] = out + i * out_stride, from[i] = in + i * stride;
    transpose_rows(to, from);
}
#endif
