/* A CUDA program without a CUDA compiler: registers PTX as nvcc's constructors do, and runs one scenario.
   program SCENARIO KERNELS.ptx */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct { unsigned x, y, z; } dim3;
typedef void *ptr;

static void *library;

static void *function(const char *name) {
    void *found = dlsym(library, name);
    if (!found) {
        fprintf(stderr, "no %s\n", name);
        exit(99);
    }
    return found;
}

/* Calls a function of the library whose arguments are pointers and whole numbers. */
#define CALL(name, ...) ((int (*)())function(#name))(__VA_ARGS__)
#define CHECK(name, ...) do { \
    int code_ = CALL(name, __VA_ARGS__); \
    if (code_) { printf("%s: %d\n", #name, code_); exit(1); } } while (0)

/* Host functions: their addresses are the kernels' handles. */
static char add, scale, out_of_bounds, race, count, say, check, counter, weights;

struct wrapper { uint32_t magic, version; const void *data; void *rest; };

static void put(unsigned char **at, const void *bytes, size_t n) { memcpy(*at, bytes, n); *at += n; }

/* A fat binary with one entry of PTX. */
static void *fat_binary(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) exit(98);
    fseek(file, 0, SEEK_END);
    uint64_t size = ftell(file) + 1;
    rewind(file);
    unsigned char *image = calloc(1, 16 + 64 + size + 8), *at = image;
    uint64_t body = 64 + size;
    uint32_t magic = 0xba55ed50, header = 64, capability = 80;
    uint16_t version = 1, head = 16, kind = 1;
    put(&at, &magic, 4); put(&at, &version, 2); put(&at, &head, 2); put(&at, &body, 8);
    memcpy(image + 16, &kind, 2);
    memcpy(image + 20, &header, 4);
    memcpy(image + 24, &size, 8);
    memcpy(image + 16 + 28, &capability, 4);
    if (fread(image + 80, 1, size - 1, file) != size - 1) exit(97);
    fclose(file);
    static struct wrapper wrapper = {0x466243b1, 1, 0, 0};
    wrapper.data = image;
    return &wrapper;
}

static void registration(const char *path) {
    void *handle = ((void *(*)(void *))function("__cudaRegisterFatBinary"))(fat_binary(path));
    struct { char *host; const char *name; } kernels[] = {{&add, "add"}, {&scale, "scale"},
        {&out_of_bounds, "out_of_bounds"}, {&race, "race"}, {&count, "count"}, {&say, "say"}, {&check, "check"}};
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        CALL(__cudaRegisterFunction, handle, kernels[i].host, kernels[i].name, kernels[i].name, -1, (ptr)0, (ptr)0, (ptr)0, (ptr)0, (ptr)0);
    CALL(__cudaRegisterVar, handle, &counter, "counter", "counter", 0, (size_t)4, 0, 0);
    CALL(__cudaRegisterVar, handle, &weights, "weights", "weights", 0, (size_t)16, 1, 0);
    CALL(__cudaRegisterFatBinaryEnd, handle);
}

static int launch(char *kernel, unsigned grid, unsigned block, void **arguments, void *stream) {
    int (*run)(const void *, dim3, dim3, void **, size_t, void *) = function("cudaLaunchKernel");
    return run(kernel, (dim3){grid, 1, 1}, (dim3){block, 1, 1}, arguments, 0, stream);
}

enum { N = 1000, BYTES = N * sizeof(float) };

static int launch_add(ptr a, ptr b, ptr c, void *stream) {
    int n = N;
    void *arguments[] = {&a, &b, &c, &n};
    return launch(&add, 4, 256, arguments, stream);
}

static ptr device(const float *data) {
    ptr p;
    CHECK(cudaMalloc, &p, (size_t)BYTES);
    if (data) CHECK(cudaMemcpy, p, data, (size_t)BYTES, 1);
    return p;
}

static float a[N], b[N], c[N];

static void fill(void) {
    for (int i = 0; i < N; i++) { a[i] = i; b[i] = 2 * i; }
}

static int right(const float *x, float factor) {
    for (int i = 0; i < N; i++) if (x[i] != factor * i) return 0;
    return 1;
}

/* Memory that a graph allocates and frees, by capture and node by node. */
static void graph_memory(void) {
    ptr x = device(a), y = device(b), z, stream, captured, executable, built, node;
    CHECK(cudaStreamCreate, &stream);
    CHECK(cudaStreamBeginCapture, stream, 0);
    CHECK(cudaMallocAsync, &z, (size_t)BYTES, stream);
    if (launch_add(x, y, z, stream)) exit(1);
    CHECK(cudaMemcpyAsync, c, z, (size_t)BYTES, 2, stream);
    CHECK(cudaStreamEndCapture, stream, &captured);
    CHECK(cudaGraphInstantiate, &executable, captured, 0ull);
    for (int i = 0; i < 2; i++) {
        CHECK(cudaGraphLaunch, executable, stream);
        CHECK(cudaStreamSynchronize, stream);
        CHECK(cudaFree, z);
    }
    CHECK(cudaStreamSynchronize, stream);
    printf("captured %s\n", right(c, 3) ? "right" : "wrong");
    CHECK(cudaStreamBeginCapture, stream, 0);
    CHECK(cudaMallocAsync, &z, (size_t)BYTES, stream);
    if (launch_add(x, x, z, stream)) exit(1);
    CHECK(cudaMemcpyAsync, c, z, (size_t)BYTES, 2, stream);
    CHECK(cudaFreeAsync, z, stream);
    CHECK(cudaStreamEndCapture, stream, &captured);
    CHECK(cudaGraphInstantiate, &executable, captured, 0ull);
    CHECK(cudaGraphLaunch, executable, stream);
    CHECK(cudaStreamSynchronize, stream);
    printf("freed inside %s\n", right(c, 2) ? "right" : "wrong");
    struct { uint64_t pool[11]; ptr access; size_t accesses, bytes; ptr result; } wanted = {{0}, 0, 0, BYTES, 0};
    CHECK(cudaGraphCreate, &built, 0);
    CHECK(cudaGraphAddMemAllocNode, &node, built, (ptr)0, (size_t)0, &wanted);
    struct { ptr source_array; size_t source_at[3]; ptr source; size_t source_pitch[3]; ptr array; size_t at[3]; ptr to;
        size_t pitch[3], extent[3]; int kind; } there = {0, {0}, b, {BYTES, BYTES, 1}, 0, {0}, wanted.result,
        {BYTES, BYTES, 1}, {BYTES, 1, 1}, 1}, back = {0, {0}, wanted.result, {BYTES, BYTES, 1}, 0, {0}, c,
        {BYTES, BYTES, 1}, {BYTES, 1, 1}, 2};
    CHECK(cudaGraphAddMemcpyNode, &node, built, &node, (size_t)1, &there);
    CHECK(cudaGraphAddMemcpyNode, &node, built, &node, (size_t)1, &back);
    CHECK(cudaGraphAddMemFreeNode, &node, built, &node, (size_t)1, wanted.result);
    CHECK(cudaGraphInstantiate, &executable, built, 0ull);
    CHECK(cudaGraphLaunch, executable, stream);
    CHECK(cudaStreamSynchronize, stream);
    printf("built %s\n", right(c, 2) ? "right" : "wrong");
    exit(0);
}

/* Registered memory that does not begin at a page, through its device address. */
static void registered(void) {
    float *host = (float *)((char *)malloc(BYTES + 4096) + 16), factor = 3;
    int n = N;
    ptr there;
    for (int i = 0; i < N; i++) host[i] = i;
    printf("before %d\n", CALL(cudaHostGetDevicePointer, &there, host, 0));
    CHECK(cudaHostRegister, host, (size_t)BYTES, 2);
    printf("twice %d\n", CALL(cudaHostRegister, host + 1, (size_t)BYTES, 2));
    CHECK(cudaHostGetDevicePointer, &there, host, 0);
    void *arguments[] = {&there, &factor, &n};
    if (launch(&scale, 4, 256, arguments, 0)) exit(1);
    CHECK(cudaDeviceSynchronize, 0);
    printf("kernel %s\n", right(host, 3) ? "right" : "wrong");
    for (int i = 0; i < N; i++) host[i] = 2 * i;
    CHECK(cudaMemcpy, c, there, (size_t)BYTES, 2);
    printf("copy %s\n", right(c, 2) ? "right" : "wrong");
    CHECK(cudaHostUnregister, host);
    printf("after %d\n", CALL(cudaHostGetDevicePointer, &there, host, 0));
    exit(0);
}

static void vector_add(void) {
    ptr x = device(a), y = device(b), z = device(0);
    if (launch_add(x, y, z, 0)) exit(1);
    CHECK(cudaDeviceSynchronize, 0);
    CHECK(cudaMemcpy, c, z, (size_t)BYTES, 2);
    printf("%s\n", right(c, 3) ? "PASS" : "FAIL");
    exit(right(c, 3) ? 7 : 1);
}

static void faults(void) {
    ptr x = device(a);
    int n = N;
    void *arguments[] = {&x, &n};
    printf("launch %d\n", launch(&out_of_bounds, 1, 32, arguments, 0));
    printf("synchronize %d\n", CALL(cudaDeviceSynchronize, 0));
    printf("malloc %d\n", CALL(cudaMalloc, &x, (size_t)4));
    printf("last %d\n", CALL(cudaGetLastError, 0));
    printf("reset %d\n", CALL(cudaDeviceReset, 0));
    printf("malloc %d\n", CALL(cudaMalloc, &x, (size_t)4));
}

static void refusals(void) {
    ptr x = device(a);
    float factor = 2;
    int n = N;
    void *arguments[] = {&x, &factor, &n};
    printf("block %d\n", launch(&scale, 1, 2048, arguments, 0));
    printf("peek %d\n", CALL(cudaPeekAtLastError, 0));
    printf("last %d\n", CALL(cudaGetLastError, 0));
    printf("last %d\n", CALL(cudaGetLastError, 0));
    printf("pageable %d\n", CALL(cudaMemcpy, a, b, (size_t)BYTES, 1));
    printf("beyond %d\n", CALL(cudaMemcpy, x, a, (size_t)BYTES + 4, 1));
    printf("free %d\n", CALL(cudaFree, (char *)x + 4));
    printf("unknown %d\n", CALL(cudaLaunchKernel, &factor, (dim3){1, 1, 1}, (dim3){1, 1, 1}, arguments, (size_t)0, (ptr)0));
    printf("mipmap %d\n", CALL(cudaMallocMipmappedArray, 0, 0, 0, 0, 0, 0, 0));
    int (*name)() = 0;
    (void)name;
    const char *(*text)(int) = function("cudaGetErrorString");
    printf("%s\n", text(719));
}

static void races(void) {
    ptr x = device(0);
    void *arguments[] = {&x};
    if (launch(&race, 1, 64, arguments, 0)) exit(1);
    CHECK(cudaDeviceSynchronize, 0);
}

static void unwritten(void) {
    ptr x = device(0), y = device(b), z = device(0), w = device(0);
    /* A copy of memory that was never written is never written. */
    CHECK(cudaMemcpy, w, x, (size_t)BYTES, 3);
    if (launch_add(w, y, z, 0)) exit(1);
    CHECK(cudaDeviceSynchronize, 0);
}

static void streams(int ordered) {
    ptr x = device(a), y = device(b), z = device(0), one, two, event;
    CHECK(cudaStreamCreateWithFlags, &one, 1);
    CHECK(cudaStreamCreateWithFlags, &two, 1);
    CHECK(cudaEventCreate, &event);
    if (launch_add(x, y, z, one)) exit(1);
    if (ordered) {
        CHECK(cudaEventRecord, event, one);
        CHECK(cudaStreamWaitEvent, two, event, 0);
    }
    CHECK(cudaMemcpyAsync, c, z, (size_t)BYTES, 2, two);
    CHECK(cudaStreamSynchronize, two);
    printf("%s\n", right(c, 3) ? "PASS" : "FAIL");
}

static void graph(void) {
    ptr x = device(a), y = device(b), z = device(0), stream, captured, executable;
    CHECK(cudaStreamCreate, &stream);
    CHECK(cudaStreamBeginCapture, stream, 0);
    if (launch_add(x, y, z, stream)) exit(1);
    float factor = 2;
    int n = N;
    void *arguments[] = {&z, &factor, &n};
    if (launch(&scale, 4, 256, arguments, stream)) exit(1);
    CHECK(cudaMemcpyAsync, c, z, (size_t)BYTES, 2, stream);
    CHECK(cudaStreamEndCapture, stream, &captured);
    printf("captured %s\n", c[1] == 0 ? "only" : "and run");
    CHECK(cudaGraphInstantiate, &executable, captured, 0ull);
    CHECK(cudaGraphLaunch, executable, stream);
    CHECK(cudaStreamSynchronize, stream);
    printf("%s\n", right(c, 6) ? "PASS" : "FAIL");
}

static void shared(int managed) {
    float *x, *z;
    ptr y = device(b);
    if (managed) {
        CHECK(cudaMallocManaged, &x, (size_t)BYTES, 1);
        CHECK(cudaMallocManaged, &z, (size_t)BYTES, 1);
    } else {
        CHECK(cudaMallocHost, &x, (size_t)BYTES);
        CHECK(cudaMallocHost, &z, (size_t)BYTES);
    }
    memcpy(x, a, BYTES);
    if (launch_add(x, y, z, 0)) exit(1);
    CHECK(cudaDeviceSynchronize, 0);
    printf("%s\n", right(z, 3) ? "PASS" : "FAIL");
    CHECK(cudaFree, y);
    if (managed) CHECK(cudaFree, x); else CHECK(cudaFreeHost, x);
}

static void symbols(void) {
    int value = 0, out[64], wanted[4] = {9, 8, 7, 6};
    ptr x;
    CHECK(cudaMalloc, &x, sizeof out);
    CHECK(cudaMemcpyToSymbol, &weights, wanted, sizeof wanted, (size_t)0, 1);
    void *arguments[] = {&x};
    if (launch(&count, 1, 64, arguments, 0)) exit(1);
    CHECK(cudaMemcpyFromSymbol, &value, &counter, sizeof value, (size_t)0, 2);
    CHECK(cudaMemcpy, out, x, sizeof out, 2);
    printf("counter %d, weights %d %d\n", value, out[0], out[63]);
}

static void printing(void) {
    int n = 64;
    void *arguments[] = {&n};
    printf("before\n");
    if (launch(&say, 1, 64, arguments, 0)) exit(1);
    CHECK(cudaDeviceSynchronize, 0);
    printf("after\n");
}

static void assertion(void) {
    int n = 32;
    void *arguments[] = {&n};
    printf("launch %d\n", launch(&check, 1, 64, arguments, 0));
    printf("synchronize %d\n", CALL(cudaDeviceSynchronize, 0));
}

static void forks(void) {
    device(a);
    fflush(stdout);
    if (fork() == 0) {
        ptr x;
        printf("child %d\n", CALL(cudaMalloc, &x, (size_t)4));
        exit(0);
    }
    int status;
    wait(&status);
    printf("parent %d\n", CALL(cudaDeviceSynchronize, 0));
}

static void times(void) {
    ptr x = device(a), y = device(b), z = device(0), start, end;
    float ms = -1;
    CHECK(cudaEventCreate, &start);
    CHECK(cudaEventCreate, &end);
    CHECK(cudaEventRecord, start, (ptr)0);
    for (int i = 0; i < 10; i++) if (launch_add(x, y, z, 0)) exit(1);
    CHECK(cudaEventRecord, end, (ptr)0);
    CHECK(cudaEventSynchronize, end);
    CHECK(cudaEventElapsedTime, &ms, start, end);
    printf("%s\n", ms > 0.01 && ms < 10 ? "PASS" : "FAIL");
}

static void device_properties(void) {
    char properties[4096] = {0};
    int count = 0, sms = 0;
    CHECK(cudaGetDeviceCount, &count);
    CHECK(cudaGetDeviceProperties, properties, 0);
    CHECK(cudaDeviceGetAttribute, &sms, 16, 0);
    printf("%d %s %d\n", count, properties, sms);
}

#include "calls.h"

int main(int argc, char **argv) {
    const char *scenario = argc > 1 ? argv[1] : "";
    const char *calls = argc > 3 ? argv[3] : "";
    const char *name = getenv("CUDART");
    library = dlopen(name ? name : "libcudart.so.13", RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 99;
    }
    registration(argc > 2 ? argv[2] : "");
    fill();
    if (!strcmp(scenario, "add")) vector_add();
    if (!strcmp(scenario, "registered")) registered();
    if (!strcmp(scenario, "graph_memory")) graph_memory();
    if (!strcmp(scenario, "faults")) faults();
    if (!strcmp(scenario, "refusals")) refusals();
    if (!strcmp(scenario, "race")) races();
    if (!strcmp(scenario, "unwritten")) unwritten();
    if (!strcmp(scenario, "unordered")) streams(0);
    if (!strcmp(scenario, "ordered")) streams(1);
    if (!strcmp(scenario, "graph")) graph();
    if (!strcmp(scenario, "managed")) shared(1);
    if (!strcmp(scenario, "pinned")) shared(0);
    if (!strcmp(scenario, "symbols")) symbols();
    if (!strcmp(scenario, "printf")) printing();
    if (!strcmp(scenario, "assert")) assertion();
    if (!strcmp(scenario, "fork")) forks();
    if (!strcmp(scenario, "times")) times();
    if (!strcmp(scenario, "properties")) device_properties();
    if (!strcmp(scenario, "stream_state")) stream_state();
    if (!strcmp(scenario, "stream_context")) stream_context();
    if (!strcmp(scenario, "pools")) pools();
    if (!strcmp(scenario, "kernel_handles")) kernel_handles();
    if (!strcmp(scenario, "versions")) versions();
    if (!strcmp(scenario, "awaited_copies")) copies_beside(1);
    if (!strcmp(scenario, "copy_under_way")) copies_beside(0);
    if (!strcmp(scenario, "two_atomics")) two_streams(calls, "increment");
    if (!strcmp(scenario, "atomic_and_store")) two_streams(calls, "collide");
    if (!strcmp(scenario, "handshake")) handshake(calls);
    if (!strcmp(scenario, "unsupported")) unsupported(calls);
    if (!strcmp(scenario, "killed")) killed(calls);
    if (!strcmp(scenario, "signal")) { device(a); abort(); }
    return 0;
}
