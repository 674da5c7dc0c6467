// A functor that only the instance names, a trait that a header of the project brings, and a keyword of GNU.
template <typename T> struct Larger {
  template <typename U> __device__ typename std::common_type<T, U>::type operator()(T a, U b) const { return a > b ? a : b; }
};
static __device__ __const__ int smallest = 0;
template <typename Combine, typename T> __global__ void combine(T *out, const T *in, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = Combine()(in[i], smallest);
}
