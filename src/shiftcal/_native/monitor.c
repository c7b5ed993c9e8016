/* One pass over a batch of a stream. pass_rows is included once for float and once for double: REAL
 * and OF(name) are defined before.
 *
 * Rows are taken in a fixed number of lanes, and every loop over exponentials runs over all lanes,
 * empty ones included: a row then has the same bits wherever it stands in a batch. Sums are whole
 * numbers, so neither the order nor the grouping of the rows changes them. */

#ifndef STREAM_LANES
#define STREAM_LANES 32
#define LN2 0.6931471805599453
#define LOG2E 1.4426950408889634
/* Sums are in units of 2^-40. */
#define SUM_UNIT 0x1p40
/* What is left of 1 below the largest probability counts as this at least. */
#define LEAST_REST 1e-6

/* The nearest whole number of units, of a value from 0 to below 2^11. */
ALWAYS_INLINE int64_t whole(double value)
{
    double shifter = 6755399441055744.0, sum = value * SUM_UNIT + shifter;
    int64_t bits, zero;
    memcpy(&bits, &sum, sizeof bits);
    memcpy(&zero, &shifter, sizeof zero);
    return bits - zero;
}

/* e = 2^t with t = b (z - max z), and the sums of e and t e over the k classes, lane by lane. */
static void stream_powers(const double *restrict z, const double *restrict top, double b,
                          double *restrict powers, double *restrict total,
                          double *restrict weighed, int64_t k)
{
    for (int r = 0; r < STREAM_LANES; r++) total[r] = weighed[r] = 0;
    for (int64_t c = 0; c < k; c++)
        for (int r = 0; r < STREAM_LANES; r++) {
            double t = (z[c * STREAM_LANES + r] - top[r]) * b;
            t = t > -126.0 ? t : -126.0;
            double e = exp2_f8(t);
            powers[c * STREAM_LANES + r] = e;
            total[r] += e;
            weighed[r] += t * e;
        }
}

/* Sums of the five features over the rows of a block, from its sums (2 k + 4). */
static void block_features(const int64_t *sums, int64_t k, double *out)
{
    int64_t concentration = 0;
    for (int64_t c = 2 + k; c < 2 + 2 * k; c++) concentration += sums[c];
    out[0] = (double)sums[0] / SUM_UNIT;
    out[1] = (double)sums[2 * k + 2] / SUM_UNIT;
    out[2] = (double)sums[1] / SUM_UNIT;
    out[3] = (double)concentration / SUM_UNIT;
    out[4] = (double)sums[2 * k + 3] / SUM_UNIT;
}

/* The largest ratio of a statistic to its limit, over the scales that have enough blocks.
 *
 * blocks (f, 2 k + 4) sums of the blocks, the newest first; weights (s, b) by age, which make a
 * mean in standard deviations; needed (s) blocks of each scale; offset (s, 5) the reference in the
 * same unit; directions (5, d); squares (s, 2) squared limits; out (1). */
static int largest_ratio(const int64_t *blocks, const double *weights, const int64_t *needed,
                         const double *offset, const double *directions, const double *squares,
                         double *out, int64_t f, int64_t width, int64_t s, int64_t b, int64_t d)
{
    double *features = malloc(sizeof(double) * 5 * (size_t)(f + 1));
    if (features == NULL) return SC_NO_MEMORY;
    for (int64_t age = 0; age < f; age++)
        block_features(blocks + age * width, (width - 4) / 2, features + 5 * age);
    double largest = 0;
    for (int64_t i = 0; i < s; i++) {
        if (f < needed[i] || b < needed[i]) continue;
        double moved[5], directed = 0, undirected = 0;
        for (int j = 0; j < 5; j++) moved[j] = -offset[5 * i + j];
        for (int64_t age = 0; age < needed[i]; age++)
            for (int j = 0; j < 5; j++) moved[j] += weights[i * b + age] * features[5 * age + j];
        for (int64_t column = 0; column < d; column++) {
            double along = 0;
            for (int j = 0; j < 5; j++) along += moved[j] * directions[j * d + column];
            if (column == 0)
                directed = along * fabs(along);
            else
                undirected += along * along;
        }
        double one = directed / squares[2 * i], other = undirected / squares[2 * i + 1];
        double more = one > other ? one : other;
        largest = more > largest ? more : largest;
    }
    *out = sqrt(largest);
    free(features);
    return SC_DONE;
}

