// nvcc -arch=sm_80 -std=c++17 -lineinfo -ptx calls.cu
struct A { __device__ virtual int f(int x) { return x; } };
struct B : A { __device__ int f(int x) override { return 2 * x; } };
struct C : A { int by; __device__ C(int by) : by(by) {} __device__ int f(int x) override { return by * x; } };
__device__ int twice(int x) { return 2 * x + 1; }
__device__ int thrice(int x) { return 3 * x + 1; }
__device__ int shared_sum(int x) { __shared__ int s; if (threadIdx.x == 0) s = 0; __syncthreads(); atomicAdd(&s, x); __syncthreads(); return s; }
typedef int (*F)(int);
__device__ F table[2] = {twice, thrice};
__global__ void virtuals(int *out, int n) { B b; C c(3); A *a = threadIdx.x % 2 ? (A *)&b : (A *)&c; out[threadIdx.x] = a->f(threadIdx.x) + table[(threadIdx.x + n) % 2](threadIdx.x); }
__global__ void together(int *out, int n) { F f = n ? shared_sum : twice; out[threadIdx.x] = f(threadIdx.x); }
__global__ void some(int *out, int n) { int r = -1; if (threadIdx.x % 3) r = table[threadIdx.x % 3 - 1](threadIdx.x); out[threadIdx.x] = __shfl_xor_sync(~0u, r, 1); }

struct P { int a[3]; F f; };
__device__ int one(int x) { return x + 1; }
__device__ int two(int x) { return x + 2; }
__constant__ P ps[2] = {{{1, 2, 3}, one}, {{4, 5, 6}, two}};
struct __attribute__((packed)) Q { char c; F f; };
__device__ Q qs[2] = {{'a', one}, {'b', two}};
__global__ void constant(int *out) { out[threadIdx.x] = ps[threadIdx.x & 1].f(ps[threadIdx.x & 1].a[1]); }
__global__ void given(F f, int *out) { out[threadIdx.x] = f(threadIdx.x); }
__device__ F chosen;
__global__ void choose(int n) { chosen = n ? one : two; }
__global__ void use(int *out) { out[threadIdx.x] = chosen(threadIdx.x); }
__device__ void *take(void *p) { return p; }
typedef void *(*T)(void *);
__global__ void untyped(int *out, T t, int n) { if (n) t = take; out[threadIdx.x] = t(out) == out; }

__device__ __noinline__ int fib(int n) { if (n < 2) return n; return fib(n - 1) + fib(n - 2); }
__device__ __noinline__ long ack(long m, long n) { volatile long local[2]; local[0] = m; local[1] = n; if (m == 0) return n + 1; if (n == 0) return ack(m - 1, 1); long r = ack(m, n - 1); return ack(local[0] - 1, r) + (local[1] - n); }
__device__ int even(int n);
__device__ __noinline__ int odd(int n) { return n == 0 ? 0 : even(n - 1); }
__device__ __noinline__ int even(int n) { return n == 0 ? 1 : odd(n - 1); }
__global__ void recursion(int *out) { int i = threadIdx.x; out[i] = fib(i % 12) + 1000 * (int)ack(1 + i % 2, i % 5) + 100000 * even(i); }
// Each level has an array to which the next one has a pointer.
__device__ __noinline__ int chain(const int *above, int depth) { int mine[4]; for (int i = 0; i < 4; i++) mine[i] = above[(i + 1) & 3] + depth; if (depth == 0) return mine[0]; int below = chain(mine, depth - 1); return below + mine[depth & 3] + above[depth & 3]; }
struct Big { int v[6]; };
__device__ __noinline__ Big spread(Big b, int depth) { b.v[depth % 6] += depth; if (depth == 0) return b; Big r = spread(b, depth - 1); r.v[(depth + 1) % 6] += b.v[depth % 6]; return r; }
__global__ void frames(int *out) { int first[4] = {1, 2, 3, (int)threadIdx.x}; Big b = {1, 2, 3, 4, 5, 6}; Big r = spread(b, threadIdx.x % 7); out[threadIdx.x] = chain(first, threadIdx.x % 9) + r.v[threadIdx.x % 6] * 1000; }
__device__ __noinline__ int forever(int *p, int n) { int mine[2] = {n, p[n & 1]}; if (n < 0) return p[0]; return forever(mine, n + 1) + mine[n & 1]; }
__global__ void overflow(int *out) { int first[2] = {1, 2}; out[threadIdx.x] = forever(first, 0); }
// A tree of nodes whose evaluation calls that of others.
struct Node { __device__ virtual int value(int x) const = 0; };
struct Leaf : Node { int v; __device__ int value(int x) const override { return v + x; } };
struct Sum : Node { const Node *l, *r; __device__ int value(int x) const override { int a = l->value(x + 1); return a * 2 + r->value(x + 2); } };
__global__ void tree(int *out) { Leaf a, b, c; a.v = 1; b.v = 2; c.v = threadIdx.x; Sum s, t; s.l = &a; s.r = &b; t.l = threadIdx.x & 1 ? (Node *)&s : (Node *)&c; t.r = &s; const Node *n = threadIdx.x % 3 ? (Node *)&t : (Node *)&a; out[threadIdx.x] = n->value(threadIdx.x); }
__global__ void packed(int *out) { Q *q = &qs[threadIdx.x & 1]; out[threadIdx.x] = q->c + q->f(threadIdx.x); }
__device__ int numbers[4] = {1, 2, 3, 4};
struct __attribute__((packed)) R { char c; int *p; };
__device__ R rs[1] = {{'r', numbers + 2}};
__global__ void packed_address(int *out) { out[threadIdx.x] = *rs[0].p; }
