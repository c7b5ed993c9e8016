/* Gaussian, shot, impulse and speckle noise on (m, s) values of m images of s values each. */

enum { NOISE_BLOCK = 2048 };

/* The random bits of a block of values: value i takes 16 bits of number i / 2 of the stream, the
 * lower half first. Every platform we build for is little-endian. */
typedef union {
    uint32_t words[NOISE_BLOCK / 2];
    uint16_t halves[NOISE_BLOCK];
} noise_bits;

/* The places in a table of the values with these random bits. */
static void noise_places(uint16_t *restrict places, const uint16_t *restrict halves, int64_t n)
{
    for (int64_t i = 0; i < n; i++) places[i] = table_place(halves[i]);
}

/* Look up the entries at the places, and list the values that are in the tail: one in 1,024. Return
 * how many there are. One at a time: putting registers together from single entries takes longer. */
#define LOOK_UP(name, type)                                                                        \
    static int64_t name(type *restrict found, uint16_t *restrict tail, const type *restrict table, \
                        const uint16_t *restrict places, int64_t n)                                \
    {                                                                                              \
        int64_t count = 0;                                                                         \
        for (int64_t i = 0; i < n; i++) {                                                          \
            found[i] = table[places[i]];                                                           \
            if (places[i] >= TAIL_PLACE) tail[count++] = (uint16_t)i;                              \
        }                                                                                          \
        return count;                                                                              \
    }
LOOK_UP(look_up_u2, uint16_t)
LOOK_UP(look_up_u4, uint32_t)

ALWAYS_INLINE uint8_t moved(uint8_t value, int16_t step, uint16_t half)
{
    /* floor(-y) is ~floor(y), and that is floor(y) with all bits turned over. */
    return level_of_short((int16_t)(value + (step ^ -(int16_t)(half >> 15))));
}

/* Add a whole number of levels to every value, and stop at 0 and 255.
 *
 * steps: entry and cell % 16 give the step, (steps[place] + cell % 16) >> 4; tail: that of the
 * cells of the tail. A step of k levels or more upwards is as likely as one of k + 1 or more
 * downwards: both are the floor of the noise. keys: (m, 2). */
static int add_noise(const uint8_t *images, uint8_t *out, const uint16_t *steps,
                     const int16_t *tail, const uint32_t *keys, int64_t m, int64_t size)
{
    uint16_t places[NOISE_BLOCK], found[NOISE_BLOCK], rares[NOISE_BLOCK];
    noise_bits bits;
    const uint16_t *halves = bits.halves;
    for (int64_t j = 0; j < m; j++) {
        uint32_t a = keys[2 * j], b = keys[2 * j + 1];
        for (int64_t start = 0; start < size; start += NOISE_BLOCK) {
            int64_t n = size - start < NOISE_BLOCK ? size - start : NOISE_BLOCK;
            const uint8_t *restrict values = images + j * size + start;
            uint8_t *restrict result = out + j * size + start;
            random_words(bits.words, (n + 1) / 2, (uint32_t)(start / 2), a, b);
            noise_places(places, halves, n);
            int64_t rare = look_up_u2(found, rares, steps, places, n);
            for (int64_t i = 0; i < n; i++)
                result[i] = moved(values[i], (int16_t)((uint16_t)(found[i] + (halves[i] & 15)) >> 4),
                                  halves[i]);
            for (int64_t r = 0; r < rare; r++) {
                uint16_t i = rares[r];
                result[i] = moved(values[i], tail[tail_cell((uint32_t)(start + i), a, b)],
                                  halves[i]);
            }
        }
    }
    return SC_DONE;
}

/* Replace a value by 0 or 255 where its random number is below the threshold, which is even.
 * Value i takes number i of the stream, whose last bit says which of the two it becomes. */
ALWAYS_INLINE void replace_values(uint8_t *restrict out, const uint8_t *restrict values,
                                  const uint32_t *numbers, int64_t n, uint32_t threshold)
{
    for (int64_t i = 0; i < n; i++) {
        uint8_t value = values[i], other = (uint8_t)numbers[i] & 1;
        other = (uint8_t)-other;
        out[i] = numbers[i] >= threshold ? value : other;
    }
}

