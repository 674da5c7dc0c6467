// A 15x15 convolution of an image, one tile of pixels a thread, after the parameters of the
// recorded spaces: the tile and its border lie in shared memory (or are read as they are), the
// weights in constant memory, and a row may be padded so that the banks of the next row of threads
// follow those of this one. What the recorded kernels decide by the preprocessor is decided so here
// too, for the machine code depends on it: bounds are only checked where the tiles do not divide
// the image.

#ifndef use_shmem
#define use_shmem 1
#endif

#define BORDER_X (filter_width / 2 * 2)
#define BORDER_Y (filter_height / 2 * 2)
#define TILE_W (block_size_x * tile_size_x)
#define TILE_H (block_size_y * tile_size_y)
#define SPAN_W (TILE_W + BORDER_X)
#define SPAN_H (TILE_H + BORDER_Y)
#define PITCH (image_width + BORDER_X)
#define ROWS (image_height + BORDER_Y)

#if image_height % TILE_H != 0 || image_width % TILE_W != 0
#define IF_INSIDE(y, rows, x, columns) if ((y) < (rows) && (x) < (columns))
#else
#define IF_INSIDE(y, rows, x, columns)
#endif

// With padding the pitch of a shared row is the block's width modulo 32 banks.
#if use_padding && block_size_x % 32 != 0
#define SHARED_W (SPAN_W + (32 - (SPAN_W - block_size_x) % 32) % 32)
#else
#define SHARED_W SPAN_W
#endif

// The definition of __ldg in the headers of CUDA: the volatile assembly keeps the compiler from
// loading a value that two pixels need only once. (NVRTC knows a __ldg of its own.)
#if read_only
__device__ __forceinline__ float load(const float *from) {
    float value;
    asm volatile("ld.global.nc.f32 %0, [%1];" : "=f"(value) : "l"(from));
    return value;
}
#else
__device__ __forceinline__ float load(const float *from) { return *from; }
#endif

__constant__ float weights[filter_height * filter_width];

extern "C" __global__ void convolve(float *output, float *input) {
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int left = blockIdx.x * TILE_W, top = blockIdx.y * TILE_H;

#if use_shmem
    __shared__ float tile[SPAN_H][SHARED_W];
#pragma unroll
    for (int row = ty; row < SPAN_H; row += block_size_y) {
#pragma unroll
        for (int col = tx; col < SPAN_W; col += block_size_x) {
            const int y = top + row, x = left + col;
#ifdef ZEROS_OUTSIDE
            float value = 0.0f;
            IF_INSIDE(y, ROWS, x, PITCH) value = load(input + y * PITCH + x);
            tile[row][col] = value;
#else
            IF_INSIDE(y, ROWS, x, PITCH) tile[row][col] = load(input + y * PITCH + x);
#endif
        }
    }
    __syncthreads();
#endif

    float sum[tile_size_y][tile_size_x] = {};
#pragma unroll
    for (int fy = 0; fy < filter_height; fy++) {
#pragma unroll
        for (int fx = 0; fx < filter_width; fx++) {
#pragma unroll
            for (int j = 0; j < tile_size_y; j++) {
#pragma unroll
                for (int i = 0; i < tile_size_x; i++) {
                    const int row = ty + j * block_size_y, col = tx + i * block_size_x;
#if use_shmem
                    const float value = tile[row + fy][col + fx];
#else
                    float value = 0.0f;
                    IF_INSIDE(top + row, ROWS, left + col, PITCH)
                        value = load(input + (top + row + fy) * PITCH + left + col + fx);
#endif
                    sum[j][i] += value * weights[fy * filter_width + fx];
                }
            }
        }
    }

#pragma unroll
    for (int j = 0; j < tile_size_y; j++) {
#pragma unroll
        for (int i = 0; i < tile_size_x; i++) {
            const int y = top + ty + j * block_size_y, x = left + tx + i * block_size_x;
            IF_INSIDE(y, image_height, x, image_width) output[y * image_width + x] = sum[j][i];
        }
    }
}
