// Clusters by the attribute of a launch and by the kernel, and what the device can hold.
#include <cooperative_groups.h>
#include <cstdio>
namespace cg = cooperative_groups;

__device__ void reverse(const int *x, int *y) {
  __shared__ int s[64];
  cg::cluster_group cluster = cg::this_cluster();
  int t = threadIdx.x, last = cluster.num_blocks() - 1;
  s[t] = x[blockIdx.x * 64 + t];
  cluster.sync();
  y[blockIdx.x * 64 + t] = cluster.map_shared_rank(s, last - cluster.block_rank())[63 - t];
  cluster.sync();
}

__global__ void by_attribute(const int *x, int *y) { reverse(x, y); }
__global__ void __cluster_dims__(4, 1, 1) by_kernel(const int *x, int *y) { reverse(x, y); }

int *x, *y, h[1024];

int wrong(int each) {
  cudaMemcpy(h, y, sizeof h, cudaMemcpyDeviceToHost);
  int wrong = 0;
  for (int i = 0; i < 1024; i++) wrong += h[i] != i / each * each + each - 1 - i % each;
  cudaMemset(y, 0, sizeof h);
  return wrong;
}

cudaError_t launch(int blocks, int cluster, cudaLaunchConfig_t *used = nullptr) {
  static cudaLaunchAttribute attribute;
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {(unsigned)cluster, 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim = blocks;
  config.blockDim = 64;
  config.attrs = &attribute;
  config.numAttrs = 1;
  if (used) return *used = config, cudaSuccess;
  return cudaLaunchKernelEx(&config, by_attribute, (const int *)x, y);
}

int main() {
  for (int i = 0; i < 1024; i++) h[i] = i;
  cudaMalloc(&x, sizeof h);
  cudaMalloc(&y, sizeof h);
  cudaMemcpy(x, h, sizeof h, cudaMemcpyHostToDevice);
  launch(16, 2);
  printf("attribute %d wrong\n", wrong(128));
  by_kernel<<<16, 64>>>(x, y);
  printf("kernel %d wrong\n", wrong(256));
  cudaLaunchConfig_t config;
  int largest = 0, active = 0;
  launch(16, 2, &config);
  cudaOccupancyMaxPotentialClusterSize(&largest, by_attribute, &config);
  printf("largest %d\n", largest);
  cudaError_t before = launch(16, 3), large = launch(16, 16);
  cudaFuncSetAttribute(by_attribute, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
  cudaOccupancyMaxPotentialClusterSize(&largest, by_attribute, &config);
  printf("largest allowed %d\n", largest);
  cudaError_t counted = cudaOccupancyMaxActiveClusters(&active, by_attribute, &config);
  printf("active %s, at once %s\n", cudaGetErrorName(counted), active > 0 ? "yes" : "no");
  printf("not a multiple %s\n", cudaGetErrorName(before));
  printf("too large %s\n", cudaGetErrorName(large));
  printf("allowed %s\n", cudaGetErrorName(launch(16, 16)));
  cudaDeviceSynchronize();
}
