/* Sums over softmax rows that decide a temperature. Included once for float and once for double:
 * REAL, OF(name) and EXP2 are defined before.
 *
 * A block of rows is transposed first, so that neighbours in memory are the same class of different
 * rows: every loop then runs over rows, however few or many classes there are. The work is done in
 * the logits' own type, the sums are kept in double. */

#ifndef BLOCK_ROWS
#define BLOCK_ROWS 128
/* Classes whose sum is kept in the logits' type before it is added to the total: a short sum does
 * not lose the many small terms next to the one large one. */
#define SHORT_SUM 32
/* The sums of the loop below may be formed in any order, so that they are done by vectors. */
#define PRAGMA(text) _Pragma(#text)
#define SUMS(...) PRAGMA(omp simd reduction(+ : __VA_ARGS__))

/* The ladder: eight inverse temperatures an octave, from 2^-7 on; those of temperature.py. */
#define OCTAVES 14
#define LANES 8
#define OCTAVE_OF_ONE (OCTAVES / 2)
/* Where a class is further below the top than this, in nats, its share is less than sums hold. */
#define NOTHING (-44.0)
/* Moments are summed as whole multiples of 2^-44; this many rows surely fit into 64 bits. */
#define LADDER_SCALE 0x1p44
#define SAFE_ROWS 64

/* The sums over classes of e d^j for j from 0 to 3, after which every e is squared. */
static void ladder_step(const double *restrict d, double *restrict e, int64_t count, double *out)
{
    double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    SUMS(s0, s1, s2, s3)
    for (int64_t c = 0; c < count; c++) {
        double x = d[c], v = e[c], vx = v * x, vxx = vx * x;
        e[c] = v * v;
        s0 += v;
        s1 += vx;
        s2 += vxx;
        s3 += vxx * x;
    }
    out[0] = s0, out[1] = s1, out[2] = s2, out[3] = s3;
}

/* Add to both halves of sums that are kept as high 2^32 + low, and clear the total. */
static void carry(int64_t *restrict total, int64_t *restrict high, int64_t *restrict low)
{
    for (int i = 0; i < 3 * OCTAVES * LANES; i++) {
        high[i] += total[i] >> 32;
        low[i] += total[i] & 0xFFFFFFFF;
        total[i] = 0;
    }
}
#endif

/* turned[c][r] = rows[r][c], zero beyond n rows, and the largest of each row to top. */
static void OF(turn)(const REAL *restrict rows, int64_t n, int64_t k, REAL *restrict turned,
                     REAL *restrict top)
{
    int64_t r = 0;
    for (; r + 8 <= n; r += 8) {
        const REAL *from = rows + r * k;
        int64_t c = 0;
        for (; c + 4 <= k; c += 4)
            for (int half = 0; half < 2; half++) /* tiles of 4 by 4, turned by shuffles */
                for (int i = 0; i < 4; i++)
                    for (int j = 0; j < 4; j++)
                        turned[(c + i) * BLOCK_ROWS + r + 4 * half + j] =
                            from[(4 * half + j) * k + c + i];
        for (; c < k; c++)
            for (int j = 0; j < 8; j++) turned[c * BLOCK_ROWS + r + j] = from[j * k + c];
    }
    for (int64_t c = 0; c < k; c++) {
        for (int64_t i = r; i < n; i++) turned[c * BLOCK_ROWS + i] = rows[i * k + c];
        for (int64_t i = n; i < BLOCK_ROWS; i++) turned[c * BLOCK_ROWS + i] = 0;
    }
    for (r = 0; r < BLOCK_ROWS; r++) top[r] = turned[r];
    for (int64_t c = 1; c < k; c++)
        for (r = 0; r < BLOCK_ROWS; r++) {
            REAL z = turned[c * BLOCK_ROWS + r];
            top[r] = z > top[r] ? z : top[r];
        }
}

/* One block of moments or Brier sums: rows, their weights (0 beyond the end), sums over classes. */
typedef struct {
    REAL top[BLOCK_ROWS];
    double sums[4][BLOCK_ROWS], weights[BLOCK_ROWS];
    const REAL *rows;
    const int64_t *labels;
    int64_t count;
} OF(block);

/* Add what one class adds to the sums of every row of a block; see fill. */
ALWAYS_INLINE void OF(add_class)(const REAL *restrict z, const REAL *restrict top, REAL b,
                                 REAL lowest, REAL *restrict s0, REAL *restrict s1, REAL *restrict s2,
                                 REAL *restrict s3, int squares)
{
    for (int r = 0; r < BLOCK_ROWS; r++) {
        REAL d = z[r] - top[r], t = (d > lowest ? d : lowest) * b;
        REAL e = EXP2(t), te = t * e, third = squares ? e * e : t * te;
        s0[r] += e;
        s1[r] += te;
        s2[r] += third;
        s3[r] += t * third;
    }
}

/* Fill a block: with t = b (z - max z) and e = 2^t the sums over classes of e and t e, and of
 * t^2 e and t^3 e, or, for the Brier score, of e^2 and t e^2. */
