// wgmma with 16-bit operands and float32 sums (sm_90a): descriptors, products, ordering.
//
// A warp group, four warps, multiplies 64 rows by COLUMNS columns, 16 deep. Thread t of warp w holds of
// the sums what mma.m16n8k16 gives it of rows 16 w to 16 w + 15: d[n] is its part of columns 8 n to
// 8 n + 7. Layouts and descriptors are those of the PTX ISA, "asynchronous warpgroup level matrix
// instructions".
#pragma once

typedef unsigned int u32;
typedef unsigned long long u64;

// ---- Descriptors ----

// The swizzle's number in a descriptor, by the 16-bit elements of a swizzled row.
#define SWIZZLE_OF(elements) ((elements) == 64 ? 1 : (elements) == 32 ? 2 : 3)

// A tile at shared address `at`. Groups of eight rows are `stride` bytes apart, panels `leading`. The upper bits
// of an address are the rank of the block in its cluster and no part of a descriptor.
template <int SWIZZLE_CODE>
__device__ __forceinline__ u64 descriptor(u32 at, u32 leading, u32 stride) {
    return (u64)((at & 0x3ffff) >> 4) | (u64)(leading >> 4) << 16 | (u64)(stride >> 4) << 32 | (u64)SWIZZLE_CODE << 62;
}

// ---- Products ----

// By columns: the sums' numbers in the instruction, their registers from d[j] on, and the operands
// after them: two descriptors and the scale, or four registers of A, a descriptor and the scale.
#define WGMMA_SUMS_16 "%0, %1, %2, %3, %4, %5, %6, %7"
#define WGMMA_SUMS_32 WGMMA_SUMS_16 ", " "%8, %9, %10, %11, %12, %13, %14, %15"
#define WGMMA_SUMS_48 WGMMA_SUMS_32 ", " "%16, %17, %18, %19, %20, %21, %22, %23"
#define WGMMA_SUMS_64 WGMMA_SUMS_48 ", " "%24, %25, %26, %27, %28, %29, %30, %31"
#define WGMMA_SUMS_80 WGMMA_SUMS_64 ", " "%32, %33, %34, %35, %36, %37, %38, %39"
#define WGMMA_SUMS_96 WGMMA_SUMS_80 ", " "%40, %41, %42, %43, %44, %45, %46, %47"
#define WGMMA_SUMS_112 WGMMA_SUMS_96 ", " "%48, %49, %50, %51, %52, %53, %54, %55"
#define WGMMA_SUMS_128 WGMMA_SUMS_112 ", " "%56, %57, %58, %59, %60, %61, %62, %63"
#define WGMMA_SUMS_144 WGMMA_SUMS_128 ", " "%64, %65, %66, %67, %68, %69, %70, %71"
#define WGMMA_SUMS_160 WGMMA_SUMS_144 ", " "%72, %73, %74, %75, %76, %77, %78, %79"
#define WGMMA_SUMS_176 WGMMA_SUMS_160 ", " "%80, %81, %82, %83, %84, %85, %86, %87"
#define WGMMA_SUMS_192 WGMMA_SUMS_176 ", " "%88, %89, %90, %91, %92, %93, %94, %95"
#define WGMMA_SUMS_208 WGMMA_SUMS_192 ", " "%96, %97, %98, %99, %100, %101, %102, %103"
#define WGMMA_SUMS_224 WGMMA_SUMS_208 ", " "%104, %105, %106, %107, %108, %109, %110, %111"
#define WGMMA_SUMS_240 WGMMA_SUMS_224 ", " "%112, %113, %114, %115, %116, %117, %118, %119"
#define WGMMA_SUMS_256 WGMMA_SUMS_240 ", " "%120, %121, %122, %123, %124, %125, %126, %127"

