//! The GPUs that can be imitated: limits and peak rates.
//!
//! Sources: NVIDIA's architecture white papers (Turing 2018, Ampere GA100 2020 and GA102 2021,
//! Ada 2022, Hopper 2022), the L4, A100, H100 and H200 data sheets, and the CUDA C++ Programming
//! Guide, table "Technical Specifications per Compute Capability". Peaks are dense, at boost clock.

/// One GPU model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Arch {
    /// Name as in `--device vgpu:NAME`.
    pub name: &'static str,
    /// Marketing name.
    pub full_name: &'static str,
    /// Compute capability times ten, such as 90.
    pub cc: u32,
    /// Streaming multiprocessors.
    pub sm_count: u32,
    /// Most shared memory a block may use after opting in, static included, bytes.
    pub shared_bytes_optin: u32,
    /// Shared memory of one multiprocessor, bytes.
    pub shared_bytes_per_sm: u32,
    /// Threads a multiprocessor holds.
    pub max_threads_per_sm: u32,
    /// Blocks a multiprocessor holds.
    pub max_blocks_per_sm: u32,
    /// 32-bit registers a multiprocessor holds.
    pub registers_per_sm: u32,
    /// Boost clock, MHz.
    pub boost_mhz: u32,
    /// Single-precision fused multiply-adds a clock a multiprocessor.
    pub fp32_fma_per_clock_sm: u32,
    /// Dense f16 tensor multiply-adds (f32 accumulate) a clock a multiprocessor.
    pub tensor_f16_fma_per_clock_sm: u32,
    /// Memory bandwidth, GB/s.
    pub dram_gb_s: f64,
    /// Second-level cache, bytes.
    pub l2_bytes: u64,
    /// Device memory, bytes.
    pub memory_bytes: u64,
    /// Time a launch costs at least, microseconds (typical for a graph launch).
    pub launch_us: f64,
}

/// Most threads in a block on every supported GPU.
pub const MAX_THREADS_PER_BLOCK: u32 = 1024;
/// Local memory of a thread on every supported GPU, bytes.
pub const LOCAL_BYTES: u32 = 512 * 1024;
/// Shared memory a block may use without opting in, bytes.
pub const SHARED_BYTES_DEFAULT: u32 = 48 * 1024;

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

macro_rules! arch {
    ($name:literal, $full:literal, $cc:literal, $sm:literal, $optin:expr, $shsm:expr, $thr:literal,
     $blk:literal, $mhz:literal, $fma:literal, $tc:literal, $bw:literal, $l2:expr, $mem:expr) => {
        Arch {
            name: $name,
            full_name: $full,
            cc: $cc,
            sm_count: $sm,
            shared_bytes_optin: $optin * 1024,
            shared_bytes_per_sm: $shsm * 1024,
            max_threads_per_sm: $thr,
            max_blocks_per_sm: $blk,
            registers_per_sm: 65_536,
            boost_mhz: $mhz,
            fp32_fma_per_clock_sm: $fma,
            tensor_f16_fma_per_clock_sm: $tc,
            dram_gb_s: $bw,
            l2_bytes: $l2 * MIB,
            memory_bytes: $mem * GIB,
            launch_us: 2.0,
        }
    };
}

/// Every GPU that can be imitated.
pub const ALL: &[Arch] = &[
    arch!(
        "l4",
        "NVIDIA L4",
        89,
        58,
        99,
        100,
        1536,
        24,
        2040,
        128,
        512,
        300.0,
        48,
        24
    ),
    arch!(
        "a100",
        "NVIDIA A100-SXM4-40GB",
        80,
        108,
        163,
        164,
        2048,
        32,
        1410,
        64,
        1024,
        1555.0,
        40,
        40
    ),
    arch!(
        "a4000",
        "NVIDIA RTX A4000",
        86,
        48,
        99,
        100,
        1536,
        16,
        1560,
        128,
        512,
        448.0,
        4,
        16
    ),
    arch!(
        "a6000",
        "NVIDIA RTX A6000",
        86,
        84,
        99,
        100,
        1536,
        16,
        1800,
        128,
        512,
        768.0,
        6,
        48
    ),
    arch!(
        "rtx2080ti",
        "NVIDIA GeForce RTX 2080 Ti",
        75,
        68,
        64,
        64,
        1024,
        16,
        1545,
        64,
        256,
        616.0,
        5,
        11
    ),
    arch!(
        "rtx3090",
        "NVIDIA GeForce RTX 3090",
        86,
        82,
        99,
        100,
        1536,
        16,
        1695,
        128,
        256,
        936.0,
        6,
        24
    ),
    arch!(
        "rtx4090",
        "NVIDIA GeForce RTX 4090",
        89,
        128,
        99,
        100,
        1536,
        24,
        2520,
        128,
        256,
        1008.0,
        72,
        24
    ),
    arch!(
        "h100",
        "NVIDIA H100-SXM5-80GB",
        90,
        132,
        227,
        228,
        2048,
        32,
        1830,
        128,
        2048,
        3350.0,
        50,
        80
    ),
    arch!(
        "h200",
        "NVIDIA H200-SXM5-141GB",
        90,
        132,
        227,
        228,
        2048,
        32,
        1830,
        128,
        2048,
        4800.0,
        50,
        141
    ),
];

impl Arch {
    /// The GPU called `name` (`l4 a100 a4000 a6000 rtx2080ti rtx3090 rtx4090 h100 h200`).
    pub fn by_name(name: &str) -> Option<&'static Arch> {
        ALL.iter().find(|a| a.name == name)
    }

    /// Peak of single-precision arithmetic, operations a second.
    pub fn peak_fp32(&self) -> f64 {
        2.0 * self.rate(self.fp32_fma_per_clock_sm)
    }

    /// Peak of dense f16 matrix arithmetic, operations a second.
    pub fn peak_tensor_f16(&self) -> f64 {
        2.0 * self.rate(self.tensor_f16_fma_per_clock_sm)
    }

    fn rate(&self, per_clock: u32) -> f64 {
        f64::from(per_clock) * f64::from(self.sm_count) * f64::from(self.boost_mhz) * 1e6
    }
}
