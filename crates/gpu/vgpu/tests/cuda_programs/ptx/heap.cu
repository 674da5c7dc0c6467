// nvcc -arch=sm_80 -std=c++17 -lineinfo -ptx heap.cu
#include <cstdlib>
__global__ void blocks(int *out) { int *p = (int *)malloc(16); p[1] = threadIdx.x; __syncthreads(); out[blockIdx.x * blockDim.x + threadIdx.x] = p[1]; free(p); }
struct Node { int value; Node *next; __device__ Node(int v, Node *n) : value(v), next(n) {} };
__device__ Node *head[64];
__global__ void build(int n) { Node *list = nullptr; for (int i = 0; i < n; i++) list = new Node(i + threadIdx.x, list); head[threadIdx.x] = list; }
__global__ void sum(int *out) { int s = 0; for (Node *p = head[threadIdx.x]; p; p = p->next) s += p->value; out[threadIdx.x] = s; }
__global__ void drop() { Node *p = head[threadIdx.x]; while (p) { Node *n = p->next; delete p; p = n; } head[threadIdx.x] = nullptr; }
__global__ void exhaust(int *out) { void *kept[32]; int n = 0; while (n < 32 && (kept[n] = malloc(1 << 20))) n++; out[0] = n; for (int i = 0; i < n; i++) free(kept[i]); out[1] = malloc(3 << 20) != nullptr; out[2] = malloc(1ull << 40) != nullptr; }
__global__ void loops(int n, int *out) { int s = 0; for (int i = 0; i < n; i++) { int *p = new int[64]; for (int k = 0; k < 64; k++) p[k] = i + k; s += p[i & 63]; delete[] p; } out[blockIdx.x * blockDim.x + threadIdx.x] = s; }
__global__ void beyond(int *out) { int *p = (int *)malloc(12); p[0] = p[1] = p[2] = 1; out[0] = p[3 + threadIdx.x]; }
__global__ void unset(int *out) { int *p = (int *)malloc(16); out[0] = p[threadIdx.x]; }
__global__ void reused(int *out) { int *p = (int *)malloc(16); p[0] = 1; out[1] = *(volatile int *)p; free(p); p = (int *)malloc(16); out[0] = *(volatile int *)p; }
__global__ void stale(int *out) { volatile int *p = (volatile int *)malloc(16); p[0] = 1; out[1] = p[0]; free((void *)p); out[0] = p[0]; }
__global__ void twice(int **keep) { if (!keep[0]) { keep[0] = (int *)malloc(16); return; } free(keep[0]); free(keep[1]); }
__global__ void null() { free(nullptr); }
__device__ int *shared_block;
__global__ void race() { if (threadIdx.x == 0) shared_block = (int *)malloc(4); __syncthreads(); *(volatile int *)shared_block = threadIdx.x; }