#define WGMMA_REGISTERS(j) "+f"(d[j][0]), "+f"(d[j][1]), "+f"(d[j][2]), "+f"(d[j][3])
#define WGMMA_REGISTERS_16(j) WGMMA_REGISTERS(j), WGMMA_REGISTERS(j + 1)
#define WGMMA_REGISTERS_32(j) WGMMA_REGISTERS_16(j), WGMMA_REGISTERS_16(j + 2)
#define WGMMA_REGISTERS_48(j) WGMMA_REGISTERS_32(j), WGMMA_REGISTERS_16(j + 4)
#define WGMMA_REGISTERS_64(j) WGMMA_REGISTERS_48(j), WGMMA_REGISTERS_16(j + 6)
#define WGMMA_REGISTERS_80(j) WGMMA_REGISTERS_64(j), WGMMA_REGISTERS_16(j + 8)
#define WGMMA_REGISTERS_96(j) WGMMA_REGISTERS_80(j), WGMMA_REGISTERS_16(j + 10)
#define WGMMA_REGISTERS_112(j) WGMMA_REGISTERS_96(j), WGMMA_REGISTERS_16(j + 12)
#define WGMMA_REGISTERS_128(j) WGMMA_REGISTERS_112(j), WGMMA_REGISTERS_16(j + 14)
#define WGMMA_REGISTERS_144(j) WGMMA_REGISTERS_128(j), WGMMA_REGISTERS_16(j + 16)
#define WGMMA_REGISTERS_160(j) WGMMA_REGISTERS_144(j), WGMMA_REGISTERS_16(j + 18)
#define WGMMA_REGISTERS_176(j) WGMMA_REGISTERS_160(j), WGMMA_REGISTERS_16(j + 20)
#define WGMMA_REGISTERS_192(j) WGMMA_REGISTERS_176(j), WGMMA_REGISTERS_16(j + 22)
#define WGMMA_REGISTERS_208(j) WGMMA_REGISTERS_192(j), WGMMA_REGISTERS_16(j + 24)
#define WGMMA_REGISTERS_224(j) WGMMA_REGISTERS_208(j), WGMMA_REGISTERS_16(j + 26)
#define WGMMA_REGISTERS_240(j) WGMMA_REGISTERS_224(j), WGMMA_REGISTERS_16(j + 28)
#define WGMMA_REGISTERS_256(j) WGMMA_REGISTERS_240(j), WGMMA_REGISTERS_16(j + 30)

#define WGMMA_SHARED_A_16 "%8, %9, %10, 1, 1"
#define WGMMA_SHARED_A_32 "%16, %17, %18, 1, 1"
#define WGMMA_SHARED_A_48 "%24, %25, %26, 1, 1"
#define WGMMA_SHARED_A_64 "%32, %33, %34, 1, 1"
#define WGMMA_SHARED_A_80 "%40, %41, %42, 1, 1"
#define WGMMA_SHARED_A_96 "%48, %49, %50, 1, 1"
#define WGMMA_SHARED_A_112 "%56, %57, %58, 1, 1"
#define WGMMA_SHARED_A_128 "%64, %65, %66, 1, 1"
#define WGMMA_SHARED_A_144 "%72, %73, %74, 1, 1"
#define WGMMA_SHARED_A_160 "%80, %81, %82, 1, 1"
#define WGMMA_SHARED_A_176 "%88, %89, %90, 1, 1"
#define WGMMA_SHARED_A_192 "%96, %97, %98, 1, 1"
#define WGMMA_SHARED_A_208 "%104, %105, %106, 1, 1"
#define WGMMA_SHARED_A_224 "%112, %113, %114, 1, 1"
#define WGMMA_SHARED_A_240 "%120, %121, %122, 1, 1"
#define WGMMA_SHARED_A_256 "%128, %129, %130, 1, 1"

