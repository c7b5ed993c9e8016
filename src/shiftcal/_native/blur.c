/* Defocus, glass, motion, zoom and Gaussian blur on m images of height x width pixels. */

/* ---- small kernels and Gaussians ------------------------------------------------------------ */

/* Apply a symmetric kernel of three by three pixels; see weigh_neighbours. */
static int weigh_images(const uint8_t *images, uint8_t *out, const int32_t *weights, int border,
                        int64_t m, int64_t height, int64_t width)
{
    int64_t size = 3 * height * width;
    uint8_t *framed = new_memory((height + 2) * 3 * (width + 2), 1);
    if (framed == NULL) return SC_NO_MEMORY;
    for (int64_t j = 0; j < m; j++)
        weigh_neighbours(out + j * size, images + j * size, height, width, weights, border, framed);
    free_memory(framed);
    return SC_DONE;
}

/* What smooth_image needs to work in, in uint16. */
static int64_t smooth_memory(int64_t height, int64_t width, int64_t radius)
{
    return (height + 2 * radius) * 3 * width + band_memory(width, radius);
}

/* Smooth an image by columns and rows. */
static void smooth_image(uint8_t *out, const uint8_t *image, int64_t height, int64_t width,
                         const smoothing *s, uint16_t *work)
{
    int64_t size = 3 * width;
    uint16_t *plane = work + band_memory(width, s->radius);
    for (int64_t y = -s->radius; y < height + s->radius; y++) {
        const uint8_t *from = image + border_index(y, height, s->border) * size;
        uint16_t *restrict to = plane + (y + s->radius) * size;
        for (int64_t i = 0; i < size; i++) to[i] = (uint16_t)(from[i] << 7);
    }
    for (int64_t top = 0; top < height; top += BAND)
        smooth_band(out + top * size, plane + top * size, least(BAND, height - top), width, s, work,
                    NULL, 0);
}

/* Smooth images by columns and rows; the last pixel is repeated beyond an edge. */
static int blur_images(const uint8_t *images, uint8_t *out, const smoothing *s, int64_t m,
                       int64_t height, int64_t width)
{
    int64_t size = 3 * height * width;
    uint16_t *work = new_memory(smooth_memory(height, width, s->radius), sizeof *work);
    if (work == NULL) return SC_NO_MEMORY;
    for (int64_t j = 0; j < m; j++)
        smooth_image(out + j * size, images + j * size, height, width, s, work);
    free_memory(work);
    return SC_DONE;
}

/* ---- means over a disk around every pixel, from running sums down the columns ---------------- */

/* A disk is a set of columns, and the sum over a column is the difference of two running sums,
 * exact modulo 2^16. Columns whose height occurs four times or more, the middle one apart, are
 * taken from a line in which the difference was made once.
 *
 * The running sums are those of the image padded by reach + 1 pixels, by margin more above and
 * below: line t + 1 is the sum of the rows up to t, line 0 is 0. */
enum { MOST_REACH = 10, MOST_COLUMNS = 2 * MOST_REACH + 1 };

typedef struct {
    int64_t height, width, margin, reach, stride;
    const int64_t *half_heights; /* of the columns -reach .. reach */
    int64_t multiple, factor;    /* a mean is sum * multiple * factor >> 16, in 1/128 of a level; */
                                 /* where multiple is 0 the sum is too large, and is halved */
    int64_t half, weight;        /* see disk_spill; half is 0 where nothing is spilt */
    int alone[MOST_COLUMNS];     /* the columns that are taken one by one, */
    int beside[MOST_COLUMNS];    /* the others, */
    int line[MOST_COLUMNS];      /* the line that each of those is in, */
    int64_t tall[MOST_COLUMNS];  /* and the half height that a line is made of */
    int singles, others, lines;
} disk;

static void sort_columns(disk *d)
{
    d->singles = d->others = d->lines = 0;
    for (int c = 0; c <= 2 * d->reach; c++) {
        int64_t tall = d->half_heights[c];
        int equal = 0, line = 0;
        for (int e = 0; e <= 2 * d->reach; e++) equal += d->half_heights[e] == tall;
        if (equal < 4 || c == d->reach) {
            d->alone[d->singles++] = c;
            continue;
        }
        while (line < d->lines && d->tall[line] != tall) line++;
        if (line == d->lines) d->tall[d->lines++] = tall;
        d->line[d->others] = line;
        d->beside[d->others++] = c;
    }
}

