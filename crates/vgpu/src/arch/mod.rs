//! Tables of GPUs: limits, rates and latencies.
//!
//! The figures are data, one file per GPU in `arch/`, each with its source. A folder of such files
//! can replace or extend the built-in ones: see [`use_folder`].

mod clock;
mod device_name;
mod table;

pub use clock::{ClockError, MAX_CLOCK_MHZ, MIN_CLOCK_MHZ};
pub use device_name::{by_device_name, model};
pub use table::{TableError, read};

use std::path::Path;
use std::sync::OnceLock;

/// One GPU model. Rates are those of one multiprocessor per clock unless stated otherwise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Arch {
    /// Name as in `--device vgpu:NAME`, with the clock where one is given: `h100@1500MHz`.
    pub name: &'static str,
    /// Marketing name.
    pub full_name: &'static str,
    /// Compute capability times ten, such as 90.
    pub cc: u32,
    /// Streaming multiprocessors.
    pub sm_count: u32,
    /// Boost clock, or the clock of the device's name, MHz.
    pub boost_mhz: u32,
    /// Warp schedulers, each issuing one instruction per clock.
    pub schedulers: u32,
    /// Threads that a multiprocessor holds.
    pub max_threads_per_sm: u32,
    /// Blocks that a multiprocessor holds.
    pub max_blocks_per_sm: u32,
    /// 32-bit registers of a multiprocessor.
    pub registers_per_sm: u32,
    /// Maximum shared memory of a block after opting in, including static, bytes.
    pub shared_bytes_optin: u32,
    /// Shared memory of one multiprocessor, bytes.
    pub shared_bytes_per_sm: u32,
    /// Shared memory sizes that the driver chooses from, KiB; the rest is L1.
    pub shared_carveouts_kib: [u32; 10],
    /// Single-precision multiply-adds.
    pub fp32_lanes: u32,
    /// 32-bit integer multiply-adds, which run on the same unit.
    pub imad_lanes: u32,
    /// Integer additions, logic, comparisons.
    pub alu_lanes: u32,
    /// Packed half-precision multiply-adds.
    pub fp16_lanes: u32,
    /// Double-precision multiply-adds.
    pub fp64_lanes: u32,
    /// Approximations and conversions.
    pub special_lanes: u32,
    /// Lanes of loads, stores and shuffles.
    pub lsu_lanes: u32,
    /// Dense f16 matrix multiply-adds with f32 sums; bf16 is the same.
    pub tensor_f16: u32,
    /// The same for tf32; zero where there are none.
    pub tensor_tf32: u32,
    /// The same for 8-bit integers.
    pub tensor_i8: u32,
    /// The same for 8-bit floats.
    pub tensor_f8: u32,
    /// The same for double precision; zero where the double-precision lanes do that work.
    pub tensor_f64: u32,
    /// Percentage of these rates that `mma.sync` reaches.
    pub tensor_sync_pct: u32,
    /// Latency of a matrix instruction, cycles.
    pub tensor_cycles: u32,
    /// Latency of a load from shared memory, cycles.
    pub shared_cycles: u32,
    /// Latency of a load that hits the L1 cache, cycles.
    pub l1_cycles: u32,
    /// Latency of a load that hits the L2 cache, cycles.
    pub l2_cycles: u32,
    /// Latency of a load from device memory, cycles.
    pub dram_cycles: u32,
    /// Shared memory bandwidth, bytes.
    pub shared_bytes_per_clock: u32,
    /// First-level cache and shared memory combined, bytes.
    pub l1_bytes: u32,
    /// L1 bandwidth, bytes.
    pub l1_bytes_per_clock: u32,
    /// Second-level cache, bytes.
    pub l2_bytes: u64,
    /// L2 bandwidth for all multiprocessors combined, bytes per clock.
    pub l2_bytes_per_clock: u32,
    /// Memory bandwidth, GB/s.
    pub dram_gb_s: f64,
    /// Device memory, bytes.
    pub memory_bytes: u64,
    /// Minimum duration of a launch, microseconds.
    pub launch_us: f64,
}

/// Maximum number of threads in a block on every supported GPU.
pub const MAX_THREADS_PER_BLOCK: u32 = 1024;
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
