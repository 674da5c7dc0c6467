#ifndef UTIL_H
#define UTIL_H
#include <cstdio>
#include <cstdlib>
#include <string>

#define CEIL_DIV(a, b) (((a) + (b) - 1) / (b))
#define DEVICE_INLINE __device__ __forceinline__

inline void check(cudaError_t status) {
  if (status != cudaSuccess) {
    fprintf(stderr, "%s\n", cudaGetErrorString(status));
    std::abort();
  }
}

template <typename T> DEVICE_INLINE T fused(T a, T b, T c) { return a * b + c; }

struct Log {
  std::string name;
  void say() { printf("%s\n", name.c_str()); }
};
#endif
