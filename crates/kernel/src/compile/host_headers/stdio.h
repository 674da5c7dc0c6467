#pragma once
#include <stddef.h>
namespace std { using ::printf; }
