/* Elastic transform: a random affine map, then smooth random displacements, of m images. */

/* ---- smooth random fields from few cosines ---------------------------------------------------- */

/* The smoothing along an axis of n points, exact and by k cosines. */
typedef struct {
    const float *weights; /* (taps) the exact smoothing */
    const float *cosines; /* (lines, k) orthonormal columns; lines is n filled up with zero rows */
    const float *scaled;  /* (n, k) the same columns times what the smoothing makes of them */
    int64_t taps, lines, k, n;
} axis;

enum { EIGHT = 8 };

/* out[i] += the sum over t of factors[t] * rows[t * stride + i], eight terms added in pairs. */
static void add_eight(float *restrict out, int64_t n, const float *rows, int64_t stride,
                      const float *factors)
{
    float f0 = factors[0], f1 = factors[1], f2 = factors[2], f3 = factors[3];
    float f4 = factors[4], f5 = factors[5], f6 = factors[6], f7 = factors[7];
    const float *r0 = rows, *r1 = r0 + stride, *r2 = r1 + stride, *r3 = r2 + stride;
    const float *r4 = r3 + stride, *r5 = r4 + stride, *r6 = r5 + stride, *r7 = r6 + stride;
    for (int64_t i = 0; i < n; i++)
        out[i] = out[i] + ((r0[i] * f0 + r1[i] * f1) + (r2[i] * f2 + r3[i] * f3)) +
                 ((r4[i] * f4 + r5[i] * f5) + (r6[i] * f6 + r7[i] * f7));
}

/* sums: (2, k, length): lines of noise, each times its value of every cosine, added up. Line i
 * starts at word i * line_step and goes on in steps of step. noise: (2, 8, length) to work in. */
static void project(float *sums, const axis *x, int64_t length, int64_t line_step, int64_t step,
                    float amplitude, uint32_t a, uint32_t b, float *noise)
{
    memset(sums, 0, (size_t)(2 * x->k * length) * sizeof *sums);
    for (int64_t start = 0; start < x->lines; start += EIGHT) {
        for (int64_t i = 0; i < EIGHT; i++)
            noise_row(noise + i * length, noise + (EIGHT + i) * length, length,
                      (uint32_t)((start + i) * line_step), (uint32_t)step, amplitude, a, b);
        for (int64_t e = 0; e < x->k; e++) {
            float factors[EIGHT];
            for (int64_t i = 0; i < EIGHT; i++) factors[i] = x->cosines[(start + i) * x->k + e];
            add_eight(sums + e * length, length, noise, length, factors);
            add_eight(sums + (x->k + e) * length, length, noise + EIGHT * length, length, factors);
        }
    }
}

/* What cosine_fields needs to work in, in float32. */
static int64_t cosine_memory(const axis *down, const axis *across)
{
    int64_t longest = most(down->n, across->n), terms = down->k + across->k + EIGHT;
    return 2 * down->k * across->n + 2 * across->k * down->n + 2 * EIGHT * longest +
           terms * (across->n + 1) + across->k + longest + most(down->taps, across->taps);
}

/* Two smoothed fields of uniform noise, (2, h, w); pixel p takes its noise from word p.
 *
 * Let S be the smoothing along an axis, L the part of it that few cosines carry, and N the noise.
 * Then S N S = S N L + L N S - L N L + (S - L) N (S - L), where the last term is nothing to speak
 * of, and the others need only the products of N with the cosines. */
