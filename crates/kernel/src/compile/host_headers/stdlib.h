#pragma once
#include <sys/types.h>
#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
#define RAND_MAX 2147483647
namespace std { using ::abs; using ::malloc; using ::free; }
