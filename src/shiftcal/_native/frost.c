/* Textures of frost: clouds, crystals and needles on a torus of SIDE x SIDE pixels.
 *
 * Everything is made from hashed integers by additions, multiplications, divisions and square roots
 * of single values, and by sums of integers: the same on every machine, bit for bit. */

enum { SIDE = 640, AREA = SIDE * SIDE };

/* Means and deviations are those of whole numbers, which have no order to be added in: values in
 * steps of 2^-20, and differences from the mean in steps of 2^-10. */
ALWAYS_INLINE int32_t in_steps(float value)
{
    float steps = value * 0x1p20f, large = steps < 0.0f ? -0x1p23f : 0x1p23f;
    float whole = steps + large - large; /* numbers that are larger are whole already */
    return (int32_t)(steps > -0x1p23f && steps < 0x1p23f ? whole : steps);
}

enum { ABREAST = 16 }; /* n is a multiple of it */

static int64_t sum_of_steps(const float *values, int64_t n)
{
    int64_t lanes[ABREAST] = {0}, sum = 0;
    for (int64_t start = 0; start < n; start += ABREAST)
        for (int i = 0; i < ABREAST; i++) lanes[i] += in_steps(values[start + i]);
    for (int i = 0; i < ABREAST; i++) sum += lanes[i];
    return sum;
}

/* out = kept out + part (values less their mean, divided by their deviation); sum: of the values. out
 * may be the plane itself. */
static void standardise(float *out, float kept, float part, const float *plane, int64_t sum)
{
    int64_t lanes[ABREAST] = {0}, squares = 0;
    int32_t mean = (int32_t)rint((double)sum / AREA);
    for (int64_t start = 0; start < AREA; start += ABREAST)
        for (int i = 0; i < ABREAST; i++) {
            int32_t coarse = (in_steps(plane[start + i]) - mean) >> 10;
            lanes[i] += (int64_t)coarse * coarse;
        }
    for (int i = 0; i < ABREAST; i++) squares += lanes[i];
    double deviation = sqrt((double)squares / AREA) * 1024;
    INDEPENDENT
    for (int64_t i = 0; i < AREA; i++)
        out[i] = kept * out[i] + part * (float)((in_steps(plane[i]) - mean) / deviation);
}

/* Random numbers in [-1/2, 1/2): those of images first .. first + n - 1. */
static void uniform(float *restrict out, int64_t n, int64_t start, int64_t first)
{
    for (int64_t i = 0; i < n; i++) {
        int32_t bits = (int32_t)((uint32_t)image_key((uint64_t)start, first + i) >> 8);
        out[i] = (float)bits * 0x1p-24f - 0.5f;
    }
}

enum { CLOUD_WORK = AREA + 12 * SIDE };

/* Smooth noise with blots of SIDE / cells pixels, cells > 4: random values on a grid, joined by cubic
 * B-splines down the columns, then along the rows. Returns its sum. work: (CLOUD_WORK). */
static int64_t cloud(float *plane, int64_t cells, int64_t start, float *work)
{
    int64_t factor = SIDE / cells, stride = SIDE + 3 * factor;
    int64_t sum = 0;
    float *values = work + 1, *restrict row = work + 2 * SIDE, *w0 = row + 2 * SIDE;
    float *w1 = w0 + SIDE, *w2 = w1 + SIDE, *w3 = w2 + SIDE, *grid = w3 + SIDE;
    for (int64_t x = 0; x < SIDE; x++) {
        float t = ((float)(x % factor) + 0.5f) / (float)factor, u = 1.0f - t;
        w0[x] = u * u * u, w1[x] = 4.0f + 3.0f * t * t * t - 6.0f * t * t;
        w2[x] = 4.0f + 3.0f * u * u * u - 6.0f * u * u, w3[x] = t * t * t;
    }
    /* Every value `factor` times, from the last, before the row, to the second, after it. */
    for (int64_t j = 0; j < cells; j++) {
        uniform(values, cells, start, j * cells);
        values[-1] = values[cells - 1], values[cells] = values[0], values[cells + 1] = values[1];
        for (int64_t k = 0; k < factor; k++)
            for (int64_t i = 0; i < cells + 3; i++)
                grid[j * stride + i * factor + k] = values[i - 1];
    }
    for (int64_t y = 0; y < SIDE; y++) {
        const float *v[4];
        float *restrict to = plane + y * SIDE;
        for (int k = 0; k < 4; k++) v[k] = grid + (y / factor + cells - 1 + k) % cells * stride;
        for (int64_t x = 0; x < stride; x++)
            row[x] = v[0][x] * w0[y] + v[1][x] * w1[y] + v[2][x] * w2[y] + v[3][x] * w3[y];
        const float *a = row, *b = a + factor, *c = b + factor, *d = c + factor;
        for (int64_t x = 0; x < SIDE; x++)
            to[x] = a[x] * w0[x] + b[x] * w1[x] + c[x] * w2[x] + d[x] * w3[x];
        sum += sum_of_steps(to, SIDE);
    }
    return sum;
}

