/* Passes over confidences that put them into bins without sorting them. Included once for float and
 * once for double: REAL and OF(name) are defined before.
 *
 * Sums are kept in whole numbers, a confidence as its nearest multiple of 2^-46, so that they are
 * the same in whatever order the rows come and on however many threads. */

#ifndef CHUNK
/* Rows are taken in chunks that stay in the cache, and neighbours are summed apart: a sum cannot be
 * added to before it was stored. 256 rows of a lane fill 64 bits and no more: the confidence takes
 * the lower 55 bits, the count the upper 9. */
#define CHUNK 1024
#define APART 4
#define COUNT_BIT 55

/* Cells are of equal exponent and first bits of 1 - confidence: narrow where networks are confident.
 * One more at each end is for confidence 1 and for confidences too small to tell from 0. */
#define EXPONENTS 53

/* How many bits after the exponent so many cells take; -1 if there is no such number of cells. */
static int cell_bits(int64_t cells)
{
    int bits = 0;
    while (bits < 16 && ((int64_t)EXPONENTS << bits) + 2 < cells) bits++;
    return ((int64_t)EXPONENTS << bits) + 2 == cells ? bits : -1;
}

/* The cell of a confidence, from the least confident to the most. */
ALWAYS_INLINE int32_t cell_of(double confidence, int bits, int32_t cells)
{
    double rest = 1.0 - confidence;
    uint64_t image;
    memcpy(&image, &rest, sizeof image);
    int32_t cell = cells - 2 + ((1023 - EXPONENTS) << bits) - (int32_t)(image >> (52 - bits));
    cell = cell < cells - 1 ? cell : cells - 1;
    return cell > 0 ? cell : 0;
}

