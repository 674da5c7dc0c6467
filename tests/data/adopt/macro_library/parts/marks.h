#pragma once
#include <cstddef>
#ifdef LIB_VERSION_2
#define LIB_BEGIN namespace lib { inline namespace v2 {
#else
#define LIB_BEGIN namespace lib { inline namespace v1 {
#endif
#define LIB_END }}
#define LIB_CALL __host__ __device__ inline