enum { ACROSS = 16, CELL = SIDE / ACROSS, SQUARES = ACROSS * ACROSS };

/* Facets with ragged borders: the direction (0 to 7) of each, and the height above its rim.
 *
 * The plane falls to the nearest of random points, one in each of 16 x 16 squares (Worley, 1996);
 * the height is the distance to the second nearest less that to the nearest. starts: of streams, of
 * which 1 to 5 are used. bends: (2, AREA). */
static void crystals(uint8_t *facets, float *rims, const int64_t *starts, float *bends, float *work)
{
    float points[3][SQUARES];
    for (int c = 0; c < 2; c++) {
        float *bend = bends + c * AREA;
        standardise(bend, 0.0f, 1.0f, bend, cloud(bend, 4 * ACROSS, starts[1 + c], work));
    }
    for (int c = 0; c < 3; c++) uniform(points[c], SQUARES, starts[3 + c], 0);
    for (int64_t at = 0; at < AREA; at += CELL) {
        float first[CELL], second[CELL], ys[CELL], xs[CELL], kinds[CELL];
        int64_t y = at / SIDE, row = y / CELL, column = at % SIDE / CELL;
        for (int x = 0; x < CELL; x++) {
            ys[x] = (float)(y % CELL) + 0.25f * CELL * bends[at + x];
            xs[x] = (float)x + 0.25f * CELL * bends[AREA + at + x];
            first[x] = second[x] = 1e9f, kinds[x] = 0.0f;
        }
        for (int64_t k = 0; k < 9; k++) {
            int64_t i = k / 3 - 1, j = k % 3 - 1;
            int64_t cell = (row + i + ACROSS) % ACROSS * ACROSS + (column + j + ACROSS) % ACROSS;
            float down = (points[0][cell] + 0.5f + (float)i) * CELL;
            float right = (points[1][cell] + 0.5f + (float)j) * CELL;
            float kind = floorf(8.0f * (points[2][cell] + 0.5f));
            for (int x = 0; x < CELL; x++) {
                float dy = down - ys[x], dx = right - xs[x], square = dy * dy + dx * dx;
                float farther = first[x] > square ? first[x] : square;
                second[x] = second[x] < farther ? second[x] : farther;
                kinds[x] = square < first[x] ? kind : kinds[x];
                first[x] = first[x] < square ? first[x] : square;
            }
        }
        for (int x = 0; x < CELL; x++) {
            facets[at + x] = (uint8_t)kinds[x];
            rims[at + x] = sqrtf(second[x]) - sqrtf(first[x]);
        }
    }
    standardise(rims, 0.0f, 1.0f, rims, sum_of_steps(rims, AREA));
}

/* Room around grains for needles to begin in: above, and on both sides. */
enum { LONGEST = 32, PADDED = SIDE + 2 * LONGEST };

/* Streaks in the direction of the facet on which they lie: sums of the grains in a plane along
 * `length` pixels, a power of two, added in pairs. Returns the sum of all. plane: (AREA + ABREAST);
 * padded: (SIDE + LONGEST, PADDED). */
static int64_t needles(float *plane, int length, const uint8_t *facets, float *restrict padded)
{
    /* (down, right) per pixel of length, at eight angles; halves of a turn are the same needle. */
    static const double directions[8][2] = {{0.0, 1.0},     {0.383, 0.924},  {0.707, 0.707},
                                            {0.924, 0.383}, {1.0, 0.0},      {0.924, -0.383},
                                            {0.707, -0.707}, {0.383, -0.924}};
    int64_t steps[8][LONGEST];
    for (int k = 0; k < 8; k++)
        for (int t = 0; t < length; t++) {
            steps[k][t] = 0;
            for (int step = 1; step < length; step *= 2)
                if (t & step)
                    steps[k][t] -= (int64_t)rint(step * directions[k][0]) * PADDED +
                                   (int64_t)rint(step * directions[k][1]);
        }
    for (int64_t y = 0; y < SIDE + LONGEST; y++) {
        const float *from = plane + (y + SIDE - LONGEST) % SIDE * SIDE;
        float *to = padded + y * PADDED;
        memcpy(to, from + SIDE - LONGEST, LONGEST * sizeof *to);
        memcpy(to + LONGEST, from, SIDE * sizeof *to);
        memcpy(to + LONGEST + SIDE, from, LONGEST * sizeof *to);
    }
    for (int64_t y = 0; y < SIDE; y++) {
        const uint8_t *facet = facets + y * SIDE;
        for (int64_t x = 0, n; x < SIDE; x += n) {
            const float *here = padded + (y + LONGEST) * PADDED + LONGEST + x;
            float sums[LONGEST / 2][ABREAST];
            for (n = 1; n < ABREAST && x + n < SIDE && facet[x + n] == facet[x]; n++) {}
            const int64_t *step = steps[facet[x]];
            for (int t = 0; t < length / 2; t++)
                for (int i = 0; i < ABREAST; i++)
                    sums[t][i] = here[step[2 * t] + i] + here[step[2 * t + 1] + i];
            for (int count = length / 4; count > 0; count /= 2)
                for (int t = 0; t < count; t++)
                    for (int i = 0; i < ABREAST; i++)
                        sums[t][i] = sums[2 * t][i] + sums[2 * t + 1][i];
            /* What is too much will be written over. */
            memcpy(plane + y * SIDE + x, sums[0], sizeof sums[0]);
        }
    }
    return sum_of_steps(plane, AREA);
}

