/* Spatter: drops of water, or mud, on m images.
 *
 * Each step of the water gives what OpenCV's function of that name gives, borders mirrored without
 * repeating the last pixel unless stated otherwise. */

/* ---- planes with a frame of two pixels around them --------------------------------------------- */

/* A plane of h rows and w columns is a line of (h + 4) (w + 4) values. Loops run over all of it,
 * frames between the rows included, at one go: at 32 pixels a loop for each row would cost more
 * than the work. What then stands in the frame has no meaning until it is written again. */
enum { FRAME = 2 };

typedef struct {
    int64_t h, w, stride, size; /* size: values with the frame */
    int64_t first, count;       /* where the pixels begin, and how far they reach */
} frame;

static frame frame_of(int64_t h, int64_t w)
{
    int64_t stride = w + 2 * FRAME;
    frame f = {h, w, stride, (h + 2 * FRAME) * stride, FRAME * stride + FRAME, (h - 1) * stride + w};
    return f;
}

/* Set the pixels next to the border: to the border's (step 0) or to its neighbours' (1). */
#define MIRROR_FRAME(name, type)                                                                   \
    static void name(type *plane, const frame *f, int64_t step)                                    \
    {                                                                                              \
        int64_t down = f->h > 1 ? step * f->stride : 0, across = f->w > 1 ? step : 0;              \
        for (int64_t y = 0; y < f->h; y++) {                                                       \
            type *left = plane + f->first + y * f->stride, *right = left + f->w - 1;               \
            left[-1] = left[across];                                                               \
            right[1] = right[-across];                                                             \
        }                                                                                          \
        type *top = plane + FRAME * f->stride, *bottom = top + (f->h - 1) * f->stride;             \
        memcpy(top - f->stride, top + down, (size_t)f->stride * sizeof *plane);                    \
        memcpy(bottom + f->stride, bottom - down, (size_t)f->stride * sizeof *plane);              \
    }
MIRROR_FRAME(mirror_frame_i2, int16_t)
MIRROR_FRAME(mirror_frame_f4, float)

/* Set the whole frame to 0. */
static void clear_frame(void *plane, const frame *f, size_t bytes)
{
    char *row = plane;
    size_t stride = (size_t)f->stride * bytes, edge = FRAME * bytes;
    memset(row, 0, FRAME * stride);
    row += FRAME * stride;
    for (int64_t y = 0; y < f->h; y++, row += stride) {
        memset(row, 0, edge);
        memset(row + stride - edge, 0, edge);
    }
    memset(row, 0, FRAME * stride);
}

/* ---- edges after Canny (1986), with an aperture of 3 and the L1 gradient ------------------------ */

enum { WEAK = 1, STRONG = 2, LOW_GRADIENT = 50, HIGH_GRADIENT = 150 };

/* Sobel gradients and their size |gx| + |gy|. */
static void gradients(const int16_t *plane, const frame *f, int16_t *restrict gx,
                      int16_t *restrict gy, int16_t *restrict size)
{
    const int16_t *line = plane + f->first, *up = line - f->stride, *down = line + f->stride;
    gx += f->first, gy += f->first, size += f->first;
    for (int64_t i = 0; i < f->count; i++) {
        int16_t x = (int16_t)(up[i + 1] - up[i - 1] + down[i + 1] - down[i - 1] +
                              2 * (line[i + 1] - line[i - 1]));
        int16_t y = (int16_t)(down[i - 1] - up[i - 1] + down[i + 1] - up[i + 1] +
                              2 * (down[i] - up[i]));
        gx[i] = x, gy[i] = y;
        size[i] = (int16_t)((x < 0 ? -x : x) + (y < 0 ? -y : y));
    }
}

/* Thin edges to local maxima across them. Of two equal neighbours the later one is the edge, but
 * not on a diagonal. */
