// Maps memory at reserved addresses, and orders streams by words.
#include "client.h"

enum { NOT_READY = 600, ON_DEVICE = 1, PINNED = 1, READ_WRITE = 3, GREATER_OR_EQUAL = 0, EQUAL = 1 };

static void check_mappings(void) {
    struct { int allocation, handles, where, id; void *metadata; uint64_t rest; } properties = {PINNED, 0, ON_DEVICE, 0};
    struct { int where, id, flags; } permission = {ON_DEVICE, 0, READ_WRITE};
    size_t step = 0;
    address start, memory[2];
    uint64_t flags = 0;
    EXPECT(0, CALL(cuMemGetAllocationGranularity, (size_t *, void *, int), &step, &properties, 0));
    TRUE(step == 2 << 20);
    EXPECT(INVALID_VALUE, CALL(cuMemAddressReserve, (address *, size_t, size_t, address, uint64_t), &start, 5, 0, 0, 0));
    EXPECT(0, CALL(cuMemAddressReserve, (address *, size_t, size_t, address, uint64_t), &start, 8 * step, 0, 0, 0));
    TRUE(start % step == 0);
    for (int i = 0; i < 2; i++)
        EXPECT(0, CALL(cuMemCreate, (address *, size_t, void *, uint64_t), &memory[i], step, &properties, 0));
#define MAP(at, number) CALL(cuMemMap, (address, size_t, size_t, address, uint64_t), at, step, 0, memory[number], 0)
#define ALLOW(at, bytes) CALL(cuMemSetAccess, (address, size_t, void *, size_t), at, bytes, &permission, 1)
    EXPECT(INVALID_VALUE, ALLOW(start, step));
    EXPECT(0, MAP(start, 0));
    EXPECT(INVALID_VALUE, MAP(start, 1));
    EXPECT(INVALID_VALUE, CALL(cuMemsetD32_v2, (address, unsigned, size_t), start, 5, 4));
    EXPECT(0, ALLOW(start, step));
    EXPECT(0, CALL(cuMemGetAccess, (uint64_t *, void *, address), &flags, &permission, start));
    TRUE(flags == READ_WRITE);
    EXPECT(0, CALL(cuMemsetD32_v2, (address, unsigned, size_t), start, 5, step / 4));
    EXPECT(INVALID_VALUE, CALL(cuMemsetD32_v2, (address, unsigned, size_t), start, 5, step / 4 + 1));

    // A second piece makes the range longer; a kernel and copies reach over both.
    EXPECT(0, MAP(start + step, 1));
    EXPECT(0, ALLOW(start, 2 * step));
    EXPECT(0, CALL(cuMemRelease, (address), memory[1]));
    EXPECT(0, CALL(cuMemsetD32_v2, (address, unsigned, size_t), start + step, 6, step / 4));
    handle module, function;
    EXPECT(0, CALL(cuModuleLoadData, (handle *, const void *), &module, PTX));
    EXPECT(0, CALL(cuModuleGetFunction, (handle *, handle, const char *), &function, module, "twice"));
    address middle = start + step - 64;
    int count = 32, words[32];
    void *values[] = {&middle, &middle, &count};
    EXPECT(0, launch(function, NULL, 1, 32, values, NULL));
    EXPECT(0, CALL(cuMemcpyDtoH_v2, (void *, address, size_t), words, middle, sizeof words));
    TRUE(words[0] == 10 && words[15] == 10 && words[16] == 12 && words[31] == 12);

    // The first piece keeps its contents at another address; the second one ends.
    EXPECT(INVALID_VALUE, CALL(cuMemAddressFree, (address, size_t), start, 8 * step));
    EXPECT(0, CALL(cuMemUnmap, (address, size_t), start, 2 * step));
    EXPECT(INVALID_VALUE, MAP(start, 1));
    EXPECT(0, MAP(start + 4 * step, 0));
    EXPECT(0, ALLOW(start + 4 * step, step));
    EXPECT(0, CALL(cuMemcpyDtoH_v2, (void *, address, size_t), words, start + 5 * step - 64, 64));
    TRUE(words[0] == 10 && words[15] == 10);
    EXPECT(0, CALL(cuMemUnmap, (address, size_t), start + 4 * step, step));
    EXPECT(0, CALL(cuMemRelease, (address), memory[0]));
    EXPECT(INVALID_VALUE, CALL(cuMemRelease, (address), memory[0]));
    EXPECT(0, CALL(cuMemAddressFree, (address, size_t), start, 8 * step));
}