static void cosine_fields(float *fields, const axis *down, const axis *across, float amplitude,
                          uint32_t a, uint32_t b, float *work)
{
    int64_t h = down->n, w = across->n, n = down->k + across->k;
    int64_t terms = (n + EIGHT - 1) / EIGHT * EIGHT;
    float *by_row = work, *by_column = by_row + 2 * down->k * w;
    float *rows = by_column + 2 * across->k * h, *factors = rows + terms * w;
    float *both = factors + terms, *rest = both + across->k;
    project(by_row, down, w, w, 1, amplitude, a, b, rest);
    project(by_column, across, h, 1, w, amplitude, a, b, rest);
    memset(rows, 0, (size_t)(terms * (w + 1)) * sizeof *rows);
    for (int64_t f = 0; f < across->k; f++)
        for (int64_t i = 0; i < w; i++) rows[f * w + i] = across->scaled[i * across->k + f];
    for (int64_t c = 0; c < 2; c++) {
        float *lines = by_row + c * down->k * w, *columns = by_column + c * across->k * h;
        for (int64_t e = 0; e < down->k; e++) {
            float *line = lines + e * w, *restrict row = rows + (across->k + e) * w;
            memset(both, 0, (size_t)across->k * sizeof *both);
            for (int64_t i = 0; i < w; i++)
                for (int64_t f = 0; f < across->k; f++)
                    both[f] += line[i] * across->cosines[i * across->k + f];
            smooth_rows(line, 1, w, across->weights, across->taps, REFLECT, rest);
            memcpy(row, line, (size_t)w * sizeof *row);
            for (int64_t f = 0; f < across->k; f++)
                for (int64_t i = 0; i < w; i++) row[i] += rows[f * w + i] * -both[f];
        }
        smooth_rows(columns, across->k, h, down->weights, down->taps, REFLECT, rest);
        for (int64_t y = 0; y < h; y++) {
            float *out = fields + (c * h + y) * w;
            for (int64_t f = 0; f < across->k; f++) factors[f] = columns[f * h + y];
            for (int64_t e = 0; e < down->k; e++)
                factors[across->k + e] = down->scaled[y * down->k + e];
            memset(out, 0, (size_t)w * sizeof *out);
            for (int64_t t = 0; t < terms; t += EIGHT)
                add_eight(out, w, rows + t * w, w, factors + t);
        }
    }
}

/* ---- colour images sampled between pixels ----------------------------------------------------- */

/* A pixel is one 64-bit number with three lanes of 21 bits, one for each channel, so that a single
 * multiplication weighs all three. Weights are whole numbers with the sum 2^13 for pixels of 8
 * bits, and 2^10 for pixels of 11 bits, of which the last three are fractions of a level. A plane
 * has one more row and column than the image, which are read with weight 0. */
enum { FOR_EIGHT = 13, FOR_ELEVEN = 10 };

/* Where a row of points lies in a plane, and the weights of the pixels to the right, below, and
 * below to the right; that of the pixel itself is the rest. */
typedef struct {
    float *x, *y;
    uint32_t *at, *right, *below, *beyond;
} points;

static void pack_pixels(const uint8_t *image, uint64_t *plane, int64_t h, int64_t w)
{
    for (int64_t y = 0; y < h; y++) {
        const uint8_t *from = image + 3 * y * w;
        uint64_t *restrict row = plane + y * (w + 1);
        for (int64_t x = 0; x < w; x++)
            row[x] = from[3 * x] | (uint64_t)from[3 * x + 1] << 21 | (uint64_t)from[3 * x + 2] << 42;
    }
}

/* The point in [0, n - 1] that s is mirrored to. With an offset of 0 the mirrors stand on the
 * outermost pixels, with 1/2 on their outer edges, where the outermost value holds. What is 255
 * periods away or not a number is somewhere in the image all the same. */
ALWAYS_INLINE float fold(float s, int64_t n, float offset)
{
    float last = (float)(n - 1), period = 2.0f * (last + 2.0f * offset), limit = 255.0f * period;
    float inverse = period > 0.0f ? 1.0f / period : 0.0f;
    s += offset;
    s = s > -limit ? s : -limit;
    s = s < limit ? s : limit;
    /* Cutting a positive number is a floor that vectorises; near a whole number of periods it may
     * be one too low or too high, which mirroring corrects. */
    float periods = (float)(int32_t)(s * inverse + 256.0f) - 256.0f;
    float rest = s - periods * period, back = period - rest;
    rest = fabsf(rest < back ? rest : back) - offset;
    rest = rest > 0.0f ? rest : 0.0f;
    return rest < last ? rest : last;
}

