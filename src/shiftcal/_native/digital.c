/* Contrast, saturate and pixelate. */

/* ---- values drawn towards their channel's mean ------------------------------------------------ */

/* Whole pixels and whole vectors: loops need not know of channels. So many runs fit into 16 bits. */
enum { CHANNEL_RUN = 96, SHORT_RUNS = 256 };

/* floor(mean + factor (x - mean)) with the mean of the image's channel, for m images of `size`
 * values. 2^32 is enough for the sums of images of 1.6e9 values. */
static int draw_to_mean(const uint8_t *images, uint8_t *out, float factor, int64_t m, int64_t size)
{
    for (int64_t j = 0; j < m; j++) {
        const uint8_t *values = images + j * size;
        uint8_t *restrict result = out + j * size;
        uint32_t sums[CHANNEL_RUN] = {0};
        float offsets[CHANNEL_RUN];
        int64_t whole = size - size % CHANNEL_RUN;
        for (int64_t first = 0; first < whole; first += SHORT_RUNS * CHANNEL_RUN) {
            uint16_t part[CHANNEL_RUN] = {0};
            int64_t end = least(first + SHORT_RUNS * CHANNEL_RUN, whole);
            for (int64_t start = first; start < end; start += CHANNEL_RUN)
                for (int i = 0; i < CHANNEL_RUN; i++) part[i] = (uint16_t)(part[i] + values[start + i]);
            for (int i = 0; i < CHANNEL_RUN; i++) sums[i] += part[i];
        }
        for (int64_t i = whole; i < size; i++) sums[i - whole] += values[i];
        for (int c = 0; c < 3; c++) {
            int64_t total = 0;
            for (int i = c; i < CHANNEL_RUN; i += 3) total += sums[i];
            /* The margin keeps images of one colour as they are: rounding, of 2.5e-5 at the most,
             * would take a whole level from most of them. */
            double mean = (double)total / (double)(size / 3);
            float offset = (float)((1.0 - (double)factor) * mean + 1e-4);
            for (int i = c; i < CHANNEL_RUN; i += 3) offsets[i] = offset;
        }
        for (int64_t start = 0; start < whole; start += CHANNEL_RUN)
            for (int i = 0; i < CHANNEL_RUN; i++)
                result[start + i] = (uint8_t)(int32_t)((float)values[start + i] * factor + offsets[i]);
        for (int64_t i = whole; i < size; i++)
            result[i] = (uint8_t)(int32_t)((float)values[i] * factor + offsets[i - whole]);
    }
    return SC_DONE;
}

/* ---- the saturation of HSV changed, in RGB ---------------------------------------------------- */

/* Move every channel away from the largest, or towards it, in proportion to the distance: the
 * saturation is multiplied by factor, and extra added. A ten-thousandth of a level is added:
 * rounding must not take a level from what is a whole number. */
static int change_saturation(const uint8_t *images, uint8_t *out, float factor, float extra,
                             int64_t pixels)
{
    uint8_t r[RUN], g[RUN], b[RUN];
    for (int64_t start = 0; start < pixels; start += RUN) {
        int64_t n = least(RUN, pixels - start);
        split_pixels(r, g, b, images + 3 * start, n);
        for (int64_t i = 0; i < n; i++) {
            uint8_t high = r[i] > g[i] ? r[i] : g[i], low = r[i] < g[i] ? r[i] : g[i];
            high = high > b[i] ? high : b[i];
            low = low < b[i] ? low : b[i];
            /* Grey has the hue of red, and so green and blue are what moves. */
            uint8_t spread = (uint8_t)(high - low), grey = spread == 0;
            float full = (float)high, moved = factor * (float)spread + extra * full;
            moved = moved < full ? moved : full;
            float scale = moved / (float)(spread | grey), top = full + 1e-4f;
            uint8_t below_r = (uint8_t)(high - r[i]), below_g = (uint8_t)(high - g[i]) | grey;
            uint8_t below_b = (uint8_t)(high - b[i]) | grey;
            r[i] = (uint8_t)(int32_t)(top - (float)below_r * scale);
            g[i] = (uint8_t)(int32_t)(top - (float)below_g * scale);
            b[i] = (uint8_t)(int32_t)(top - (float)below_b * scale);
        }
        join_pixels(out + 3 * start, r, g, b, n);
    }
    return SC_DONE;
}

/* ---- fewer, larger pixels --------------------------------------------------------------------- */

/* Means along a row are taken of 32 rows at once, turned round so that the same value of all rows
 * is one piece of memory. */
enum { STRIP = 32 };

/* The means of boxes of rows of n values, halves rounded up. boxes: (count, 2) first row of every
 * box, and how many there are. total: (n) to work in. */
