// Uses the driver library without a header: what needs a current context, and what a handle has of its own.
#include "client.h"

static address in_stream(handle stream) {
    address memory = 0;
    EXPECT(0, CALL(cuMemAllocAsync, (address *, size_t, handle), &memory, 64, stream));
    EXPECT(0, CALL(cuMemFreeAsync, (address, handle), memory, stream));
    return memory;
}

static void check_handles(handle module, handle stream, handle event) {
    handle none, graph, node, executable, function;
    address memory;
    unsigned count = 0;
    const char *name = "";
    float time;
    EXPECT(0, CALL(cuCtxGetCurrent, (handle *), &none));
    TRUE(none == NULL);
    TRUE(in_stream(stream) != 0);
    EXPECT(INVALID_CONTEXT, CALL(cuMemAllocAsync, (address *, size_t, handle), &memory, 64, NULL));
    EXPECT(0, CALL(cuEventRecord, (handle, handle), event, stream));
    EXPECT(INVALID_CONTEXT, CALL(cuEventRecord, (handle, handle), event, NULL));
    EXPECT(0, CALL(cuStreamWaitEvent, (handle, handle, unsigned), stream, event, 0));
    EXPECT(0, CALL(cuStreamSynchronize, (handle), stream));
    EXPECT(INVALID_CONTEXT, CALL(cuStreamSynchronize, (handle), NULL));
    EXPECT(INVALID_CONTEXT, CALL(cuStreamQuery, (handle), (handle)1));
    EXPECT(0, CALL(cuEventSynchronize, (handle), event));
    EXPECT(0, CALL(cuEventQuery, (handle), event));
    EXPECT(0, CALL(cuEventElapsedTime, (float *, handle, handle), &time, event, event));
    EXPECT(0, CALL(cuModuleGetFunction, (handle *, handle, const char *), &function, module, "twice"));
    EXPECT(0, CALL(cuModuleGetGlobal_v2, (address *, size_t *, handle, const char *), &memory, NULL, module, "seen"));
    EXPECT(0, CALL(cuModuleGetFunctionCount, (unsigned *, handle), &count, module));
    EXPECT(0, CALL(cuModuleEnumerateFunctions, (handle *, unsigned, handle), &function, 1, module));
    EXPECT(0, CALL(cuFuncGetName, (const char **, handle), &name, function));
    TRUE(count == 1 && strcmp(name, "twice") == 0);
    EXPECT(0, CALL(cuGraphCreate, (handle *, unsigned), &graph, 0));
    EXPECT(0, CALL(cuGraphAddEmptyNode, (handle *, handle, const handle *, size_t), &node, graph, NULL, 0));
    EXPECT(0, CALL(cuGraphInstantiateWithFlags, (handle *, handle, unsigned long long), &executable, graph, 0));
    EXPECT(0, CALL(cuGraphLaunch, (handle, handle), executable, stream));
    EXPECT(0, CALL(cuGraphExecDestroy, (handle), executable));
    EXPECT(0, CALL(cuGraphDestroy, (handle), graph));
    EXPECT(0, CALL(cuEventDestroy_v2, (handle), event));
    EXPECT(0, CALL(cuStreamDestroy_v2, (handle), stream));
}

static void check_memory(handle first) {
    handle second, found;
    address memory, other;
    EXPECT(0, CALL(cuCtxPushCurrent_v2, (handle), first));
    EXPECT(0, CALL(cuMemAlloc_v2, (address *, size_t), &memory, 64));
    EXPECT(0, CALL(cuCtxCreate_v2, (handle *, unsigned, int), &second, 0, 0));
    EXPECT(0, CALL(cuMemAlloc_v2, (address *, size_t), &other, 64));
    EXPECT(0, CALL(cuPointerGetAttribute, (void *, int, address), &found, 1, memory + 8));
    TRUE(found == first);
    EXPECT(0, CALL(cuCtxPopCurrent_v2, (handle *), &found));
    EXPECT(0, CALL(cuPointerGetAttribute, (void *, int, address), &found, 1, other));
    TRUE(found == second);
    EXPECT(0, CALL(cuMemFree_v2, (address), other));
    EXPECT(0, CALL(cuMemFree_v2, (address), memory));
    EXPECT(0, CALL(cuCtxDestroy_v2, (handle), second));
    EXPECT(0, CALL(cuCtxDestroy_v2, (handle), first));
}

static void check_device(void) {
    const char *const right[] = {"0000:01:00.0", "0:1:0", "01:00.0", "0000:01:00"};
    const char *const wrong[] = {"0000:02:00.0", "0:1:0.1", "1:1:0", "", "0:1", "device"};
    int number = -1;
    for (size_t i = 0; i < sizeof right / sizeof *right; i++)
        EXPECT(0, CALL(cuDeviceGetByPCIBusId, (int *, const char *), &number, right[i]));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        EXPECT(INVALID_DEVICE, CALL(cuDeviceGetByPCIBusId, (int *, const char *), &number, wrong[i]));
    TRUE(number == 0);
}

int main(void) {
    handle context, found, module, stream, event;
    int device = -1, config = -1;
    size_t total = 0;
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) {
        printf("%s\n", dlerror());
        return 1;
    }
    EXPECT(0, CALL(cuInit, (unsigned), 0));
    check_device();
    EXPECT(0, CALL(cuCtxCreate_v2, (handle *, unsigned, int), &context, 0, 0));
    EXPECT(0, CALL(cuMemGetInfo_v2, (size_t *, size_t *), NULL, &total));
    EXPECT(INVALID_VALUE, CALL(cuMemGetInfo_v2, (size_t *, size_t *), NULL, NULL));
    TRUE(total > (size_t)30 << 30);
    EXPECT(0, CALL(cuCtxGetCacheConfig, (int *), &config));
    TRUE(config == 0);
    EXPECT(0, CALL(cuCtxSetCacheConfig, (int), 2));
    EXPECT(INVALID_VALUE, CALL(cuCtxSetCacheConfig, (int), 4));
    EXPECT(0, CALL(cuCtxGetCacheConfig, (int *), &config));
    TRUE(config == 2);
    EXPECT(0, CALL(cuModuleLoadData, (handle *, const void *), &module, PTX));
    EXPECT(0, CALL(cuStreamCreate, (handle *, unsigned), &stream, 1));
    EXPECT(0, CALL(cuEventCreate, (handle *, unsigned), &event, 0));
    EXPECT(0, CALL(cuCtxPopCurrent_v2, (handle *), &found));
    EXPECT(INVALID_CONTEXT, CALL(cuCtxGetDevice, (int *), &device));
    check_handles(module, stream, event);
    check_memory(context);
    // A primary context that nobody retains is current, and its device known.
    EXPECT(0, CALL(cuDevicePrimaryCtxRetain, (handle *, int), &context, 0));
    EXPECT(0, CALL(cuCtxSetCurrent, (handle), context));
    EXPECT(0, CALL(cuDevicePrimaryCtxRelease_v2, (int), 0));
    EXPECT(CONTEXT_IS_DESTROYED, CALL(cuCtxSynchronize, (void)));
    EXPECT(0, CALL(cuCtxGetDevice, (int *), &device));
    TRUE(device == 0);
    printf("%d failures\n", failures);
    return failures != 0;
}
