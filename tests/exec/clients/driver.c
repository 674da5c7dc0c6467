// Uses the driver library without a header and without CUDA: PTX text, launches, error codes.
#include "client.h"

static void check_errors_before_a_context(void) {
    address memory;
    int device;
    handle context;
    EXPECT(NOT_INITIALIZED, CALL(cuDeviceGet, (int *, int), &device, 0));
    EXPECT(NOT_INITIALIZED, CALL(cuMemAlloc_v2, (address *, size_t), &memory, 16));
    EXPECT(INVALID_VALUE, CALL(cuInit, (unsigned), 1));
    EXPECT(0, CALL(cuInit, (unsigned), 0));
    EXPECT(INVALID_CONTEXT, CALL(cuMemAlloc_v2, (address *, size_t), &memory, 16));
    EXPECT(INVALID_CONTEXT, CALL(cuCtxSynchronize, (void)));
    EXPECT(INVALID_DEVICE, CALL(cuDeviceGet, (int *, int), &device, 1));
    EXPECT(0, CALL(cuDeviceGet, (int *, int), &device, 0));
    EXPECT(0, CALL(cuCtxGetCurrent, (handle *), &context));
    TRUE(context == NULL);
}

static void check_device(void) {
    char name[64];
    int value = 0;
    size_t bytes = 0;
    const char *text = NULL;
    EXPECT(0, CALL(cuDeviceGetCount, (int *), &value));
    TRUE(value == 1);
    EXPECT(0, CALL(cuDeviceGetName, (char *, int, int), name, 64, 0));
    TRUE(strstr(name, "A100") != NULL);
    EXPECT(0, CALL(cuDeviceGetName, (char *, int, int), name, 4, 0));
    TRUE(strlen(name) == 3);
    EXPECT(0, CALL(cuDeviceGetAttribute, (int *, int, int), &value, 10, 0));
    TRUE(value == 32);
    EXPECT(INVALID_VALUE, CALL(cuDeviceGetAttribute, (int *, int, int), &value, 9999, 0));
    EXPECT(0, CALL(cuDeviceTotalMem_v2, (size_t *, int), &bytes, 0));
    TRUE(bytes > (size_t)30 << 30);
    EXPECT(0, CALL(cuGetErrorName, (int, const char **), 700, &text));
    TRUE(strcmp(text, "CUDA_ERROR_ILLEGAL_ADDRESS") == 0);
    EXPECT(INVALID_VALUE, CALL(cuGetErrorString, (int, const char **), 12345, &text));
    TRUE(text == NULL);
}

static void check_names(void) {
    void *found = NULL;
    int status = -1;
#define GET(name, version, flags) \
    CALL(cuGetProcAddress_v2, (const char *, void **, int, uint64_t, int *), name, &found, version, flags, &status)
    EXPECT(0, GET("cuMemAlloc", 12000, 0));
    TRUE(found == find("cuMemAlloc_v2") && status == 0);
    EXPECT(0, GET("cuCtxCreate", 11040, 0));
    TRUE(found == find("cuCtxCreate_v3"));
    EXPECT(0, GET("cuGraphInstantiate", 12000, 0));
    TRUE(found == find("cuGraphInstantiateWithFlags"));
    EXPECT(0, GET("cuMemcpyHtoDAsync", 12000, 2));
    TRUE(found == find("cuMemcpyHtoDAsync_v2_ptsz"));
    EXPECT(0, GET("cuNoSuchFunction", 12000, 0));
    TRUE(found == NULL && status == 1);
    EXPECT(INVALID_VALUE, GET("cuMemAlloc", 99000, 0));
    const void *table;
    EXPECT(NOT_FOUND, CALL(cuGetExportTable, (const void **, const void *), &table, "0123456789abcdef"));
}

static void check_contexts(void) {
    handle first, second, current;
    EXPECT(0, CALL(cuCtxCreate_v2, (handle *, unsigned, int), &first, 0, 0));
    EXPECT(0, CALL(cuCtxCreate_v2, (handle *, unsigned, int), &second, 0, 0));
    EXPECT(0, CALL(cuCtxPushCurrent_v2, (handle), first));
    EXPECT(0, CALL(cuCtxPopCurrent_v2, (handle *), &current));
    TRUE(current == first);
    EXPECT(0, CALL(cuCtxDestroy_v2, (handle), second));
    EXPECT(0, CALL(cuCtxGetCurrent, (handle *), &current));
    TRUE(current == first);
    EXPECT(0, CALL(cuCtxPopCurrent_v2, (handle *), &current));
    EXPECT(0, CALL(cuCtxSetCurrent, (handle), first));
    EXPECT(INVALID_CONTEXT, CALL(cuCtxSetCurrent, (handle), (handle)0x10));
    EXPECT(0, CALL(cuCtxDestroy_v2, (handle), first));
    EXPECT(INVALID_CONTEXT, CALL(cuCtxSynchronize, (void)));
}