ALWAYS_INLINE int OF(fill)(OF(block) *s, const REAL *logits, const int64_t *labels,
                           const double *weights, REAL b, int64_t index, int64_t n, int64_t k,
                           REAL *restrict turned, int squares)
{
    REAL part[4][BLOCK_ROWS], lowest = (REAL)-126 / b; /* exp2 begins there */
    if (index < 0 || index > (n - 1) / BLOCK_ROWS) return SC_INDEX;
    int64_t first = index * BLOCK_ROWS, left = n - first;
    s->count = left < BLOCK_ROWS ? left : BLOCK_ROWS;
    s->rows = logits + first * k;
    s->labels = labels + first;
    if (!within_ends(s->labels, s->count, 0, k - 1)) return SC_INDEX;
    for (int64_t r = 0; r < BLOCK_ROWS; r++)
        s->weights[r] = r >= s->count ? 0.0 : weights ? weights[first + r] : 1.0;
    OF(turn)(s->rows, s->count, k, turned, s->top);
    memset(s->sums, 0, sizeof s->sums);
    for (int64_t start = 0; start < k; start += SHORT_SUM) {
        int64_t end = start + SHORT_SUM < k ? start + SHORT_SUM : k;
        memset(part, 0, sizeof part);
        for (int64_t c = start; c < end; c++)
            OF(add_class)(turned + c * BLOCK_ROWS, s->top, b, lowest, part[0], part[1], part[2],
                          part[3], squares);
        for (int j = 0; j < 4; j++)
            for (int r = 0; r < BLOCK_ROWS; r++) s->sums[j][r] += part[j][r];
    }
    return SC_DONE;
}

/* Weighted sums over the rows of each block: out[i] = log sum e; mean, variance and third central
 * moment of t under e; max z - z[label]; 1.
 *
 * logits (n, k), labels (n) in 0 .. k-1, weights (n) or NULL for ones, inverse the inverse
 * temperature times log2(e), blocks (m) which blocks of BLOCK_ROWS rows, out (m, 6). */
static int OF(moments)(const REAL *logits, const int64_t *labels, const double *weights,
                       double inverse, const int64_t *blocks, double *out, int64_t n, int64_t k,
                       int64_t m)
{
    OF(block) s;
    REAL *turned = malloc(sizeof(REAL) * BLOCK_ROWS * (size_t)k);
    if (turned == NULL) return SC_NO_MEMORY;
    int result = SC_DONE;
    for (int64_t i = 0; i < m; i++, out += 6) {
        result = OF(fill)(&s, logits, labels, weights, (REAL)inverse, blocks[i], n, k, turned, 0);
        if (result != SC_DONE) break;
        double g1 = 0, g2 = 0, g3 = 0, total = 0, logs = 0, regret = 0;
        SUMS(g1, g2, g3, total)
        for (int r = 0; r < BLOCK_ROWS; r++) {
            double w = s.weights[r], one = 1.0 / s.sums[0][r];
            double m1 = s.sums[1][r] * one, m2 = s.sums[2][r] * one, m3 = s.sums[3][r] * one;
            g1 += w * m1;
            g2 += w * (m2 - m1 * m1);
            g3 += w * (m3 - m1 * (3 * m2 - 2 * m1 * m1));
            total += w;
        }
        if (weights)
            for (int64_t r = 0; r < s.count; r++) logs += s.weights[r] * log(s.sums[0][r]);
        else /* one logarithm for sixteen rows: sums lie in [1, k], the product cannot overflow */
            for (int64_t start = 0; start < s.count; start += 16) {
                double product = 1.0;
                for (int64_t r = start; r < s.count && r < start + 16; r++) product *= s.sums[0][r];
                logs += log(product);
            }
        for (int64_t r = 0; r < s.count; r++)
            regret += s.weights[r] * ((double)s.top[r] - (double)s.rows[r * k + s.labels[r]]);
        out[0] = logs, out[1] = g1, out[2] = g2, out[3] = g3, out[4] = regret, out[5] = total;
    }
    free(turned);
    return result;
}

/* Weighted sums over the rows of each block, with p ~ 2^t: out[i] = the Brier score; half its
 * derivative by the logarithm of b, divided by ln 2; 1. Arguments as for moments, out (m, 3). */
