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

/* So many rows go together, first the even ones, then the odd ones: sums of neighbouring rows, and
 * all other loops, are over one piece of memory. They take so many values in a step, a number that
 * the compiler knows. */
enum { LINES = 16, GROUP = 64 };

/* The planes of an image: brightness, (rows, stride), and the two colour differences, (half_rows,
 * stride / 2). The stride is a multiple of 16. What lies beyond the image repeats its last values.
 * The last four are for LINES rows. */
typedef struct {
    int64_t height, width, rows, half_rows, stride;
    uint8_t *brightness, *colour, *red, *green, *blue;
    int16_t *sums; /* of half rows, and one more value on both sides */
} jpeg_planes;

ALWAYS_INLINE int64_t line_at(int64_t y, int64_t stride)
{
    return (y % 2 * LINES / 2 + y / 2) * stride;
}

/* Red, green, blue to brightness and colour differences, and back; in place. The weights have 16
 * binary places: the sums with their upper and with their lower eight bits are 16-bit numbers. As
 * weights sum to 1, or 0, those of red and blue are enough, for differences from green. Colour
 * differences have 128 for none, and a half is rounded down. */
static void split_colours(uint8_t *restrict red, uint8_t *restrict green, uint8_t *restrict blue,
                          int64_t n)
{
    for (int64_t start = 0; start < n; start += GROUP)
        for (int64_t i = start; i < start + GROUP; i++) {
            int16_t g = green[i], r = (int16_t)(red[i] - g), b = (int16_t)(blue[i] - g);
            int16_t light = (int16_t)(128 + 77 * r + 29 * b + ((int16_t)(47 * b - 117 * r) >> 8));
            int16_t of_blue = (int16_t)(127 + 128 * b - 43 * r + ((int16_t)(255 - 51 * r) >> 8));
            int16_t of_red = (int16_t)(127 + 128 * r - 21 * b + ((int16_t)(255 + 47 * b) >> 8));
            red[i] = (uint8_t)(g + (light >> 8));
            green[i] = (uint8_t)(128 + (of_blue >> 8));
            blue[i] = (uint8_t)(128 + (of_red >> 8));
        }
}

static void join_colours(uint8_t *restrict lights, uint8_t *restrict blues, uint8_t *restrict reds,
                         int64_t n)
{
    for (int64_t start = 0; start < n; start += GROUP)
        for (int64_t i = start; i < start + GROUP; i++) {
            int16_t light = lights[i];
            int16_t blue = (int16_t)(blues[i] - 128), red = (int16_t)(reds[i] - 128);
            int16_t r = (int16_t)(128 + 102 * red + ((int16_t)(233 * red) >> 8));
            int16_t g = (int16_t)(46 * red - 26 * blue);
            g = (int16_t)(128 + 73 * red - 88 * blue + (g >> 8));
            int16_t b = (int16_t)(128 - 58 * blue + ((int16_t)(-94 * blue) >> 8));
            lights[i] = level_of_short((int16_t)(light + red + (r >> 8)));
            blues[i] = level_of_short((int16_t)(light - red + (g >> 8)));
            reds[i] = level_of_short((int16_t)(light + 2 * blue + (b >> 8)));
        }
}

/* n means of 2 x 2 values; halves are rounded down in even columns, and up in odd ones. */
static void halve(uint8_t *restrict out, const uint8_t *upper, const uint8_t *lower, int64_t n)
{
    for (int64_t start = 0; start < n; start += GROUP)
        for (int64_t i = start; i < start + GROUP; i++)
            out[i] = (uint8_t)((upper[2 * i] + upper[2 * i + 1] + lower[2 * i] + lower[2 * i + 1] +
                                1 + (i & 1)) >> 2);
}

/* An image to its planes. */
static void to_planes(const uint8_t *image, const jpeg_planes *p)
{
    int64_t width = p->width, stride = p->stride, half = stride / 2, halved = (p->height + 1) / 2;
    uint8_t *planes[2] = {p->colour, p->colour + p->half_rows * half};
    for (int64_t top = 0; top < p->height; top += LINES) {
        for (int64_t y = 0; y < LINES; y++) {
            int64_t at = line_at(y, stride);
            uint8_t *r = p->red + at, *g = p->green + at, *b = p->blue + at;
            split_pixels(r, g, b, image + 3 * width * least(top + y, p->height - 1), width);
            for (int64_t x = width; x < stride; x++)
                r[x] = r[width - 1], g[x] = g[width - 1], b[x] = b[width - 1];
        }
        split_colours(p->red, p->green, p->blue, LINES * stride);
        for (int64_t y = 0; y < least(LINES, p->rows - top); y++)
            memcpy(p->brightness + (top + y) * stride, p->red + line_at(y, stride), (size_t)stride);
        for (int c = 0; c < 2; c++) {
            const uint8_t *rows = c ? p->blue : p->green;
            halve(planes[c] + top / 2 * half, rows, rows + LINES * half, LINES / 2 * half);
        }
    }
    for (int c = 0; c < 2; c++)
        for (int64_t y = halved; y < p->half_rows; y++)
            memcpy(planes[c] + y * half, planes[c] + (halved - 1) * half, (size_t)half);
}

