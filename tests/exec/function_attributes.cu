// Attributes of kernels that a program sets by one interface and reads by the other.
#include <cstdio>
#include <cuda.h>

#define CHECK(call, code) do { int found_ = (int)(call); if (found_ != (code)) \
    printf("line %d: %d\n", __LINE__, found_), failed = 1; } while (0)

static int failed;

__global__ void last(int *to) {
    extern __shared__ int words[];
    words[threadIdx.x] = threadIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) *to = words[blockDim.x - 1];
}

int main() {
    cudaFuncAttributes attributes;
    cudaFunction_t function;
    int value = -2;
    CHECK(cudaFuncGetAttributes(&attributes, last), 0);
    CHECK(attributes.maxDynamicSharedSizeBytes, 48 << 10);
    CHECK(attributes.preferredShmemCarveout, -1);
    CHECK(cudaFuncSetAttribute(last, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 << 10), 0);
    CHECK(cudaFuncGetAttributes(&attributes, last), 0);
    CHECK(attributes.maxDynamicSharedSizeBytes, 100 << 10);
    CHECK(cudaGetFuncBySymbol(&function, (const void *)last), 0);
    CHECK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function), 0);
    CHECK(value, 100 << 10);
    CHECK(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50), 0);
    CHECK(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 101), CUDA_ERROR_INVALID_VALUE);
    CHECK(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_NUM_REGS, 1), CUDA_ERROR_INVALID_VALUE);
    CHECK(cudaFuncGetAttributes(&attributes, last), 0);
    CHECK(attributes.preferredShmemCarveout, 50);
    // A function is found in the version that has it.
    void *found = nullptr;
    CUdriverProcAddressQueryResult status;
    CHECK(cuGetProcAddress("cuMemAllocAsync", &found, 11020, 0, &status), 0);
    CHECK(found != nullptr, 1);
    CHECK(cuGetProcAddress("cuMemAllocAsync", &found, 10000, 0, &status), 0);
    CHECK(found == nullptr, 1);
    CHECK(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    puts(failed ? "failed" : "passed");
    return failed;
}