static int OF(brier)(const REAL *logits, const int64_t *labels, const double *weights,
                     double inverse, const int64_t *blocks, double *out, int64_t n, int64_t k,
                     int64_t m)
{
    OF(block) s;
    REAL b = (REAL)inverse;
    REAL *turned = malloc(sizeof(REAL) * BLOCK_ROWS * (size_t)k);
    if (turned == NULL) return SC_NO_MEMORY;
    int result = SC_DONE;
    for (int64_t i = 0; i < m; i++, out += 3) {
        result = OF(fill)(&s, logits, labels, weights, b, blocks[i], n, k, turned, 1);
        if (result != SC_DONE) break;
        REAL of_label[BLOCK_ROWS] = {0}, lowest = (REAL)-126 / b;
        for (int64_t r = 0; r < s.count; r++) of_label[r] = s.rows[r * k + s.labels[r]] - s.top[r];
        double score = 0, slope = 0, total = 0;
        SUMS(score, slope, total)
        for (int r = 0; r < BLOCK_ROWS; r++) {
            REAL d = of_label[r], t = (d > lowest ? d : lowest) * b;
            double w = s.weights[r], one = 1.0 / s.sums[0][r], mean = s.sums[1][r] * one;
            double p = EXP2(t) * one, squares = s.sums[2][r] * one * one;
            score += w * (squares - 2 * p + 1);
            slope += w * (s.sums[3][r] * one * one - mean * squares - p * (t - mean));
            total += w;
        }
        out[0] = score, out[1] = slope, out[2] = total;
    }
    free(turned);
    return result;
}

/* z - max z of the classes below the top to d, those that matter in most octaves first.
 *
 * Returns how many classes are the top; left[o + 1] gets how many of d matter in octave o. betas:
 * the lowest inverse temperature of each octave; life (k) is scratch. */
static double OF(sort_by_life)(const REAL *row, int64_t k, const double *betas, double *d,
                               int64_t *life, int64_t *left)
{
    REAL top = row[0];
    for (int64_t c = 1; c < k; c++) top = row[c] > top ? row[c] : top;
    memset(left, 0, sizeof(int64_t) * (OCTAVES + 1));
    double ties = 0;
    for (int64_t c = 0; c < k; c++) {
        double below = (double)row[c] - (double)top;
        int64_t octaves = 0;
        while (octaves < OCTAVES && betas[octaves * LANES] * below > NOTHING) octaves++;
        if (below == 0) {
            ties += 1;
            octaves = -1;
        } else {
            left[octaves]++;
        }
        life[c] = octaves;
    }
    /* From how many live so long to how many live longer: where each group begins. */
    int64_t longer = 0;
    for (int o = OCTAVES; o >= 0; o--) {
        int64_t count = left[o];
        left[o] = longer;
        longer += count;
    }
    for (int64_t c = 0; c < k; c++)
        if (life[c] >= 0) d[left[life[c]]++] = (double)row[c] - (double)top;
    /* A group ends where the next begins, so now left[o + 1] of them matter in octave o. */
    return ties;
}

/* Add the moments of rows at every inverse temperature of the ladder to sums of whole numbers.
 *
 * With x = beta (z - max z), a row adds its mean, variance and third central moment under its own
 * softmax, found by itself: the sums depend neither on the rows around it nor on their order. In
 * the lowest octave powers are exponentials, in every other the squares of those an octave below.
 *
 * logits (n, k), betas (OCTAVES, LANES), high and low (3, OCTAVES, LANES) added to,
 * log_sums (n) gets log sum exp(z - max z), squares (n) the sum of the squares of the softmax. */
static int OF(ladder_sums)(const REAL *logits, const double *betas, int64_t *high, int64_t *low,
                           double *log_sums, double *squares, int64_t n, int64_t k)
{
    enum { SIZE = OCTAVES * LANES };
    double sums[4][SIZE];
    int64_t total[3 * SIZE] = {0}, left[OCTAVES + 1];
    double *d = malloc(sizeof(double) * 3 * (size_t)k);
    if (d == NULL) return SC_NO_MEMORY;
    double *e = d + k;
    int64_t *life = (int64_t *)(e + k);
    for (int64_t i = 0; i < n; i++) {
        double ties = OF(sort_by_life)(logits + i * k, k, betas, d, life, left);
        memset(sums, 0, sizeof sums);
        for (int lane = 0; lane < LANES; lane++) {
            double b = betas[lane] * 1.4426950408889634;
            for (int64_t c = 0; c < left[1]; c++) e[c] = exp2_f8(d[c] * b);
            for (int o = 0; o < OCTAVES && left[o + 1] > 0; o++) {
                double s[4];
                ladder_step(d, e, left[o + 1], s);
                for (int j = 0; j < 4; j++) sums[j][o * LANES + lane] = s[j];
            }
        }
        for (int j = 0; j < SIZE; j++) {
            double b = betas[j], one = b / (sums[0][j] + ties);
            double m1 = one * sums[1][j], m2 = b * one * sums[2][j];
            double m3 = b * b * one * sums[3][j];
            total[j] += (int64_t)rint(LADDER_SCALE * m1);
            total[SIZE + j] += (int64_t)rint(LADDER_SCALE * (m2 - m1 * m1));
            total[2 * SIZE + j] +=
                (int64_t)rint(LADDER_SCALE * (m3 - m1 * (3 * m2 - 2 * m1 * m1)));
        }
        double s = sums[0][OCTAVE_OF_ONE * LANES] + ties;
        log_sums[i] = log(s);
        squares[i] = (sums[0][(OCTAVE_OF_ONE + 1) * LANES] + ties) / (s * s);
        if (i % SAFE_ROWS == SAFE_ROWS - 1 || i == n - 1) carry(total, high, low);
    }
    free(d);
    return SC_DONE;
}