/* Line t + 1 of the running sums. */
static void add_row(uint16_t *running, const uint8_t *image, int64_t t, const disk *d)
{
    int64_t border = d->reach + 1, size = 3 * d->width;
    const uint8_t *row = image + border_index(t - border - d->margin, d->height, MIRROR) * size;
    const uint16_t *above = running + t * d->stride + 3 * border;
    uint16_t *restrict line = running + (t + 1) * d->stride;
    for (int64_t i = 0; i < size; i++) line[3 * border + i] = (uint16_t)(above[i] + row[i]);
    pad_row_u2(line, d->width, border, MIRROR);
}

ALWAYS_INLINE void means_block(int64_t at, int64_t n, uint16_t *means, const uint16_t *running,
                               const disk *d, const uint16_t *lines)
{
    uint16_t sums[SUMS], others[SUMS], *restrict to = means + at;
    uint16_t multiple = (uint16_t)d->multiple, factor = (uint16_t)d->factor;
    for (int64_t i = 0; i < n; i++) sums[i] = others[i] = 0;
    for (int k = 0; k < d->singles; k++) {
        int64_t tall = d->half_heights[d->alone[k]], x = 3 * (d->alone[k] + 1) + at;
        const uint16_t *end = running + (d->reach + 2 + tall) * d->stride + x;
        const uint16_t *start = running + (d->reach + 1 - tall) * d->stride + x;
        for (int64_t i = 0; i < n; i++) sums[i] = (uint16_t)(sums[i] + end[i] - start[i]);
    }
    for (int k = 0; k < d->others; k++) {
        const uint16_t *line = lines + d->line[k] * d->stride + 3 * (d->beside[k] + 1) + at;
        for (int64_t i = 0; i < n; i++) others[i] = (uint16_t)(others[i] + line[i]);
    }
    if (multiple)
        for (int64_t i = 0; i < n; i++)
            to[i] = upper_half((uint16_t)((uint32_t)(sums[i] + others[i]) * multiple), factor);
    else
        for (int64_t i = 0; i < n; i++)
            to[i] = upper_half((uint16_t)((sums[i] >> 1) + (others[i] >> 1)), factor);
}

/* The means of a row. running: from the line above the row's disks; lines: room for d->lines. */
static void disk_means(uint16_t *means, const uint16_t *running, const disk *d, uint16_t *lines)
{
    for (int g = 0; g < d->lines; g++) {
        const uint16_t *end = running + (d->reach + 2 + d->tall[g]) * d->stride;
        const uint16_t *start = running + (d->reach + 1 - d->tall[g]) * d->stride;
        uint16_t *restrict line = lines + g * d->stride;
        for (int64_t i = 0; i < d->stride; i++) line[i] = (uint16_t)(end[i] - start[i]);
    }
    IN_BLOCKS(3 * d->width, means_block, means, running, d, lines);
}

/* What a smoothed disk gains where it touches the edge of the grid it is drawn on.
 *
 * The smoothing reflects the kernel about its outermost rows and columns, so that each of the four
 * has the row or column next to it, of 2 half + 1 pixels, added once more, at the weight of a
 * neighbour in the smoothing; and what the smoothing would have put outside the grid, of the disk's
 * four outermost pixels, is missing. Both are taken as they are, not smoothed along the edge: a
 * difference of at most a quarter of a level on any image, and of a hundredth on photographs. */
enum { BELOW = 1020 }; /* four pixels of 255: added to a sum that may be as far below 0 */

ALWAYS_INLINE void reflect_block(int64_t at, int64_t n, uint16_t *reflected, const uint16_t *above,
                                 const disk *d)
{
    uint16_t sums[SUMS];
    for (int64_t i = 0; i < n; i++) sums[i] = 0;
    for (int64_t k = -d->half; k <= d->half; k++) {
        const uint16_t *start = above + 3 * k + at, *end = start + d->stride;
        for (int64_t i = 0; i < n; i++) sums[i] = (uint16_t)(sums[i] + end[i] - start[i]);
    }
    memcpy(reflected + at, sums, (size_t)n * sizeof *sums);
}

/* The sums over 2 half + 1 pixels around each of padded row t. */
static void disk_reflect(uint16_t *reflected, const uint16_t *running, int64_t t, const disk *d)
{
    const uint16_t *above = running + t * d->stride + 3 * (d->reach + 1);
    IN_BLOCKS(3 * d->width, reflect_block, reflected, above, d);
}

