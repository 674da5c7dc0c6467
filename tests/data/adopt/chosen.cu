// What only the user knows: the instance; and a launcher of the project's own.
struct config { dim3 grid, block; size_t shared; cudaStream_t stream; };
template <int WIDTH, typename T> __global__ void rows(T *out, const T *in) {
  static_assert(WIDTH % 64 == 0, "whole rows");
  for (int i = threadIdx.x; i < WIDTH; i += blockDim.x)
    out[blockIdx.x * WIDTH + i] = in[blockIdx.x * WIDTH + i];
}
template <typename K, typename... A> void start(K kernel, config c, A... a) {}
template <int WIDTH> void copy(float *out, float *in, int count, cudaStream_t stream) {
  config c = {dim3(count), dim3(64), 0, stream};
  start(rows<WIDTH, float>, c, out, in);
}
