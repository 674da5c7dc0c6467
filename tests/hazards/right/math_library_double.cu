// Double-precision functions: division, square root, exponential, sine, logarithm.
//@ launch kernel grid 1 block 32
//@ arg x f64[32] input normal
//@ arg y f64[160] output
//@ tolerance 1e-12
//@ expect y = math_library_double(x)
extern "C" __global__ void kernel(const double* x, double* y) {
    int t = threadIdx.x;
    double v = x[t];
    y[t] = 1.0 / (v * v + 0.5);
    y[32 + t] = sqrt(v * v);
    y[64 + t] = exp(v);
    y[96 + t] = sin(100.0 * v);
    y[128 + t] = log(v * v + 1.0);
}
