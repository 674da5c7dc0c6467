//! The GPUs that can be imitated: limits, rates and latencies.
//!
//! The figures are data, one file a GPU in `arch/`, each with its source. A folder of such files
//! can stand in for (or beside) those built in: see [`use_folder`].

mod table;

pub use table::{TableError, read};

use std::path::Path;
use std::sync::OnceLock;

/// One GPU model. Rates are those of one multiprocessor in one clock unless they say otherwise.
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
    /// Boost clock, MHz.
    pub boost_mhz: u32,
    /// Warp schedulers, each issuing one instruction a clock.
    pub schedulers: u32,
    /// Threads a multiprocessor holds.
    pub max_threads_per_sm: u32,
    /// Blocks a multiprocessor holds.
    pub max_blocks_per_sm: u32,
    /// 32-bit registers a multiprocessor holds.
    pub registers_per_sm: u32,
    /// Most shared memory a block may use after opting in, static included, bytes.
    pub shared_bytes_optin: u32,
    /// Shared memory of one multiprocessor, bytes.
    pub shared_bytes_per_sm: u32,
    /// Sizes of shared memory that the driver chooses from, KiB; the rest of the store is L1.
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
    /// Per cent of these rates that `mma.sync` reaches.
    pub tensor_sync_pct: u32,
    /// Cycles of a matrix instruction until its result is there.
    pub tensor_cycles: u32,
    /// Cycles of a load from shared memory.
    pub shared_cycles: u32,
    /// Cycles of a load that hits the L1 cache.
    pub l1_cycles: u32,
    /// Cycles of a load that hits the L2 cache.
    pub l2_cycles: u32,
    /// Cycles of a load from device memory.
    pub dram_cycles: u32,
    /// Bytes that shared memory gives.
    pub shared_bytes_per_clock: u32,
    /// First-level cache and shared memory together, bytes.
    pub l1_bytes: u32,
    /// Bytes that the L1 cache gives.
    pub l1_bytes_per_clock: u32,
    /// Second-level cache, bytes.
    pub l2_bytes: u64,
    /// Bytes a clock that the L2 cache gives to all multiprocessors together.
    pub l2_bytes_per_clock: u32,
    /// Memory bandwidth, GB/s.
    pub dram_gb_s: f64,
    /// Device memory, bytes.
    pub memory_bytes: u64,
    /// Time a launch costs at least, microseconds.
    pub launch_us: f64,
}

/// Most threads in a block on every supported GPU.
pub const MAX_THREADS_PER_BLOCK: u32 = 1024;
/// Local memory of a thread on every supported GPU, bytes.
pub const LOCAL_BYTES: u32 = 512 * 1024;
/// Shared memory a block may use without opting in, bytes.
pub const SHARED_BYTES_DEFAULT: u32 = 48 * 1024;

/// The tables in the program, by file name.
const BUILT_IN: [(&str, &str); 9] = [
    ("l4.toml", include_str!("../../arch/l4.toml")),
    ("a100.toml", include_str!("../../arch/a100.toml")),
    ("a4000.toml", include_str!("../../arch/a4000.toml")),
    ("a6000.toml", include_str!("../../arch/a6000.toml")),
    ("rtx2080ti.toml", include_str!("../../arch/rtx2080ti.toml")),
    ("rtx3090.toml", include_str!("../../arch/rtx3090.toml")),
    ("rtx4090.toml", include_str!("../../arch/rtx4090.toml")),
    ("h100.toml", include_str!("../../arch/h100.toml")),
    ("h200.toml", include_str!("../../arch/h200.toml")),
];

static ALL: OnceLock<Vec<Arch>> = OnceLock::new();

fn built_in() -> Vec<Arch> {
    // A table that is wrong would be missing here; a test reads them all.
    let read = |(file, text): &(&str, &str)| table::read(file, text).ok();
    BUILT_IN.iter().filter_map(read).collect()
}

/// Every GPU that can be imitated.
pub fn all() -> &'static [Arch] {
    ALL.get_or_init(built_in)
}

/// Reads the tables of a folder: each `*.toml` replaces the GPU of that name or adds one. To be
/// called before anything else asks for a GPU.
///
/// # Errors
/// A folder or file that cannot be read; a line that is no `name = figure # source`, a figure that
/// is missing or that no GPU can have, with its file and line.
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
    // Whoever asked first has decided; a second folder changes nothing.
    _ = ALL.set(all);
    Ok(())
}

/// Largest table that is read, bytes; ours have some 5,000.
const MAX_TABLE_BYTES: u64 = 1 << 20;

/// The text of a table: a regular file of sane size.
fn read_table(path: &Path) -> std::io::Result<String> {
    let facts = std::fs::metadata(path)?;
    if !facts.is_file() || facts.len() > MAX_TABLE_BYTES {
        return Err(std::io::Error::other(
            "it is no regular file of at most 1 MiB",
        ));
    }
    std::fs::read_to_string(path)
}

impl Arch {
    /// The GPU called `name` (`l4 a100 a4000 a6000 rtx2080ti rtx3090 rtx4090 h100 h200`).
    pub fn by_name(name: &str) -> Option<&'static Arch> {
        all().iter().find(|a| a.name == name)
    }

    /// Peak of single-precision arithmetic, operations a second.
    pub fn peak_fp32(&self) -> f64 {
        2.0 * self.rate(self.fp32_lanes)
    }

    /// The least time of so many operations (on tensor cores, or in single precision) and so many
    /// bytes of memory, microseconds: the roofline.
    pub fn floors_us(&self, flops: f64, bytes: f64, tensor: bool) -> [f64; 2] {
        let peak = if tensor {
            self.peak_tensor_f16()
        } else {
            self.peak_fp32()
        };
        [flops / peak * 1e6, bytes / self.dram_gb_s * 1e-3]
    }

    /// Share of the issue slots that so many warp instructions take in so many clocks, summed over
    /// the multiprocessors.
    pub fn issue_share(&self, warp_instructions: f64, clocks: f64) -> f64 {
        warp_instructions / (f64::from(self.schedulers) * clocks)
    }

    /// Peak of dense f16 matrix arithmetic, operations a second.
    pub fn peak_tensor_f16(&self) -> f64 {
        2.0 * self.rate(self.tensor_f16)
    }

    fn rate(&self, per_clock: u32) -> f64 {
        f64::from(per_clock) * f64::from(self.sm_count) * f64::from(self.boost_mhz) * 1e6
    }
}
