// What the C programs of this folder share: they use CUDA's libraries without a header.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const PTX =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    ".visible .global .align 4 .u32 seen = 7;\n"
    ".visible .entry twice(.param .u64 out, .param .u64 in, .param .u32 count)\n"
    "{\n"
    ".reg .pred %p<2>;\n.reg .b32 %r<7>;\n.reg .b64 %rd<7>;\n"
    "ld.param.u64 %rd1, [out];\nld.param.u64 %rd2, [in];\nld.param.u32 %r1, [count];\n"
    "mov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %ntid.x;\nmov.u32 %r4, %tid.x;\n"
    "mad.lo.s32 %r5, %r2, %r3, %r4;\n"
    "setp.ge.u32 %p1, %r5, %r1;\n@%p1 bra DONE;\n"
    "mul.wide.u32 %rd3, %r5, 4;\n"
    "add.s64 %rd4, %rd2, %rd3;\nld.global.u32 %r6, [%rd4];\nshl.b32 %r6, %r6, 1;\n"
    "add.s64 %rd5, %rd1, %rd3;\nst.global.u32 [%rd5], %r6;\n"
    "DONE:\nret;\n}\n";

static void *library;
static int failures;

static void *find(const char *name) {
    void *found = dlsym(library, name);
    if (!found) {
        printf("no %s\n", name);
        exit(1);
    }
    return found;
}

#define CALL(name, types, ...) (((int(*) types)find(#name))(__VA_ARGS__))
#define EXPECT(code, call)                                                  \
    do {                                                                    \
        int got = (call);                                                   \
        if (got != (code)) {                                                \
            printf("line %d: %d instead of %d\n", __LINE__, got, (code));   \
            failures++;                                                     \
        }                                                                   \
    } while (0)
#define TRUE(condition)                                                     \
    do {                                                                    \
        if (!(condition)) {                                                 \
            printf("line %d: %s\n", __LINE__, #condition);                  \
            failures++;                                                     \
        }                                                                   \
    } while (0)

enum { NOT_INITIALIZED = 3, INVALID_VALUE = 1, INVALID_DEVICE = 101, INVALID_IMAGE = 200 };
enum { INVALID_CONTEXT = 201, INVALID_PTX = 218, FILE_NOT_FOUND = 301, INVALID_HANDLE = 400 };
enum { NOT_FOUND = 500, ILLEGAL_ADDRESS = 700, CONTEXT_IS_DESTROYED = 709, COUNT = 1000 };

typedef uint64_t address;
typedef void *handle;

static int launch(handle function, handle stream, unsigned grid, unsigned block, void **values, void **extra) {
    return CALL(cuLaunchKernel,
                (handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, handle, void **, void **),
                function, grid, 1, 1, block, 1, 1, 0, stream, values, extra);
}
