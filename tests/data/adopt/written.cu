// Template arguments that are no plain expressions of numbers.
#include <algorithm>

namespace ns {
enum class Mode { same = 0, twice = 1 };
struct Item {
    float all[6];
};
constexpr int pick(int mode) { return mode * 2; }
}  // namespace ns

constexpr int bits_of(int value) { return value <= 1 ? 0 : 1 + bits_of(value / 2); }

struct Own {
    float all[3];
};

#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)

template <ns::Mode M> __global__ void act(float* y, int n) { if (INDEX < n) y[INDEX] = static_cast<float>(M); }
template <ns::Mode M> __global__ void act_on_local(float* y, int n) { if (INDEX < n) y[INDEX] = static_cast<float>(M); }
template <ns::Mode M> __global__ void act_on_block(float* y, int n) { if (INDEX < n) y[INDEX] = static_cast<float>(M); }
template <int BYTES> __global__ void of_size(float* y, int n) { if (INDEX < n) y[INDEX] = BYTES; }
template <int BYTES> __global__ void of_own_size(float* y, int n) { if (INDEX < n) y[INDEX] = BYTES; }
template <int K> __global__ void most(float* y, int n) { if (INDEX < n) y[INDEX] = K; }
template <int N> __global__ void shifted(float* y, int n) { if (INDEX < n) y[INDEX] = N > 0; }
template <int N, int BITS> __global__ void shifted_down(float* y, int n) { if (INDEX < n) y[INDEX] = N + BITS > 0; }
template <int N, int W> __global__ void decided(float* y, int n) { if (INDEX < n) y[INDEX] = N + W; }

template <bool B> __global__ void compared(float* y, int n) { if (INDEX < n) y[INDEX] = B; }
template <int N, int BITS> __global__ void counted(float* y, int n) { if (INDEX < n) y[INDEX] = N + BITS; }

void run(float* y) {
    int n = 4096;
    constexpr int mode = 1;
    act<static_cast<ns::Mode>(1)><<<(n + 255) / 256, 256>>>(y, n);
    act_on_local<static_cast<ns::Mode>(mode)><<<(n + 255) / 256, 256>>>(y, n);
    of_size<sizeof(ns::Item)><<<(n + 255) / 256, 256>>>(y, n);
    of_own_size<sizeof(Own)><<<(n + 255) / 256, 256>>>(y, n);
    compared<(256 > 128)><<<(n + 255) / 256, 256>>>(y, n);
    most<std::max(1, ns::pick(2))><<<(n + 255) / 256, 256>>>(y, n);
}

void run_on_block(float* y) {
    int n = 4096;
    constexpr int size = 128;
    act_on_block<static_cast<ns::Mode>(size / 128)><<<(n + size - 1) / size, size>>>(y, n);
}

void run_shifted(float* y) {
    int n = 4096;
    const int log = 8;
    shifted<(1 << log)><<<n >> log, 1 << log>>>(y, n);
}

void run_shifted_down(float* y) {
    int n = 4096;
    constexpr int threads = 128;
    shifted_down<threads, (1 << (threads >> 5))><<<n / threads, threads>>>(y, n);
}

void run_decided(float* y) {
    int n = 4096;
    constexpr int threads = 128;
    constexpr int warps = threads > 64 ? threads / 32 : 2;
    decided<threads, warps><<<(n + threads - 1) / threads, threads>>>(y, n);
}

void run_counted(float* y) {
    int n = 4096;
    constexpr int threads = 128;
    counted<threads, bits_of(threads)><<<(n + threads - 1) / threads, threads>>>(y, n);
}
