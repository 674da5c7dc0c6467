// y = alpha * x + y in float32: out[i] = alpha * x[i] + y[i]. Copy this file, then change it.
//
// Say here what is computed, in which layout, how threads share the work, and whose idea it is.

// ---- Sizes --------------------------------------------------------------------------------------
#ifndef SIZE
#define SIZE 262144  // elements
#endif

// ---- Parameters ---------------------------------------------------------------------------------
#ifndef THREADS
#define THREADS 256  // threads a block: 64 to 1024
#endif
#ifndef PER_THREAD
#define PER_THREAD 4  // elements a thread: 1 to 16
#endif

// ---- What the search space promises -------------------------------------------------------------
static_assert(THREADS % 32 == 0 && THREADS <= 1024, "a block is whole warps, at most 1024 threads");

extern "C" __global__ void __launch_bounds__(THREADS)
    skeleton(const float* __restrict__ x, const float* __restrict__ y, float* __restrict__ out,
             float alpha) {
  const int first = blockIdx.x * (THREADS * PER_THREAD) + threadIdx.x;
#pragma unroll
  for (int i = 0; i < PER_THREAD; ++i) {
    const int index = first + i * THREADS;
    if (index < SIZE) out[index] = alpha * x[index] + y[index];
  }
}
