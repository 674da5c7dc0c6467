// Structs, vectors, small and large numbers, variables, a cooperative launch.
#include <cooperative_groups.h>
#include <vector>

#define TAPS 5
typedef float real;
struct Particle {
  float3 at;
  real mass;
  unsigned short kind;
};
struct Settings {
  int count;
  const float *weights;
  float scale[2];
  __host__ __device__ float both() const { return scale[0] * scale[1]; }
};
namespace filter {
__constant__ float taps[TAPS];
}
__constant__ Settings common;
__device__ float *lookup;
__device__ int seen;

__global__ void advance(Particle *all, const Settings s, float2 step, const short *flags, bool *moved,
                        unsigned long long *times, bool enabled) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= s.count || !enabled) return;
  float sum = 0;
  for (int k = 0; k < TAPS; ++k) sum += filter::taps[k];
  all[i].at.x += step.x * s.weights[i] * s.both() + sum + common.scale[1] + lookup[i];
  all[i].at.y += step.y * all[i].mass;
  moved[i] = flags[i] > 0;
  times[i] += 1;
}

__global__ void relax(float *values, float *next, int n) {
  auto grid = cooperative_groups::this_grid();
  for (int i = grid.thread_rank(); i < n; i += grid.size()) next[i] = 0.5f * values[i];
  grid.sync();
  for (int i = grid.thread_rank(); i < n; i += grid.size()) values[i] = next[n - 1 - i];
}

int main() {
  int count = 512;
  Particle *all;
  short *flags;
  bool *moved;
  unsigned long long *times;
  float *pointer, host[TAPS];
  cudaMalloc(&all, count * sizeof(Particle));
  cudaMalloc(&flags, sizeof(short) * count);
  cudaMalloc(&moved, sizeof(bool) * count);
  cudaMalloc(&times, sizeof(unsigned long long) * count);
  Settings s, t;
  cudaMemcpyToSymbol(filter::taps, host, sizeof(host));
  cudaMemcpyToSymbol(common, &t, sizeof(t));
  cudaMemcpyToSymbol(lookup, &pointer, sizeof(pointer));
  advance<<<(count + 127) / 128, 128>>>(all, s, make_float2(1, 2), flags, moved, times, true);
  int n = 4096, blocks = 0;
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, relax, 256, 0);
  float *values, *next;
  cudaMalloc(&values, n * sizeof(float));
  cudaMalloc(&next, n * sizeof(float));
  void *args[] = {&values, &next, (void *)&n};
  cudaLaunchCooperativeKernel((void *)relax, dim3(blocks), dim3(256), args, 0, 0);
  return 0;
}
