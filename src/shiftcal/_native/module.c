/* The binding: every kernel of the tables becomes a function of the module shiftcal._kernels.
 *
 * A call checks the type, the contiguity and the axes of every array against the kernel's signature
 * (see kernels.h), releases the interpreter lock and runs the kernel. The tables are compiled once
 * for each instruction set; the best that the processor has is chosen when the module is loaded,
 * or the one that the environment variable SHIFTCAL_SIMD names: baseline, avx2 or avx512. */
#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "kernels.h"

#define MOST_ARGS 24
#define MOST_AXES 4

extern const sc_kernel sc_numbers_baseline[], sc_images_baseline[];
#if defined(SC_X86)
extern const sc_kernel sc_numbers_avx2[], sc_images_avx2[];
extern const sc_kernel sc_numbers_avx512[], sc_images_avx512[];
#endif

/* ---- signatures, parsed once ---------------------------------------------------------------- */

typedef struct {
    char kind;                /* 'f', 'i', 'u', or 'n' (int) and 'r' (real) for numbers */
    char size;                /* bytes of an item */
    char written;
    char axes;
    int32_t axis[MOST_AXES];  /* a length, or minus a letter */
} parameter;

typedef struct {
    const sc_kernel *kernel;
    int count;
    parameter parameters[MOST_ARGS];
    PyMethodDef method;
} bound;

static int parse(const char *s, bound *out)
{
    int count = 0;
    while (*s) {
        parameter *p = &out->parameters[count];
        if (++count > MOST_ARGS) return -1;
        memset(p, 0, sizeof *p);
        if (strncmp(s, "int", 3) == 0) {
            p->kind = 'n';
            s += 3;
        } else if (strncmp(s, "real", 4) == 0) {
            p->kind = 'r';
            s += 4;
        } else {
            p->kind = *s++;
            p->size = (char)(*s++ - '0');
            if (*s++ != '(') return -1;
            while (*s != ')') {
                if (p->axes == MOST_AXES) return -1;
                int32_t axis = 0;
                if (*s >= 'a' && *s <= 'z')
                    axis = -*s++;
                else
                    while (*s >= '0' && *s <= '9') axis = 10 * axis + (*s++ - '0');
                p->axis[(int)p->axes++] = axis;
                if (*s == ',')
                    s++;
                else if (*s != ')')
                    return -1;
            }
            s++;
            if (*s == '*') {
                p->written = 1;
                s++;
            }
        }
        if (*s == ' ')
            s++;
        else if (*s)
            return -1;
    }
    out->count = count;
    return 0;
}

/* ---- calls ---------------------------------------------------------------------------------- */

static char kind_of(const char *format)
{
    if (format == NULL) return 'u';
    if (*format == '=' || *format == '<' || *format == '@') format++;
    if (format[0] == 0 || format[1] != 0) return 0;
    if (strchr("fd", *format)) return 'f';
    if (strchr("bhilqn", *format)) return 'i';
    if (strchr("BHILQN?", *format)) return 'u';
    return 0;
}

/* Check one array against its parameter and bind the letters of its axes. */
static int check(const bound *b, int j, const Py_buffer *view, int64_t *lengths)
{
    const parameter *p = &b->parameters[j];
    if (kind_of(view->format) != p->kind || view->itemsize != p->size) {
        PyErr_Format(PyExc_TypeError, "%s: argument %d must be an array of %c%d, got '%s'.",
                     b->kernel->name, j, p->kind, (int)p->size, view->format);
        return -1;
    }
    if ((uintptr_t)view->buf % (uintptr_t)p->size) {
        PyErr_Format(PyExc_ValueError, "%s: argument %d must be aligned to its items.",
                     b->kernel->name, j);
        return -1;
    }
    if (view->ndim != p->axes) {
        PyErr_Format(PyExc_ValueError, "%s: argument %d must have %d axes, got %d.",
                     b->kernel->name, j, (int)p->axes, view->ndim);
        return -1;
    }
    for (int i = 0; i < p->axes; i++) {
        int64_t expected = p->axis[i], length = view->shape[i];
        if (expected < 0) {
            int64_t *known = &lengths[-expected - 'a'];
            if (*known < 0) *known = length;
            expected = *known;
        }
        if (length != expected) {
            PyErr_Format(PyExc_ValueError, "%s: axis %d of argument %d must be %lld, got %lld.",
                         b->kernel->name, i, j, (long long)expected, (long long)length);
            return -1;
        }
    }
    return 0;
}

