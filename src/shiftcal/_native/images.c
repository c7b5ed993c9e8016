/* All corruption kernels. Compiled once for each instruction set, with contraction of products and
 * sums off: the result is the same on all of them. TABLE names the table of that set.
 *
 * A kernel takes m images (m, h, w, 3), as many to be written in full, what the corruption's plan
 * holds (see the Python files of corruptions), and, if it is random, the keys of the images' streams
 * (m, 2). */
#include "random.h"

#include "borders.h"
#include "fixed_point.h"
#include "pixels.h"
#include "field.h"
#include "transpose.h"

#include "noise.c"
#include "blur.c"
#include "weather.c"
#include "frost.c"
#include "spatter.c"
#include "digital.c"
#include "elastic.c"
#include "jpeg.c"

#define IMAGES "u1(m,h,w,3) u1(m,h,w,3)*"
#define KEYS " u4(m,2)"
#define SIZE (3 * N(h) * N(w))
/* Places in an image, and in one with a border, fit into 32 bits. */
#define PLACES_FIT (SIZE > 0 && 3 * (N(h) + 4) < INT32_MAX / (N(w) + 4))
/* The indices of argument j lie from 0 to an end. */
#define INDICES(j, count, end) within_ends(A(j), count, 0, end)
#define PIXELS (N(m) * N(h) * N(w))
#define SMOOTHING(weights, bias, border) (&(smoothing){weights, bias, N(r) - 1, border})
#define LIQUID (&(liquid){A(2), A(3), N(t), (float)R(4), (float)R(5)})