static void thin(const int16_t *gx, const int16_t *gy, const int16_t *size, const frame *f,
                 uint8_t *restrict state)
{
    const int16_t *line = size + f->first, *up = line - f->stride, *down = line + f->stride;
    const int32_t tangent = 13573; /* of 22.5 degrees in 2^-15; that of 67.5 degrees is 2 more */
    gx += f->first, gy += f->first, state += f->first;
    for (int64_t i = 0; i < f->count; i++) {
        int16_t x = gx[i], y = gy[i], m = line[i];
        int32_t wide = x < 0 ? -x : x, tall = y < 0 ? -y : y;
        int32_t across = wide * tangent, along = tall * 32768;
        int flat = along < across, steep = along > across + wide * 65536, falling = (x ^ y) < 0;
        int16_t before = falling ? up[i + 1] : up[i - 1];
        int16_t after = falling ? down[i - 1] : down[i + 1];
        before = steep ? up[i] : before;
        after = steep ? down[i] : after;
        before = flat ? line[i - 1] : before;
        after = flat ? line[i + 1] : after;
        int beats = (m > before) & ((m > after) | ((m == after) & (flat | steep)));
        beats &= m > LOW_GRADIENT;
        state[i] = (uint8_t)(beats + (beats & (m > HIGH_GRADIENT)));
    }
}

/* Make every weak pixel strong that a chain of weak ones joins to a strong one, also over corners.
 * Few are: those next to a strong pixel are found first, for all pixels at one go.
 * touched: (size); waiting: room for all pixels. */
static void join_edges(uint8_t *state, const frame *f, uint8_t *restrict touched, int32_t *waiting)
{
    const int32_t s = (int32_t)f->stride;
    const int32_t around[8] = {-s - 1, -s, -s + 1, -1, 1, s - 1, s, s + 1};
    const uint8_t *line = state + f->first, *up = line - s, *down = line + s;
    int64_t n = 0;
    for (int64_t i = 0; i < f->count; i++) {
        uint8_t near_it = up[i - 1] | up[i] | up[i + 1] | line[i - 1] | line[i + 1] | down[i - 1] |
                          down[i] | down[i + 1];
        touched[i] = (uint8_t)(line[i] & (near_it >> 1)); /* WEAK is bit 0, STRONG bit 1 */
    }
    for (int64_t i = 0; i < f->count; i++) {
        uint64_t eight = 1;
        if (i + 8 <= f->count) memcpy(&eight, touched + i, 8);
        if (eight == 0) {
            i += 7;
            continue;
        }
        if (touched[i] == 0) continue;
        state[f->first + i] = STRONG;
        for (int32_t at = (int32_t)(f->first + i);; at = waiting[--n]) {
            for (int k = 0; k < 8; k++)
                if (state[at + around[k]] == WEAK) {
                    state[at + around[k]] = STRONG;
                    waiting[n++] = at + around[k];
                }
            if (n == 0) break;
        }
    }
}

/* ---- distances to the nearest edge by a chamfer (Borgefors, 1986) ------------------------------- */

/* Steps of 1, 1.4 and 2.1969 (along, across, knight's move) are added one at a time in float32, as
 * in OpenCV with the mask of 5 x 5 on processors of the x86 family (elsewhere it counts in units of
 * 2^-16, with differences below 0.0005). */
static const float KNIGHT = 2.1969f, DIAGONAL = 1.4f, FARTHEST = 20.0f;

ALWAYS_INLINE float lesser(float a, float b) { return a < b ? a : b; }

/* Take what the two rows on one side of a row, at s and 2 s, allow. */
static void from_rows(float *restrict row, const float *one, const float *two, int64_t w)
{
    for (int64_t i = 0; i < w; i++) {
        float knight = lesser(lesser(one[i - 2], one[i + 2]), lesser(two[i - 1], two[i + 1]));
        float diagonal = lesser(one[i - 1], one[i + 1]);
        float best = lesser(knight + KNIGHT, diagonal + DIAGONAL);
        row[i] = lesser(lesser(row[i], best), one[i] + 1.0f);
    }
}

/* Go on from a part's last pixel while that makes distances smaller, `most_pixels` long. */
ALWAYS_INLINE void carry(float *last, int way, int64_t most_pixels)
{
    float near_edge = *last + 1.0f;
    for (float *at = last + way; most_pixels > 0 && near_edge < *at; at += way, most_pixels--) {
        *at = near_edge;
        near_edge += 1.0f;
    }
}

/* Go along a row; way is 1 or -1. Each pixel waits for the one before it. So four
 * parts of the row are done at the same time, and what carries over from a part to the next is
 * added afterwards, as far as it counts. */
