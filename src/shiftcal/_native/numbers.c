/* All kernels over logits and confidences. Compiled once for each instruction set; products and
 * sums may be contracted. TABLE names the table of that set. */
#include "kernels.h"

#include "exp2.h"

#define REAL float
#define OF(name) name##_f4
#define EXP2 exp2_f4
#include "binning.c"
#include "monitor.c"
#include "rows.c"
#include "temperature.c"
#undef REAL
#undef OF
#undef EXP2

#define REAL double
#define OF(name) name##_f8
#define EXP2 exp2_f8
#include "binning.c"
#include "monitor.c"
#include "rows.c"
#include "temperature.c"

#define BLOCK_KERNEL(type, name, columns)                                                          \
    KERNEL(name##_##type, #type "(n,k) i8(n) f8(w) real i8(m) f8(m," #columns ")*",                \
           N(k) > 0 && (N(w) == 0 || N(w) == N(n)),                                                \
           name##_##type(A(0), A(1), N(w) ? A(2) : NULL, R(3), A(4), A(5), N(n), N(k), N(m)))

#define KERNELS_OF(type)                                                                           \
    BLOCK_KERNEL(type, moments, 6)                                                                 \
    BLOCK_KERNEL(type, brier, 3)                                                                   \
    KERNEL(ladder_sums_##type, #type "(n,k) f8(14,8) i8(3,14,8)* i8(3,14,8)* f8(n)* f8(n)*",       \
           N(k) > 0,                                                                               \
           ladder_sums_##type(A(0), A(1), A(2), A(3), A(4), A(5), N(n), N(k)))                     \
    KERNEL(count_cells_##type, #type "(n) i8(c)*", cell_bits(N(c)) >= 0,                           \
           count_cells_##type(A(0), A(1), N(n), N(c)))                                             \
    KERNEL(sum_by_cell_##type, #type "(n) u1(n) i4(c) i8(3,w)* i8(r)*",                            \
           cell_bits(N(c)) >= 0 && N(w) >= 2 && N(w) % 2 == 0,                                     \
           sum_by_cell_##type(A(0), A(1), A(2), A(3), A(4), N(n), N(c), N(w), N(r)))               \
    KERNEL(sum_by_width_##type, #type "(n) u1(n) i8(3,w)*", N(w) >= 2 && N(w) % 2 == 0,            \
           sum_by_width_##type(A(0), A(1), A(2), N(n), N(w)))                                      \
    KERNEL(largest_of_rows_##type, #type "(n,k) i8(n)* f8(n)*", N(k) > 0,                          \
           largest_of_rows_##type(A(0), A(1), A(2), N(n), N(k)))                                   \
    KERNEL(shift_rows_##type, #type "(n,k) real f8(n,k)* i8(n)*", N(k) > 0,                        \
           shift_rows_##type(A(0), R(1), A(2), A(3), N(n), N(k)))                                  \
    KERNEL(pass_rows_##type, #type "(n,k) real i8(w)* f8(n)* i8(n)* f8(p,q)*",                     \
           N(k) > 0 && N(w) == 2 * N(k) + 4 && (N(p) == 0 || (N(p) == N(n) && N(q) == N(k))),      \
           pass_rows_##type(A(0), R(1), A(2), A(3), A(4), N(p) ? A(5) : NULL, N(n), N(k)))

#define KERNELS                                                                                    \
    KERNELS_OF(f4)                                                                                 \
    KERNELS_OF(f8)                                                                                 \
    KERNEL(sum_rows, "f8(n,k) f8(n)*", 1, sum_rows(A(0), A(1), N(n), N(k)))                        \
    KERNEL(add_to_groups, "f8(n,k) i8(n) f8(g,k)*", 1,                                             \
           add_to_groups(A(0), A(1), A(2), N(n), N(g), N(k)))                                      \
    KERNEL(normalize_rows, "f8(n,k)* i8(n)", N(k) > 0,                                             \
           normalize_rows(A(0), A(1), N(n), N(k)))                                                 \
    KERNEL(place_cuts, "i8(p,c) i8(m) int i4(c)* i8(b)* i8(m)* i8(q)*",                            \
           N(m) > 0 && N(b) == N(m) + 1 && N(q) == N(p) + 1,                                       \
           place_cuts(A(0), A(1), I(2), A(3), A(4), A(5), A(6), N(p), N(c), N(m)))                 \
    KERNEL(sum_bins, "i8(n) i8(m) i8(p,3,w) i8(s) f8(4,m)*", N(n) > 0 && N(w) == 2 * N(s),         \
           sum_bins(A(0), A(1), A(2), A(3), A(4), N(n), N(m), N(p), N(s)))                         \
    KERNEL(poisson_counts, "f8(d,c) i8(n) f8(u) f8(d,n)* i8(1)*", 1,                               \
           poisson_counts(A(0), A(1), A(2), A(3), A(4), N(d), N(n), N(c), N(u)))                   \
    KERNEL(largest_ratio, "i8(f,w) f8(s,b) i8(s) f8(s,5) f8(5,d) f8(s,2) f8(1)*", N(w) >= 6,       \
           largest_ratio(A(0), A(1), A(2), A(3), A(4), A(5), A(6), N(f), N(w), N(s), N(b), N(d)))  \
    KERNEL(rehearsal_answer, "f8(m,w) real f8(2,3,38) f8(2,2,20) f8(2,4) f8(11)*", N(w) >= 4,      \
           rehearsal_answer(A(0), R(1), A(2), A(3), A(4), A(5), N(m), N(w)))

#include "table.h"
