// The core of a warp group, for kernel.cu with CORE 1: wgmma, sm_90a only.
//
// A warp group, four warps, owns WM x WN of C. A step multiplies tiles that wgmma reads from shared
// memory itself, 64 rows, WN columns and 16 along K at once:
//
//          BK                          B_LD   B_LD
//        +----+                       +------+------+
//     BM |A   | rows of 2 BK bytes    |B     |B     | BK rows of 2 B_LD bytes, one panel of
//        |    | (K-major)             |      |      | columns after another (MN-major)
//        +----+                       +------+------+
//
// `chunk_at` puts the 16-byte chunks of a row of 128, 64 or 32 bytes where the swizzle of that width
// expects them. Layouts and descriptors are those of the PTX ISA, "asynchronous warpgroup level
// matrix instructions".

// ---- Descriptors ----

// The swizzle's number in a descriptor, by the halves of a row.
#define SWIZZLE_OF(halves) ((halves) == 64 ? 1 : (halves) == 32 ? 2 : 3)

// A tile at shared address `at`. Eight rows are `stride` bytes apart, panels `leading`.
template <int SWIZZLE_CODE>
__device__ __forceinline__ u64 descriptor(u32 at, u32 leading, u32 stride) {
    return (u64)(at >> 4) | (u64)(leading >> 4) << 16 | (u64)(stride >> 4) << 32 | (u64)SWIZZLE_CODE << 62;
}

// ---- One wgmma ----

// Operands of the sums by columns: their numbers in the instruction, their registers, and the
// numbers of the two descriptors after them.
#define SUMS_16 "%0, %1, %2, %3, %4, %5, %6, %7"
#define SUMS_32 SUMS_16 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define SUMS_48 SUMS_32 ", %16, %17, %18, %19, %20, %21, %22, %23"
#define SUMS_64 SUMS_48 ", %24, %25, %26, %27, %28, %29, %30, %31"
#define SUMS_96 SUMS_64 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define SUMS_128 SUMS_96 ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define SUMS_192 SUMS_128 ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79" \
    ", %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define SUMS_256 SUMS_192 ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111" \
    ", %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"

#define REGISTERS(j) "+f"(d[j][0]), "+f"(d[j][1]), "+f"(d[j][2]), "+f"(d[j][3])
#define REGISTERS_16(j) REGISTERS(j), REGISTERS(j + 1)
#define REGISTERS_32(j) REGISTERS_16(j), REGISTERS_16(j + 2)
#define REGISTERS_48(j) REGISTERS_32(j), REGISTERS_16(j + 4)
#define REGISTERS_64(j) REGISTERS_32(j), REGISTERS_32(j + 4)
#define REGISTERS_96(j) REGISTERS_64(j), REGISTERS_32(j + 8)
#define REGISTERS_128(j) REGISTERS_64(j), REGISTERS_64(j + 8)
#define REGISTERS_192(j) REGISTERS_128(j), REGISTERS_64(j + 16)
#define REGISTERS_256(j) REGISTERS_128(j), REGISTERS_128(j + 16)

#define DESCRIPTORS_16 "%8, %9"
#define DESCRIPTORS_32 "%16, %17"
#define DESCRIPTORS_48 "%24, %25"
#define DESCRIPTORS_64 "%32, %33"
#define DESCRIPTORS_96 "%48, %49"
#define DESCRIPTORS_128 "%64, %65"
#define DESCRIPTORS_192 "%96, %97"
#define DESCRIPTORS_256 "%128, %129"

#define JOINED(name, columns) name##columns
#define WITH_COLUMNS(name, columns) JOINED(name, columns)
#define QUOTED(x) #x
#define TEXT_OF(x) QUOTED(x)

// d += A B for 64 rows, WN columns and 16 along K. Both signs stay; A is K-major, B is MN-major.
__device__ __forceinline__ void product(float (&d)[NT][4], u64 a, u64 b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n" TEXT_OF(WN) "k16.f32." ELEMENT "." ELEMENT
                 " {" WITH_COLUMNS(SUMS_, WN) "}, " WITH_COLUMNS(DESCRIPTORS_, WN) ", 1, 1, 1, 0, 1;"
                 : WITH_COLUMNS(REGISTERS_, WN)(0)
                 : "l"(a), "l"(b));
}

// ---- Ordering ----

// Keeps the compiler from moving accesses to the sums across this point: to it, a product in flight
// has already written them.
__device__ __forceinline__ void pin(float (&c)[MT][NT][4]) {
#pragma unroll
    for (int i = 0; i < MT; ++i)
#pragma unroll
        for (int j = 0; j < NT; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e) asm volatile("" : "+f"(c[i][j][e])::"memory");
}

// Makes this thread's stores and cp.async copies to shared memory visible to products after the
// next barrier: they read by another proxy.
__device__ __forceinline__ void publish() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Waits until the products of at most `PENDING` steps are still running.
template <int PENDING>
__device__ __forceinline__ void wait_products() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

// ---- Steps ----

// Starts C += A B of one step, for the part at (m, n) of the tile.
__device__ __forceinline__ void start_products(float (&c)[MT][NT][4], u32 stage, int m, int n) {
    const u32 a = stage + m * (2 * A_LD), b = stage + A_BYTES + n / B_LD * (2 * BK * B_LD);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int kk = 0; kk < BK / 16; ++kk)
#pragma unroll
        for (int i = 0; i < MT; ++i)
            product(c[i], descriptor<SWIZZLE_OF(BK)>(a + i * (MT_ROWS * 2 * A_LD) + 32 * kk, 16, 16 * A_LD),
                    descriptor<SWIZZLE_OF(B_LD)>(b + kk * (32 * B_LD), 2 * BK * B_LD, 16 * B_LD));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Adds the product of all steps of a unit to `c`, for the part at (m, n).
__device__ __forceinline__ void accumulate(float (&c)[MT][NT][4], const Sizes& size, const Work& work, u32 base, const u16* a, const u16* b, int m, int n, int) {
    // Steps whose copies are on their way: each of the other stages is read by products, or is next.
    constexpr int AHEAD = STAGES - 1 - WG_PENDING;
#pragma unroll
    for (int i = 0; i < AHEAD; ++i) {
        issue(base, a, b, size, work, i);
        commit();
    }
    pin(c);
#pragma unroll UNROLL_K
    for (int i = 0; i < work.count; ++i) {
        if (STAGES == 1) {
            if (i > 0) __syncthreads();
            issue(base, a, b, size, work, i);
            commit();
        }
        wait_groups<(AHEAD > 0 ? AHEAD - 1 : 0)>();
        publish();
        // Step i is readable by all, and the products that read the stage of step i + AHEAD are done.
        __syncthreads();
        start_products(c, base + i % STAGES * STAGE_BYTES, m, n);
        if (STAGES > 1) {
            issue(base, a, b, size, work, i + AHEAD);
            commit();
        }
        wait_products<WG_PENDING>();
    }
    if (WG_PENDING) wait_products<0>();
    pin(c);
}
