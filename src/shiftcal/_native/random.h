/* Random numbers from a counter: any number of a stream, in any order, without state.
 *
 * random_word(i, a, b) is number i of the stream with the key (a, b): the counter is mixed with one
 * half of the key, then with both, by multiply-and-shift finalisers that Wellons found by search
 * (2018). */
#ifndef SHIFTCAL_RANDOM_H
#define SHIFTCAL_RANDOM_H
#include "kernels.h"

/* The key of an image, b in its upper half: the index, in steps of the golden ratio, is added to
 * `start` and mixed (Steele, Lea and Flood, 2014). */
ALWAYS_INLINE uint64_t image_key(uint64_t start, int64_t index)
{
    uint64_t z = start + (uint64_t)index * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static int image_keys(const int64_t *indices, uint64_t start, uint32_t *keys, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint64_t key = image_key(start, indices[i]);
        keys[2 * i] = (uint32_t)key;
        keys[2 * i + 1] = (uint32_t)(key >> 32);
    }
    return SC_DONE;
}

ALWAYS_INLINE uint32_t random_word(uint32_t i, uint32_t a, uint32_t b)
{
    uint32_t x = i + a;
    x ^= x >> 16;
    x *= 0x7FEB352Du;
    x ^= x >> 15;
    x *= 0x846CA68Bu;
    x ^= x >> 16;
    /* With a again: streams that differ in a alone would otherwise be one, shifted. */
    x = (x ^ b) + a;
    x ^= x >> 17;
    x *= 0xED5AD4BBu;
    x ^= x >> 11;
    x *= 0xAC4C1B51u;
    x ^= x >> 15;
    x *= 0x31848BABu;
    return x ^ (x >> 14);
}

/* The same as a float on the 2^24 multiples of 2^-24 in [0, 1). */
ALWAYS_INLINE float random_unit(uint32_t i, uint32_t a, uint32_t b)
{
    return (float)(random_word(i, a, b) >> 8) * (1.0f / 16777216.0f);
}

/* Numbers first .. first + 63 of a stream: random_word, step by step for all of them, since the next
 * step of one number has to wait for the last, and that of another has not. */
enum { WORDS = 64 };

ALWAYS_INLINE void random_block(uint32_t *out, uint32_t first, uint32_t a, uint32_t b)
{
    uint32_t x[WORDS];
    for (uint32_t i = 0; i < WORDS; i++) x[i] = ((first + a + i) ^ ((first + a + i) >> 16)) * 0x7FEB352Du;
    for (int i = 0; i < WORDS; i++) x[i] = (x[i] ^ (x[i] >> 15)) * 0x846CA68Bu;
    for (int i = 0; i < WORDS; i++) x[i] = (x[i] ^ (x[i] >> 16) ^ b) + a;
    for (int i = 0; i < WORDS; i++) x[i] = (x[i] ^ (x[i] >> 17)) * 0xED5AD4BBu;
    for (int i = 0; i < WORDS; i++) x[i] = (x[i] ^ (x[i] >> 11)) * 0xAC4C1B51u;
    for (int i = 0; i < WORDS; i++) x[i] = (x[i] ^ (x[i] >> 15)) * 0x31848BABu;
    for (int i = 0; i < WORDS; i++) out[i] = x[i] ^ (x[i] >> 14);
}

/* Numbers first, first + 1, ... of a stream. */
static void random_words(uint32_t *out, int64_t count, uint32_t first, uint32_t a, uint32_t b)
{
    int64_t i = 0;
    for (; i + WORDS <= count; i += WORDS) random_block(out + i, first + (uint32_t)i, a, b);
    if (i == count) return;
    uint32_t rest[WORDS];
    random_block(rest, first + (uint32_t)i, a, b);
    memcpy(out + i, rest, (size_t)(count - i) * sizeof *rest);
}

/* Tables of normal deviates: 16 random bits choose an entry, and in the tail a second number does.
 * See corruptions/noise.py, which makes them; these constants are those of that file. */
enum { CELL_SHIFT = 29760, TAIL_PLACE = 2976, TAIL_BITS = 12, SLOPE_BITS = 12 };

/* The place in a table of 3,008 entries for 16 random bits, of which the first is the sign. */
ALWAYS_INLINE uint16_t table_place(uint16_t half)
{
    int16_t cell = (int16_t)(half & 0x7FFF), column = (int16_t)(cell >> 4);
    int16_t single = (int16_t)(cell - CELL_SHIFT);
    return (uint16_t)(column > single ? column : single);
}

/* The cell of the tail for the value with this number in its image. */
ALWAYS_INLINE uint32_t tail_cell(uint32_t value, uint32_t a, uint32_t b)
{
    return random_word(0x80000000u + value, a, b) >> (32 - TAIL_BITS);
}
#endif