/* What a row gains, in multiples of 1/128, with that of BELOW on top. running: from the line above
 * the row's disks; reflected: the rows of disk_reflect from the same line. */
static void disk_spill(uint16_t *out, const uint16_t *running, const uint16_t *reflected,
                       const disk *d)
{
    int64_t stride = d->stride, reach = d->reach, size = 3 * d->width;
    const uint16_t *centre = running + (reach + 1) * stride + 3 * (reach + 1);
    const uint16_t *left = centre - 3 * reach, *right = centre + 3 * reach;
    int64_t end = (d->half + 1) * stride, start = -d->half * stride;
    /* Subtracted: the pixels beyond the ends of the disk's middle row and column. */
    const uint16_t *up = centre - (reach + 1) * stride, *down = centre + (reach + 1) * stride;
    const uint16_t *before = left - 3, *after = right + 3;
    const uint16_t *above = reflected + size, *below = reflected + (2 * reach + 1) * size;
    uint16_t weight = (uint16_t)d->weight;
    INDEPENDENT
    for (int64_t i = 0; i < size; i++) {
        uint16_t sides = (uint16_t)(left[end + i] - left[start + i] + right[end + i] -
                                    right[start + i]);
        uint16_t ends = (uint16_t)(up[stride + i] - up[i] + down[stride + i] - down[i] +
                                   before[stride + i] - before[i] + after[stride + i] - after[i]);
        uint16_t total = (uint16_t)(sides - ends + above[i] + below[i] + BELOW);
        out[i] = upper_half((uint16_t)(total << 2), weight);
    }
}

/* The means over a disk, smoothed by s, whose radius is d->margin. */
static int disk_images(const uint8_t *images, uint8_t *out, disk *d, const smoothing *s, int64_t m)
{
    int64_t height = d->height, size = 3 * d->width, margin = d->margin, spills = d->half > 0;
    int64_t below = 2 * (d->reach + 1), lines = height + 2 * margin + below;
    d->stride = size + 6 * (d->reach + 1);
    sort_columns(d);
    int64_t sums = (lines + 1) * d->stride, rows = height + 2 * margin;
    uint16_t *running = new_memory(sums + d->lines * d->stride + rows * size +
                                       spills * (lines + BAND) * size +
                                       band_memory(d->width, margin),
                                   sizeof *running);
    if (running == NULL) return SC_NO_MEMORY;
    uint16_t *shared = running + sums, *means = shared + d->lines * d->stride;
    uint16_t *reflected = means + rows * size, *spilt = reflected + spills * lines * size;
    uint16_t *work = spilt + spills * BAND * size;
    memset(running, 0, (size_t)d->stride * sizeof *running);
    for (int64_t j = 0; j < m; j++) {
        const uint8_t *image = images + j * height * size;
        uint8_t *result = out + j * height * size;
        int64_t known = 0, done = 0;
        for (int64_t top = 0; top < height; top += BAND) {
            int64_t band = least(BAND, height - top);
            for (; done < top + band + 2 * margin; done++) {
                for (; known < done + 1 + below; known++) {
                    add_row(running, image, known, d);
                    if (spills) disk_reflect(reflected + known * size, running, known, d);
                }
                disk_means(means + done * size, running + done * d->stride, d, shared);
            }
            if (margin == 0) {
                const uint16_t *from = means + top * size;
                uint8_t *restrict to = result + top * size;
                for (int64_t i = 0; i < band * size; i++) to[i] = (uint8_t)(from[i] >> 7);
                continue;
            }
            for (int64_t y = top + margin; spills && y < top + margin + band; y++)
                disk_spill(spilt + (y - top - margin) * size, running + y * d->stride,
                           reflected + y * size, d);
            smooth_band(result + top * size, means + top * size, band, d->width, s, work,
                        spills ? spilt : NULL, (uint16_t)(BELOW * 4 * d->weight >> 16));
        }
    }
    free_memory(running);
    return SC_DONE;
}

/* ---- pixels that move to their neighbours, between two blurs --------------------------------- */

/* One pass from the last pixel to the first: each becomes a copy of one near it. What was copied
 * stays where it is, and a pixel further on may copy a copy. Number (t height + y) width + x of the
 * stream displaces pixel (y, x) in pass t: its lower 16 bits v give dx = (2 distance v >> 16) -
 * distance, the upper ones dy. */