static int salt_and_pepper(const uint8_t *images, uint8_t *out, uint32_t threshold,
                           const uint32_t *keys, int64_t m, int64_t size)
{
    uint32_t numbers[WORDS];
    for (int64_t j = 0; j < m; j++) {
        const uint8_t *values = images + j * size;
        uint8_t *result = out + j * size;
        int64_t start = 0;
        for (; start + WORDS <= size; start += WORDS) {
            random_block(numbers, (uint32_t)start, keys[2 * j], keys[2 * j + 1]);
            replace_values(result + start, values + start, numbers, WORDS, threshold);
        }
        random_block(numbers, (uint32_t)start, keys[2 * j], keys[2 * j + 1]);
        replace_values(result + start, values + start, numbers, size - start, threshold);
    }
    return SC_DONE;
}

/* Replace every value by one drawn from the alias table of its level, (256, 256): by level and the
 * first eight bits of number i of the stream. */
static int draw_levels(const uint8_t *images, uint8_t *out, const uint32_t *table,
                       const uint32_t *keys, int64_t m, int64_t size)
{
    uint32_t words[NOISE_BLOCK / 2], entries[NOISE_BLOCK / 2];
    for (int64_t j = 0; j < m; j++) {
        for (int64_t start = 0; start < size; start += NOISE_BLOCK / 2) {
            int64_t n = size - start < NOISE_BLOCK / 2 ? size - start : NOISE_BLOCK / 2;
            const uint8_t *restrict values = images + j * size + start;
            uint8_t *restrict result = out + j * size + start;
            random_words(words, n, (uint32_t)start, keys[2 * j], keys[2 * j + 1]);
            for (int64_t i = 0; i < n; i++)
                entries[i] = table[((uint32_t)values[i] << 8) | (words[i] >> 24)];
            for (int64_t i = 0; i < n; i++) {
                uint32_t own = 0u - ((words[i] & 0xFFFFFF) < (entries[i] >> 8));
                result[i] = (uint8_t)(((words[i] >> 24) & own) | (entries[i] & ~own));
            }
        }
    }
    return SC_DONE;
}

ALWAYS_INLINE uint8_t scaled(uint8_t value, float spread, float deviate, uint16_t half)
{
    float x = (float)value, sign = (float)(1 - (int32_t)((half >> 14) & 2));
    return level_of((int32_t)(x + x * spread * deviate * sign)); /* a floor but for what becomes 0 */
}

/* floor(x + x spread z) for every value, stopped at 0 and 255. table: deviates in units of 2^-17
 * with their slopes in the lower 12 bits; tail: those of the cells of the tail. */
static int scale_noise(const uint8_t *images, uint8_t *out, float spread, const uint32_t *table,
                       const float *tail, const uint32_t *keys, int64_t m, int64_t size)
{
    uint16_t places[NOISE_BLOCK], rares[NOISE_BLOCK];
    noise_bits bits;
    const uint16_t *halves = bits.halves;
    uint32_t found[NOISE_BLOCK];
    for (int64_t j = 0; j < m; j++) {
        uint32_t a = keys[2 * j], b = keys[2 * j + 1];
        for (int64_t start = 0; start < size; start += NOISE_BLOCK) {
            int64_t n = size - start < NOISE_BLOCK ? size - start : NOISE_BLOCK;
            const uint8_t *restrict values = images + j * size + start;
            uint8_t *restrict result = out + j * size + start;
            random_words(bits.words, (n + 1) / 2, (uint32_t)(start / 2), a, b);
            noise_places(places, halves, n);
            int64_t rare = look_up_u4(found, rares, table, places, n);
            for (int64_t i = 0; i < n; i++) {
                uint32_t slope = found[i] & ((1 << SLOPE_BITS) - 1);
                uint32_t along = (slope * (halves[i] & 15)) >> 4;
                float deviate = (float)(int32_t)((found[i] >> SLOPE_BITS) + along) * 0x1p-17f;
                result[i] = scaled(values[i], spread, deviate, halves[i]);
            }
            for (int64_t r = 0; r < rare; r++) {
                uint16_t i = rares[r];
                result[i] = scaled(values[i], spread, tail[tail_cell((uint32_t)(start + i), a, b)],
                                   halves[i]);
            }
        }
    }
    return SC_DONE;
}