static void locate(const points *p, int64_t h, int64_t w, float offset, int bits)
{
    float scale = (float)(1 << bits);
    int32_t half = 1 << (bits - 1), stride = (int32_t)(w + 1);
    const float *xs = p->x, *ys = p->y;
    uint32_t *restrict at = p->at, *restrict right = p->right;
    uint32_t *restrict below = p->below, *restrict beyond = p->beyond;
    for (int64_t j = 0; j < w; j++) {
        float x = fold(xs[j], w, offset), y = fold(ys[j], h, offset);
        int32_t column = (int32_t)x, row = (int32_t)y;
        int32_t u = (int32_t)((x - (float)column) * scale + 0.5f);
        int32_t v = (int32_t)((y - (float)row) * scale + 0.5f);
        int32_t both = (u * v + half) >> bits;
        at[j] = (uint32_t)(row * stride + column);
        right[j] = (uint32_t)(u - both);
        below[j] = (uint32_t)(v - both);
        beyond[j] = (uint32_t)both;
    }
}

ALWAYS_INLINE uint64_t sample(const uint64_t *plane, int64_t stride, const points *p, int64_t j,
                              int bits)
{
    const uint64_t *here = plane + p->at[j], *under = here + stride;
    uint64_t own = here[0];
    return (own << bits) + (here[1] - own) * p->right[j] + (under[0] - own) * p->below[j] +
           (under[1] - own) * p->beyond[j];
}

ALWAYS_INLINE void sample_bytes(const uint64_t *plane, int64_t w, const points *p, int bits,
                                uint8_t *restrict out)
{
    for (int64_t j = 0; j < w; j++) {
        uint64_t lanes = sample(plane, w + 1, p, j, bits);
        out[3 * j] = (uint8_t)(lanes >> 13);
        out[3 * j + 1] = (uint8_t)(lanes >> 34);
        out[3 * j + 2] = (uint8_t)(lanes >> 55);
    }
}

/* ---- the affine map --------------------------------------------------------------------------- */

/* The i-th uniform number in (-jitter, jitter): word 2^32 - 16 + i of the stream. */
static float corner_move(int i, double jitter, uint32_t a, uint32_t b)
{
    double bits = random_word(0xFFFFFFF0u + (uint32_t)i, a, b);
    return (float)(jitter * ((2.0 * bits + 1.0) * 0x1p-32 - 1.0));
}

/* The inverse (xx, xy, x0, yx, yy, y0) of the map that moves three points at random. */
static void random_affine(double *back, int64_t h, int64_t w, double jitter, uint32_t a, uint32_t b)
{
    int64_t reach = least(h, w) / 3;
    /* The published points take the height's half for x, and the width's for y. */
    int64_t centre_x = h / 2, centre_y = w / 2;
    double x[3], y[3];
    for (int i = 0; i < 3; i++) {
        int64_t right = i < 2 ? reach : -reach, lower = i < 1 ? reach : -reach;
        x[i] = (float)(centre_x + right) + corner_move(2 * i, jitter, a, b);
        y[i] = (float)(centre_y + lower) + corner_move(2 * i + 1, jitter, a, b);
    }
    double side = 2.0 * (double)reach;
    double xx = (x[1] - x[2]) / side, xy = (x[0] - x[1]) / side;
    double yx = (y[1] - y[2]) / side, yy = (y[0] - y[1]) / side;
    double x0 = x[1] - xx * (double)(centre_x + reach) - xy * (double)(centre_y - reach);
    double y0 = y[1] - yx * (double)(centre_x + reach) - yy * (double)(centre_y - reach);
    double determinant = xx * yy - xy * yx, d = determinant != 0.0 ? 1.0 / determinant : 0.0;
    back[0] = yy * d, back[1] = -xy * d, back[2] = (xy * y0 - yy * x0) * d;
    back[3] = -yx * d, back[4] = xx * d, back[5] = (yx * x0 - xx * y0) * d;
}