ALWAYS_INLINE void along_row(float *first, int way, int64_t w)
{
    int64_t part = w / 4;
    float *a = first, *b = a + part * way, *c = b + part * way, *d = c + part * way;
    float na = *a, nb = *b, nc = *c, nd = *d;
    for (int64_t i = 1; i < part; i++) {
        a += way, b += way, c += way, d += way;
        *a = na = lesser(*a, na + 1.0f);
        *b = nb = lesser(*b, nb + 1.0f);
        *c = nc = lesser(*c, nc + 1.0f);
        *d = nd = lesser(*d, nd + 1.0f);
    }
    for (int64_t i = part ? 4 * part : 1; i < w; i++) {
        d += way;
        *d = nd = lesser(*d, nd + 1.0f);
    }
    if (part == 0) return;
    carry(a, way, w - part);
    carry(b, way, w - 2 * part);
    carry(c, way, w - 3 * part);
}

/* The distance of every pixel to the nearest strong one, at most 20; the frame will be 20. */
static void edge_distances(const uint8_t *state, const frame *f, float *out)
{
    for (int64_t i = 0; i < f->size; i++) out[i] = state[i] == STRONG ? 0.0f : FARTHEST;
    for (int64_t y = 0; y < f->h; y++) {
        float *row = out + f->first + y * f->stride;
        from_rows(row, row - f->stride, row - 2 * f->stride, f->w);
        along_row(row, 1, f->w);
    }
    for (int64_t y = f->h - 1; y >= 0; y--) {
        float *row = out + f->first + y * f->stride;
        from_rows(row, row + f->stride, row + 2 * f->stride, f->w);
        along_row(row + f->w - 1, -1, f->w);
    }
}

/* ---- distances made into light and shade -------------------------------------------------------- */

/* The mean of each 3 x 3 neighbourhood of distances, which are 0 or from 1 to 20, cut to a whole
 * number. The nine are added exactly, as multiples of 2^-23, and their ninth is rounded to float32
 * before it is cut, so that a mean that rounding leaves just below a whole number is that number. */
static void box_distances(float *distances, const frame *f, int32_t *restrict sums,
                          int16_t *restrict out)
{
    mirror_frame_f4(distances, f, 1);
    int64_t s = f->stride;
    const float units = 0x1p23f, *from = distances + f->first - s;
    int32_t *restrict to = sums + f->first - s;
    for (int64_t i = 0; i < f->count + 2 * s; i++)
        to[i] = (int32_t)(from[i - 1] * units) + (int32_t)(from[i] * units) +
                (int32_t)(from[i + 1] * units);
    for (int64_t i = 0; i < f->count; i++) {
        int32_t total = to[i] + to[i + s] + to[i + 2 * s];
        out[f->first + i] = (int16_t)(int32_t)(float)((double)total * ((1.0 / 9.0) / (1 << 23)));
    }
}

/* Spread the levels of a plane, which are below 32, so that each is as bright as the share of pixels
 * up to it. The darkest level that occurs becomes 0, the brightest 255; a flat plane stays as it
 * is. */
static void equalize(int16_t *plane, const frame *f)
{
    enum { LEVELS = 32 };
    int32_t counts[4][LEVELS] = {{0}}, *table = counts[0];
    for (int64_t y = 0; y < f->h; y++) {
        /* Four tallies are kept: equal neighbours do not wait for one another. */
        const int16_t *row = plane + f->first + y * f->stride;
        for (int64_t x = 0; x < f->w; x++) counts[x & 3][row[x] & (LEVELS - 1)]++;
    }
    int darkest = 0;
    for (int i = 0; i < LEVELS; i++) table[i] += counts[1][i] + counts[2][i] + counts[3][i];
    while (table[darkest] == 0) darkest++;
    int64_t others = f->h * f->w - table[darkest], total = 0;
    if (others == 0) return;
    float scale = 255.0f / (float)others;
    table[darkest] = 0;
    for (int i = 0; i < LEVELS; i++) {
        total += table[i];
        table[i] = (int32_t)rintf((float)total * scale);
    }
    for (int64_t i = f->first; i < f->first + f->count; i++)
        plane[i] = (int16_t)table[plane[i] & (LEVELS - 1)];
}

