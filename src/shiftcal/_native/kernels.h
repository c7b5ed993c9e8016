/* What the binding (module.c) and the kernels share. No Python in here. */
#ifndef SHIFTCAL_KERNELS_H
#define SHIFTCAL_KERNELS_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(_MSC_VER)
#define ALWAYS_INLINE static __forceinline
#else
#define ALWAYS_INLINE static inline __attribute__((always_inline))
#endif

/* Before a loop: what it writes is not what it reads in another round. The compiler would otherwise
 * compare the places of all arrays first, and gives up where they are many. */
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define INDEPENDENT _Pragma("GCC ivdep")
#elif defined(_MSC_VER)
#define INDEPENDENT __pragma(loop(ivdep))
#else
#define INDEPENDENT
#endif

/* One argument of a call: the memory of an array, or a number. */
typedef struct {
    void *data;
    int64_t integer;
    double real;
} sc_arg;

/* What a kernel returns. */
enum { SC_DONE = 0, SC_NO_MEMORY = 1, SC_LENGTHS = 2, SC_INDEX = 3 };

/* A kernel as Python sees it.
 *
 * The signature has one entry per argument, separated by spaces:
 *   f4(n,k)   a C-contiguous array of float32 (i, u, f and the bytes of an item) with these axes:
 *             a number must match, a letter must be the same length wherever it occurs
 *   f4(n)*    the same, written to
 *   int real  numbers
 * The lengths that letters stand for are passed on, by letter. */
typedef struct {
    const char *name;
    const char *signature;
    int (*run)(const sc_arg *a, const int64_t *n);
} sc_kernel;

/* Inside a table of kernels: KERNEL(name, signature, condition on lengths, call).
 * A(j), I(j) and R(j) are the memory, integer and real number of argument j, N(x) the length x. */
#define A(j) (a[j].data)
#define I(j) (a[j].integer)
#define R(j) (a[j].real)
#define N(letter) (n[#letter[0] - 'a'])

/* Whether all of n indices lie from low to high. */
static inline int within_ends(const int64_t *indices, int64_t n, int64_t low, int64_t high)
{
    int outside = 0;
    for (int64_t i = 0; i < n; i++) outside |= (indices[i] < low) | (indices[i] > high);
    return !outside;
}

/* The same, and each at least `step` above the one before. */
static inline int rising(const int64_t *indices, int64_t n, int64_t low, int64_t high, int64_t step)
{
    int ordered = 1;
    for (int64_t i = 1; i < n; i++) ordered &= indices[i - 1] <= indices[i] - step;
    return ordered && within_ends(indices, n, low, high);
}

#endif