#define WGMMA_OWN_A_16 "{%8, %9, %10, %11}, %12, %13, 1, 1"
#define WGMMA_OWN_A_32 "{%16, %17, %18, %19}, %20, %21, 1, 1"
#define WGMMA_OWN_A_48 "{%24, %25, %26, %27}, %28, %29, 1, 1"
#define WGMMA_OWN_A_64 "{%32, %33, %34, %35}, %36, %37, 1, 1"
#define WGMMA_OWN_A_80 "{%40, %41, %42, %43}, %44, %45, 1, 1"
#define WGMMA_OWN_A_96 "{%48, %49, %50, %51}, %52, %53, 1, 1"
#define WGMMA_OWN_A_112 "{%56, %57, %58, %59}, %60, %61, 1, 1"
#define WGMMA_OWN_A_128 "{%64, %65, %66, %67}, %68, %69, 1, 1"
#define WGMMA_OWN_A_144 "{%72, %73, %74, %75}, %76, %77, 1, 1"
#define WGMMA_OWN_A_160 "{%80, %81, %82, %83}, %84, %85, 1, 1"
#define WGMMA_OWN_A_176 "{%88, %89, %90, %91}, %92, %93, 1, 1"
#define WGMMA_OWN_A_192 "{%96, %97, %98, %99}, %100, %101, 1, 1"
#define WGMMA_OWN_A_208 "{%104, %105, %106, %107}, %108, %109, 1, 1"
#define WGMMA_OWN_A_224 "{%112, %113, %114, %115}, %116, %117, 1, 1"
#define WGMMA_OWN_A_240 "{%120, %121, %122, %123}, %124, %125, 1, 1"
#define WGMMA_OWN_A_256 "{%128, %129, %130, %131}, %132, %133, 1, 1"

#define WGMMA_JOINED(name, columns) name##columns
#define WGMMA_WITH(name, columns) WGMMA_JOINED(name, columns)
#define WGMMA_QUOTED(x) #x
#define WGMMA_TEXT(x) WGMMA_QUOTED(x)
#define WGMMA_HEAD(columns, element)                                                                             \
    "wgmma.mma_async.sync.aligned.m64n" WGMMA_TEXT(columns) "k16.f32." element "." element                       \
    " {" WGMMA_WITH(WGMMA_SUMS_, columns) "}, "

// Defines `name<ADDS>(d, a, b)`: d = A B, or d += A B if ADDS is 1. `columns` is a number or a macro of
// one. The matrices of descriptors a and b are K-major, or with `a_rows` or `b_rows` 1 MN-major.
#define WGMMA_OF_SHARED(name, columns, element, a_rows, b_rows)                                                  \
    template <int ADDS>                                                                                          \
    __device__ __forceinline__ void name(float (&d)[(columns) / 8][4], u64 a, u64 b) {                           \
        asm volatile(WGMMA_HEAD(columns, element) WGMMA_WITH(WGMMA_SHARED_A_, columns)                                \
                     ", " #a_rows ", " #b_rows ";"                                                               \
                     : WGMMA_WITH(WGMMA_REGISTERS_, columns)(0)                                                  \
                     : "l"(a), "l"(b), "n"(ADDS));                                                               \
    }

// The same with A in registers: a thread's part of 64 rows and 16 columns, as mma.m16n8k16 has it.
#define WGMMA_OF_REGISTERS(name, columns, element, b_rows)                                                       \
    template <int ADDS>                                                                                          \
    __device__ __forceinline__ void name(float (&d)[(columns) / 8][4], const u32 (&a)[4], u64 b) {               \
        asm volatile(WGMMA_HEAD(columns, element) WGMMA_WITH(WGMMA_OWN_A_, columns) ", " #b_rows ";"             \
                     : WGMMA_WITH(WGMMA_REGISTERS_, columns)(0)                                                  \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(ADDS));                           \
    }

// ---- Ordering ----

// Before the first product that uses registers that this thread wrote.
__device__ __forceinline__ void begin_products() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

// Closes a group of products.
__device__ __forceinline__ void commit_products() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Waits until the products of at most `PENDING` groups are still running.
template <int PENDING>
__device__ __forceinline__ void wait_products() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

// Keeps the compiler from moving accesses to sums across this point: to it, a product in flight has
// already written them.
template <int TILES>
__device__ __forceinline__ void pin(float (&d)[TILES][4]) {
#pragma unroll
    for (int n = 0; n < TILES; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e) asm volatile("" : "+f"(d[n][e])::"memory");
}

// Between ordinary writes or cp.async copies to shared memory and products that read them, which go
// by another proxy: by the writer before the barrier, or by the reader after it.
__device__ __forceinline__ void publish() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
