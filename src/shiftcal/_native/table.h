/* The end of a group of kernels: its table. KERNELS and TABLE are defined before. */
#define KERNEL(name, signature, condition, call)                                                   \
    static int run_##name(const sc_arg *a, const int64_t *n)                                       \
    {                                                                                              \
        (void)a, (void)n;                                                                          \
        return (condition) ? (call) : SC_LENGTHS;                                                  \
    }
KERNELS
#undef KERNEL

#define KERNEL(name, signature, condition, call) {#name, signature, run_##name},
const sc_kernel TABLE[] = {KERNELS{NULL, NULL, NULL}};
