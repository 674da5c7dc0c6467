// tcgen05 with 16-bit operands and float32 sums (sm_100a): tensor memory, descriptors, products.
//
// Layouts and descriptors are those of the PTX ISA, "tensorcore 5th generation". A thread that holds a tile of 8 columns
// in the layout of mma.m16n8k16 has four numbers of it.
#pragma once

#include "wgmma.cuh"

#ifndef CTA_GROUP
#define CTA_GROUP ".cta_group::1"
#endif

#define OF_TILE(c) "=f"((c)[0]), "=f"((c)[1]), "=f"((c)[2]), "=f"((c)[3])
#define FROM_TILE(c) "f"((c)[0]), "f"((c)[1]), "f"((c)[2]), "f"((c)[3])

// ---- Tensor memory ----

// Columns that are allocated where so many are used: a power of two, at least 32.
#define COLUMNS_FOR(used) ((used) > 256 ? 512 : (used) > 128 ? 256 : (used) > 64 ? 128 : (used) > 32 ? 64 : 32)

// Allocates columns, whose address then stands at shared address `at`, and no more after them. One warp.
template <int COLUMNS>
__device__ __forceinline__ void allocate_columns(u32 at) {
    asm volatile("tcgen05.alloc" CTA_GROUP ".sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(at), "n"(COLUMNS) : "memory");
    asm volatile("tcgen05.relinquish_alloc_permit" CTA_GROUP ".sync.aligned;" ::: "memory");
}

// The address of the columns, when their warp has met a barrier with this thread.
__device__ __forceinline__ u32 allocated_at(u32 at) {
    u32 memory;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(memory) : "r"(at));
    return memory;
}

// Frees columns. The warp that allocated them.
template <int COLUMNS>
__device__ __forceinline__ void free_columns(u32 memory) {
    asm volatile("tcgen05.dealloc" CTA_GROUP ".sync.aligned.b32 %0, %1;" ::"r"(memory), "n"(COLUMNS) : "memory");
}

// Between accesses to tensor memory and a barrier or an arrival, and between a wait and accesses.
__device__ __forceinline__ void before_threads() { asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory"); }
__device__ __forceinline__ void after_threads() { asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory"); }

// Loads 16 rows of mma tiles from column `at` on. A wait must follow.
template <int TILES>
__device__ __forceinline__ void load_row_tiles(float (&c)[TILES][4], u32 at) {
#pragma unroll
    for (int n = 0; n < TILES; n += TILES % 4 ? 2 : 4) {
        if constexpr (TILES % 4)
            asm volatile("tcgen05.ld.sync.aligned.16x256b.x2.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
                         : OF_TILE(c[n]), OF_TILE(c[n + 1]) : "r"(at + 8 * n));
        else
            asm volatile("tcgen05.ld.sync.aligned.16x256b.x4.b32"
                         " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, [%16];"
                         : OF_TILE(c[n]), OF_TILE(c[n + 1]), OF_TILE(c[n + 2]), OF_TILE(c[n + 3]) : "r"(at + 8 * n));
    }
}

// Loads the tiles of a warp, each 16 rows and 8 columns, and waits for them.
template <int ROWS, int TILES>
__device__ __forceinline__ void load_tiles(float (&c)[ROWS][TILES][4], u32 at) {
#pragma unroll
    for (int i = 0; i < ROWS; ++i) load_row_tiles(c[i], at + (16 * i << 16));
    asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
    // The compiler takes them for loaded before the wait.
#pragma unroll
    for (int i = 0; i < ROWS; ++i) pin(c[i]);
}

// ---- Products ----

// The instruction descriptor: float32 sums of fp16 or bf16, A K-major, B K-major or, with `b_rows` 1, MN-major.
#define PRODUCT_FORM(rows, columns, b_rows) \
    (1u << 4 | BF16 << 7 | BF16 << 10 | (u32)(b_rows) << 16 | (columns) / 8 << 17 | (rows) / 16 << 24)

// The descriptor of a tile: that of wgmma and a constant.
template <int SWIZZLE_CODE>
__device__ __forceinline__ u64 tile_descriptor(u32 at, u32 leading, u32 stride) {
    return descriptor<SWIZZLE_CODE>(at, leading, stride) | 1ull << 46;
}

// Starts sums = A B, or sums += A B if `adds`. `form`: the instruction descriptor.
__device__ __forceinline__ void start_product(u32 sums, u64 a, u64 b, u32 form, bool adds) {
    asm volatile("{ .reg .pred p;\n"
                 "setp.ne.b32 p, %4, 0;\n"
                 "tcgen05.mma" CTA_GROUP ".kind::f16 [%0], %1, %2, %3, p; }"
                 ::"r"(sums), "l"(a), "l"(b), "r"(form), "r"((u32)adds) : "memory");
}

// The same with A in tensor memory, as pairs of elements.
__device__ __forceinline__ void start_product_of_memory(u32 sums, u32 a, u64 b, u32 form, bool adds) {
    asm volatile("{ .reg .pred p;\n"
                 "setp.ne.b32 p, %4, 0;\n"
                 "tcgen05.mma" CTA_GROUP ".kind::f16 [%0], [%1], %2, %3, p; }"
                 ::"r"(sums), "r"(a), "l"(b), "r"(form), "r"((u32)adds) : "memory");
}

// Arrives at a mbarrier of the own block when all products so far are complete.
__device__ __forceinline__ void commit_to(u32 barrier) {
    asm volatile("tcgen05.commit" CTA_GROUP ".mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(barrier) : "memory");
}
