// C = alpha A B + beta C in single precision. A is stored by columns of M, B by rows of N: both
// are read along their contiguous side in vectors of VWM and VWN floats. A block makes a tile of
// MWG x NWG in steps of KWG; SA and SB say whether the tiles of A and B go through shared memory,
// by threads arranged MDIMA (or NDIMB) wide.

#define ROWS (MWG / MDIMC)
#define COLS (NWG / NDIMC)
#define THREADS (MDIMC * NDIMC)
#define ROWS_A (MWG / MDIMA)
#define DEPTH_A (KWG / (THREADS / MDIMA))
#define COLS_B (NWG / NDIMB)
#define DEPTH_B (KWG / (THREADS / NDIMB))

// Eight floats lie as OpenCL has them: at multiples of 32 bytes, moved as two vectors of four.
struct __align__(32) Eight {
    float v[8];
};
template <int Width> struct Vector;
template <> struct Vector<1> { typedef float Type; };
template <> struct Vector<2> { typedef float2 Type; };
template <> struct Vector<4> { typedef float4 Type; };
template <> struct Vector<8> { typedef Eight Type; };
typedef Vector<VWM>::Type VecM;
typedef Vector<VWN>::Type VecN;

// The compiler of the recordings did not make one wide load of several narrow ones from shared
// memory (77.6 ms with VWM=1, 39.5 with 2 and 24.1 with 4, the rest alike); NVRTC 11.8 does unless the
// loads are volatile.
__device__ __forceinline__ float held(const float &v) {
    return *(const volatile float *)&v;
}
__device__ __forceinline__ float2 held(const float2 &v) {
    float2 out;
    asm volatile("ld.volatile.shared.v2.f32 {%0, %1}, [%2];"
                 : "=f"(out.x), "=f"(out.y)
                 : "r"((unsigned)__cvta_generic_to_shared(&v))
                 : "memory");
    return out;
}
__device__ __forceinline__ float4 held(const float4 &v) { return v; }
__device__ __forceinline__ Eight held(const Eight &v) { return v; }

__device__ __forceinline__ float &part(float &v, int) { return v; }
__device__ __forceinline__ float &part(float2 &v, int i) { return i == 0 ? v.x : v.y; }
__device__ __forceinline__ float &part(float4 &v, int i) {
    return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}
__device__ __forceinline__ float &part(Eight &v, int i) { return v.v[i]; }

extern "C" __global__ __launch_bounds__(THREADS) void gemm(const int m, const int n, const int k,
                                                           const float alpha, const float beta,
                                                           const VecM *__restrict__ a,
                                                           const VecN *__restrict__ b, VecM *c) {
    const int tx = threadIdx.x, ty = threadIdx.y;
#if SA || SB
    const int thread = tx + MDIMC * ty;
#endif
#if SA
    __shared__ VecM tile_a[KWG * MWG / VWM];
#endif
#if SB
    __shared__ VecN tile_b[KWG * NWG / VWN];
#endif
    VecM sum[COLS][ROWS / VWM];
#pragma unroll
    for (int j = 0; j < COLS; j++) {
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            part(sum[j][i / VWM], i % VWM) = 0.0f;
        }
    }
    for (int step = 0; step < k; step += KWG) {
#if SA
        {
            const int la0 = thread % MDIMA, la1 = thread / MDIMA;
#pragma unroll
            for (int i = 0; i < ROWS_A / VWM; i++) {
#pragma unroll
                for (int d = 0; d < DEPTH_A; d++) {
                    const int row = STRM ? la0 + i * MDIMA : i + la0 * (ROWS_A / VWM);
                    const int depth = d + la1 * DEPTH_A;
                    tile_a[depth * (MWG / VWM) + row] =
                        a[(step + depth) * (m / VWM) + row + blockIdx.x * (MWG / VWM)];
                }
            }
        }
#endif
#if SB
        {
            const int lb0 = thread % NDIMB, lb1 = thread / NDIMB;
#pragma unroll
            for (int d = 0; d < DEPTH_B; d++) {
#pragma unroll
                for (int j = 0; j < COLS_B / VWN; j++) {
                    const int col = STRN ? lb0 + j * NDIMB : j + lb0 * (COLS_B / VWN);
                    const int depth = d + lb1 * DEPTH_B;
                    tile_b[depth * (NWG / VWN) + col] =
                        b[(step + depth) * (n / VWN) + col + blockIdx.y * (NWG / VWN)];
                }
            }
        }
#endif
#if SA || SB
        __syncthreads();
#endif
        for (int inner = 0; inner < KWG; inner += KWI) {
#pragma unroll
            for (int at = 0; at < KWI; at++) {
                const int depth = inner + at;
                VecM left[ROWS / VWM];
                VecN right[COLS / VWN];
#pragma unroll
                for (int i = 0; i < ROWS / VWM; i++) {
                    const int row = STRM ? tx + i * MDIMC : i + tx * (ROWS / VWM);
#if SA
                    left[i] = held(tile_a[depth * (MWG / VWM) + row]);
#else
                    left[i] = a[(step + depth) * (m / VWM) + row + blockIdx.x * (MWG / VWM)];
#endif
                }
#pragma unroll
                for (int j = 0; j < COLS / VWN; j++) {
                    const int col = STRN ? ty + j * NDIMC : j + ty * (COLS / VWN);
#if SB
                    right[j] = held(tile_b[depth * (NWG / VWN) + col]);
#else
                    right[j] = b[(step + depth) * (n / VWN) + col + blockIdx.y * (NWG / VWN)];
#endif
                }
#pragma unroll
                for (int j = 0; j < COLS; j++) {
#pragma unroll
                    for (int i = 0; i < ROWS; i++) {
                        part(sum[j][i / VWM], i % VWM) +=
                            part(left[i / VWM], i % VWM) * part(right[j / VWN], j % VWN);
                    }
                }
            }
        }
#if SA || SB
        __syncthreads();
#endif
    }
#pragma unroll
    for (int j = 0; j < COLS; j++) {
#pragma unroll
        for (int i = 0; i < ROWS / VWM; i++) {
            const int row = STRM ? tx + i * MDIMC : i + tx * (ROWS / VWM);
            const int col = STRN ? j % VWN + ty * VWN + j / VWN * VWN * NDIMC : j + ty * COLS;
            VecM *to = &c[(col + blockIdx.y * NWG) * (m / VWM) + row + blockIdx.x * (MWG / VWM)];
            VecM old = *to;
#pragma unroll
            for (int e = 0; e < VWM; e++) {
                part(old, e) = alpha * part(sum[j][i], e) + beta * part(old, e);
            }
            *to = old;
        }
    }
}