/* Three times each value, plus that in the row above; then the same with the row below. */
static void weigh_rows(int16_t *restrict sums, const uint8_t *rows, int64_t stride, int64_t n)
{
    for (int64_t start = 0; start < n; start += GROUP)
        for (int64_t i = start; i < start + GROUP; i++) {
            sums[i] = (int16_t)(3 * rows[i] + rows[i - stride]);
            sums[n + i] = (int16_t)(3 * rows[i] + rows[i + stride]);
        }
}

/* Two values for each of n: 3/16 of it and 1/16 of its neighbour on that side. Half a level is
 * rounded up in even columns, and down in odd ones. */
static void double_values(uint8_t *restrict out, const int16_t *sums, int64_t n)
{
    for (int64_t start = 0; start < n; start += GROUP)
        for (int64_t i = start; i < start + GROUP; i++) {
            out[2 * i] = (uint8_t)((3 * sums[i] + sums[i - 1] + 8) >> 4);
            out[2 * i + 1] = (uint8_t)((3 * sums[i] + sums[i + 1] + 7) >> 4);
        }
}

/* LINES rows of a plane of colour differences at full resolution. */
static void enlarge(uint8_t *out, const jpeg_planes *p, const uint8_t *plane, int64_t top)
{
    int64_t half = p->stride / 2, n = (p->width + 1) / 2, last = (p->height + 1) / 2 - 1;
    const uint8_t *rows = plane + top / 2 * half;
    int16_t *sums = p->sums + 1, *below = sums + LINES / 2 * half;
    weigh_rows(sums, rows, half, LINES / 2 * half);
    /* At the edge a line is its own neighbour. */
    if (top == 0)
        for (int64_t x = 0; x < half; x++) sums[x] = (int16_t)(4 * rows[x]);
    if (last < (top + LINES) / 2)
        for (int64_t x = (last - top / 2) * half, end = x + half; x < end; x++)
            below[x] = (int16_t)(4 * rows[x]);
    double_values(out, sums, LINES * half);
    for (int64_t y = 0; y < LINES; y++) {
        out[2 * y * half] = (uint8_t)((4 * sums[y * half] + 8) >> 4);
        out[2 * (y * half + n) - 1] = (uint8_t)((4 * sums[y * half + n - 1] + 7) >> 4);
    }
}

/* The planes back to an image. */
static void from_planes(uint8_t *image, const jpeg_planes *p)
{
    int64_t width = p->width, stride = p->stride;
    for (int64_t top = 0; top < p->height; top += LINES) {
        int64_t lines = least(LINES, p->height - top);
        for (int64_t y = 0; y < lines; y++)
            memcpy(p->red + line_at(y, stride), p->brightness + (top + y) * stride, (size_t)stride);
        enlarge(p->green, p, p->colour, top);
        enlarge(p->blue, p, p->colour + p->half_rows * stride / 2, top);
        join_colours(p->red, p->green, p->blue, LINES * stride);
        for (int64_t y = 0; y < lines; y++) {
            int64_t at = line_at(y, stride);
            join_pixels(image + 3 * width * (top + y), p->red + at, p->green + at, p->blue + at,
                        width);
        }
    }
}

/* m images as they are after having been saved and read. tables: the quantisation of brightness,
 * and of colour. */
static int jpeg_round_trip(const uint8_t *images, uint8_t *out, const int32_t *tables, int64_t m,
                           int64_t height, int64_t width)
{
    jpeg_planes p = {.height = height, .width = width, .stride = (width + 15) / 16 * 16};
    p.rows = (height + 7) / 8 * 8, p.half_rows = (height + 15) / 16 * 8;
    quantisation q[2];
    memcpy(q, tables, sizeof q);
    p.brightness = new_memory((p.rows + p.half_rows + 3 * LINES) * p.stride, 1);
    p.sums = new_memory(LINES / 2 * p.stride + 2, sizeof *p.sums);
    int result = p.brightness && p.sums ? SC_DONE : SC_NO_MEMORY;
    if (result == SC_DONE) {
        p.colour = p.brightness + p.rows * p.stride;
        p.red = p.colour + p.half_rows * p.stride;
        p.green = p.red + LINES * p.stride, p.blue = p.green + LINES * p.stride;
        p.sums[0] = p.sums[LINES / 2 * p.stride + 1] = 0;
    }
    for (int64_t j = 0; result == SC_DONE && j < m; j++) {
        to_planes(images + 3 * j * height * width, &p);
        code_plane(p.brightness, p.rows, p.stride, q);
        code_plane(p.colour, 2 * p.half_rows, p.stride / 2, q + 1);
        from_planes(out + 3 * j * height * width, &p);
    }
    free_memory(p.brightness);
    free_memory(p.sums);
    return result;
}