/* Correlate with [[-2, -1, 0], [-1, 1, 1], [0, 1, 2]] and stop at 0 and 255. */
static void emboss(int16_t *plane, const frame *f, int16_t *restrict out)
{
    mirror_frame_i2(plane, f, 1);
    const int16_t *line = plane + f->first, *up = line - f->stride, *down = line + f->stride;
    out += f->first;
    for (int64_t i = 0; i < f->count; i++) {
        int16_t dark = (int16_t)(2 * up[i - 1] + up[i] + line[i - 1]);
        int16_t light = (int16_t)(2 * down[i + 1] + down[i] + line[i + 1]);
        int16_t level = (int16_t)(light - dark + line[i]);
        out[i] = (int16_t)(level < 0 ? 0 : level > 255 ? 255 : level);
    }
}

/* The mean of each 3 x 3 neighbourhood of levels, rounded. */
static void box_levels(int16_t *plane, const frame *f, int16_t *restrict sums, int16_t *restrict out)
{
    mirror_frame_i2(plane, f, 1);
    int64_t s = f->stride;
    const int16_t *from = plane + f->first - s;
    int16_t *restrict to = sums + f->first - s;
    for (int64_t i = 0; i < f->count + 2 * s; i++)
        to[i] = (int16_t)(from[i - 1] + from[i] + from[i + 1]);
    /* 7282 / 2^16 is a ninth and so little that no whole number is missed below 2,304. */
    for (int64_t i = 0; i < f->count; i++) {
        uint16_t total = (uint16_t)(to[i] + to[i + s] + to[i + 2 * s] + 4);
        out[f->first + i] = (int16_t)((uint32_t)total * 7282u >> 16);
    }
}

/* ---- water and mud on images -------------------------------------------------------------------- */

/* Normal deviates from a table of 65,536 equally likely ones: numbers 2 i and 2 i + 1 are chosen by
 * the halves of word i of the stream. */
static void fill_normals(float *restrict out, int64_t n, const float *table, uint32_t a, uint32_t b)
{
    uint32_t words[512];
    for (int64_t start = 0; start < n; start += 1024) {
        int64_t here = least(1024, n - start);
        random_words(words, (here + 1) / 2, (uint32_t)(start / 2), a, b);
        for (int64_t i = 0; i < here / 2; i++) {
            out[start + 2 * i] = table[words[i] & 0xFFFF];
            out[start + 2 * i + 1] = table[words[i] >> 16];
        }
        if (here % 2) out[start + here - 1] = table[words[here / 2] & 0xFFFF];
    }
}

/* What both kernels share: the field of an image is normal deviates, in levels, from the table,
 * smoothed by the weights, plus the mean; it is wet from least_wet on. */
typedef struct {
    const float *table, *weights;
    int64_t taps;
    float mean, least_wet;
} liquid;

/* The light of a liquid layer of levels, 0 .. 255, in whole numbers, and the largest value in it.
 * planes: (4, size), both light and sums: (size). */
static int32_t water(int16_t *layer, const frame *f, int16_t *planes, float *light, int32_t *sums)
{
    int16_t *gx = planes, *gy = gx + f->size, *size = gy + f->size;
    uint8_t *state = (uint8_t *)(size + f->size);
    mirror_frame_i2(layer, f, 0);
    gradients(layer, f, gx, gy, size);
    clear_frame(layer, f, sizeof *layer);
    clear_frame(size, f, sizeof *size);
    thin(gx, gy, size, f, state);
    clear_frame(state, f, sizeof *state);
    join_edges(state, f, state + f->size, sums);
    edge_distances(state, f, light);
    box_distances(light, f, sums, gx);
    equalize(gx, f);
    emboss(gx, f, gy);
    box_levels(gy, f, gx, size);
    int32_t largest = 0;
    for (int64_t i = 0; i < f->size; i++) {
        int32_t value = layer[i] * size[i];
        light[i] = (float)value;
        largest = value > largest ? value : largest;
    }
    return largest;
}

ALWAYS_INLINE uint8_t lit(uint8_t value, float light)
{
    return (uint8_t)(int32_t)(lesser((float)value / 255.0f + light, 1.0f) * 255.0f);
}

