// The second file of `separate_code.cu`.
__device__ int added = 40;
__device__ __noinline__ int twice(int x) { return 2 * x; }
__device__ int from_other(int x) {
  if (x > 3) return x;
  return twice(x) + added;
}