static void check_values(void) {
    address flag, memory;
    handle first, second, event, module, function;
    uint64_t *word;
    int count = 4, words[4];
    EXPECT(0, CALL(cuMemAlloc_v2, (address *, size_t), &flag, 8));
    EXPECT(0, CALL(cuMemAlloc_v2, (address *, size_t), &memory, sizeof words));
    EXPECT(0, CALL(cuMemsetD32_v2, (address, unsigned, size_t), flag, 0, 2));
    EXPECT(0, CALL(cuMemAllocHost_v2, (void **, size_t), (void **)&word, 8));
    EXPECT(0, CALL(cuStreamCreate, (handle *, unsigned), &first, 1));
    EXPECT(0, CALL(cuStreamCreate, (handle *, unsigned), &second, 1));
    EXPECT(0, CALL(cuEventCreate, (handle *, unsigned), &event, 0));
    EXPECT(0, CALL(cuModuleLoadData, (handle *, const void *), &module, PTX));
    EXPECT(0, CALL(cuModuleGetFunction, (handle *, handle, const char *), &function, module, "twice"));
#define WAIT(stream, at, value, condition) \
    CALL(cuStreamWaitValue32_v2, (handle, address, uint32_t, unsigned), stream, at, value, condition)
    EXPECT(INVALID_VALUE, WAIT(first, flag + 2, 1, EQUAL));
    EXPECT(INVALID_VALUE, WAIT(first, flag, 1, 9));

    // The kernel of the first stream runs after the fill of the second one, which was submitted later.
    void *values[] = {&memory, &memory, &count};
    EXPECT(0, WAIT(first, flag, 1, GREATER_OR_EQUAL));
    EXPECT(0, launch(function, first, 1, 32, values, NULL));
    EXPECT(0, CALL(cuEventRecord, (handle, handle), event, first));
    EXPECT(NOT_READY, CALL(cuStreamQuery, (handle), first));
    EXPECT(NOT_READY, CALL(cuEventQuery, (handle), event));
    EXPECT(0, CALL(cuMemsetD32Async, (address, unsigned, size_t, handle), memory, 3, 4, second));
    EXPECT(0, CALL(cuStreamWriteValue32_v2, (handle, address, uint32_t, unsigned), second, flag, 1, 0));
    EXPECT(0, CALL(cuEventQuery, (handle), event));
    EXPECT(0, CALL(cuStreamSynchronize, (handle), first));
    EXPECT(0, CALL(cuMemcpyDtoH_v2, (void *, address, size_t), words, memory, sizeof words));
    TRUE(words[0] == 6 && words[3] == 6);

    // A word that the host writes.
    EXPECT(0, CALL(cuStreamWaitValue64_v2, (handle, address, uint64_t, unsigned), first, (address)word, 7, EQUAL));
    EXPECT(0, CALL(cuMemsetD32Async, (address, unsigned, size_t, handle), memory, 9, 4, first));
    EXPECT(NOT_READY, CALL(cuStreamQuery, (handle), first));
    *word = 7;
    EXPECT(0, CALL(cuStreamSynchronize, (handle), first));
    EXPECT(0, CALL(cuStreamWriteValue64_v2, (handle, address, uint64_t, unsigned), first, (address)word, 8, 0));
    EXPECT(0, CALL(cuStreamSynchronize, (handle), first));
    TRUE(*word == 8);
    EXPECT(0, CALL(cuMemcpyDtoH_v2, (void *, address, size_t), words, memory, sizeof words));
    TRUE(words[0] == 9);
}

int main(void) {
    handle context;
    library = dlopen("libcuda.so.1", RTLD_NOW);
    EXPECT(0, CALL(cuInit, (unsigned), 0));
    EXPECT(0, CALL(cuDevicePrimaryCtxRetain, (handle *, int), &context, 0));
    EXPECT(0, CALL(cuCtxSetCurrent, (handle), context));
    check_mappings();
    check_values();
    printf("%d failures\n", failures);
    return failures != 0;
}
