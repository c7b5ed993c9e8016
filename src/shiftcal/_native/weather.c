/* Snow, frost, fog and brightness. */

/* ---- falling snow ----------------------------------------------------------------------------- */

/* How an axis is enlarged: point i is (1 - weight[i]) v[index[i]] + weight[i] v[index[i] + 1], of
 * `drawn` points. */
typedef struct {
    const int64_t *index;
    const float *weight;
    int64_t drawn, length;
} enlargement;

/* A field of normal deviates, enlarged, in whole levels, and 0 below the threshold. Number i of the
 * stream gives the deviates 2 i and 2 i + 1, from a table of 65,536 equally likely ones. field:
 * rows of `stride` values; values: (rows->drawn * columns->drawn + 1); wide: (rows->drawn,
 * columns->length). */
static void flake_field(float *field, int64_t stride, const float *table, const enlargement *rows,
                        const enlargement *columns, float threshold, uint32_t a, uint32_t b,
                        float *restrict values, float *restrict wide)
{
    int64_t width = columns->length, pairs = (rows->drawn * columns->drawn + 1) / 2;
    uint32_t words[512];
    for (int64_t start = 0; start < pairs; start += 512) {
        int64_t n = least(512, pairs - start);
        random_words(words, n, (uint32_t)start, a, b);
        for (int64_t i = 0; i < n; i++) {
            values[2 * (start + i)] = table[words[i] & 0xFFFF];
            values[2 * (start + i) + 1] = table[words[i] >> 16];
        }
    }
    for (int64_t y = 0; y < rows->drawn; y++) {
        const float *line = values + y * columns->drawn;
        float *restrict to = wide + y * width;
        for (int64_t x = 0; x < width; x++) {
            const float *at = line + columns->index[x], t = columns->weight[x];
            to[x] = (1.0f - t) * at[0] + t * at[1];
        }
    }
    for (int64_t y = 0; y < rows->length; y++) {
        const float *upper = wide + rows->index[y] * width, *lower = upper + width;
        float t = rows->weight[y], s = 1.0f - t, *restrict to = field + y * stride;
        for (int64_t x = 0; x < width; x++) {
            float level = s * upper[x] + t * lower[x];
            level = level < 255.0f ? level : 255.0f;
            to[x] = (float)((int32_t)level & -(level >= threshold)); /* without a branch */
        }
    }
}

/* Whiten a row of an image and add snow. A value becomes the larger of x + s and mix x + (1 - mix)
 * white + s. here and there: the layer's row, and the row that is turned onto it, from its end.
 * values: (size + 2), white, snow: (size). */
static void snow_row(const uint8_t *restrict image, uint8_t *restrict out, const float *here,
                     const float *there, int64_t width, float mix, float *restrict values,
                     float *restrict white, float *restrict snow)
{
    int64_t size = 3 * width;
    float part = 1.0f - mix, factor = 1.5f * part, lowest = 127.5f * part;
    float red = factor * 0.299f, green = factor * 0.587f, blue = factor * 0.114f;
    for (int64_t i = 0; i < size; i++) values[i] = (float)image[i];
    /* Right where a pixel begins; the values between are not used, but there is no gap to jump. */
    for (int64_t i = 0; i < size; i++)
        white[i] = red * values[i] + green * values[i + 1] + blue * values[i + 2] + lowest;
    for (int64_t x = 0; x < width; x++) {
        float flakes = here[x] + there[width - 1 - x] + 0x1p-12f; /* lifts whole levels */
        float whitened = white[3 * x] + flakes;
        for (int c = 0; c < 3; c++) snow[3 * x + c] = flakes, white[3 * x + c] = whitened;
    }
    for (int64_t i = 0; i < size; i++) {
        float plain = values[i] + snow[i], mixed = mix * values[i] + white[i];
        float level = plain > mixed ? plain : mixed;
        out[i] = (uint8_t)(int32_t)(level < 255.0f ? level : 255.0f);
    }
}

/* Lay a snow layer of its own over each of m images. dx, dy: (4096, taps) the steps of the line
 * along which the flakes fall, at most `left` to the left and `right` to the right. The field takes
 * the numbers of the stream from 0, the angle number 2^31. */
