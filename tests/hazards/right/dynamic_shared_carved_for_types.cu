// One dynamic array carved into parts of several types, each aligned for its own.
//@ launch kernel grid 1 block 32 shared 848
//@ arg x i32[32] input arange
//@ arg y i32[32] output
//@ expect y = scale(x, 5)
extern "C" __global__ void kernel(const int* x, int* y) {
    extern __shared__ __align__(16) unsigned char raw[];
    unsigned char* bytes = raw;
    float4* quads = reinterpret_cast<float4*>(raw + 48);
    double* wide = reinterpret_cast<double*>(quads + 32);
    unsigned short* halves = reinterpret_cast<unsigned short*>(wide + 28);
    int t = threadIdx.x;
    bytes[t] = (unsigned char)x[t];
    quads[t] = make_float4(x[t], x[t], x[t], 1.0f);
    if (t < 28) wide[t] = x[t];
    halves[t] = (unsigned short)x[t];
    __syncthreads();
    int o = 31 - t;
    float4 q = quads[o];
    int v = bytes[o] + (int)(q.x * q.w) + (int)q.y + halves[o] + (o < 28 ? (int)wide[o] : x[o]);
    __syncthreads();
    reinterpret_cast<int*>(raw)[o] = v;
    __syncthreads();
    y[t] = reinterpret_cast<int*>(raw)[t];
}