static void affine_row(const points *p, int64_t w, int64_t y, const double *back)
{
    float x_step = (float)back[0], x_start = (float)(back[1] * (double)y + back[2]);
    float y_step = (float)back[3], y_start = (float)(back[4] * (double)y + back[5]);
    float *restrict xs = p->x, *restrict ys = p->y;
    for (int32_t x = 0; x < (int32_t)w; x++) {
        xs[x] = (float)x * x_step + x_start;
        ys[x] = (float)x * y_step + y_start;
    }
}

/* ---- the kernels ------------------------------------------------------------------------------ */

/* jitter: how far a point of the affine map may move along either axis, in pixels. amplitude: of
 * the noise before it is smoothed, in pixels; the displacements are smoothed by the taps of
 * `weights`, or by `down` and `across` if these are given; with neither there is the affine map
 * only. Pixel p takes its noise from word p, the lower half for the displacement along the row,
 * the upper half for that along the column. */
static int warp_images(const uint8_t *images, uint8_t *out, double jitter, float amplitude,
                       const float *weights, int64_t taps, const axis *down, const axis *across,
                       const uint32_t *keys, int64_t m, int64_t h, int64_t w)
{
    int64_t count = h * w, framed = (h + 1) * (w + 1), moves = weights || down;
    int64_t room = down ? cosine_memory(down, across) : field_memory(h, w, taps);
    uint64_t *planes = new_memory(2 * framed, sizeof *planes);
    uint32_t *whole = new_memory(4 * w, sizeof *whole);
    float *floats = new_memory(2 * w + moves * (2 * count + room), sizeof *floats);
    int result = planes && whole && floats ? SC_DONE : SC_NO_MEMORY;
    points p = {floats, floats + w, whole, whole + w, whole + 2 * w, whole + 3 * w};
    float *fields = floats + 2 * w, *work = fields + 2 * count;
    if (result == SC_DONE) memset(planes, 0, (size_t)(2 * framed) * sizeof *planes);
    for (int64_t j = 0; result == SC_DONE && j < m; j++) {
        uint32_t a = keys[2 * j], b = keys[2 * j + 1];
        uint64_t *second = planes + framed;
        double back[6];
        if (down)
            cosine_fields(fields, down, across, amplitude, a, b, work);
        else if (weights) {
            noise_row(fields, fields + count, count, 0, 1, amplitude, a, b);
            smooth_field(fields, h, w, weights, taps, REFLECT, work);
            smooth_field(fields + count, h, w, weights, taps, REFLECT, work);
        }
        random_affine(back, h, w, jitter, a, b);
        pack_pixels(images + 3 * j * count, planes, h, w);
        for (int64_t y = 0; y < h; y++) {
            affine_row(&p, w, y, back);
            locate(&p, h, w, 0.0f, FOR_EIGHT);
            if (!moves) {
                sample_bytes(planes, w, &p, FOR_EIGHT, out + 3 * (j * count + y * w));
                continue;
            }
            uint64_t *restrict row = second + y * (w + 1), ones = 1 | 1 << 21 | (uint64_t)1 << 42;
            for (int64_t x = 0; x < w; x++)
                row[x] = (sample(planes, w + 1, &p, x, FOR_EIGHT) + (ones << 9)) >> 10 & ones * 0x7FF;
        }
        for (int64_t y = 0; moves && y < h; y++) {
            const float *along = fields + y * w, *across_rows = along + count;
            for (int32_t x = 0; x < (int32_t)w; x++) {
                p.x[x] = (float)x + along[x];
                p.y[x] = (float)y + across_rows[x];
            }
            locate(&p, h, w, 0.5f, FOR_ELEVEN);
            sample_bytes(second, w, &p, FOR_ELEVEN, out + 3 * (j * count + y * w));
        }
    }
    free_memory(planes);
    free_memory(whole);
    free_memory(floats);
    return result;
}
