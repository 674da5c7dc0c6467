// A smoothing step in place: a thread overwrites what its neighbour in the next warp still has to read.
//@ verdict race
//@ launch kernel grid 1 block 64
//@ arg x f32[64] inout arange
extern "C" __global__ void kernel(float* x) {
    int t = threadIdx.x;
    float left = 0.0f;
    if (t > 0) left = x[t - 1]; // HAZARD
    float mid = x[t];
    x[t] = 0.5f * (left + mid); // HAZARD
}
