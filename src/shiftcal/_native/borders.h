/* Small things that the corruption kernels share: numbers within limits, borders, memory. */
#ifndef SHIFTCAL_BORDERS_H
#define SHIFTCAL_BORDERS_H
#include "kernels.h"

ALWAYS_INLINE int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
ALWAYS_INLINE int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
ALWAYS_INLINE int64_t within(int64_t i, int64_t first, int64_t last)
{
    return i < first ? first : i > last ? last : i;
}

/* A grey level: the number, stopped at 0 and 255. Two steps, which are two instructions. */
ALWAYS_INLINE uint8_t level_of(int32_t value)
{
    value = value > 0 ? value : 0;
    value = value < 255 ? value : 255;
    return (uint8_t)value;
}

ALWAYS_INLINE uint8_t level_of_short(int16_t value)
{
    value = value > 0 ? value : 0;
    value = value < 255 ? value : 255;
    return (uint8_t)value;
}

/* What lies beyond the border of an axis of n points: the last point (a a | a b c | c c), the axis
 * mirrored about it (c b | a b c | b a), or mirrored with it (b a | a b c | c b). */
enum { NEAREST, MIRROR, REFLECT };

/* The point in 0 .. n - 1 that stands for point i, which may be any whole number. */
static int64_t border_index(int64_t i, int64_t n, int border)
{
    if (border == NEAREST || n == 1) return within(i, 0, n - 1);
    int64_t period = border == MIRROR ? 2 * n - 2 : 2 * n;
    i %= period;
    i = i < 0 ? i + period : i;
    return i < n ? i : period - i - (border == REFLECT);
}

/* Fill the first and the last `margin` pixels of a row with `width` pixels between them. */
#define PAD_ROW(name, type)                                                                        \
    static void name(type *row, int64_t width, int64_t margin, int border)                         \
    {                                                                                              \
        type *inner = row + 3 * margin;                                                            \
        for (int64_t k = 1; k <= margin; k++) {                                                    \
            const type *left = inner + 3 * border_index(-k, width, border);                        \
            const type *right = inner + 3 * border_index(width - 1 + k, width, border);            \
            for (int c = 0; c < 3; c++) inner[c - 3 * k] = left[c];                                \
            for (int c = 0; c < 3; c++) inner[3 * (width - 1 + k) + c] = right[c];                 \
        }                                                                                          \
    }
PAD_ROW(pad_row_u1, uint8_t)
PAD_ROW(pad_row_u2, uint16_t)

/* Memory for `count` items of so many bytes, aligned for vectors; free_memory gives it back. */
static void *new_memory(int64_t count, size_t bytes)
{
    if (count < 0 || (uint64_t)count > (SIZE_MAX - 128) / bytes) return NULL;
    char *whole = malloc((size_t)count * bytes + 128);
    if (whole == NULL) return NULL;
    size_t gap = 64 - ((uintptr_t)whole & 63);
    whole[gap - 1] = (char)gap;
    return whole + gap;
}

static void free_memory(void *memory)
{
    if (memory) free((char *)memory - ((char *)memory)[-1]);
}
#endif