ALWAYS_INLINE void box_means(uint8_t *out, const uint8_t *values, int64_t n, const int64_t *boxes,
                             int64_t count, int32_t *restrict total)
{
    for (int64_t box = 0; box < count; box++) {
        int64_t rows = boxes[2 * box + 1];
        const uint8_t *first = values + boxes[2 * box] * n, *last = first + (rows - 1) * n;
        uint8_t *restrict means = out + box * n;
        if (rows <= 2) {
            for (int64_t start = 0; start < n; start += STRIP)
                for (int64_t i = start; i < start + STRIP; i++)
                    means[i] = (uint8_t)((first[i] + last[i] + 1) >> 1);
            continue;
        }
        for (int64_t i = 0; i < n; i++) total[i] = first[i] + last[i];
        for (const uint8_t *row = first + n; row < last; row += n)
            for (int64_t i = 0; i < n; i++) total[i] += row[i];
        int32_t share = (int32_t)((double)(1 << 22) / (double)rows + 0.5); /* as Pillow has it */
        for (int64_t i = 0; i < n; i++)
            means[i] = (uint8_t)((total[i] * share + (1 << 21)) >> 22);
    }
}

/* Whether boxes (count, 2), a first line and how many there are, lie in so many lines. */
static int boxes_fit(const int64_t *boxes, int64_t count, int64_t lines)
{
    for (int64_t i = 0; i < 2 * count; i += 2)
        if (boxes[i] < 0 || boxes[i + 1] < 1 || boxes[i] > lines - boxes[i + 1]) return 0;
    return 1;
}

/* Replace m images by the means of boxes, each shown at the size of the box.
 *
 * down, across: (boxes, 2) first row or column of every box, and how many there are; shown: first
 * of the rows that show a box, and the height; columns: the first value of the box that a column
 * shows. */
static int enlarge_pixels(const uint8_t *images, uint8_t *out, const int64_t *down,
                          const int64_t *across, const int64_t *shown, const int64_t *columns,
                          int64_t m, int64_t height, int64_t width, int64_t boxes_down,
                          int64_t boxes_across)
{
    int64_t size = 3 * width, padded = (size + 7) / 8 * 8, stride = (3 * boxes_across + STRIP - 1) / STRIP * STRIP;
    int64_t strips = (height + STRIP - 1) / STRIP;
    uint8_t *turned = new_memory(padded * STRIP + stride * STRIP + strips * STRIP * stride +
                                     boxes_down * stride + 1 + 8 * padded + size + 1, 1);
    int32_t *total = new_memory(most(3 * STRIP, stride), sizeof *total);
    if (turned == NULL || total == NULL) {
        free_memory(turned);
        free_memory(total);
        return SC_NO_MEMORY;
    }
    uint8_t *means = turned + padded * STRIP, *narrow = means + stride * STRIP;
    uint8_t *rows = narrow + strips * STRIP * stride, *small = rows + 8 * padded;
    uint8_t *spread = small + boxes_down * stride + 1;
    memset(turned, 0, (size_t)(small - turned));
    for (int64_t j = 0; j < m; j++) {
        const uint8_t *image = images + j * height * size;
        uint8_t *to = out + j * height * size;
        for (int64_t top = 0; top < height; top += STRIP) {
            for (int64_t y = top; y < least(top + STRIP, height); y += 8) {
                const uint8_t *from = image + y * size;
                int64_t step = size;
                /* The last rows are copied: blocks of eight would read beyond them. */
                if (y + 8 >= height && (y + 8 > height || padded > size)) {
                    for (int64_t i = 0; i < least(8, height - y); i++)
                        memcpy(rows + i * padded, from + i * size, (size_t)size);
                    from = rows;
                    step = padded;
                }
                for (int64_t x = 0; x < padded; x += 8)
                    transpose_block(turned + x * STRIP + y - top, STRIP, from + x, step);
            }
            box_means(means, turned, 3 * STRIP, across, boxes_across, total);
            for (int64_t y = 0; y < STRIP; y += 8)
                for (int64_t x = 0; x < stride; x += 8)
                    transpose_block(narrow + (top + y) * stride + x, stride, means + x * STRIP + y,
                                    STRIP);
        }
        box_means(small, narrow, stride, down, boxes_down, total);
        for (int64_t box = 0; box < boxes_down; box++) {
            const uint8_t *row = small + box * stride;
            /* Pixels are moved as four values, the last to be written over. */
            for (int64_t x = 0; x < width; x++)
                memcpy(spread + 3 * x, row + columns[x], 4);
            for (int64_t y = shown[box]; y < shown[box + 1]; y++)
                memcpy(to + y * size, spread, (size_t)size);
        }
    }
    free_memory(turned);
    free_memory(total);
    return SC_DONE;
}
