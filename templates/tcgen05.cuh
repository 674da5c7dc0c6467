// tcgen05 with 16-bit operands and float32 sums (sm_100a): fences, descriptors, products.
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

// Between accesses to tensor memory and a barrier or an arrival, and between a wait and accesses.
__device__ __forceinline__ void before_threads() { asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory"); }
__device__ __forceinline__ void after_threads() { asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory"); }

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
