#pragma once
#include <stddef.h>
#define __builtin_memcpy memcpy
#define __builtin_memset memset
namespace std { using ::memcpy; using ::memset; }
