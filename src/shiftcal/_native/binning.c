/* Passes over confidences that put them into bins without sorting them. Included once for float and
 * once for double: REAL and OF(name) are defined before.
 *
 * Sums are kept in whole numbers, a confidence as its nearest multiple of 2^-46, so that they are
 * the same in whatever order the rows come and on however many threads. */

#ifndef CELLS
/* Cells of equal exponent and first bits of 1 - confidence: narrow where networks are confident.
 * One more at each end, for confidence 1 and for confidences too small to tell from 0. */
#define CELL_BITS 8
#define CELLS ((53 << CELL_BITS) + 2)
#define LAST_CELL_BITS (((1023 - 53) << CELL_BITS) - 1)
/* Rows are taken in chunks that stay in the cache, and neighbours are summed apart: a sum cannot be
 * added to before it was stored. 256 rows of a lane fill 64 bits and no more: the confidence takes
 * the lower 55 bits, the count the upper 9. */
#define CHUNK 1024
#define APART 4
#define COUNT_BIT 55

/* The bits of 64 + confidence count its multiples of 2^-46; one more for the count. */
ALWAYS_INLINE uint64_t share_of(double confidence)
{
    double shifted = 64.0 + confidence, base = 64.0;
    uint64_t bits, zero;
    memcpy(&bits, &shifted, sizeof bits);
    memcpy(&zero, &base, sizeof zero);
    return bits - zero + ((uint64_t)1 << COUNT_BIT);
}

/* The cell of a confidence, from the least confident to the most. */
ALWAYS_INLINE int32_t cell_of(double confidence)
{
    double rest = 1.0 - confidence;
    int64_t bits;
    memcpy(&bits, &rest, sizeof bits);
    int64_t cell = CELLS - 1 + LAST_CELL_BITS - (bits >> (52 - CELL_BITS));
    return (int32_t)(cell < CELLS - 1 ? cell : CELLS - 1);
}

/* Add the shares of a chunk to the slots of the lanes. */
static void add_shares(uint64_t *restrict lanes, int64_t stride, const int32_t *restrict slots,
                       const uint64_t *restrict shares, int64_t size)
{
    int64_t i = 0;
    for (; i + APART <= size; i += APART)
        for (int lane = 0; lane < APART; lane++)
            lanes[lane * stride + slots[i + lane]] += shares[i + lane];
    for (; i < size; i++) lanes[slots[i]] += shares[i];
}

/* Add what lanes hold to sums (3, width): counts, and multiples of 2^-22 and of 2^-46. */
static void empty_lanes(uint64_t *restrict lanes, int64_t stride, int64_t *restrict sums,
                        int64_t width)
{
    for (int lane = 0; lane < APART; lane++)
        for (int64_t s = 0; s < stride; s++) {
            uint64_t both = lanes[lane * stride + s];
            lanes[lane * stride + s] = 0;
            if (s >= width) continue;
            sums[s] += (int64_t)(both >> COUNT_BIT);
            sums[width + s] += (int64_t)((both & (((uint64_t)1 << COUNT_BIT) - 1)) >> 24);
            sums[2 * width + s] += (int64_t)(both & 0xFFFFFF);
        }
}
#endif

/* Add the number of confidences in every cell to counts (CELLS). */
static int OF(count_cells)(const REAL *confidence, int64_t *counts, int64_t n)
{
    int32_t cells[CHUNK];
    int32_t *lanes = calloc(APART * (CELLS + 1), sizeof(int32_t));
    if (lanes == NULL) return SC_NO_MEMORY;
    for (int64_t start = 0; start < n; start += CHUNK) {
        const REAL *restrict c = confidence + start;
        int64_t size = n - start < CHUNK ? n - start : CHUNK;
        for (int64_t i = 0; i < size; i++) cells[i] = cell_of((double)c[i]);
        for (int64_t i = size; i < CHUNK; i++) cells[i] = CELLS; /* a cell that nobody reads */
        for (int i = 0; i < CHUNK; i += APART)
            for (int lane = 0; lane < APART; lane++) lanes[lane * (CELLS + 1) + cells[i + lane]]++;
    }
    for (int lane = 0; lane < APART; lane++)
        for (int cell = 0; cell < CELLS; cell++) counts[cell] += lanes[lane * (CELLS + 1) + cell];
    free(lanes);
    return SC_DONE;
}