static void displace(uint32_t *pixels, int64_t height, int64_t width, int64_t distance, int64_t t,
                     const uint32_t *key, uint32_t *restrict steps)
{
    uint32_t span = (uint32_t)(2 * distance), across = (uint32_t)width, a = key[0], b = key[1];
    for (int64_t y = height - distance; y > distance; y--) {
        uint32_t first = ((uint32_t)t * (uint32_t)height + (uint32_t)y) * across;
        random_words(steps, width, first, a, b);
        for (int64_t x = 0; x < width; x++)
            steps[x] = ((steps[x] >> 16) * span >> 16) * across + ((steps[x] & 0xFFFF) * span >> 16);
        int64_t corner = (y - distance) * width - distance;
        for (int64_t x = width - distance; x > distance; x--)
            pixels[y * width + x] = pixels[corner + x + steps[x]];
    }
}

/* Blur, displace pixels, blur again. s and neighbours are the same Gaussian; the latter is used
 * where its radius is 1, and nothing where it is 0. */
static int glass_images(const uint8_t *images, uint8_t *out, const smoothing *s,
                        const int32_t *neighbours, int64_t distance, int64_t passes,
                        const uint32_t *keys, int64_t m, int64_t height, int64_t width)
{
    int64_t count = height * width;
    uint8_t *still = new_memory(3 * count, 1);
    uint8_t *framed = new_memory((height + 2) * 3 * (width + 2), 1);
    uint16_t *work = new_memory(smooth_memory(height, width, s->radius), sizeof *work);
    uint32_t *pixels = new_memory(count + width, sizeof *pixels);
    int result = still && framed && work && pixels ? SC_DONE : SC_NO_MEMORY;
    for (int64_t j = 0; result == SC_DONE && j < m; j++) {
        const uint8_t *from = images + 3 * j * count;
        uint8_t *to = out + 3 * j * count;
        if (s->radius == 1)
            weigh_neighbours(still, from, height, width, neighbours, NEAREST, framed);
        else if (s->radius > 1)
            smooth_image(still, from, height, width, s, work);
        if (s->radius > 0) from = still;
        for (int64_t i = 0; i < count; i++)
            pixels[i] = from[3 * i] | (uint32_t)from[3 * i + 1] << 8 |
                        (uint32_t)from[3 * i + 2] << 16;
        for (int64_t t = 0; t < passes; t++)
            displace(pixels, height, width, distance, t, keys + 2 * j, pixels + count);
        uint8_t *restrict moved = s->radius > 0 ? still : to;
        for (int64_t i = 0; i < count; i++) {
            moved[3 * i] = (uint8_t)pixels[i];
            moved[3 * i + 1] = (uint8_t)(pixels[i] >> 8);
            moved[3 * i + 2] = (uint8_t)(pixels[i] >> 16);
        }
        if (s->radius == 1)
            weigh_neighbours(to, still, height, width, neighbours, NEAREST, framed);
        else if (s->radius > 1)
            smooth_image(to, still, height, width, s, work);
    }
    free_memory(still);
    free_memory(framed);
    free_memory(work);
    free_memory(pixels);
    return result;
}

/* ---- weighted sums along a line --------------------------------------------------------------- */

enum { MOST_TAPS = 512 };

/* sums[i] += w[0] * t[0][i] + ... + w[3] * t[3][i], and the same of eight taps, added in pairs. */
static void add_four_taps(float *sums, int64_t n, const float *const *t, const float *w)
{
    const float *t0 = t[0], *t1 = t[1], *t2 = t[2], *t3 = t[3];
    float w0 = w[0], w1 = w[1], w2 = w[2], w3 = w[3];
    INDEPENDENT
    for (int64_t i = 0; i < n; i++)
        sums[i] += (w0 * t0[i] + w1 * t1[i]) + (w2 * t2[i] + w3 * t3[i]);
}

static void add_eight_taps(float *sums, int64_t n, const float *const *t, const float *w)
{
    const float *t0 = t[0], *t1 = t[1], *t2 = t[2], *t3 = t[3];
    const float *t4 = t[4], *t5 = t[5], *t6 = t[6], *t7 = t[7];
    float w0 = w[0], w1 = w[1], w2 = w[2], w3 = w[3], w4 = w[4], w5 = w[5], w6 = w[6], w7 = w[7];
    INDEPENDENT
    for (int64_t i = 0; i < n; i++)
        sums[i] += ((w0 * t0[i] + w1 * t1[i]) + (w2 * t2[i] + w3 * t3[i])) +
                   ((w4 * t4[i] + w5 * t5[i]) + (w6 * t6[i] + w7 * t7[i]));
}