/* How one texture looks; see corruptions/weather.py. */
typedef struct {
    float colour[3], contrast[3], deviation, skew, unevenness, drift, layers[7];
} frost_look;

/* One texture. facets, rims: the crystals, turned to the left `turns` times. starts: of its streams.
 * planes: three and one with padding; turned: (AREA). */
static void texture(uint8_t *restrict out, const uint8_t *facets, const float *rims, int64_t turns,
                    const frost_look *look, const int64_t *starts, float *planes,
                    uint8_t *restrict turned, float *work)
{
    static const int64_t cells[10] = {5, 10, 40, 160, SIDE, SIDE, 5, 10, 40, 80};
    static const float drifts[3] = {1.0f, -0.35f, -0.84f}; /* blue to grey, equally bright */
    const int64_t down[4] = {SIDE, -1, -SIDE, 1}, right[4] = {1, SIDE, -1, -SIDE};
    const int64_t corner[4] = {0, SIDE - 1, AREA - 1, AREA - SIDE};
    float *plane = planes, *restrict smooth = plane + AREA + ABREAST, *restrict rough = smooth + AREA;
    float *restrict spread = rough + AREA;
    for (int64_t y = 0; y < SIDE; y++)
        for (int64_t x = 0; x < SIDE; x++) {
            int64_t from = corner[turns % 4] + y * down[turns % 4] + x * right[turns % 4];
            turned[y * SIDE + x] = facets[from];
            smooth[y * SIDE + x] = 0.0f;
            rough[y * SIDE + x] = look->layers[3] * rims[from];
        }
    for (int layer = 0; layer < 6; layer++) {
        float part = look->layers[layer < 3 ? layer : layer + 1];
        if (part == 0.0f) continue;
        int64_t sum = cloud(plane, cells[layer], starts[layer], work);
        if (layer == 3 || layer == 4) {
            standardise(plane, 0.0f, 1.0f, plane, sum);
            sum = needles(plane, layer == 3 ? 32 : 8, turned, spread);
        }
        standardise(layer < 3 ? smooth : rough, 1.0f, part, plane, sum);
    }
    for (int layer = 7; layer < 10; layer++) {
        int64_t sum = cloud(plane, cells[layer], starts[layer], work);
        standardise(spread, layer > 7 ? 1.0f : 0.0f, 1.0f, plane, sum);
    }
    for (int64_t i = 0; i < AREA; i++) {
        float density = 1.0f + look->unevenness * spread[i];
        smooth[i] += (density > 0.1f ? density : 0.1f) * rough[i];
    }
    standardise(smooth, 0.0f, 1.0f, smooth, sum_of_steps(smooth, AREA));
    for (int64_t i = 0; i < AREA; i++) smooth[i] += look->skew * smooth[i] * smooth[i];
    standardise(smooth, 0.0f, look->deviation, smooth, sum_of_steps(smooth, AREA));
    int64_t sum = cloud(plane, cells[6], starts[6], work);
    standardise(plane, 0.0f, look->drift, plane, sum);
    for (int64_t i = 0; i < AREA; i++)
        for (int c = 0; c < 3; c++) {
            float level = look->colour[c] + look->contrast[c] * smooth[i] + drifts[c] * plane[i];
            level = level > 0.0f ? level : 0.0f;
            level = level < 255.0f ? level : 255.0f;
            out[3 * i + c] = (uint8_t)(int32_t)(level + 0x1.8p23f - 0x1.8p23f); /* rounded */
        }
}

/* m textures (m, SIDE, SIDE, 3) with the same crystals, but turned, so that these lie in different
 * places. starts: (m + 1, 10) of the streams of the crystals, and of each texture. */
static int frost_textures(uint8_t *out, const frost_look *looks, const int64_t *starts, int64_t m)
{
    int64_t padded = (SIDE + LONGEST) * PADDED;
    float *planes = new_memory(4 * AREA + ABREAST + padded + CLOUD_WORK, sizeof *planes);
    uint8_t *facets = new_memory(2 * AREA, 1);
    int result = planes && facets ? SC_DONE : SC_NO_MEMORY;
    if (result == SC_DONE) {
        float *rims = planes + 3 * AREA + ABREAST + padded, *work = rims + AREA;
        crystals(facets, rims, starts, planes, work);
        for (int64_t k = 0; k < m; k++)
            texture(out + 3 * k * AREA, facets, rims, k + 1, looks + k, starts + 10 * (k + 1), planes,
                    facets + AREA, work);
    }
    free_memory(planes);
    free_memory(facets);
    return result;
}