static int snow_on(const uint8_t *images, uint8_t *out, const float *table, const enlargement *rows,
                   const enlargement *columns, float threshold, const float *weights,
                   const int32_t *dx, const int32_t *dy, int64_t taps, int64_t left, int64_t right,
                   float mix, const uint32_t *keys, int64_t m)
{
    int64_t height = rows->length, width = columns->length, size = 3 * width;
    int64_t stride = left + width + right, drawn = rows->drawn * columns->drawn + 1;
    float *field = new_memory(height * stride + height * width + drawn + rows->drawn * width +
                                  3 * size + 2, sizeof *field);
    if (field == NULL) return SC_NO_MEMORY;
    float *layer = field + height * stride, *wide = layer + height * width;
    float *values = wide + rows->drawn * width, *white = values + size + 2, *snow = white + size;
    float *deviates = snow + size;
    values[size] = values[size + 1] = 0.0f;
    int result = SC_DONE;
    for (int64_t j = 0; j < m; j++) {
        uint32_t a = keys[2 * j], b = keys[2 * j + 1];
        flake_field(field + left, stride, table, rows, columns, threshold, a, b, deviates, wide);
        for (int64_t y = 0; y < height; y++) {
            float *row = field + y * stride;
            for (int64_t x = 0; x < left; x++) row[x] = row[left];
            for (int64_t x = left + width; x < stride; x++) row[x] = row[left + width - 1];
        }
        int64_t angle = random_word(0x80000000u, a, b) >> 20;
        if (!steps_within(dx + angle * taps, taps, -left, right)) {
            result = SC_INDEX;
            break;
        }
        for (int64_t y = 0; y < height; y++) {
            const float *lines[MOST_TAPS];
            float *restrict to = layer + y * width;
            for (int64_t t = 0; t < taps; t++)
                lines[t] = field + within(y + dy[angle * taps + t], 0, height - 1) * stride + left +
                           dx[angle * taps + t];
            line_row(to, width, lines, weights, taps);
            for (int64_t x = 0; x < width; x++) to[x] = (float)(int32_t)to[x];
        }
        for (int64_t y = 0; y < height; y++)
            snow_row(images + (j * height + y) * size, out + (j * height + y) * size,
                     layer + y * width, layer + (height - 1 - y) * width, width, mix, values, white,
                     snow);
    }
    free_memory(field);
    return result;
}

/* ---- crops of textures ------------------------------------------------------------------------ */

/* Whether count textures lie in so many texels, and crops begin inside them. */
static int textures_fit(const int64_t *textures, int64_t count, int64_t texels)
{
    for (const int64_t *t = textures; t < textures + 5 * count; t += 5) {
        int64_t height = t[1], width = t[2];
        if (t[0] < 0 || height < 1 || width < 1 || t[3] < 1 || t[3] > height || t[4] < 1 ||
            t[4] > width || height > INT32_MAX / width || t[0] > texels - 3 * height * width)
            return 0;
    }
    return 1;
}

/* floor(min(own x + other texture, 255)) with a random crop for each of m images of height rows of
 * `size` values. Words 0, 1 and 2 of the stream choose the texture, the row and the column. texels:
 * the values of all textures; textures: (count, 5): where each begins, its height and width in
 * pixels, and how many rows and columns a crop can begin at. Crops go on at the other side. */
static int blend_textures(const uint8_t *images, uint8_t *out, const uint8_t *texels,
                          const int64_t *textures, double own, double other, const uint32_t *keys,
                          int64_t m, int64_t height, int64_t size, int64_t count)
{
    for (int64_t j = 0; j < m; j++) {
        uint32_t a = keys[2 * j], b = keys[2 * j + 1];
        const int64_t *texture = textures + 5 * ((random_word(0, a, b) * (uint64_t)count) >> 32);
        int64_t top = (int64_t)((random_word(1, a, b) * (uint64_t)texture[3]) >> 32);
        int64_t left = 3 * (int64_t)((random_word(2, a, b) * (uint64_t)texture[4]) >> 32);
        int64_t line = 3 * texture[2];
        for (int64_t y = 0; y < height; y++) {
            const uint8_t *texel = texels + texture[0] + (top + y) % texture[1] * line;
            for (int64_t done = 0, at = left, run; done < size; done += run, at = 0) {
                const uint8_t *restrict from = images + (j * height + y) * size + done;
                const uint8_t *restrict ice = texel + at;
                uint8_t *restrict to = out + (j * height + y) * size + done;
                run = least(size - done, line - at);
                for (int64_t i = 0; i < run; i++) {
                    double mixed = own * (double)from[i] + other * (double)ice[i];
                    to[i] = (uint8_t)(int32_t)(mixed < 255.0 ? mixed : 255.0);
                }
            }
        }
    }
    return SC_DONE;
}

