/* A program, and with LIBRARY a shared library, that holds functions of the CUDA runtime. Each returns 999 and is
   called through pointers, as calls of the same file could be inlined, and starts at a multiple of 16 bytes unless PACKED.
   With CUDA12 and CUDA11 a function that newer runtimes lack is among them. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#ifdef PACKED
#define PLACED
#else
#define PLACED __attribute__((aligned(16)))
#endif
#define FUNCTION(name, ...) __attribute__((visibility("hidden"), used)) PLACED int name(__VA_ARGS__) { return refuse(); }
#define POINTER(name, ...) static int (*volatile p_##name)(__VA_ARGS__) = name

static volatile int calls;

__attribute__((noinline)) PLACED static int refuse(void) {
    for (int i = 0; i < 3; i++) calls += i;
    return 999;
}

FUNCTION(cudaRuntimeGetVersion, int *version)
FUNCTION(cudaMalloc, void **address, size_t bytes)
FUNCTION(cudaMemcpy, void *to, const void *from, size_t bytes, int kind)
FUNCTION(cudaFree, void *address)
FUNCTION(cudaTunerHasNoSuchFunction, void)
FUNCTION(__cudaUnregisterFatBinary, void **handle)
#ifdef CUDA12
FUNCTION(cudaGetDeviceProperties_v2, void *properties, int device)
#endif
#ifdef CUDA11
FUNCTION(cudaUnbindTexture, const void *texture)
#endif
__attribute__((visibility("hidden"), used, noinline)) PLACED void **__cudaRegisterFatBinary(void *image) {
    return (void **)(size_t)refuse();
}

__attribute__((section(".nv_fatbin"), used)) static char image[16] = {1};

POINTER(cudaRuntimeGetVersion, int *);
POINTER(cudaMalloc, void **, size_t);
POINTER(cudaMemcpy, void *, const void *, size_t, int);
POINTER(cudaFree, void *);
POINTER(cudaTunerHasNoSuchFunction, void);

PLACED static int round_trip(const char *name) {
    char text[16] = "", *device = NULL;
    int version = 0, status = p_cudaRuntimeGetVersion(&version);
    status = status ? status : p_cudaMalloc((void **)&device, 16);
    status = status ? status : p_cudaMemcpy(device, "through", 8, 1);
    status = status ? status : p_cudaMemcpy(text, device, 8, 2);
    status = status ? status : p_cudaFree(device);
    printf("%s: %d, CUDA %d, %s, own %d\n", name, status, version / 1000, text, p_cudaTunerHasNoSuchFunction());
    return status;
}

#ifdef LIBRARY
/* Initializers of libraries run before those of the program. */
__attribute__((constructor)) PLACED static void at_load(void) { round_trip("library"); }
int library(void) { return 0; }
#else
#ifdef LINKED
int library(void);
#else
static int library(void) { return 0; }
#endif
PLACED int main(void) { return library() + round_trip("program"); }
#endif
