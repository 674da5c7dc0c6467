
// --- the gate's own looks at what a kernel left ---

// Counts bytes (or aligned words) that differ from a value: what was written into a guard region.
extern "C" __global__ void tuner_guard(const unsigned char* at, u64 count, u32 value, u64* found) {
    const u64 stride = (u64)gridDim.x * blockDim.x;
    const u64 begin = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    u32 other = 0;
    if ((((u64)at | count) & 3) == 0) {
        const u32* words = (const u32*)at;
        for (u64 i = begin; i < count / 4; i += stride) other += words[i] != value * 0x01010101u;
    } else {
        for (u64 i = begin; i < count; i += stride) other += at[i] != value;
    }
    if (other) atomicAdd(found, (u64)other);
}

// Counts 4-byte words, and bytes behind the last one, that differ.
extern "C" __global__ void tuner_differ(const u32* one, const u32* two, u64 bytes, u64* found) {
    const u64 first = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    const u64 stride = (u64)gridDim.x * blockDim.x;
    u32 other = 0;
    for (u64 i = first; i < bytes / 4; i += stride) other += one[i] != two[i];
    if (first == 0) {
        const unsigned char* a = (const unsigned char*)one;
        const unsigned char* b = (const unsigned char*)two;
        for (u64 i = bytes / 4 * 4; i < bytes; i++) other += a[i] != b[i];
    }
    if (other) atomicAdd(found, (u64)other);
}

__device__ __forceinline__ u64 word_of(const void* at, u64 index, u32 size) {
    if (size == 1) return ((const unsigned char*)at)[index];
    if (size == 2) return ((const unsigned short*)at)[index];
    if (size == 4) return ((const u32*)at)[index];
    return ((const u64*)at)[index];
}

// The first of so many elements in a row that hold a pattern: poison that nobody wrote over.
extern "C" __global__ void tuner_run(const void* at, u64 count, u32 size, u64 pattern, u64 run,
                                     u64* first) {
    const u64 stride = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i + run <= count; i += stride) {
        u64 length = 0;
        while (length < run && word_of(at, i + length, size) == pattern) length++;
        if (length == run) atomicMin(first, i);
    }
}

// An element as float64: 0 float16, 1 bfloat16, 2 float32, 3 float64.
__device__ __forceinline__ double element_of(const void* at, u64 index, u32 type) {
    if (type == 0) {
        const unsigned short bits = ((const unsigned short*)at)[index];
        float value;
        asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
        return value;
    }
    if (type == 1) return __uint_as_float((u32)((const unsigned short*)at)[index] << 16);
    if (type == 2) return ((const float*)at)[index];
    return ((const double*)at)[index];
}

// A run of elements that one thread compares, in the order in which the host adds up its errors.
struct Unit {
    u64 start, at, count;
    double bound;
};

// tally: largest error over its tolerance (bits of a float64), wrong elements, the first of them.
// Every operation is rounded by itself, so that the host's comparison gives the same bits.
extern "C" __global__ void tuner_compare(const void* got, u32 type, const double* wanted,
                                         const Unit* units, u64 count, u64* tally) {
    const u64 number = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (number >= count) return;
    const double largest = 1.7976931348623157e308;
    const double infinite = __longlong_as_double(0x7ff0000000000000ll);
    const Unit unit = units[number];
    double worst = 0, error = 0;
    u64 wrong = 0, first = ~0ull;
    for (u64 i = 0; i < unit.count; i++) {
        const double value = element_of(got, unit.start + i, type);
        const double want = wanted[2 * (unit.at + i)];
        const double tolerance = wanted[2 * (unit.at + i) + 1];
        const double difference = __dsub_rn(value, want);
        double ratio = infinite;
        if (value == want || (value != value && want != want)) {
            ratio = 0;
        } else if (fabs(value) <= largest && fabs(want) <= largest) {
            ratio = __ddiv_rn(fabs(difference), tolerance > 0 ? tolerance : 0.0);
            if (!(ratio < largest)) ratio = fabs(difference) <= largest ? largest : infinite;
        }
        if (ratio > worst) worst = ratio;
        if (ratio > 1) {
            if (wrong == 0) first = unit.start + i;
            wrong++;
        }
        error = __dadd_rn(error, __dmul_rn(difference, difference));
    }
    if (unit.bound > 0 && error <= largest) {
        const double norm = __dsqrt_rn(__ddiv_rn(error, unit.bound));
        if (norm > worst) worst = norm;
    }
    if (worst > 0) atomicMax(tally, (u64)__double_as_longlong(worst));
    if (wrong) {
        atomicAdd(tally + 1, wrong);
        atomicMin(tally + 2, first);
    }
}
