/* Images as they are after having been saved as JPEG and read. All in whole numbers, as in the
 * reference codec; packing the numbers loses nothing and is left out. */

/* ---- the discrete cosine transform of 8 values, forward and back ------------------------------ */

/* The factorisation of Loeffler, Ligtenberg and Moschytz (1989) with the constants at 13 binary
 * places: what the reference codec calls the accurate integer method. A transform of a block is two
 * passes; between them two more binary places are kept. Results are sqrt(8) times those of the
 * orthonormal transform in each pass. */
enum { PLACES = 13, KEPT = 2 };

/* value without its last binary places, half a unit rounded up. */
ALWAYS_INLINE int32_t rounded(int32_t value, int places)
{
    return (value + (1 << (places - 1))) >> places;
}

/* Two values turned by 3 pi / 8 and stretched by sqrt(2). */
ALWAYS_INLINE void turn(int32_t low, int32_t high, int32_t *up, int32_t *down)
{
    int32_t both = (low + high) * 4433;
    *up = both + low * 6270;
    *down = both - high * 15137;
}

/* The four odd values, in either direction: the matrix is its own transpose. */
ALWAYS_INLINE void odd_values(int32_t a, int32_t b, int32_t c, int32_t d, int32_t *out)
{
    int32_t shared = (a + c + b + d) * 9633;
    int32_t far0 = shared - (a + c) * 16069, far1 = shared - (b + d) * 3196;
    int32_t near0 = (a + d) * -7373, near1 = (b + c) * -20995;
    out[0] = a * 2446 + near0 + far0;
    out[1] = b * 16819 + near1 + far1;
    out[2] = c * 25172 + near1 + far0;
    out[3] = d * 12299 + near0 + far1;
}

/* Eight values to coefficients with PLACES more binary places. */
ALWAYS_INLINE void forward(const int32_t *x, int32_t *c)
{
    int32_t e0 = x[0] + x[7], e1 = x[1] + x[6], e2 = x[2] + x[5], e3 = x[3] + x[4], odd[4];
    c[0] = (e0 + e3 + e1 + e2) * (1 << PLACES);
    c[4] = (e0 + e3 - e1 - e2) * (1 << PLACES);
    turn(e0 - e3, e1 - e2, c + 2, c + 6);
    odd_values(x[3] - x[4], x[2] - x[5], x[1] - x[6], x[0] - x[7], odd);
    c[7] = odd[0], c[5] = odd[1], c[3] = odd[2], c[1] = odd[3];
}

/* Eight coefficients to values with PLACES more binary places. */
ALWAYS_INLINE void backward(const int32_t *c, int32_t *x)
{
    int32_t s0 = (c[0] + c[4]) * (1 << PLACES), s1 = (c[0] - c[4]) * (1 << PLACES), up, down, odd[4];
    turn(c[2], c[6], &up, &down);
    odd_values(c[7], c[5], c[3], c[1], odd);
    x[0] = s0 + up + odd[3], x[7] = s0 + up - odd[3];
    x[1] = s1 + down + odd[2], x[6] = s1 + down - odd[2];
    x[2] = s1 - down + odd[1], x[5] = s1 - down - odd[1];
    x[3] = s0 - up + odd[0], x[4] = s0 - up - odd[0];
}

/* ---- blocks: transform, rounding to multiples, transform back ---------------------------------- */

/* Blocks go together, so that every loop runs over the same value of all of them: value (row,
 * column) of block b is at COLUMN * column + BLOCKS * row + b. */
enum { BLOCKS = 16, COLUMN = 8 * BLOCKS };

/* The four numbers for each of the 64 coefficients of a block, in rows: the step, and multiplier,
 * summand and shift that divide by 8 steps and round. */
typedef struct {
    int32_t step[64], multiplier[64], summand[64], shift[64];
} quantisation;

static void transform_blocks(uint8_t *samples, const quantisation *q)
{
    int32_t a[8 * COLUMN];
    for (int i = 0; i < COLUMN; i++) {
        int32_t x[8], c[8];
        for (int k = 0; k < 8; k++) x[k] = samples[k * COLUMN + i];
        forward(x, c);
        for (int k = 0; k < 8; k++) a[k * COLUMN + i] = rounded(c[k], PLACES - KEPT);
        /* 128 is taken off every sample: only their sum changes. */
        a[i] -= 8 * 128 << KEPT;
    }
    for (int u = 0; u < 8; u++) {
        int32_t *column = a + u * COLUMN;
        for (int b = 0; b < BLOCKS; b++) {
            int32_t x[8], c[8];
            for (int v = 0; v < 8; v++) x[v] = column[v * BLOCKS + b];
            forward(x, c);
            for (int v = 0; v < 8; v++) {
                /* The multiple of the step nearest to an eighth, halves away from zero: that is up
                 * for a number that is one less if it is below zero. */
                int32_t value = rounded(c[v], PLACES + KEPT), k = 8 * v + u;
                int32_t product = (value + (value >> 31)) * q->multiplier[k];
                c[v] = ((product + q->summand[k]) >> q->shift[k]) * q->step[k];
            }
            backward(c, x);
            for (int v = 0; v < 8; v++) column[v * BLOCKS + b] = rounded(x[v], PLACES - KEPT);
        }
    }
    for (int i = 0; i < COLUMN; i++) {
        int32_t x[8], c[8];
        for (int k = 0; k < 8; k++) c[k] = a[k * COLUMN + i];
        backward(c, x);
        for (int k = 0; k < 8; k++)
            samples[k * COLUMN + i] = level_of(rounded(x[k], PLACES + KEPT + 3) + 128);
    }
}