/* Both answers of a quadratic of four statistics, which are standardised first: q has centre (4),
 * scale (4) and the coefficients of both answers (15 + 15). */
static void quadratic(const double *s, const double *q, double *a, double *b)
{
    int term = 1;
    double x[4];
    *a = q[8], *b = q[23];
    for (int i = 0; i < 4; i++, term++) {
        x[i] = (s[i] - q[i]) / q[4 + i];
        *a += x[i] * q[8 + term];
        *b += x[i] * q[23 + term];
    }
    for (int i = 0; i < 4; i++)
        for (int j = i; j < 4; j++, term++) {
            *a += x[i] * x[j] * q[8 + term];
            *b += x[i] * x[j] * q[23 + term];
        }
}

/* Length of the difference from a cloud's centre (4), whitened (16, by rows). */
static double whitened_distance(const double *s, const double *cloud)
{
    double total = 0;
    for (int column = 0; column < 4; column++) {
        double along = 0;
        for (int i = 0; i < 4; i++) along += (s[i] - cloud[i]) * cloud[4 + 4 * i + column];
        total += along * along;
    }
    return sqrt(total);
}

ALWAYS_INLINE double clipped(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

/* The fields of a Rehearsal answer, from the means of the moments of a sample's rows.
 *
 * means (m, 2 + 2 k), of several samples the statistics are averaged; edge: how far mean p_max is
 * kept from 0 and 1; quadratics (2, 3, 38) for the coarser and the finer response and for same,
 * moved and judge; clouds (2, 2, 20) for everywhere and clean; limits (2, 4): low, high, the
 * largest log-odds, the share of the response; out (11) gets the seven fields, the last not divided
 * by the distance that half keep to, then the four statistics. */
static int rehearsal_answer(const double *means, double edge, const double *quadratics,
                            const double *clouds, const double *limits, double *out, int64_t m,
                            int64_t width)
{
    int64_t k = (width - 2) / 2;
    double *s = out + 7, a, b;
    memset(out, 0, sizeof(double) * 11);
    for (int64_t i = 0; i < m; i++, means += width) {
        double top = clipped(means[0], edge, 1 - edge), spread = 0, sharp = 0;
        for (int64_t c = 0; c < k; c++) {
            double first = means[2 + c];
            if (first > 0) {
                spread -= first * log(first);
                sharp += means[2 + k + c] / first;
            }
        }
        s[0] += log(top) - log1p(-top);
        s[1] += means[1] / log((double)k);
        s[2] += spread / log((double)k);
        s[3] += sharp / (double)k;
    }
    for (int i = 0; i < 4; i++) s[i] /= (double)m;
    for (int r = 0; r < 2; r++, limits += 4, quadratics += 3 * 38, clouds += 2 * 20) {
        double low = limits[0], high = limits[1], odds = limits[2], share = limits[3];
        for (int half = 0; half < 2; half++) {
            quadratic(s, quadratics + 38 * half, &a, &b);
            out[half] += share * clipped(a, low, high);
            out[2 + half] += share / (1 + exp(-clipped(b, -odds, odds)));
        }
        quadratic(s, quadratics + 38 * 2, &a, &b);
        out[4] += share / (1 + exp(-clipped(a, -50.0, 50.0)));
        out[5] += share * whitened_distance(s, clouds);
        out[6] += share * whitened_distance(s, clouds + 20);
    }
    return SC_DONE;
}

/* Poisson counts from uniforms, as numpy's generator makes them where the rate is below 10.
 *
 * limits (d, c): e^-rate of every draw and group, above 1 where the rate is zero; group (n) in
 * 0 .. c-1; uniforms (u); out: counts (d, n), and how many uniforms were used, -1 if too few. */
static int poisson_counts(const double *limits, const int64_t *group, const double *uniforms,
                          double *counts, int64_t *used, int64_t d, int64_t n, int64_t c, int64_t u)
{
    int64_t at = 0;
    used[0] = -1;
    if (!within_ends(group, n, 0, c - 1)) return SC_INDEX;
    for (int64_t i = 0; i < d; i++, limits += c, counts += n)
        for (int64_t j = 0; j < n; j++) {
            double limit = limits[group[j]], product = 1.0;
            int64_t drawn = 0;
            do {
                if (limit > 1.0) break;
                if (at == u) return SC_DONE;
                product *= uniforms[at++];
                drawn++;
            } while (product > limit);
            counts[j] = (double)(drawn > 0 ? drawn - 1 : 0);
        }
    used[0] = at;
    return SC_DONE;
}
#endif

/* Calibrate rows, and add them to the sums of a block.
 *
 * logits (n, k); temperature: what they are divided by; sums (2 k + 4) whole numbers, added to:
 * p_max, entropy, p and p^2 of every class, p_max^2, -log of what is left of 1; confidence (n) gets
 * the largest probability, predicted (n) the first class that has it, probs (n, k) or NULL the
 * probabilities. */
static int OF(pass_rows)(const REAL *logits, double temperature, int64_t *sums,
                         double *confidence, int64_t *predicted, double *probs, int64_t n,
                         int64_t k)
{
    enum { WIDE = STREAM_LANES };
    double top[WIDE], total[WIDE], weighed[WIDE], one[WIDE];
    int64_t which[WIDE];
    double *z = calloc((size_t)(2 * k * WIDE), sizeof(double));
    if (z == NULL) return SC_NO_MEMORY;
    double *powers = z + k * WIDE;
    for (int64_t first = 0; first < n; first += WIDE) {
        int64_t m = n - first < WIDE ? n - first : WIDE;
        const REAL *rows = logits + first * k;
        /* What is in the other lanes stays, and is finite. */
        for (int64_t r = 0; r < m; r++)
            for (int64_t c = 0; c < k; c++) z[c * WIDE + r] = (double)rows[r * k + c];
        for (int r = 0; r < WIDE; r++) top[r] = z[r], which[r] = 0;
        for (int64_t c = 1; c < k; c++)
            for (int r = 0; r < WIDE; r++) {
                int more = z[c * WIDE + r] > top[r];
                top[r] = more ? z[c * WIDE + r] : top[r];
                which[r] = more ? c : which[r];
            }
        memcpy(predicted + first, which, sizeof(int64_t) * (size_t)m);
        stream_powers(z, top, LOG2E, powers, total, weighed, k);
        for (int r = 0; r < WIDE; r++) one[r] = 1 / total[r];
        for (int64_t c = 0; c < k; c++) {
            int64_t sum = 0, square = 0;
            for (int64_t r = 0; r < m; r++) {
                double p = powers[c * WIDE + r] * one[r];
                sum += whole(p);
                square += whole(p * p);
            }
            sums[2 + c] += sum;
            sums[2 + k + c] += square;
        }
        for (int64_t r = 0; r < m; r++) {
            double entropy = log(total[r]) - LN2 * (weighed[r] * one[r]);
            double rest = (total[r] - 1) * one[r];
            sums[0] += whole(one[r]);
            sums[1] += whole(entropy > 0 ? entropy : 0);
            sums[2 + 2 * k] += whole(one[r] * one[r]);
            sums[3 + 2 * k] += whole(-log(rest > LEAST_REST ? rest : LEAST_REST));
        }
        if (temperature != 1.0)
            stream_powers(z, top, LOG2E / temperature, powers, total, weighed, k);
        for (int64_t r = 0; r < m; r++) confidence[first + r] = 1 / total[r];
        if (probs)
            for (int64_t r = 0; r < m; r++)
                for (int64_t c = 0; c < k; c++)
                    probs[(first + r) * k + c] = powers[c * WIDE + r] / total[r];
    }
    free(z);
    return SC_DONE;
}