/* ---- fog from a diamond-square map ------------------------------------------------------------ */

/* A grid of n x n known points becomes one of 2n x 2n. The new points are made in three planes of
 * n x n: those to the right of the known ones, those below them, and the middles of the squares.
 * All loops run along contiguous rows that way, and the last grid, the largest, need not be put
 * together at all. */
enum { KNOWN, RIGHT, BENEATH, MIDDLE };

/* The planes' values but for the known ones: noise plus the mean of the four around each. The
 * stream's words 2 n^2 .. 3 n^2 - 1 give the noise of the middles (lower half) and of the points to
 * the right (upper half), 3 n^2 .. 4 n^2 - 1 that of the points below (lower half), row by row. A
 * half k stands for (2 k + 1) / 65536 - 1, times the amplitude. */
static void refine(float *planes, int64_t n, float amplitude, uint32_t a, uint32_t b)
{
    float scale = amplitude * 0x1p-15f, lowest = amplitude * (float)(0x1p-16 - 1.0);
    int64_t count = n * n, last = n - 1;
    float *known = planes, *restrict right = planes + RIGHT * count;
    float *restrict below = planes + BENEATH * count, *restrict middle = planes + MIDDLE * count;
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits = random_word((uint32_t)(2 * count + i), a, b);
        middle[i] = (float)(int32_t)(bits & 0xFFFF) * scale + lowest;
        right[i] = (float)(int32_t)(bits >> 16) * scale + lowest;
    }
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits = random_word((uint32_t)(3 * count + i), a, b);
        below[i] = (float)(int32_t)(bits & 0xFFFF) * scale + lowest;
    }
    for (int64_t i = 0; i < n; i++) {
        const float *here = known + i * n, *next = known + (i + 1) % n * n;
        float *restrict to = middle + i * n;
        for (int64_t j = 0; j < last; j++)
            to[j] += ((here[j] + next[j]) + (here[j + 1] + next[j + 1])) * 0.25f;
        to[last] += ((here[last] + next[last]) + (here[0] + next[0])) * 0.25f;
    }
    for (int64_t i = 0; i < n; i++) {
        const float *here = known + i * n, *next = known + (i + 1) % n * n;
        const float *centre = middle + i * n, *above = middle + (i + n - 1) % n * n;
        float *restrict to = right + i * n, *restrict under = below + i * n;
        for (int64_t j = 0; j < last; j++)
            to[j] += ((centre[j] + above[j]) + (here[j] + here[j + 1])) * 0.25f;
        to[last] += ((centre[last] + above[last]) + (here[last] + here[0])) * 0.25f;
        under[0] += ((centre[0] + centre[last]) + (here[0] + next[0])) * 0.25f;
        for (int64_t j = 1; j < n; j++)
            under[j] += ((centre[j] + centre[j - 1]) + (here[j] + next[j])) * 0.25f;
    }
}

ALWAYS_INLINE void interleave(float *restrict to, const float *even, const float *odd, int64_t n)
{
    for (int64_t j = 0; j < n; j++) to[2 * j] = even[j], to[2 * j + 1] = odd[j];
}

/* The map of the stream with the key (a, b), of side 2^levels: the four planes of the last grid, in
 * room; other has place for the grid before. */
static void plasma(float *room, float *other, const float *amplitudes, int64_t levels, uint32_t a,
                   uint32_t b)
{
    float *place = levels % 2 ? room : other, *following = levels % 2 ? other : room;
    place[0] = 0.0f;
    for (int64_t level = 0; level < levels; level++) {
        int64_t n = (int64_t)1 << level;
        refine(place, n, amplitudes[level], a, b);
        if (level + 1 == levels) return;
        for (int64_t i = 0; i < n; i++) {
            interleave(following + 4 * i * n, place + (KNOWN * n + i) * n, place + (RIGHT * n + i) * n,
                       n);
            interleave(following + (4 * i + 2) * n, place + (BENEATH * n + i) * n,
                       place + (MIDDLE * n + i) * n, n);
        }
        float *swapped = place;
        place = following;
        following = swapped;
    }
}