#define KERNELS                                                                                    \
    KERNEL(image_keys, "i8(n) int u4(n,2)*", 1,                                                    \
           image_keys(A(0), (uint64_t)I(1), A(2), N(n)))                                           \
    KERNEL(add_noise, IMAGES " u2(3008) i2(4096)" KEYS, 1,                                         \
           add_noise(A(0), A(1), A(2), A(3), A(4), N(m), SIZE))                                    \
    KERNEL(salt_and_pepper, IMAGES " int" KEYS, 1,                                                 \
           salt_and_pepper(A(0), A(1), (uint32_t)I(2), A(3), N(m), SIZE))                          \
    KERNEL(draw_levels, IMAGES " u4(65536)" KEYS, 1,                                               \
           draw_levels(A(0), A(1), A(2), A(3), N(m), SIZE))                                        \
    KERNEL(scale_noise, IMAGES " real u4(3008) f4(4096)" KEYS, 1,                                  \
           scale_noise(A(0), A(1), (float)R(2), A(3), A(4), A(5), N(m), SIZE))                     \
    KERNEL(weigh_images, IMAGES " i4(2)", SIZE > 0,                                                \
           weigh_images(A(0), A(1), A(2), MIRROR, N(m), N(h), N(w)))                               \
    KERNEL(blur_images, IMAGES " u2(r) u2(2)", SIZE > 0 && N(r) > 0,                               \
           blur_images(A(0), A(1), SMOOTHING(A(2), A(3), NEAREST), N(m), N(h), N(w)))              \
    KERNEL(disk_images, IMAGES " i8(c) int int int int u2(r) u2(2)",                               \
           SIZE > 0 && N(r) > 0 && N(c) % 2 == 1 && N(c) <= MOST_COLUMNS,                          \
           !INDICES(2, N(c), N(c) / 2) || I(5) < 0 || I(5) > N(c) / 2 ? SC_INDEX :                 \
           disk_images(A(0), A(1),                                                                 \
                       &(disk){.height = N(h), .width = N(w), .margin = N(r) - 1,                  \
                               .reach = N(c) / 2, .half_heights = A(2), .multiple = I(3),          \
                               .factor = I(4), .half = I(5), .weight = I(6)},                      \
                       SMOOTHING(A(7), A(8), MIRROR), N(m)))                                       \
    KERNEL(glass_images, IMAGES " u2(r) u2(2) i4(2) int int" KEYS,                                 \
           SIZE > 0 && N(r) > 0 && (I(5) > 0 || I(6) <= 0),                                        \
           glass_images(A(0), A(1), SMOOTHING(A(2), A(3), NEAREST), A(4), I(5), I(6), A(7), N(m),  \
                        N(h), N(w)))                                                               \
    KERNEL(blur_along_lines, IMAGES " f4(t) i4(4096,t) i4(4096,t) int" KEYS,                       \
           SIZE > 0 && N(t) % 4 == 0 && N(t) <= MOST_TAPS && I(5) >= 0,                            \
           blur_along_lines(A(0), A(1), A(2), A(3), A(4), I(5), A(6), N(m), N(h), N(w), N(t)))     \
    KERNEL(sum_pixel_taps, IMAGES " i8(f) i8(t) f4(t)", N(f) == N(h) * N(w) + 1,                   \
           !rising(A(2), N(f), 0, N(t), 0) || !INDICES(3, N(t), N(h) * N(w) - 1) ? SC_INDEX :      \
           sum_pixel_taps(A(0), A(1), A(2), A(3), A(4), N(m), N(h) * N(w)))                        \
    KERNEL(sum_copies, IMAGES " i8(c,h) f4(c,h,2) i8(p) i8(p) i8(k) f4(c,2,s) real",               \
           N(k) == N(c) + 1 && N(s) == 3 * N(w),                                                   \
           !INDICES(2, N(c) * N(h), N(h) - 2) || !INDICES(4, N(p), N(s)) ||                        \
           !rising(A(6), N(k), 0, N(p), 0) ? SC_INDEX :                                            \
           sum_copies(A(0), A(1), A(2), A(3), A(4), A(5), A(6), A(7), (float)R(8), N(m), N(h),     \
                      N(s), N(c)))                                                                 \
    KERNEL(snow_on,                                                                                \
           IMAGES " f4(65536) i8(h) f4(h) int i8(w) f4(w) int real"                                \
                  " f4(t) i4(4096,t) i4(4096,t) int int real" KEYS,                                \
           SIZE > 0 && N(t) % 4 == 0 && N(t) <= MOST_TAPS && I(5) > 1 && I(8) > 1 &&               \
               I(13) >= 0 && I(14) >= 0,                                                           \
           !INDICES(3, N(h), I(5) - 2) || !INDICES(6, N(w), I(8) - 2) ? SC_INDEX :                 \
           snow_on(A(0), A(1), A(2), &(enlargement){A(3), A(4), I(5), N(h)},                       \
                   &(enlargement){A(6), A(7), I(8), N(w)}, (float)R(9), A(10), A(11), A(12), N(t), \
                   I(13), I(14), (float)R(15), A(16), N(m)))                                       \
    KERNEL(frost_textures, "u1(m,640,640,3)* f4(m,17) i8(s,10)", N(s) == N(m) + 1,                 \
           frost_textures(A(0), A(1), A(2), N(m)))                                                 \
    KERNEL(blend_textures, IMAGES " u1(t) i8(k,5) real real" KEYS, N(k) > 0,                       \
           !textures_fit(A(3), N(k), N(t)) ? SC_INDEX :                                            \
           blend_textures(A(0), A(1), A(2), A(3), R(4), R(5), A(6), N(m), N(h), 3 * N(w), N(k)))   \
    KERNEL(lay_fog, IMAGES " f4(l) real" KEYS, N(l) > 0 && N(l) < 16,                              \
           lay_fog(A(0), A(1), A(2), (float)R(3), A(4), N(m), N(h), 3 * N(w), N(l)))               \
    KERNEL(raise_value, IMAGES " real", 1, raise_value(A(0), A(1), (float)R(2), PIXELS))           \
    KERNEL(splash, IMAGES " f4(65536) f4(t) real real real" KEYS, PLACES_FIT && N(t) % 2 == 1,     \
           splash(A(0), A(1), LIQUID, (float)R(6), A(7), N(m), N(h), N(w)))                        \
    KERNEL(muddy, IMAGES " f4(65536) f4(t) real real f4(q)" KEYS,                                  \
           PLACES_FIT && N(t) % 2 == 1 && N(q) % 2 == 1,                                           \
           muddy(A(0), A(1), LIQUID, A(6), N(q), A(7), N(m), N(h), N(w)))                          \
    KERNEL(draw_to_mean, IMAGES " real", SIZE > 0,                                                 \
           draw_to_mean(A(0), A(1), (float)R(2), N(m), SIZE))                                      \
    KERNEL(change_saturation, IMAGES " real real", 1,                                              \
           change_saturation(A(0), A(1), (float)R(2), (float)R(3), PIXELS))                        \
    KERNEL(enlarge_pixels, IMAGES " i8(b,2) i8(c,2) i8(s) i8(w)", SIZE > 0 && N(s) == N(b) + 1,    \
           !boxes_fit(A(2), N(b), N(h)) || !boxes_fit(A(3), N(c), N(w)) ||                         \
           !rising(A(4), N(s), 0, N(h), 0) || !INDICES(5, N(w), 3 * (N(c) - 1)) ? SC_INDEX :       \
           enlarge_pixels(A(0), A(1), A(2), A(3), A(4), A(5), N(m), N(h), N(w), N(b), N(c)))       \
    KERNEL(warp, IMAGES " real" KEYS, PLACES_FIT,                                                  \
           warp_images(A(0), A(1), R(2), 0, NULL, 1, NULL, NULL, A(3), N(m), N(h), N(w)))          \
    KERNEL(warp_and_displace, IMAGES " real real f4(t)" KEYS, PLACES_FIT && N(t) % 2 == 1,         \
           warp_images(A(0), A(1), R(2), (float)R(3), A(4), N(t), NULL, NULL, A(5), N(m), N(h),    \
                       N(w)))                                                                      \
    KERNEL(warp_and_displace_smoothly,                                                             \
           IMAGES " real real f4(t) f4(l,k) f4(h,k) f4(u) f4(v,j) f4(w,j)" KEYS,                   \
           PLACES_FIT && N(t) % 2 == 1 && N(u) % 2 == 1 && N(l) % 8 == 0 && N(v) % 8 == 0 &&       \
               N(l) >= N(h) && N(v) >= N(w),                                                       \
           warp_images(A(0), A(1), R(2), (float)R(3), NULL, 1,                                     \
                       &(axis){A(4), A(5), A(6), N(t), N(l), N(k), N(h)},                          \
                       &(axis){A(7), A(8), A(9), N(u), N(v), N(j), N(w)}, A(10), N(m), N(h),       \
                       N(w)))                                                                      \
    KERNEL(jpeg_round_trip, IMAGES " i4(2,4,64)", SIZE > 0,                                        \
           jpeg_round_trip(A(0), A(1), A(2), N(m), N(h), N(w)))

#include "table.h"