/* Put every 8 x 8 block of a plane through the transform, rounding, and back, in place. */
static void code_plane(uint8_t *plane, int64_t rows, int64_t stride, const quantisation *q)
{
    int64_t across = stride / 8, blocks = rows / 8 * across;
    for (int64_t first = 0; first < blocks; first += BLOCKS) {
        uint8_t samples[8 * COLUMN], *rows[BLOCKS], *columns[8];
        for (int b = 0; b < BLOCKS; b++) {
            int64_t block = least(first + b, blocks - 1);
            rows[b] = plane + block / across * 8 * stride + block % across * 8;
        }
        for (int y = 0; y < 8; y++) {
            for (int b = 0; b < BLOCKS; b += 8) {
                for (int k = 0; k < 8; k++) columns[k] = samples + k * COLUMN + y * BLOCKS + b;
                transpose_rows(columns, (const uint8_t *const *)rows + b);
            }
            for (int b = 0; b < BLOCKS; b++) rows[b] += stride;
        }
        transform_blocks(samples, q);
        for (int y = 7; y >= 0; y--) {
            for (int b = 0; b < BLOCKS; b++) rows[b] -= stride;
            for (int b = 0; b < BLOCKS; b += 8) {
                for (int k = 0; k < 8; k++) columns[k] = samples + k * COLUMN + y * BLOCKS + b;
                transpose_rows(rows + b, (const uint8_t *const *)columns);
            }
        }
    }
}

/* ---- colours: brightness at full resolution, two colour differences at half of it ------------- */

/* The planes of an image lie in one array: brightness in rows of `stride` values, then, from
 * `colour` on, rows of both colour differences side by side, `half` values each. All are padded to
 * whole blocks. */
typedef struct {
    int64_t height, width, rows, stride, half_rows, half;
    uint8_t *brightness, *colour;
    uint8_t *upper, *lower; /* rows of both colour differences at full resolution, 4 half values */
    int16_t *sums;          /* 2 half + 2 values */
} jpeg_planes;

/* A row of red, green, blue to brightness and the two colour differences. */
static void split_row(const uint8_t *restrict pixels, int64_t width, uint8_t *restrict light,
                      uint8_t *restrict blue, uint8_t *restrict red)
{
    const int32_t half = 1 << 15, centre = (128 << 16) + half - 1; /* a half is rounded down */
    for (int64_t x = 0; x < width; x++) {
        int32_t r = pixels[3 * x], g = pixels[3 * x + 1], b = pixels[3 * x + 2];
        light[x] = (uint8_t)((r * 19595 + g * 38470 + b * 7471 + half) >> 16);
        blue[x] = (uint8_t)((b * 32768 - r * 11059 - g * 21709 + centre) >> 16);
        red[x] = (uint8_t)((r * 32768 - g * 27439 - b * 5329 + centre) >> 16);
    }
}

/* Repeat the last row of a plane to its end. */
static void extend_plane(uint8_t *plane, int64_t height, int64_t rows, int64_t stride)
{
    for (int64_t y = height; y < rows; y++)
        memcpy(plane + y * stride, plane + (height - 1) * stride, (size_t)stride);
}

/* An image to its planes. Beyond the right edge the last column goes on at full resolution; beyond
 * the bottom the last row of each plane does, at the plane's own resolution. */
static void to_planes(const uint8_t *image, const jpeg_planes *p)
{
    int64_t width = p->width, double_half = 2 * p->half;
    for (int64_t top = 0; top < p->height; top += 2) {
        for (int part = 0; part < 2; part++) {
            int64_t y = least(top + part, p->height - 1);
            uint8_t *light = p->brightness + y * p->stride, *blue = part ? p->lower : p->upper;
            uint8_t *red = blue + double_half;
            split_row(image + 3 * y * width, width, light, blue, red);
            memset(light + width, light[width - 1], (size_t)(p->stride - width));
            memset(blue + width, blue[width - 1], (size_t)(double_half - width));
            memset(red + width, red[width - 1], (size_t)(double_half - width));
        }
        /* Means of 2 x 2 values: halves are rounded down in even columns, and up in odd ones. */
        const uint8_t *upper = p->upper, *lower = p->lower;
        uint8_t *restrict to = p->colour + top * p->half;
        for (int64_t x = 0; x < double_half; x += 2) {
            const uint8_t *a = upper + 2 * x, *b = lower + 2 * x;
            to[x] = (uint8_t)((a[0] + a[1] + b[0] + b[1] + 1) >> 2);
            to[x + 1] = (uint8_t)((a[2] + a[3] + b[2] + b[3] + 2) >> 2);
        }
    }
    extend_plane(p->brightness, p->height, p->rows, p->stride);
    extend_plane(p->colour, (p->height + 1) / 2, p->half_rows, double_half);
}