/* (x + strength p) top / (top + strength), all in levels, cut to whole ones, for m images of height
 * rows of `size` values. top is the image's largest value, and p a map scaled to 0 .. 1, repeated
 * where the image is larger. amplitudes: of the noise at each refinement. */
static int lay_fog(const uint8_t *images, uint8_t *out, const float *amplitudes, float strength,
                   const uint32_t *keys, int64_t m, int64_t height, int64_t size, int64_t levels)
{
    int64_t half = (int64_t)1 << (levels - 1), count = 4 * half * half, side = 2 * half;
    float *planes = new_memory(count + half * half + side + size, sizeof *planes);
    if (planes == NULL) return SC_NO_MEMORY;
    float *restrict fog = planes + count + half * half, *restrict spread = fog + side;
    for (int64_t j = 0; j < m; j++) {
        const uint8_t *image = images + j * height * size;
        plasma(planes, planes + count, amplitudes, levels, keys[2 * j], keys[2 * j + 1]);
        float lowest = planes[0], highest = planes[0];
        for (int64_t i = 0; i < count; i++) {
            lowest = planes[i] < lowest ? planes[i] : lowest;
            highest = planes[i] > highest ? planes[i] : highest;
        }
        uint8_t top = 0;
        for (int64_t i = 0; i < height * size; i++) top = image[i] > top ? image[i] : top;
        float gain = top ? (float)top / ((float)top + strength) : 0.0f;
        float scale = gain * strength / (highest - lowest);
        for (int64_t y = 0; y < height; y++) {
            const float *even = planes + ((y % 2 ? BENEATH : KNOWN) * half + y / 2 % half) * half;
            const float *odd = even + half * half;
            const uint8_t *from = image + y * size;
            uint8_t *restrict to = out + (j * height + y) * size;
            /* Exact results can be whole numbers, and rounding must not cost them a level. */
            for (int64_t x = 0; x < half; x++) {
                fog[2 * x] = (even[x] - lowest) * scale + 1e-4f;
                fog[2 * x + 1] = (odd[x] - lowest) * scale + 1e-4f;
            }
            for (int64_t start = 0; start < size; start += 3 * side)
                for (int64_t x = 0; x < least(side, (size - start) / 3); x++)
                    for (int c = 0; c < 3; c++) spread[start + 3 * x + c] = fog[x];
            for (int64_t i = 0; i < size; i++)
                to[i] = (uint8_t)(int32_t)((float)from[i] * gain + spread[i]);
        }
    }
    free_memory(planes);
    return SC_DONE;
}

/* ---- the value of HSV raised, in RGB ---------------------------------------------------------- */

/* Scale every pixel so that its largest channel rises by `rise` levels, to 255 at the most. A
 * ten-thousandth of a level is added: rounding must not take a level from a whole number. */
static int raise_value(const uint8_t *images, uint8_t *out, float rise, int64_t pixels)
{
    uint8_t r[RUN], g[RUN], b[RUN];
    for (int64_t start = 0; start < pixels; start += RUN) {
        int64_t n = least(RUN, pixels - start);
        split_pixels(r, g, b, images + 3 * start, n);
        for (int64_t i = 0; i < n; i++) {
            uint8_t value = r[i] > g[i] ? r[i] : g[i];
            value = value > b[i] ? value : b[i];
            /* Black has no channel that could be scaled: it becomes grey. */
            uint8_t black = value == 0;
            float raised = (float)value + rise;
            float scale = (raised < 255.0f ? raised : 255.0f) / (float)(value | black);
            r[i] = (uint8_t)(int32_t)((float)(r[i] | black) * scale + 1e-4f);
            g[i] = (uint8_t)(int32_t)((float)(g[i] | black) * scale + 1e-4f);
            b[i] = (uint8_t)(int32_t)((float)(b[i] | black) * scale + 1e-4f);
        }
        join_pixels(out + 3 * start, r, g, b, n);
    }
    return SC_DONE;
}
