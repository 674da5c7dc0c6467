// A header whose functions depend on macros of the file that includes it.
#pragma once
#define PASTE(a, b) a##b
#define DECLARE(name) __device__ inline float PASTE(of_, name)(float x)
#if defined(FACTOR) && defined(LIMIT) && !defined(SLOW)
DECLARE(both) { return x * FACTOR; }
#else
DECLARE(both) { return x * 5; }
#endif
struct Both {
    static __device__ float of(float x) { return of_both(x); }
};
