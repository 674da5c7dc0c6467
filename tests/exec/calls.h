/* Scenarios that use the runtime and the driver interface in one program. Included by program.c. */

static void *driver_function(const char *name) {
    static void *driver;
    if (!driver) driver = dlopen("libcuda.so.1", RTLD_NOW);
    void *found = driver ? dlsym(driver, name) : 0;
    if (!found) {
        fprintf(stderr, "no %s\n", name);
        exit(99);
    }
    return found;
}

#define DRIVE(name, ...) ((int (*)())driver_function(#name))(__VA_ARGS__)
#define MUST(name, ...) do { \
    int code_ = DRIVE(name, __VA_ARGS__); \
    if (code_) { printf("%s: %d\n", #name, code_); exit(1); } } while (0)

/* Reads a text file. */
static char *contents(const char *path) {
    static char text[1 << 16];
    FILE *file = fopen(path, "rb");
    if (!file) exit(98);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    return text;
}

/* Launches a kernel of the PTX file with one block of one argument. */
static int launch_named(const char *path, const char *name, unsigned threads, ptr argument, ptr stream) {
    ptr module, kernel, arguments[] = {&argument};
    MUST(cuModuleLoadData, &module, contents(path));
    MUST(cuModuleGetFunction, &kernel, module, name);
    return DRIVE(cuLaunchKernel, kernel, 1, 1, 1, threads, 1, 1, 0, stream, arguments, (ptr)0);
}

/* The driver needs no initialization after a call of the runtime. */
static void stream_state(void) {
    ptr stream, plain, context = 0, own;
    int priority = 9, device_number = 9, least, greatest, policy[16] = {0};
    unsigned flags = 9;
    CHECK(cudaDeviceGetStreamPriorityRange, &least, &greatest);
    CHECK(cudaStreamCreateWithPriority, &stream, 1, greatest - 1);
    CHECK(cudaStreamGetFlags, stream, &flags);
    CHECK(cudaStreamGetPriority, stream, &priority);
    printf("flags %u, greatest priority %d\n", flags, priority == greatest && greatest < least);
    MUST(cuStreamGetFlags, stream, &flags);
    MUST(cuStreamGetPriority, stream, &priority);
    printf("driver: flags %u, greatest priority %d\n", flags, priority == greatest);
    CHECK(cudaStreamCreate, &plain);
    CHECK(cudaStreamGetFlags, plain, &flags);
    CHECK(cudaStreamGetPriority, plain, &priority);
    printf("plain: flags %u, priority %d\n", flags, priority);
    CHECK(cudaStreamGetDevice, stream, &device_number);
    CHECK(cudaStreamGetAttribute, stream, 3, policy);
    printf("device %d, policy %d", device_number, policy[0]);
    policy[0] = 4;
    CHECK(cudaStreamSetAttribute, stream, 3, policy);
    CHECK(cudaStreamCopyAttributes, plain, stream);
    policy[0] = 0;
    MUST(cuStreamGetAttribute, plain, 3, policy);
    printf(", then %d, unknown %d\n", policy[0], CALL(cudaStreamGetAttribute, stream, 2, policy));
    MUST(cuStreamGetCtx, stream, &context);
    MUST(cuDevicePrimaryCtxRetain, &own, 0);
    printf("primary context %d\n", context == own);
    printf("destroyed %d\n", CALL(cudaStreamDestroy, plain) || CALL(cudaStreamGetFlags, plain, &flags) != 400);
}

/* A stream keeps its context where none is current. */
static void stream_context(void) {
    ptr context, stream, found = 0;
    printf("before %d\n", DRIVE(cuStreamGetCtx, (ptr)0, &found));
    MUST(cuInit, 0);
    MUST(cuCtxCreate_v2, &context, 0, 0);
    MUST(cuStreamCreate, &stream, 1);
    MUST(cuCtxSetCurrent, (ptr)0);
    printf("null stream %d\n", DRIVE(cuStreamGetCtx, (ptr)0, &found));
    printf("stream %d", DRIVE(cuStreamGetCtx, stream, &found));
    printf(", its own %d, unknown %d\n", found == context, DRIVE(cuStreamGetCtx, (ptr)0x77770, &found));
    exit(0);
}

struct pool_properties { int allocation, handles, location, id; ptr security; size_t most; char rest[56]; };

static ptr pool(int allocation, int location) {
    struct pool_properties properties = {allocation, 0, location, 0};
    ptr made = 0;
    CHECK(cudaMemPoolCreate, &made, &properties);
    return made;
}

static void pools(void) {
    struct { int kind, device; ptr on_device, on_host; } attributes;
    struct { int kind, id; } host = {2, 0};
    ptr one = pool(1, 1), other = pool(1, 1), first, current, managed = pool(2, 1), pinned = pool(1, 2), from;
    int *memory, off = 0, reuse = 7;
    uint64_t threshold = ~0ull, used = 0;
    unsigned access = 9;
    printf("distinct %d\n", one != other);
    CHECK(cudaDeviceGetDefaultMemPool, &first, 0);
    CHECK(cudaDeviceSetMemPool, 0, other);
    CHECK(cudaDeviceGetMemPool, &current, 0);
    printf("selected %d, default %d\n", current == other, first != other);
    CHECK(cudaMemPoolSetAttribute, other, 4, &threshold);
    CHECK(cudaMemPoolSetAttribute, other, 2, &off);
    threshold = 5;
    MUST(cuMemPoolGetAttribute, other, 4, &threshold);
    CHECK(cudaMemPoolGetAttribute, other, 2, &reuse);
    printf("threshold %d, reuse %d\n", threshold == ~0ull, reuse);
    CHECK(cudaMallocAsync, &memory, (size_t)256, (ptr)0);
    MUST(cuPointerGetAttribute, &from, 17, memory);
    CHECK(cudaMemPoolGetAttribute, other, 7, &used);
    CHECK(cudaMemPoolGetAccess, &access, other, &host);
    printf("from the selected pool %d, used %d, host access %u\n", from == other, (int)used, access);
    CHECK(cudaMallocFromPoolAsync, &memory, (size_t)8, managed, (ptr)0);
    CHECK(cudaPointerGetAttributes, &attributes, memory);
    memory[0] = 5;
    printf("managed: type %d, value %d\n", attributes.kind, memory[0]);
    CHECK(cudaMallocFromPoolAsync, &memory, (size_t)8, pinned, (ptr)0);
    CHECK(cudaPointerGetAttributes, &attributes, memory);
    memory[0] = 6;
    printf("host: type %d, value %d\n", attributes.kind, memory[0]);
    struct { int kind, id; unsigned flags; } permission = {1, 0, 3};
    printf("device address %d", attributes.on_device != 0);
    CHECK(cudaMemPoolSetAccess, pinned, &permission, (size_t)1);
    CHECK(cudaPointerGetAttributes, &attributes, memory);
    printf(", with access %d\n", attributes.on_device == memory);
    CHECK(cudaFreeAsync, memory, (ptr)0);
    CHECK(cudaMemPoolDestroy, other);
    CHECK(cudaDeviceGetMemPool, &current, 0);
    printf("after its end %d, destroyed %d\n", current == first,
        CALL(cudaMallocFromPoolAsync, &memory, (size_t)8, other, (ptr)0));
}

/* A kernel's handles, from its host function. */
static void kernel_handles(void) {
    ptr x = device(a), handle, kernel;
    float factor = 3;
    int n = N;
    void *arguments[] = {&x, &factor, &n};
    CHECK(cudaGetFuncBySymbol, &handle, &scale);
    MUST(cuLaunchKernel, handle, 4, 1, 1, 256, 1, 1, 0, (ptr)0, arguments, (ptr)0);
    CHECK(cudaMemcpy, c, x, (size_t)BYTES, 2);
    printf("function %s\n", right(c, 3) ? "right" : "wrong");
    CHECK(cudaGetKernel, &kernel, &scale);
    if (launch(kernel, 4, 256, arguments, 0)) exit(1);
    CHECK(cudaMemcpy, c, x, (size_t)BYTES, 2);
    printf("kernel %s\n", right(c, 9) ? "right" : "wrong");
    printf("unknown %d\n", CALL(cudaGetFuncBySymbol, &handle, &factor));
}

/* Versions of a kernel's PTX and of its machine code, which the driver makes for the device. */
static void versions(void) {
    int words[64] = {0}, ptx, binary;
    ptr handle;
    device(a);
    CHECK(cudaFuncGetAttributes, words, &scale);
    printf("runtime: %d %d\n", words[8], words[9]);
    CHECK(cudaGetFuncBySymbol, &handle, &scale);
    MUST(cuFuncGetAttribute, &ptx, 5, handle);
    MUST(cuFuncGetAttribute, &binary, 6, handle);
    printf("driver: %d %d\n", ptx, binary);
}

/* A stream that the default stream does not order, beside copies of the default stream; `waits`: those that the host
   waits for, else one of pageable memory to the device, which may still be under way. */
static void copies_beside(int waits) {
    ptr x = device(a), stream;
    float factor = 2, *pinned;
    int n = N;
    void *arguments[] = {&x, &factor, &n};
    CHECK(cudaDeviceSynchronize, 0);
    CHECK(cudaMallocHost, &pinned, (size_t)BYTES);
    CHECK(cudaStreamCreateWithFlags, &stream, 1);
    for (int i = 0; i < 3; i++) {
        if (!waits) CHECK(cudaMemcpy, x, a, (size_t)BYTES, 1);
        if (launch(&scale, 4, 256, arguments, stream)) exit(1);
        CHECK(cudaStreamSynchronize, stream);
        CHECK(cudaMemcpy, i == 1 ? pinned : c, x, (size_t)BYTES, 2);
    }
    if (launch(&scale, 4, 256, arguments, stream)) exit(1);
    CHECK(cudaMemcpyAsync, c, x, (size_t)BYTES, 2, stream);
    printf("%s\n", right(c, waits ? 16 : 4) ? "right" : "wrong");
}

/* Updates of one word in two streams: atomic ones need no order, others do. */
static void two_streams(const char *path, const char *second) {
    ptr x = device(a), one, two;
    CHECK(cudaDeviceSynchronize, 0);
    CHECK(cudaStreamCreateWithFlags, &one, 1);
    CHECK(cudaStreamCreateWithFlags, &two, 1);
    if (launch_named(path, "increment", 32, x, one)) exit(1);
    if (launch_named(path, second, 1, x, two)) exit(1);
    CHECK(cudaDeviceSynchronize, 0);
}

/* A kernel that waits for the host, in memory that they share. */
static void handshake(const char *path) {
    volatile int *flag;
    CHECK(cudaHostAlloc, &flag, (size_t)4, 2);
    *flag = 0;
    printf("launch %d\n", launch_named(path, "poll", 1, (ptr)flag, 0));
    *flag = 1;
    printf("synchronize %d\n", CALL(cudaDeviceSynchronize, 0));
}

/* The virtual GPU lacks an instruction; the program does not look. */
static void unsupported(const char *path) {
    printf("launch %d\n", launch_named(path, "unknown", 1, device(a), 0));
}

/* Dies while a launch runs, soon after one with a hazard. */
static void killed(const char *path) {
    ptr x = device(a);
    if (launch_named(path, "increment", 1, x, 0)) exit(1);
    if (launch_named(path, "collide", 64, x, 0)) exit(1);
    alarm(1);
    launch_named(path, "count_long", 1, x, 0);
}