/* sums[i] = 0.5 + the sum over t of weights[t] * rows[t][i]; taps is a multiple of four. */
static void line_row(float *sums, int64_t n, const float *const *rows, const float *weights,
                     int64_t taps)
{
    int64_t t = 0;
    for (int64_t i = 0; i < n; i++) sums[i] = 0.5f;
    for (; t + 8 <= taps; t += 8) add_eight_taps(sums, n, rows + t, weights + t);
    if (t < taps) add_four_taps(sums, n, rows + t, weights + t);
}

static int steps_within(const int32_t *steps, int64_t n, int64_t low, int64_t high)
{
    int outside = 0;
    for (int64_t i = 0; i < n; i++) outside |= (steps[i] < low) | (steps[i] > high);
    return !outside;
}

/* Blur each image along the line of an angle drawn with number 0 of its stream, rounded. dx, dy:
 * (4096, taps) steps to the right, none negative, and downwards, at most `reach`. */
static int blur_along_lines(const uint8_t *images, uint8_t *out, const float *weights,
                            const int32_t *dx, const int32_t *dy, int64_t reach,
                            const uint32_t *keys, int64_t m, int64_t height, int64_t width,
                            int64_t taps)
{
    int64_t size = 3 * width, stride = size + 3 * reach;
    int result = SC_DONE;
    /* Rows are done in bands, so that large images need no large buffer. */
    int64_t band = least(height, most(2 * reach, (1 << 18) / stride));
    int64_t held = least(height, band + 2 * reach);
    float *plane = new_memory(held * stride + size, sizeof *plane);
    if (plane == NULL) return SC_NO_MEMORY;
    float *sums = plane + held * stride;
    for (int64_t j = 0; j < m; j++) {
        int64_t angle = random_word(0, keys[2 * j], keys[2 * j + 1]) >> 20;
        const int32_t *right = dx + angle * taps, *down = dy + angle * taps;
        if (!steps_within(right, taps, 0, reach) || !steps_within(down, taps, -reach, reach)) {
            result = SC_INDEX;
            break;
        }
        const uint8_t *image = images + j * height * size;
        for (int64_t top = 0; top < height; top += band) {
            int64_t first = most(top - reach, 0), bottom = least(top + band, height);
            for (int64_t y = first; y < least(bottom + reach, height); y++) {
                const uint8_t *from = image + y * size;
                float *restrict row = plane + (y - first) * stride;
                for (int64_t i = 0; i < size; i++) row[i] = (float)from[i];
                for (int64_t i = size; i < stride; i++) row[i] = row[i - 3];
            }
            for (int64_t y = top; y < bottom; y++) {
                const float *rows[MOST_TAPS];
                uint8_t *restrict to = out + (j * height + y) * size;
                for (int64_t t = 0; t < taps; t++)
                    rows[t] = plane + (within(y + down[t], 0, height - 1) - first) * stride +
                              3 * right[t];
                line_row(sums, size, rows, weights, taps);
                for (int64_t i = 0; i < size; i++) to[i] = (uint8_t)(int32_t)sums[i];
            }
        }
    }
    free_memory(plane);
    return result;
}

/* ---- means of enlarged copies ------------------------------------------------------------------ */

static const float ABOVE = 0x1p-12f; /* lifts whole levels above rounding errors before the cut */
enum { TOGETHER = 16 }; /* small images whose values lie side by side: one weight serves them all */

/* Every pixel of every image as the same weighted sum over its image's pixels: pixel p over the
 * source pixels and weights first[p] .. first[p + 1] - 1, an even number. */