/* Water on images. An image on which no drop falls stays as it is. strength: the light of the
 * brightest drop. */
static int splash(const uint8_t *images, uint8_t *out, const liquid *l, float strength,
                  const uint32_t *keys, int64_t m, int64_t h, int64_t w)
{
    const float red = (float)(175.0 / 255), green = (float)(238.0 / 255), blue = green;
    frame f = frame_of(h, w);
    int64_t count = h * w, room = field_memory(h, w, l->taps);
    float *field = new_memory(count + room + f.size, sizeof *field);
    int16_t *layer = new_memory(5 * f.size, sizeof *layer);
    int32_t *sums = new_memory(f.size, sizeof *sums);
    int result = field && layer && sums ? SC_DONE : SC_NO_MEMORY;
    if (result == SC_DONE) memset(layer, 0, (size_t)(5 * f.size) * sizeof *layer);
    for (int64_t j = 0; result == SC_DONE && j < m; j++) {
        float *light = field + count + room;
        fill_normals(field, count, l->table, keys[2 * j], keys[2 * j + 1]);
        smooth_field(field, h, w, l->weights, l->taps, NEAREST, field + count);
        for (int64_t y = 0; y < h; y++) {
            const float *from = field + y * w;
            int16_t *restrict to = layer + f.first + y * f.stride;
            for (int64_t x = 0; x < w; x++) { /* above 255 levels begin again at 0 */
                float value = from[x] + l->mean;
                to[x] = (int16_t)(value >= l->least_wet ? (int32_t)value & 255 : 0);
            }
        }
        int32_t largest = water(layer, &f, layer + f.size, light, sums);
        float brightest = (float)(largest ? largest : 1);
        for (int64_t y = 0; y < h; y++) {
            const uint8_t *restrict from = images + 3 * (j * count + y * w);
            const float *restrict line = light + f.first + y * f.stride;
            uint8_t *restrict to = out + 3 * (j * count + y * w);
            for (int64_t x = 0; x < w; x++) {
                float share = line[x] / brightest * strength;
                to[3 * x] = lit(from[3 * x], share * red);
                to[3 * x + 1] = lit(from[3 * x + 1], share * green);
                to[3 * x + 2] = lit(from[3 * x + 2], share * blue);
            }
        }
    }
    free_memory(field);
    free_memory(layer);
    free_memory(sums);
    return result;
}

ALWAYS_INLINE uint8_t mixed(uint8_t value, float rest, float mud)
{
    return (uint8_t)(int32_t)(lesser((float)value / 255.0f * rest + mud, 1.0f) * 255.0f);
}

/* Mud on images. blur: (blur_taps), which smooth the mud's outline. */
static int muddy(const uint8_t *images, uint8_t *out, const liquid *l, const float *blur,
                 int64_t blur_taps, const uint32_t *keys, int64_t m, int64_t h, int64_t w)
{
    const float red = (float)(63.0 / 255), green = (float)(42.0 / 255), blue = (float)(20.0 / 255);
    int64_t count = h * w, room = field_memory(h, w, most(l->taps, blur_taps));
    float *field = new_memory(count + room, sizeof *field);
    if (field == NULL) return SC_NO_MEMORY;
    for (int64_t j = 0; j < m; j++) {
        const uint8_t *restrict from = images + 3 * j * count;
        uint8_t *restrict to = out + 3 * j * count;
        fill_normals(field, count, l->table, keys[2 * j], keys[2 * j + 1]);
        smooth_field(field, h, w, l->weights, l->taps, NEAREST, field + count);
        for (int64_t i = 0; i < count; i++)
            field[i] = field[i] + l->mean > l->least_wet ? 1.0f : 0.0f;
        smooth_field(field, h, w, blur, blur_taps, NEAREST, field + count);
        for (int64_t i = 0; i < count; i++) {
            float mud = field[i] >= 0.8f ? field[i] : 0.0f, rest = 1.0f - mud;
            to[3 * i] = mixed(from[3 * i], rest, red * mud);
            to[3 * i + 1] = mixed(from[3 * i + 1], rest, green * mud);
            to[3 * i + 2] = mixed(from[3 * i + 2], rest, blue * mud);
        }
    }
    free_memory(field);
    return SC_DONE;
}
