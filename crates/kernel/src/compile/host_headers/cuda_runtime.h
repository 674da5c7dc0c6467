/* What nvcc includes before every source: the runtime's header with the host headers it includes. */
#pragma once
#include_next <cuda_runtime.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
