// Launches the kernels of a PTX file by the driver interface, as a runtime library does: captured FILE N BLOCK STEP …
// Steps: scale, bump (with a configuration), library (bump by a handle), table (memory that memory leads to), graph.
#include "client.h"

enum { ON_THREAD = 2 };

static const char *const TABLE =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry follow(.param .u64 table, .param .u64 out)\n{\n"
    ".reg .b32 %r<3>;\n.reg .b64 %rd<7>;\n"
    "ld.param.u64 %rd1, [table];\nld.param.u64 %rd2, [out];\nmov.u32 %r1, %tid.x;\n"
    "mul.wide.u32 %rd3, %r1, 4;\nld.global.u64 %rd4, [%rd1];\nadd.s64 %rd5, %rd4, %rd3;\n"
    "ld.global.u32 %r2, [%rd5];\nadd.s64 %rd6, %rd2, %rd3;\nst.global.u32 [%rd6], %r2;\nret;\n}\n";

typedef int (*launcher)(handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, handle, void **,
                        void **);

static address upload(const void *data, size_t bytes) {
    address memory;
    EXPECT(0, CALL(cuMemAlloc_v2, (address *, size_t), &memory, bytes));
    EXPECT(0, CALL(cuMemcpyHtoD_v2, (address, const void *, size_t), memory, data, bytes));
    return memory;
}

int main(int count, char **words) {
    if (count < 4) return 7;
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) return printf("%s\n", dlerror()), 9;
    int n = atoi(words[2]), device;
    unsigned block = (unsigned)atoi(words[3]), grid = (n + block - 1) / block;
    handle context, module, other, kernel, scale, bump, follow, stream, graph;
    EXPECT(0, CALL(cuInit, (unsigned), 0));
    EXPECT(0, CALL(cuDeviceGet, (int *, int), &device, 0));
    EXPECT(0, CALL(cuDevicePrimaryCtxRetain, (handle *, int), &context, device));
    EXPECT(0, CALL(cuCtxSetCurrent, (handle), context));
    launcher run = NULL;
    EXPECT(0, CALL(cuGetProcAddress_v2, (const char *, void **, int, uint64_t, void *), "cuLaunchKernel", (void **)&run,
                   12000, ON_THREAD, NULL));
    EXPECT(0, CALL(cuModuleLoad, (handle *, const char *), &module, words[1]));
    EXPECT(0, CALL(cuModuleGetFunction, (handle *, handle, const char *), &scale, module, "_Z5scalePKfPfif"));
    EXPECT(0, CALL(cuModuleGetFunction, (handle *, handle, const char *), &bump, module, "_Z4bumpPii"));
    float *host = malloc(n * sizeof *host), factor = 3, offset = 2;
    int *numbers = malloc(n * sizeof *numbers);
    for (int i = 0; i < n; i++) host[i] = 0.5f * i, numbers[i] = i;
    address variable, x = upload(host, n * 4), y = upload(host, n * 4), counts = upload(numbers, n * 4);
    size_t bytes;
    EXPECT(0, CALL(cuModuleGetGlobal_v2, (address *, size_t *, handle, const char *), &variable, &bytes, module, "offset"));
    EXPECT(0, CALL(cuMemcpyHtoD_v2, (address, const void *, size_t), variable, &offset, 4));
    struct { unsigned grid[3], block[3], shared; handle stream; void *attributes; unsigned count; } config = {
        {grid, 1, 1}, {block, 1, 1}, 0, NULL, NULL, 0};
    void *of_bump[] = {&counts, &n};
    for (int at = 4; at < count; at++) {
        if (!strcmp(words[at], "scale")) {
            void *values[] = {&x, &y, &n, &factor};
            EXPECT(0, run(scale, grid, 1, 1, block, 1, 1, 0, NULL, values, NULL));
        } else if (!strcmp(words[at], "bump")) {
            EXPECT(0, CALL(cuLaunchKernelEx, (void *, handle, void **, void **), &config, bump, of_bump, NULL));
        } else if (!strcmp(words[at], "library")) {
            EXPECT(0, CALL(cuLibraryLoadFromFile,
                           (handle *, const char *, void *, void *, unsigned, void *, void *, unsigned), &other, words[1],
                           NULL, NULL, 0, NULL, NULL, 0));
            EXPECT(0, CALL(cuLibraryGetKernel, (handle *, handle, const char *), &kernel, other, "_Z4bumpPii"));
            EXPECT(0, launch(kernel, NULL, grid, block, of_bump, NULL));
        } else if (!strcmp(words[at], "table")) {
            address table = upload(&counts, sizeof counts);
            void *values[] = {&table, &y};
            EXPECT(0, CALL(cuModuleLoadData, (handle *, const void *), &other, TABLE));
            EXPECT(0, CALL(cuModuleGetFunction, (handle *, handle, const char *), &follow, other, "follow"));
            EXPECT(0, launch(follow, NULL, 1, 32, values, NULL));
        } else if (!strcmp(words[at], "graph")) {
            EXPECT(0, CALL(cuStreamCreate, (handle *, unsigned), &stream, 1));
            EXPECT(0, CALL(cuStreamBeginCapture_v2, (handle, int), stream, 0));
            EXPECT(0, launch(bump, stream, grid, block, of_bump, NULL));
            EXPECT(0, CALL(cuStreamEndCapture, (handle, handle *), stream, &graph));
        } else {
            return 7;
        }
    }
    EXPECT(0, CALL(cuMemcpyDtoH_v2, (void *, address, size_t), host, y, n * 4));
    EXPECT(0, CALL(cuMemcpyDtoH_v2, (void *, address, size_t), numbers, counts, n * 4));
    printf("%g %d, %d failures\n", host[n - 1], numbers[n - 1], failures);
    return failures;
}
