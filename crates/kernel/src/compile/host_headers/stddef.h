#pragma once
#if __cplusplus >= 201703L && __has_include(<cuda/std/cstddef>)
#include <cuda/std/cstddef>
#endif
#ifndef NULL
#define NULL 0
#endif
#ifndef offsetof
#define offsetof(type, member) __builtin_offsetof(type, member)
#endif
typedef decltype(sizeof(0)) size_t;
typedef decltype((char*)0 - (char*)0) ptrdiff_t;
namespace std { using ::size_t; using ::ptrdiff_t; typedef decltype(nullptr) nullptr_t; }
#if __cplusplus >= 201703L && __has_include(<cuda/std/cstddef>)
namespace std { using cuda::std::byte; using cuda::std::to_integer; using cuda::std::max_align_t; }
#endif
