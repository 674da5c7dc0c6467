// Loads a library through the runtime interface, and launches its kernel.
#include "client.h"

enum { INVALID_FUNCTION = 98 };

struct extent { unsigned x, y, z; };

int main(void) {
    handle loaded, kernel, again, none;
    unsigned count = 0;
    void *variable, *memory;
    size_t bytes = 0;
    int number = 4, words[4] = {1, 2, 3, 4};
    library = dlopen("libcudart.so.13", RTLD_NOW);
#define LOAD(image) \
    CALL(cudaLibraryLoadData, (handle *, const void *, void *, void *, unsigned, void *, void *, unsigned), &loaded, image, NULL, NULL, 0, NULL, NULL, 0)
    EXPECT(INVALID_PTX, LOAD(".version 7.0\n.target sm_80\nnonsense"));
    EXPECT(0, LOAD(PTX));
    EXPECT(0, CALL(cudaLibraryGetKernelCount, (unsigned *, handle), &count, loaded));
    TRUE(count == 1);
    EXPECT(NOT_FOUND, CALL(cudaLibraryGetKernel, (handle *, handle, const char *), &none, loaded, "thrice"));
    EXPECT(0, CALL(cudaLibraryGetKernel, (handle *, handle, const char *), &kernel, loaded, "twice"));
    EXPECT(0, CALL(cudaLibraryEnumerateKernels, (handle *, unsigned, handle), &again, 1, loaded));
    TRUE(kernel == again);
    EXPECT(0, CALL(cudaLibraryGetGlobal, (void **, size_t *, handle, const char *), &variable, &bytes, loaded, "seen"));
    TRUE(bytes == 4);
    EXPECT(0, CALL(cudaKernelSetAttributeForDevice, (handle, int, int, int), kernel, 8, 1024, 0));
    EXPECT(INVALID_DEVICE, CALL(cudaKernelSetAttributeForDevice, (handle, int, int, int), kernel, 8, 1024, 1));
    EXPECT(0, CALL(cudaMalloc, (void **, size_t), &memory, sizeof words));
    EXPECT(0, CALL(cudaMemcpy, (void *, const void *, size_t, int), memory, words, sizeof words, 1));
    struct extent grid = {1, 1, 1}, block = {32, 1, 1};
    void *values[] = {&memory, &memory, &number};
#define LAUNCH() \
    CALL(cudaLaunchKernel, (handle, struct extent, struct extent, void **, size_t, handle), kernel, grid, block, values, 0, NULL)
    EXPECT(0, LAUNCH());
    EXPECT(0, CALL(cudaMemcpy, (void *, const void *, size_t, int), words, memory, sizeof words, 2));
    TRUE(words[0] == 2 && words[3] == 8);
    EXPECT(0, CALL(cudaLibraryUnload, (handle), loaded));
    EXPECT(INVALID_FUNCTION, LAUNCH());
    EXPECT(INVALID_HANDLE, CALL(cudaLibraryUnload, (handle), loaded));
    printf("%d failures\n", failures);
    return failures != 0;
}