static int sum_pixel_taps(const uint8_t *images, uint8_t *out, const int64_t *first,
                          const int64_t *source, const float *weights, int64_t m, int64_t pixels)
{
    enum { VALUES = 3 * TOGETHER };
    for (int64_t p = 0; p < pixels; p++)
        if ((first[p + 1] - first[p]) % 2) return SC_INDEX;
    float *beside = new_memory(pixels * VALUES, sizeof *beside);
    if (beside == NULL) return SC_NO_MEMORY;
    memset(beside, 0, (size_t)(pixels * VALUES) * sizeof *beside);
    for (int64_t start = 0; start < m; start += TOGETHER) {
        int64_t here = least(TOGETHER, m - start);
        for (int64_t p = 0; p < pixels; p++)
            for (int64_t k = 0; k < here; k++)
                for (int c = 0; c < 3; c++)
                    beside[p * VALUES + 3 * k + c] = (float)images[((start + k) * pixels + p) * 3 + c];
        for (int64_t p = 0; p < pixels; p++) {
            float total[VALUES];
            uint8_t levels[VALUES];
            for (int i = 0; i < VALUES; i++) total[i] = ABOVE;
            for (int64_t t = first[p]; t < first[p + 1]; t += 2) {
                const float *one = beside + source[t] * VALUES, *two = beside + source[t + 1] * VALUES;
                for (int i = 0; i < VALUES; i++)
                    total[i] += weights[t] * one[i] + weights[t + 1] * two[i];
            }
            for (int i = 0; i < VALUES; i++) levels[i] = (uint8_t)(int32_t)total[i];
            for (int64_t k = 0; k < here; k++)
                for (int c = 0; c < 3; c++)
                    out[((start + k) * pixels + p) * 3 + c] = levels[3 * k + c];
        }
    }
    free_memory(beside);
    return SC_DONE;
}

/* The weighted sum of every image and its enlarged copies, row by row.
 *
 * row: (copies, height) source rows; row_weight: (copies, height, 2), of that row and the next.
 * Along rows a copy is cut into runs, in which the source grows by one from value to value: run
 * holds the first value of each, run_source the value it begins to read at, copy_runs the first run
 * of every copy; column_weight: (copies, 2, size), of a value and that of the next pixel. */
static int sum_copies(const uint8_t *images, uint8_t *out, const int64_t *row,
                      const float *row_weight, const int64_t *run, const int64_t *run_source,
                      const int64_t *copy_runs, const float *column_weight, float own_weight,
                      int64_t m, int64_t height, int64_t size, int64_t copies)
{
    for (int64_t z = 0; z < copies; z++)
        for (int64_t r = copy_runs[z]; r < copy_runs[z + 1]; r++) {
            int64_t end = r + 1 == copy_runs[z + 1] ? size : run[r + 1];
            if (run[r] > end || run_source[r] < 0 || run_source[r] + end - run[r] + 3 > 2 * size)
                return SC_INDEX;
        }
    /* Of every copy the last two enlarged source rows are kept: the next row mostly needs them. */
    float *kept = new_memory((2 * copies + 2) * size, sizeof *kept);
    int64_t *holds = new_memory(2 * copies, sizeof *holds);
    if (kept == NULL || holds == NULL) {
        free_memory(kept);
        free_memory(holds);
        return SC_NO_MEMORY;
    }
    float *restrict plain = kept + 2 * copies * size, *restrict total = plain + size;
    for (int64_t j = 0; j < m; j++) {
        const uint8_t *image = images + j * height * size;
        for (int64_t k = 0; k < 2 * copies; k++) holds[k] = -1;
        for (int64_t y = 0; y < height; y++) {
            const uint8_t *from = image + y * size;
            uint8_t *restrict to = out + (j * height + y) * size;
            for (int64_t i = 0; i < size; i++) total[i] = own_weight * (float)from[i] + ABOVE;
            for (int64_t z = 0; z < copies; z++) {
                int64_t upper = row[z * height + y];
                for (int64_t s = upper; s <= upper + 1; s++) {
                    if (holds[2 * z + s % 2] == s) continue;
                    holds[2 * z + s % 2] = s;
                    const float *here = column_weight + 2 * z * size, *after = here + size;
                    float *restrict enlarged = kept + (2 * z + s % 2) * size;
                    for (int64_t i = 0; i < size; i++) plain[i] = (float)image[s * size + i];
                    for (int64_t r = copy_runs[z]; r < copy_runs[z + 1]; r++) {
                        int64_t end = r + 1 == copy_runs[z + 1] ? size : run[r + 1];
                        const float *values = plain + run_source[r] - run[r];
                        for (int64_t i = run[r]; i < end; i++)
                            enlarged[i] = here[i] * values[i] + after[i] * values[i + 3];
                    }
                }
                const float *above = kept + (2 * z + upper % 2) * size;
                const float *below = kept + (2 * z + 1 - upper % 2) * size;
                float w0 = row_weight[2 * (z * height + y)];
                float w1 = row_weight[2 * (z * height + y) + 1];
                for (int64_t i = 0; i < size; i++) total[i] += w0 * above[i] + w1 * below[i];
            }
            for (int64_t i = 0; i < size; i++) to[i] = (uint8_t)(int32_t)total[i];
        }
    }
    free_memory(kept);
    free_memory(holds);
    return SC_DONE;
}