/* A row of twice as many values: 9/16, 3/16, 3/16 and 1/16 of the four around each. Half a level is
 * rounded up in even columns, and down in odd ones. */
static void double_row(const uint8_t *near_row, const uint8_t *far_row, int64_t n,
                       int16_t *restrict sums, uint8_t *restrict out)
{
    for (int64_t x = 0; x < n; x++) sums[x + 1] = (int16_t)(3 * near_row[x] + far_row[x]);
    for (int64_t x = 0; x < n; x++) {
        out[2 * x] = (uint8_t)((3 * sums[x + 1] + sums[x] + 8) >> 4);
        out[2 * x + 1] = (uint8_t)((3 * sums[x + 1] + sums[x + 2] + 7) >> 4);
    }
}

/* Brightness and colour differences to a row of red, green, blue. */
static void join_row(const uint8_t *restrict light, const uint8_t *restrict blues,
                     const uint8_t *restrict reds, int64_t width, uint8_t *restrict pixels)
{
    const int32_t half = 1 << 15;
    for (int64_t x = 0; x < width; x++) {
        int32_t y = light[x], blue = blues[x] - 128, red = reds[x] - 128;
        pixels[3 * x] = level_of(y + ((red * 91881 + half) >> 16));
        pixels[3 * x + 1] = level_of(y + ((half - blue * 22554 - red * 46802) >> 16));
        pixels[3 * x + 2] = level_of(y + ((blue * 116130 + half) >> 16));
    }
}

/* The planes back to an image. */
static void from_planes(uint8_t *image, const jpeg_planes *p)
{
    int64_t n = (p->width + 1) / 2, last = (p->height + 1) / 2 - 1;
    for (int64_t y = 0; y < p->height; y++) {
        int64_t other = within(y / 2 + (y % 2 ? 1 : -1), 0, last);
        uint8_t *blue = p->upper, *red = blue + 2 * p->half;
        double_row(p->colour + y / 2 * 2 * p->half, p->colour + other * 2 * p->half, 2 * p->half,
                   p->sums, blue);
        /* The first and the last of the doubled values, beyond which nothing is known. */
        for (int c = 0; c < 2; c++) {
            const int16_t *sums = p->sums + 1 + c * p->half;
            uint8_t *row = c ? red : blue;
            row[0] = (uint8_t)((4 * sums[0] + 8) >> 4);
            row[2 * n - 1] = (uint8_t)((4 * sums[n - 1] + 7) >> 4);
        }
        join_row(p->brightness + y * p->stride, blue, red, p->width, image + 3 * y * p->width);
    }
}

/* m images as they are after having been saved and read. tables: the quantisation of brightness,
 * and of colour. */
static int jpeg_round_trip(const uint8_t *images, uint8_t *out, const int32_t *tables, int64_t m,
                           int64_t height, int64_t width)
{
    jpeg_planes p = {.height = height, .width = width};
    p.rows = (height + 7) / 8 * 8, p.stride = (width + 7) / 8 * 8;
    p.half_rows = (height + 15) / 16 * 8, p.half = (width + 15) / 16 * 8;
    quantisation q[2];
    memcpy(q, tables, sizeof q);
    p.brightness = new_memory(p.rows * p.stride + p.half_rows * 2 * p.half + 8 * p.half, 1);
    p.sums = new_memory(2 * p.half + 2, sizeof *p.sums);
    int result = p.brightness && p.sums ? SC_DONE : SC_NO_MEMORY;
    if (result == SC_DONE) {
        p.colour = p.brightness + p.rows * p.stride;
        p.upper = p.colour + p.half_rows * 2 * p.half;
        p.lower = p.upper + 4 * p.half;
        p.sums[0] = p.sums[2 * p.half + 1] = 0;
    }
    for (int64_t j = 0; result == SC_DONE && j < m; j++) {
        to_planes(images + 3 * j * height * width, &p);
        code_plane(p.brightness, p.rows, p.stride, q);
        code_plane(p.colour, p.half_rows, 2 * p.half, q + 1);
        from_planes(out + 3 * j * height * width, &p);
    }
    free_memory(p.brightness);
    free_memory(p.sums);
    return result;
}
