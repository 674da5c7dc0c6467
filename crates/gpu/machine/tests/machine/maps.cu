// A tensor map at the start of the input gets other fields, once in shared and once in global memory, and boxes are loaded by
// it. nvcc 13.0 -ptx and -cubin of sm_90a and sm_100a.
typedef unsigned u32;
typedef unsigned long long u64;

__device__ u32 at(const void* place) { return (u32)__cvta_generic_to_shared(place); }

__device__ void load(u32* to, u32* barrier, const void* map, int x, int y, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(at(barrier)), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 ::"r"(at(to)), "l"(map), "r"(x), "r"(y), "r"(at(barrier)) : "memory");
}

__device__ void wait(u32* barrier, u32 parity) {
    asm volatile("{\n .reg .pred p;\nL: mbarrier.try_wait.parity.shared.b64 p, [%0], %1;\n @!p bra L;\n}" ::"r"(at(barrier)), "r"(parity) : "memory");
}

extern "C" __global__ void maps(const u32* in, u32* out, int n) {
    __shared__ __align__(1024) u32 box[1024];
    __shared__ __align__(128) u32 map[32];
    __shared__ __align__(8) u32 barrier[2];
    const u32 t = threadIdx.x;
    u32* mine = out + 3840;
    map[t] = in[t];
    if (t == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(at(barrier)) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (t == 0) {
        const u32 s = at(map), rows = n / 250;
        asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" ::"r"(s), "l"(in + 512) : "memory");
        asm volatile("tensormap.replace.tile.rank.shared::cta.b1024.b32 [%0], 1;" ::"r"(s) : "memory");
        asm volatile("tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%0], 2;" ::"r"(s) : "memory");
        asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 0, 40;" ::"r"(s) : "memory");
        asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 1, %1;" ::"r"(s), "r"(rows * 3) : "memory");
        asm volatile("tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], 0, %1;" ::"r"(s), "l"((u64)rows * 48) : "memory");
        asm volatile("tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 0, 32;" ::"r"(s) : "memory");
        asm volatile("tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 1, %1;" ::"r"(s), "r"(rows * 4) : "memory");
        asm volatile("tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 1, 2;" ::"r"(s) : "memory");
        asm volatile("tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%0], 3;" ::"r"(s) : "memory");
        asm volatile("tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%0], 0;" ::"r"(s) : "memory");
        asm volatile("tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%0], 0;" ::"r"(s) : "memory");
    }
    __syncwarp();
    asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;"
                 ::"l"(mine), "r"(at(map)) : "memory");
    if (t == 0) {
        asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(mine) : "memory");
        load(box, barrier, mine, 16, 2, 32 * 8 * 4);
    }
    wait(barrier, 0);
    for (int i = t; i < 256; i += 32) out[i] = box[i];
    __syncwarp();
    if (t == 0) {
        asm volatile("tensormap.replace.tile.swizzle_mode.global.b1024.b32 [%0], 1;" ::"l"(mine) : "memory");
        asm volatile("tensormap.replace.tile.box_dim.global.b1024.b32 [%0], 0, 8;" ::"l"(mine) : "memory");
        asm volatile("tensormap.replace.tile.element_stride.global.b1024.b32 [%0], 1, 1;" ::"l"(mine) : "memory");
        asm volatile("tensormap.replace.tile.elemtype.global.b1024.b32 [%0], 7;" ::"l"(mine) : "memory");
        asm volatile("tensormap.replace.tile.fill_mode.b1024.b32 [%0], 1;" ::"l"(mine) : "memory");
        asm volatile("tensormap.replace.tile.global_address.b1024.b64 [%0], %1;" ::"l"(mine), "l"(in + 1024) : "memory");
        asm volatile("fence.proxy.tensormap::generic.release.gpu;" ::: "memory");
        asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(mine) : "memory");
        load(box, barrier, mine, 36, 2, 8 * 16 * 4);
    }
    wait(barrier, 1);
    for (int i = t; i < 128; i += 32) out[256 + i] = box[i];
}
