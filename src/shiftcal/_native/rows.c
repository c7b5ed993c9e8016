/* Softmax of rows, but for the exponentials, which numpy takes in between. REAL and OF(name) are
 * defined before. Every sum is added up in numpy's order, so that bits are those of numpy. */

#ifndef PAIRWISE
#define PAIRWISE 128

/* As numpy adds up neighbours: one by one, in eight sums, or in halves. */
static double pairwise_sum(const double *x, int64_t n)
{
    if (n > PAIRWISE) {
        int64_t half = n / 2;
        half -= half % 8;
        return pairwise_sum(x, half) + pairwise_sum(x + half, n - half);
    }
    double total = 0.0;
    int64_t i = 0;
    if (n >= 8) {
        double r[8];
        for (int j = 0; j < 8; j++) r[j] = x[j];
        for (i = 8; i + 8 <= n; i += 8)
            for (int j = 0; j < 8; j++) r[j] += x[i + j];
        total = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
    }
    for (; i < n; i++) total += x[i];
    return total;
}

/* sums (n) of the rows of x. */
static int sum_rows(const double *x, double *sums, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < n; i++) sums[i] = pairwise_sum(x + i * k, k);
    return SC_DONE;
}

/* Add every row of x (n, k) to that row of sums (g, k) which its group says. */
static int add_to_groups(const double *x, const int64_t *group, double *sums, int64_t n, int64_t g,
                         int64_t k)
{
    for (int64_t i = 0; i < n; i++, x += k) {
        if (group[i] < 0 || group[i] >= g) return SC_INDEX;
        double *own = sums + group[i] * k;
        for (int64_t j = 0; j < k; j++) own[j] += x[j];
    }
    return SC_DONE;
}

/* Divide rows of exponentials by their sums. Where rounding leaves another class than `top` the
 * first largest, that one is raised above it. */
static int normalize_rows(double *p, const int64_t *top, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < n; i++, p += k) {
        if (top[i] < 0 || top[i] >= k) return SC_INDEX;
        double sum = pairwise_sum(p, k);
        for (int64_t j = 0; j < k; j++) p[j] /= sum;
        double own = p[top[i]], largest = own;
        int lost = 0;
        for (int64_t j = 0; j < k; j++) {
            lost |= p[j] > own || (p[j] == own && j < top[i]);
            largest = p[j] > largest ? p[j] : largest;
        }
        if (lost) p[top[i]] = nextafter(largest, 1.0);
    }
    return SC_DONE;
}
#endif

/* The first largest entry of every row, and where it is. */
static int OF(largest_of_rows)(const REAL *x, int64_t *top, double *value, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < n; i++, x += k) {
        int64_t best = 0;
        for (int64_t j = 1; j < k; j++) best = x[j] > x[best] ? j : best;
        top[i] = best;
        value[i] = (double)x[best];
    }
    return SC_DONE;
}

/* out (n, k): (z - max z) / temperature; top (n): where the first largest is. */
static int OF(shift_rows)(const REAL *z, double temperature, double *out, int64_t *top, int64_t n,
                          int64_t k)
{
    for (int64_t i = 0; i < n; i++, z += k, out += k) {
        int64_t best = 0;
        for (int64_t j = 1; j < k; j++) best = z[j] > z[best] ? j : best;
        top[i] = best;
        for (int64_t j = 0; j < k; j++) out[j] = ((double)z[j] - (double)z[best]) / temperature;
    }
    return SC_DONE;
}
