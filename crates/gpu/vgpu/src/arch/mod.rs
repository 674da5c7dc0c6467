//! Tables of GPUs: limits, rates and latencies.
//!
//! The figures are data, one file per GPU in `arch/`, each with its source. A folder of such files
//! can replace or extend the built-in ones: see [`use_folder`].

mod clock;
mod device_name;
mod table;

pub use clock::{ClockError, MAX_CLOCK_MHZ, MIN_CLOCK_MHZ};
pub use device_name::{by_device_name, model};
use table::{Figure as _, Table};
pub use table::{TableError, read};

use std::path::Path;
use std::sync::OnceLock;

/// Declares [`Arch`] with its figures, each with its physical minimum and maximum.
macro_rules! figures {
    ($($(#[$about:meta])* $name:ident: $kind:ident = $least:tt, $most:tt;)*) => {
        /// One GPU model. Rates are those of one multiprocessor per clock unless stated otherwise.
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub struct Arch {
            /// Name as in `--device vgpu:NAME`, with the clock where one is given: `h100@1500MHz`.
            pub name: &'static str,
            /// Marketing name.
            pub full_name: &'static str,
            /// Shared memory sizes that the driver chooses from, KiB; the rest is L1.
            pub shared_carveouts_kib: [u32; 10],
            $($(#[$about])* pub $name: $kind,)*
        }

        impl Arch {
            /// Names of the figures with their limits.
            const FIGURES: &[(&str, f64, f64)] =
                &[$((stringify!($name), $least as f64, $most as f64),)*];

            fn from_table(table: &Table<'_>) -> Result<Self, TableError> {
                Ok(Self {
                    name: table.gpu_name()?,
                    full_name: table.text("full_name")?,
                    shared_carveouts_kib: table.list("shared_carveouts_kib")?,
                    $($name: $kind::read(table, stringify!($name))?,)*
                })
            }
        }
    };
}

figures! {
    /// Compute capability times ten, such as 90.
    cc: u32 = 70.0, 129.0;
    /// Streaming multiprocessors.
    sm_count: u32 = 1.0, 1024.0;
    /// Boost clock, or the clock of the device's name, MHz.
    boost_mhz: u32 = MIN_CLOCK_MHZ, MAX_CLOCK_MHZ;
    /// Clock of kernels with matrix instructions, MHz: the tensor cores draw more power. From compute capability
    /// 10.0 on that of tensor cores at their full rate.
    tensor_mhz: u32 = MIN_CLOCK_MHZ, MAX_CLOCK_MHZ;
    /// Warp schedulers, each issuing one instruction per clock.
    schedulers: u32 = 1.0, 8.0;
    /// Threads that a multiprocessor holds.
    max_threads_per_sm: u32 = 512.0, 4096.0;
    /// Blocks that a multiprocessor holds.
    max_blocks_per_sm: u32 = 1.0, 64.0;
    /// 32-bit registers of a multiprocessor.
    registers_per_sm: u32 = 16_384.0, 262_144.0;
    /// Maximum shared memory of a block after opting in, including static, bytes.
    shared_bytes_optin: u32 = 16_384.0, 1_048_576.0;
    /// Shared memory of one multiprocessor, bytes.
    shared_bytes_per_sm: u32 = 16_384.0, 1_048_576.0;
    /// Single-precision multiply-adds.
    fp32_lanes: u32 = 16.0, 512.0;
    /// 32-bit integer multiply-adds, which run on the same unit.
    imad_lanes: u32 = 16.0, 512.0;
    /// Integer additions, logic, comparisons.
    alu_lanes: u32 = 16.0, 512.0;
    /// Packed half-precision multiply-adds.
    fp16_lanes: u32 = 16.0, 1024.0;
    /// Double-precision multiply-adds.
    fp64_lanes: u32 = 1.0, 256.0;
    /// Approximations and conversions.
    special_lanes: u32 = 4.0, 128.0;
    /// Lanes of loads, stores and shuffles.
    lsu_lanes: u32 = 8.0, 128.0;
    /// Dense f16 matrix multiply-adds with f32 sums; bf16 is the same.
    tensor_f16: u32 = 0.0, 65_536.0;
    /// The same for tf32; zero where there are none.
    tensor_tf32: u32 = 0.0, 65_536.0;
    /// The same for 8-bit integers.
    tensor_i8: u32 = 0.0, 65_536.0;
    /// The same for 8-bit floats.
    tensor_f8: u32 = 0.0, 65_536.0;
    /// The same for double precision; zero where the double-precision lanes do that work.
    tensor_f64: u32 = 0.0, 4096.0;
    /// Percentage of these rates that `mma.sync` reaches.
    tensor_sync_pct: u32 = 10.0, 100.0;
    /// Latency of a matrix instruction, cycles.
    tensor_cycles: u32 = 4.0, 200.0;
    /// Latency of a load from shared memory, cycles.
    shared_cycles: u32 = 10.0, 100.0;
    /// Latency of a load that hits the L1 cache, cycles.
    l1_cycles: u32 = 10.0, 200.0;
    /// Latency of a load that hits the L2 cache, cycles.
    l2_cycles: u32 = 50.0, 1000.0;
    /// Latency of a load from device memory, cycles.
    dram_cycles: u32 = 100.0, 3000.0;
    /// Shared memory bandwidth, bytes.
    shared_bytes_per_clock: u32 = 16.0, 1024.0;
    /// First-level cache and shared memory combined, bytes.
    l1_bytes: u32 = 16_384.0, 2_097_152.0;
    /// L1 bandwidth, bytes.
    l1_bytes_per_clock: u32 = 16.0, 1024.0;
    /// Second-level cache, bytes.
    l2_bytes: u64 = 262_144.0, 1.1e9;
    /// L2 bandwidth for all multiprocessors combined, bytes per clock.
    l2_bytes_per_clock: u32 = 64.0, 65_536.0;
    /// Memory bandwidth, GB/s.
    dram_gb_s: f64 = 10.0, 100_000.0;
    /// Time of a written byte in percent of a read one's.
    dram_write_pct: u32 = 100.0, 1000.0;
    /// Device memory, bytes.
    memory_bytes: u64 = 1e8, 1.1e12;
    /// Minimum duration of a launch, microseconds.
    launch_us: f64 = 0.1, 100.0;
}

/// Maximum number of threads in a block on every supported GPU.
pub const MAX_THREADS_PER_BLOCK: u32 = 1024;
/// Maximum blocks of a grid and threads of a block in x, y and z on every supported GPU (CUDA C++ Programming
/// Guide, Technical Specifications).
pub const MAX_GRID: [u32; 3] = [i32::MAX as u32, 65_535, 65_535];
/// See [`MAX_GRID`].
pub const MAX_BLOCK: [u32; 3] = [MAX_THREADS_PER_BLOCK, MAX_THREADS_PER_BLOCK, 64];

/// Reports whether an extent of a grid or block is above its limit.
#[must_use]
pub fn exceeds(extents: [u32; 3], limits: [u32; 3]) -> bool {
    extents
        .iter()
        .zip(limits)
        .any(|(extent, most)| *extent > most)
}

/// Local memory of a thread on every supported GPU, bytes.
pub const LOCAL_BYTES: u32 = 512 * 1024;
/// Shared memory of a block without opting in, bytes.
pub const SHARED_BYTES_DEFAULT: u32 = 48 * 1024;

/// The built-in tables, by file name.
const BUILT_IN: [(&str, &str); 15] = [
    ("l4.toml", include_str!("../../arch/l4.toml")),
    ("a100.toml", include_str!("../../arch/a100.toml")),
    ("a4000.toml", include_str!("../../arch/a4000.toml")),
    ("a6000.toml", include_str!("../../arch/a6000.toml")),
    ("rtx2080ti.toml", include_str!("../../arch/rtx2080ti.toml")),
    ("rtx3090.toml", include_str!("../../arch/rtx3090.toml")),
    ("rtx4090.toml", include_str!("../../arch/rtx4090.toml")),
    ("h100.toml", include_str!("../../arch/h100.toml")),
    ("h200.toml", include_str!("../../arch/h200.toml")),
    ("b200.toml", include_str!("../../arch/b200.toml")),
    ("rtx5090.toml", include_str!("../../arch/rtx5090.toml")),
    ("gh200.toml", include_str!("../../arch/gh200.toml")),
    ("l40s.toml", include_str!("../../arch/l40s.toml")),
    ("t4.toml", include_str!("../../arch/t4.toml")),
    ("a10g.toml", include_str!("../../arch/a10g.toml")),
];

static ALL: OnceLock<Vec<Arch>> = OnceLock::new();

fn built_in() -> Vec<Arch> {
    // An invalid table would be missing here; a test reads them all.
    let read = |(file, text): &(&str, &str)| table::read(file, text).ok();
    BUILT_IN.iter().filter_map(read).collect()
}

/// Returns every available GPU.
pub fn list_gpus() -> &'static [Arch] {
    ALL.get_or_init(built_in)
}

/// Reads the tables of a folder: each `*.toml` replaces the GPU of that name or adds one. Must be
/// called before any GPU is looked up.
///
/// # Errors
/// A folder or file that cannot be read; a line that is not `name = figure # source`; a figure that
/// is missing or out of range. The error has the file and line.
pub fn use_folder(folder: &Path) -> Result<(), TableError> {
    let unreadable = |error: std::io::Error| TableError {
        file: folder.display().to_string(),
        line: 0,
        column: 0,
        why: format!("the folder cannot be read: {error}"),
    };
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .map_err(unreadable)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .collect();
    // Of two tables with the same name the later one counts.
    files.sort();
    let mut all = built_in();
    for path in files {
        let name = path.display().to_string();
        let text = read_table(&path).map_err(|error| TableError {
            file: name.clone(),
            line: 0,
            column: 0,
            why: format!("the file cannot be read: {error}"),
        })?;
        let arch = table::read(&name, &text)?;
        all.retain(|known| known.name != arch.name);
        all.push(arch);
    }
    // The first caller decides; a second folder has no effect.
    _ = ALL.set(all);
    Ok(())
}

/// Maximum size of a table, bytes; the built-in ones have some 5,000.
const MAX_TABLE_BYTES: u64 = 1 << 20;

/// Reads the text of a table: a regular file of limited size.
fn read_table(path: &Path) -> std::io::Result<String> {
    let facts = std::fs::metadata(path)?;
    if !facts.is_file() || facts.len() > MAX_TABLE_BYTES {
        return Err(std::io::Error::other("not a regular file of at most 1 MiB"));
    }
    std::fs::read_to_string(path)
}

impl Arch {
    /// Returns the GPU called `NAME` or `NAME@CLOCK`; [`list_gpus`] has the names.
    pub fn by_name(name: &str) -> Option<&'static Arch> {
        clock::find(name).ok()
    }

    /// Returns the GPU called `NAME` or `NAME@CLOCK`, such as `h100@1500MHz`.
    ///
    /// # Errors
    /// An unknown name or an invalid clock.
    pub fn find(name: &str) -> Result<&'static Arch, ClockError> {
        clock::find(name)
    }

    /// Returns the peak of single-precision arithmetic, operations per second.
    pub fn peak_fp32(&self) -> f64 {
        2.0 * self.rate(self.fp32_lanes)
    }

    /// Returns the minimum times of this many operations (on tensor cores, or in single precision)
    /// and bytes of memory, microseconds: the roofline.
    pub fn floors_us(&self, flops: f64, bytes: f64, tensor: bool) -> [f64; 2] {
        let peak = if tensor {
            self.peak_tensor_f16()
        } else {
            self.peak_fp32()
        };
        [flops / peak * 1e6, bytes / self.dram_gb_s * 1e-3]
    }

    /// Returns a lower bound of the time of this many operations and bytes, microseconds: a launch may find
    /// its data in the L2 cache, and matrix instructions of 8-bit elements take half of the time.
    pub fn least_us(&self, flops: f64, bytes: f64, tensor: bool) -> f64 {
        let flops = if tensor { flops / 2.0 } else { flops };
        let beyond_cache = (bytes - self.l2_bytes as f64).max(0.0);
        let [arithmetic, memory] = self.floors_us(flops, beyond_cache, tensor);
        let cache = bytes / (f64::from(self.l2_bytes_per_clock) * f64::from(self.boost_mhz));
        arithmetic.max(memory).max(cache)
    }

    /// Returns the share of the issue slots that `warp_instructions` take in `clocks` clocks,
    /// summed over the multiprocessors.
    pub fn issue_share(&self, warp_instructions: f64, clocks: f64) -> f64 {
        warp_instructions / (f64::from(self.schedulers) * clocks)
    }

    /// Returns the peak of dense f16 matrix arithmetic, operations per second.
    pub fn peak_tensor_f16(&self) -> f64 {
        2.0 * self.rate(self.tensor_f16)
    }

    fn rate(&self, per_clock: u32) -> f64 {
        f64::from(per_clock) * f64::from(self.sm_count) * f64::from(self.boost_mhz) * 1e6
    }
}