static PyObject *call(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    const bound *b = PyCapsule_GetPointer(self, NULL);
    if (b == NULL) return NULL;
    if (count != b->count)
        return PyErr_Format(PyExc_TypeError, "%s takes %d arguments, got %zd.", b->kernel->name,
                            b->count, count);
    sc_arg values[MOST_ARGS];
    Py_buffer views[MOST_ARGS];
    int64_t lengths[26];
    for (int i = 0; i < 26; i++) lengths[i] = -1;
    int opened = 0, result = -1;
    for (int j = 0; j < count; j++) {
        const parameter *p = &b->parameters[j];
        if (p->kind == 'n') {
            values[j].integer = PyLong_AsLongLong(args[j]);
            if (values[j].integer == -1 && PyErr_Occurred()) goto done;
        } else if (p->kind == 'r') {
            values[j].real = PyFloat_AsDouble(args[j]);
            if (values[j].real == -1.0 && PyErr_Occurred()) goto done;
        } else {
            int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (p->written ? PyBUF_WRITABLE : 0);
            if (PyObject_GetBuffer(args[j], &views[opened], flags) < 0) goto done;
            const Py_buffer *view = &views[opened++];
            if (check(b, j, view, lengths) < 0) goto done;
            values[j].data = view->buf;
        }
    }
    Py_BEGIN_ALLOW_THREADS
    result = b->kernel->run(values, lengths);
    Py_END_ALLOW_THREADS
done:
    for (int i = 0; i < opened; i++) PyBuffer_Release(&views[i]);
    if (result == SC_DONE) Py_RETURN_NONE;
    if (result == SC_NO_MEMORY) return PyErr_NoMemory();
    if (result == SC_LENGTHS)
        PyErr_Format(PyExc_ValueError, "%s: the lengths of its arrays do not fit together.",
                     b->kernel->name);
    if (result == SC_INDEX)
        PyErr_Format(PyExc_ValueError, "%s: an index lies outside the array it points into.",
                     b->kernel->name);
    return NULL;
}

/* ---- the module ----------------------------------------------------------------------------- */

static int add_table(PyObject *module, const sc_kernel *table)
{
    for (; table->name; table++) {
        bound *b = calloc(1, sizeof *b); /* lives as long as the process */
        if (b == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        b->kernel = table;
        if (parse(table->signature, b) < 0) {
            PyErr_Format(PyExc_SystemError, "%s: bad signature.", table->name);
            return -1;
        }
        b->method.ml_name = table->name;
        b->method.ml_meth = (PyCFunction)(void (*)(void))call;
        b->method.ml_flags = METH_FASTCALL;
        b->method.ml_doc = table->signature;
        PyObject *self = PyCapsule_New(b, NULL, NULL);
        PyObject *function = self ? PyCFunction_NewEx(&b->method, self, NULL) : NULL;
        Py_XDECREF(self);
        if (function == NULL) return -1;
        int failed = PyModule_AddObjectRef(module, table->name, function);
        Py_DECREF(function);
        if (failed < 0) return -1;
    }
    return 0;
}

#if defined(SC_X86) && defined(_MSC_VER)
#include <intrin.h>
#include <immintrin.h>
static int level_of_processor(void)
{
    int r[4];
    __cpuid(r, 0);
    int leaves = r[0];
    __cpuid(r, 1);
    int saves = (r[2] >> 27) & 1, fma = (r[2] >> 12) & 1;
    if (leaves < 7 || !saves || !fma) return 0;
    unsigned long long saved = _xgetbv(0);
    __cpuidex(r, 7, 0);
    unsigned wanted = (1u << 16) | (1u << 17) | (1u << 28) | (1u << 30) | (1u << 31);
    if ((saved & 6) != 6 || !((r[1] >> 5) & 1)) return 0;
    return (saved & 0xe6) == 0xe6 && ((unsigned)r[1] & wanted) == wanted ? 2 : 1;
}
#elif defined(SC_X86)
static int level_of_processor(void)
{
    __builtin_cpu_init();
    if (!(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
          __builtin_cpu_supports("bmi2")))
        return 0;
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                   __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                   __builtin_cpu_supports("avx512vl")
               ? 2
               : 1;
}
#else
static int level_of_processor(void) { return 0; }
#endif

static int execute(PyObject *module)
{
    static const char *const names[] = {"baseline", "avx2", "avx512"};
    const sc_kernel *numbers[] = {sc_numbers_baseline, NULL, NULL};
    const sc_kernel *images[] = {sc_images_baseline, NULL, NULL};
#if defined(SC_X86)
    numbers[1] = sc_numbers_avx2, images[1] = sc_images_avx2;
    numbers[2] = sc_numbers_avx512, images[2] = sc_images_avx512;
#endif
    int best = level_of_processor(), level = best;
    const char *wanted = getenv("SHIFTCAL_SIMD");
    if (wanted && *wanted) {
        for (level = best; level >= 0 && strcmp(wanted, names[level]) != 0; level--) {}
        if (level < 0) {
            PyErr_Format(PyExc_ImportError,
                         "SHIFTCAL_SIMD must be baseline, avx2 or avx512, and no more than this "
                         "processor has (%s); got '%s'. Unset it, or choose another.",
                         names[best], wanted);
            return -1;
        }
    }
    if (PyModule_AddStringConstant(module, "simd", names[level]) < 0) return -1;
    if (add_table(module, numbers[level]) < 0) return -1;
    return add_table(module, images[level]);
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, execute}, {0, NULL}};
static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_kernels", "Kernels compiled ahead; see src/shiftcal/_native.", 0,
    NULL, slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__kernels(void) { return PyModuleDef_Init(&definition); }
