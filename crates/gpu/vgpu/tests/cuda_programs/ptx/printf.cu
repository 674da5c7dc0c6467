// nvcc -arch=sm_80 -std=c++17 -lineinfo -ptx printf.cu
#ifdef HOST
#include <stdio.h>
#define __global__
#else
#include <cstdio>
#include <cassert>
#endif
struct Sample { char c; signed char s; short h; int i; long l; unsigned long long u; float f; double d, big, tiny, nan; void *p, *null; const char *text; };
__global__ void every_conversion(Sample *x) {
  printf("%d|%i|%5d|%-5d|%05d|%+d|% d|%.3d|%8.3d|%-8.3d|%+05d|%.0d|\n", x->i, -x->i, x->i, x->i, x->i, x->i, x->i, x->i, x->i, x->i, x->i, 0);
  printf("%u|%x|%X|%#x|%#X|%o|%#o|%08x|%#010x|%-#8x|%#x|%#o|\n", -x->i, -x->i, -x->i, x->i, x->i, x->i, x->i, x->i, x->i, x->i, 0, 0);
  printf("%hhd|%hhu|%hd|%hu|%ld|%lu|%lld|%llu|%llx|%zu|%lx|\n", x->s, x->s, x->h, x->h, x->l, x->l, (long long)x->l, x->u, x->u, (size_t)x->u, x->l);
  printf("%c|%3c|%-3c|%s|%8s|%-8s|%.2s|%*s|%-*s|%.*s|%s|%%|\n", x->c, x->c, x->c, x->text, x->text, x->text, x->text, 7, x->text, 7, x->text, 1, x->text, (char *)x->null);
  printf("%p|%p|%20p|%-20p|\n", x->p, x->null, x->p, x->p);
  printf("%f|%.2f|%10.3f|%-10.3f|%+.1f|%010.2f|%.0f|%#.0f|%f|%f|\n", x->f, x->d, x->d, x->d, x->d, x->d, x->d, x->d, -0.0 * x->d, x->big);
  printf("%e|%.2E|%12.4e|%.0e|%e|%e|%#.0e|\n", x->d, x->d, x->d, x->d, x->big, x->tiny, x->d);
  printf("%g|%G|%.3g|%g|%g|%#g|%g|%.10g|%g|%g|%.0g|\n", x->d, x->big, x->d, x->tiny, 1e5 + x->d, x->d, 100000.0 * x->i, x->d / 3, 0.0001 * x->i, 0.0 * x->d, x->d);
  printf("%a|%A|%.3a|%.0a|%a|%a|%.1a|%a|\n", x->d, x->d, x->d, x->d, 0.0 * x->d, x->tiny, x->big, 1.0 * x->i);
  printf("%f|%5f|%-6F|%g|%E|%06f|\n", x->nan, 1 / (x->d - x->d), -1 / (x->d - x->d), x->nan, x->nan, 1 / (x->d - x->d));
  printf("%*d|%-*d|%*d|%.*f|%.*f|%*.*f|\n", 6, x->i, 6, x->i, -6, x->i, 2, x->d, -2, x->d, 9, 1, x->d);
  printf("plain %5% %d%d%d%s\n", x->i, x->i, x->i, x->text);
  printf("no argument\n");
}
#ifndef HOST
__global__ void who(int *returned) {
  if (threadIdx.x % 16 == 1) returned[blockIdx.x] = printf("block %d thread %d of %s\n", blockIdx.x, threadIdx.x, "who");
}
__global__ void much(int lines) {
  for (int i = 0; i < lines; i++) printf("%4d %10d\n", blockIdx.x, i);
}
__global__ void exchange(int *sum) {
  printf("before %d\n", blockIdx.x);
  atomicAdd(sum, 1);
  if (*(volatile int *)sum > 100) printf("never\n");
}
__global__ void astray(const char *text) { printf("%s\n", text); }
__global__ void asserts(int *p) { printf("checking %d\n", threadIdx.x); assert(p[threadIdx.x] != 5 && "five"); p[threadIdx.x] = 1; }
__global__ void traps(int *p) { if (p[threadIdx.x] == 5) __trap(); }
__global__ void breaks() { __brkpt(); }
#else
int main() {
  Sample x = {'c', -3, -300, 42, -1234567890123L, 18446744073709551615ull, 0.1f, 3.14159265358979, 1.7976931348623157e308, 5e-324, 0, (void *)0x7100deadbeefull, 0, "text"};
  x.nan = __builtin_nan("");
  every_conversion(&x);
}
#endif