/* Add up the samples of each of m bins; those of cells without a bin are written down one by one.
 *
 * confidence, correct (n); bin_of_cell (CELLS) in 0 .. m-1, or m for cells without a bin; sums
 * (3, 2 m) are added to: for every bin the wrong, then the correct samples; keys (room) gets the
 * bits of a confidence and after them one bit for correctness. */
static int OF(sum_by_cell)(const REAL *confidence, const uint8_t *correct,
                           const int32_t *bin_of_cell, int64_t *sums, int64_t *keys, int64_t n,
                           int64_t width, int64_t room)
{
    int32_t slots[CHUNK];
    uint64_t shares[CHUNK];
    int64_t stride = width + 2, found = 0;
    uint64_t *lanes = calloc((size_t)(APART * stride), sizeof(uint64_t));
    if (lanes == NULL) return SC_NO_MEMORY;
    for (int64_t start = 0; start < n; start += CHUNK) {
        const REAL *restrict c = confidence + start;
        const uint8_t *restrict hit = correct + start;
        int64_t size = n - start < CHUNK ? n - start : CHUNK;
        for (int64_t i = 0; i < size; i++) slots[i] = cell_of((double)c[i]);
        for (int64_t i = 0; i < size; i++) shares[i] = share_of((double)c[i]);
        for (int64_t i = 0; i < size; i++) slots[i] = 2 * bin_of_cell[slots[i]] + hit[i];
        add_shares(lanes, stride, slots, shares, size);
        for (int64_t i = 0; i < size; i++)
            if (slots[i] >= width && found < room) {
                double positive = (double)c[i] + 0.0;
                int64_t bits;
                memcpy(&bits, &positive, sizeof bits);
                keys[found++] = (int64_t)((uint64_t)bits << 1) | hit[i];
            }
        empty_lanes(lanes, stride, sums, width);
    }
    free(lanes);
    return SC_DONE;
}

/* Add up the samples of each of m bins, j / m < confidence <= (j + 1) / m, the first with 0; sums
 * (3, 2 m) as in sum_by_cell. */
static int OF(sum_by_width)(const REAL *confidence, const uint8_t *correct, int64_t *sums,
                            int64_t n, int64_t width)
{
    int32_t slots[CHUNK];
    uint64_t shares[CHUNK];
    double bins = (double)(width / 2), step = 1.0 / bins;
    /* The first guess is rounded and never too low; the edge then decides, as np.linspace has it. */
    double scale = bins * (1.0 + 0x1p-50);
    uint64_t *lanes = calloc((size_t)(APART * width), sizeof(uint64_t));
    if (lanes == NULL) return SC_NO_MEMORY;
    for (int64_t start = 0; start < n; start += CHUNK) {
        const REAL *restrict c = confidence + start;
        const uint8_t *restrict hit = correct + start;
        int64_t size = n - start < CHUNK ? n - start : CHUNK;
        for (int64_t i = 0; i < size; i++) {
            double value = (double)c[i], j = floor(value * scale);
            j = value <= j * step ? j - 1.0 : j;
            j = j > 0.0 ? j : 0.0;
            slots[i] = 2 * (int32_t)(j < bins - 1.0 ? j : bins - 1.0) + hit[i];
        }
        for (int64_t i = 0; i < size; i++) shares[i] = share_of((double)c[i]);
        add_shares(lanes, width, slots, shares, size);
        empty_lanes(lanes, width, sums, width);
    }
    free(lanes);
    return SC_DONE;
}