/* The bits of 64 + confidence count its multiples of 2^-46; one more for the count. */
ALWAYS_INLINE uint64_t share_of(double confidence)
{
    double shifted = 64.0 + confidence, base = 64.0;
    uint64_t bits, zero;
    memcpy(&bits, &shifted, sizeof bits);
    memcpy(&zero, &base, sizeof zero);
    return bits - zero + ((uint64_t)1 << COUNT_BIT);
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
static void empty_lanes(uint64_t *restrict lanes, int64_t *restrict sums, int64_t width)
{
    for (int lane = 0; lane < APART; lane++)
        for (int64_t s = 0; s < width; s++) {
            uint64_t both = lanes[lane * width + s];
            lanes[lane * width + s] = 0;
            sums[s] += (int64_t)(both >> COUNT_BIT);
            sums[width + s] += (int64_t)((both & (((uint64_t)1 << COUNT_BIT) - 1)) >> 24);
            sums[2 * width + s] += (int64_t)(both & 0xFFFFFF);
        }
}

/* Where the cuts between bins fall.
 *
 * counts: (parts, cells) rows in each cell; ends: (m) the rank after the last of each bin, rising.
 * Cells that hold the first or the last rank of a bin have slot 0: their rows are kept apart; with
 * `wide`, those of the next cell with rows are, too. Other cells lie inside a bin, and have the slot
 * of that bin: bins (m + 1) says whose it is. places: (m) where, among the rows apart in order, each
 * bin ends. needed: (1 + parts) the number of slots, and the rows apart in each part. */
static int place_cuts(const int64_t *counts, const int64_t *ends, int64_t wide, int32_t *slots,
                      int64_t *bins, int64_t *places, int64_t *needed, int64_t parts, int64_t cells,
                      int64_t m)
{
    int64_t start = 0, apart = 0, bin = 0, slot = 0;
    int cut_before = 0;
    for (int64_t part = 0; part < parts; part++) needed[1 + part] = 0;
    for (int64_t cell = 0; cell < cells; cell++) {
        int64_t size = 0;
        for (int64_t part = 0; part < parts; part++) size += counts[part * cells + cell];
        slots[cell] = 0;
        if (size == 0) continue;
        if (bin == m) return SC_INDEX;
        int cut = start == (bin > 0 ? ends[bin - 1] : 0) || ends[bin] <= start + size;
        if (cut || (wide && cut_before)) {
            for (int64_t part = 0; part < parts; part++)
                needed[1 + part] += counts[part * cells + cell];
            for (; bin < m && ends[bin] <= start + size; bin++)
                places[bin] = apart + ends[bin] - start;
            apart += size;
        } else {
            if (slot == 0 || bins[slot] != bin) bins[++slot] = bin;
            slots[cell] = (int32_t)slot;
        }
        cut_before = cut;
        start += size;
    }
    needed[0] = slot + 1;
    return SC_DONE;
}

ALWAYS_INLINE double confidence_of(int64_t key)
{
    double value;
    key >>= 1;
    memcpy(&value, &key, sizeof value);
    return value;
}

/* The first of n rising keys that is not below this one. */
static int64_t first_not_below(const int64_t *keys, int64_t n, int64_t key)
{
    int64_t low = 0;
    while (low < n) {
        int64_t middle = low + (n - low) / 2;
        if (keys[middle] < key)
            low = middle + 1;
        else
            n = middle;
    }
    return low;
}

/* The sums over m bins, out (4, m): confidence, correct ones, least and greatest confidence.
 *
 * keys: (n) the rows apart, in order; places: (m) where among them each bin ends; raw: (parts, 3,
 * 2 slots) sums of the others, and bins: (slots) whose they are. In a group of equal confidence all
 * rows count as the group's mean of correctness, so that a cut may go through it. */
static int sum_bins(const int64_t *keys, const int64_t *places, const int64_t *raw,
                    const int64_t *bins, double *out, int64_t n, int64_t m, int64_t parts,
                    int64_t slots)
{
    int64_t width = 2 * slots, at = 0, correct = 0, slot = 1, first = 0;
    if (!rising(places, m, 1, n, 1)) return SC_INDEX;
    double before = 0.0;
    for (int64_t bin = 0; bin < m; bin++) {
        int64_t last = places[bin], high = 0, low = 0, hits = 0;
        for (int64_t i = first; i < last; i++) {
            uint64_t share = share_of(confidence_of(keys[i]));
            high += (int64_t)((share & (((uint64_t)1 << COUNT_BIT) - 1)) >> 24);
            low += (int64_t)(share & 0xFFFFFF);
        }
        for (; slot < slots && bins[slot] == bin; slot++)
            for (int64_t part = 0; part < parts; part++)
                for (int64_t s = 2 * slot; s < 2 * slot + 2; s++) {
                    const int64_t *sums = raw + 3 * part * width + s;
                    hits += s % 2 ? sums[0] : 0;
                    high += sums[width], low += sums[2 * width];
                }
        /* The group of the row after the bin, or of the last row of all. */
        int64_t key = keys[last < n ? last : n - 1] & ~(int64_t)1;
        int64_t start = at + first_not_below(keys + at, n - at, key);
        int64_t middle = start + first_not_below(keys + start, n - start, key | 1);
        int64_t stop = middle + first_not_below(keys + middle, n - middle, (key | 1) + 1);
        for (; at < start; at++) correct += keys[at] & 1;
        double share = (double)(last - start) / (double)(stop - start);
        double until = (double)correct + share * (double)(stop - middle);
        out[bin] = (double)high * 0x1p-22 + (double)low * 0x1p-46;
        out[m + bin] = (double)hits + (until - before);
        out[2 * m + bin] = confidence_of(keys[first]);
        out[3 * m + bin] = confidence_of(keys[last - 1]);
        before = until, first = last;
    }
    return SC_DONE;
}
#endif

/* Add the number of confidences in every cell to counts (cells). */
static int OF(count_cells)(const REAL *confidence, int64_t *counts, int64_t n, int64_t cells)
{
    int32_t places[CHUNK];
    int bits = cell_bits(cells);
    int32_t *lanes = calloc((size_t)(APART * (cells + 1)), sizeof(int32_t));
    if (lanes == NULL) return SC_NO_MEMORY;
    for (int64_t start = 0; start < n; start += CHUNK) {
        const REAL *restrict c = confidence + start;
        int64_t size = n - start < CHUNK ? n - start : CHUNK;
        for (int64_t i = 0; i < size; i++) places[i] = cell_of((double)c[i], bits, (int32_t)cells);
        for (int64_t i = size; i < CHUNK; i++) places[i] = (int32_t)cells; /* that nobody reads */
        for (int i = 0; i < CHUNK; i += APART)
            for (int lane = 0; lane < APART; lane++) lanes[lane * (cells + 1) + places[i + lane]]++;
    }
    for (int lane = 0; lane < APART; lane++)
        for (int64_t cell = 0; cell < cells; cell++) counts[cell] += lanes[lane * (cells + 1) + cell];
    free(lanes);
    return SC_DONE;
}

/* Add up the samples of each slot; those of slot 0 are written down one by one, too.
 *
 * confidence, correct (n); slot_of_cell (cells); sums (3, width) are added to: for every slot the
 * wrong, then the correct samples; keys (room) gets the bits of a confidence and after them one bit
 * for correctness. */
static int OF(sum_by_cell)(const REAL *confidence, const uint8_t *correct,
                           const int32_t *slot_of_cell, int64_t *sums, int64_t *keys, int64_t n,
                           int64_t cells, int64_t width, int64_t room)
{
    int32_t slots[CHUNK];
    uint64_t shares[CHUNK];
    int64_t found = 0;
    int bits = cell_bits(cells), outside = 0;
    for (int64_t i = 0; i < cells; i++)
        outside |= (slot_of_cell[i] < 0) | (slot_of_cell[i] >= width / 2);
    if (outside) return SC_INDEX;
    uint64_t *lanes = calloc((size_t)(APART * width), sizeof(uint64_t));
    if (lanes == NULL) return SC_NO_MEMORY;
    for (int64_t start = 0; start < n; start += CHUNK) {
        const REAL *restrict c = confidence + start;
        const uint8_t *restrict hit = correct + start;
        int64_t size = n - start < CHUNK ? n - start : CHUNK;
        for (int64_t i = 0; i < size; i++) slots[i] = cell_of((double)c[i], bits, (int32_t)cells);
        for (int64_t i = 0; i < size; i++) shares[i] = share_of((double)c[i]);
        for (int64_t i = 0; i < size; i++) slots[i] = 2 * slot_of_cell[slots[i]] + (hit[i] & 1);
        add_shares(lanes, width, slots, shares, size);
        for (int64_t i = 0; i < size; i++)
            if (slots[i] < 2 && found < room) {
                double positive = (double)c[i] + 0.0;
                int64_t image;
                memcpy(&image, &positive, sizeof image);
                keys[found++] = (int64_t)((uint64_t)image << 1) | (hit[i] & 1);
            }
        empty_lanes(lanes, sums, width);
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
            slots[i] = 2 * (int32_t)(j < bins - 1.0 ? j : bins - 1.0) + (hit[i] & 1);
        }
        for (int64_t i = 0; i < size; i++) shares[i] = share_of((double)c[i]);
        add_shares(lanes, width, slots, shares, size);
        empty_lanes(lanes, sums, width);
    }
    free(lanes);
    return SC_DONE;
}