static handle check_modules(void) {
    handle module, function, same;
    unsigned count = 0;
    address variable;
    size_t bytes;
    int value;
    char log[256] = "";
    unsigned options[] = {5, 6};
    void *values[] = {log, (void *)sizeof log};
    EXPECT(INVALID_PTX, CALL(cuModuleLoadDataEx, (handle *, const void *, unsigned, unsigned *, void **), &module,
                             ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry broken( {", 2, options, values));
    TRUE(strlen(log) > 10 && (size_t)values[1] == strlen(log));
    EXPECT(INVALID_IMAGE, CALL(cuModuleLoadData, (handle *, const void *), &module, "neither PTX nor a cubin"));
    EXPECT(FILE_NOT_FOUND, CALL(cuModuleLoad, (handle *, const char *), &module, "no/such/file.ptx"));
    EXPECT(0, CALL(cuModuleLoadData, (handle *, const void *), &module, PTX));
    EXPECT(NOT_FOUND, CALL(cuModuleGetFunction, (handle *, handle, const char *), &function, module, "thrice"));
    EXPECT(INVALID_HANDLE, CALL(cuModuleGetFunction, (handle *, handle, const char *), &function, (handle)0x18, "twice"));
    EXPECT(0, CALL(cuModuleGetFunction, (handle *, handle, const char *), &function, module, "twice"));
    EXPECT(0, CALL(cuModuleGetFunctionCount, (unsigned *, handle), &count, module));
    EXPECT(0, CALL(cuModuleEnumerateFunctions, (handle *, unsigned, handle), &same, 1, module));
    TRUE(count == 1 && same == function);
    EXPECT(0, CALL(cuModuleGetGlobal_v2, (address *, size_t *, handle, const char *), &variable, &bytes, module, "seen"));
    EXPECT(0, CALL(cuMemcpyDtoH_v2, (void *, address, size_t), &value, variable, 4));
    TRUE(bytes == 4 && value == 7);
    EXPECT(0, CALL(cuFuncGetAttribute, (int *, int, handle), &value, 0, function));
    TRUE(value > 0 && value <= 1024);
    EXPECT(0, CALL(cuFuncSetAttribute, (handle, int, int), function, 8, 65536));
    EXPECT(0, CALL(cuFuncGetAttribute, (int *, int, handle), &value, 8, function));
    TRUE(value == 65536);
    EXPECT(INVALID_VALUE, CALL(cuFuncSetAttribute, (handle, int, int), function, 8, 1 << 30));
    return function;
}

static void check_launches(handle function) {
    static unsigned data[COUNT], result[COUNT];
    address in, out;
    unsigned count = COUNT;
    handle stream, graph, executable;
    for (unsigned i = 0; i < COUNT; i++) data[i] = i;
    EXPECT(INVALID_VALUE, CALL(cuMemAlloc_v2, (address *, size_t), &in, 0));
    EXPECT(0, CALL(cuMemAlloc_v2, (address *, size_t), &in, sizeof data));
    EXPECT(0, CALL(cuMemAlloc_v2, (address *, size_t), &out, sizeof data));
    EXPECT(0, CALL(cuMemcpyHtoD_v2, (address, const void *, size_t), in, data, sizeof data));
    EXPECT(0, CALL(cuMemsetD32_v2, (address, unsigned, size_t), out, 5, COUNT));
    void *values[] = {&out, &in, &count};
    EXPECT(INVALID_VALUE, launch(function, NULL, 4, 2048, values, NULL));
    EXPECT(INVALID_VALUE, launch(function, NULL, 4, 256, NULL, NULL));
    EXPECT(INVALID_HANDLE, launch((handle)0x18, NULL, 4, 256, values, NULL));
    EXPECT(0, launch(function, NULL, 4, 256, values, NULL));
    EXPECT(0, CALL(cuMemcpyDtoH_v2, (void *, address, size_t), result, out, sizeof data));
    for (unsigned i = 0; i < COUNT; i++) TRUE(result[i] == 2 * i);

    // The packed form of the arguments, and a captured graph: out becomes 4 · i.
    struct { address out, in; unsigned count; } packed = {out, out, COUNT};
    size_t bytes = sizeof packed;
    void *extra[] = {(void *)1, &packed, (void *)2, &bytes, (void *)0};
    EXPECT(0, CALL(cuStreamCreate, (handle *, unsigned), &stream, 1));
    EXPECT(0, CALL(cuCtxSynchronize, (void)));
    EXPECT(0, CALL(cuStreamBeginCapture_v2, (handle, int), stream, 0));
    EXPECT(0, launch(function, stream, 4, 256, NULL, extra));
    // A call that a capture does not permit ends it.
    EXPECT(900, CALL(cuStreamSynchronize, (handle), stream));
    EXPECT(901, CALL(cuStreamEndCapture, (handle, handle *), stream, &graph));
    EXPECT(0, CALL(cuStreamBeginCapture_v2, (handle, int), stream, 0));
    EXPECT(0, launch(function, stream, 4, 256, NULL, extra));
    EXPECT(0, CALL(cuStreamEndCapture, (handle, handle *), stream, &graph));
    EXPECT(0, CALL(cuGraphInstantiateWithFlags, (handle *, handle, uint64_t), &executable, graph, 0));
    EXPECT(0, CALL(cuGraphLaunch, (handle, handle), executable, stream));
    EXPECT(0, CALL(cuStreamSynchronize, (handle), stream));
    EXPECT(0, CALL(cuMemcpyDtoH_v2, (void *, address, size_t), result, out, sizeof data));
    for (unsigned i = 0; i < COUNT; i++) TRUE(result[i] == 4 * i);

    int type = 0, managed = 1;
    EXPECT(0, CALL(cuPointerGetAttribute, (void *, int, address), &type, 2, in + 8));
    TRUE(type == 2);
    EXPECT(INVALID_VALUE, CALL(cuPointerGetAttribute, (void *, int, address), &managed, 8, (address)&type));
    EXPECT(0, CALL(cuMemFree_v2, (address), in));
    EXPECT(INVALID_VALUE, CALL(cuMemFree_v2, (address), in));
}

static void check_shared_memory(handle function) {
    unsigned *pinned, count = 4;
    address managed;
    EXPECT(0, CALL(cuMemHostAlloc, (void **, size_t, unsigned), (void **)&pinned, 16, 0));
    EXPECT(0, CALL(cuMemAllocManaged, (address *, size_t, unsigned), &managed, 16, 1));
    for (unsigned i = 0; i < 4; i++) pinned[i] = i + 1;
    void *values[] = {&managed, &pinned, &count};
    EXPECT(0, launch(function, NULL, 1, 32, values, NULL));
    EXPECT(0, CALL(cuCtxSynchronize, (void)));
    for (unsigned i = 0; i < 4; i++) TRUE(((unsigned *)managed)[i] == 2 * (i + 1));
    EXPECT(0, CALL(cuMemFreeHost, (void *), pinned));
    EXPECT(0, CALL(cuMemFree_v2, (address), managed));
}

static void check_fault(handle function) {
    address small, memory;
    unsigned count = COUNT;
    EXPECT(0, CALL(cuMemAlloc_v2, (address *, size_t), &small, 64));
    EXPECT(0, CALL(cuMemsetD8_v2, (address, unsigned char, size_t), small, 1, 64));
    void *values[] = {&small, &small, &count};
    EXPECT(0, launch(function, NULL, 4, 256, values, NULL));
    EXPECT(ILLEGAL_ADDRESS, CALL(cuCtxSynchronize, (void)));
    EXPECT(ILLEGAL_ADDRESS, CALL(cuMemAlloc_v2, (address *, size_t), &memory, 64));
    EXPECT(ILLEGAL_ADDRESS, CALL(cuCtxSynchronize, (void)));
}

int main(void) {
    handle context;
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) {
        printf("%s\n", dlerror());
        return 1;
    }
    check_errors_before_a_context();
    check_device();
    check_names();
    check_contexts();
    EXPECT(0, CALL(cuDevicePrimaryCtxRetain, (handle *, int), &context, 0));
    EXPECT(0, CALL(cuCtxSetCurrent, (handle), context));
    handle function = check_modules();
    check_launches(function);
    check_shared_memory(function);
    check_fault(function);
    EXPECT(0, CALL(cuDevicePrimaryCtxReset_v2, (int), 0));
    EXPECT(0, CALL(cuCtxSynchronize, (void)));
    EXPECT(0, CALL(cuDevicePrimaryCtxRelease_v2, (int), 0));
    EXPECT(CONTEXT_IS_DESTROYED, CALL(cuCtxSynchronize, (void)));
    printf("%d failures\n", failures);
    return failures != 0;
}
