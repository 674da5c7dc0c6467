#pragma once
#include <cstddef>
#define LIB_BEGIN namespace lib { inline namespace v1 {
#define LIB_END }}
#define LIB_CALL __host__ __device__ inline
