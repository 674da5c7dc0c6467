//! Reuse of bytes between concurrent blocks.
//!
//! Some of the concurrent blocks run up to their first loads, and only addresses are computed. The
//! estimate is separate for each load instruction. Let a sector of one block belong to another
//! block with probability `q`. Then about `1 + (n - 1) q` of `n` blocks use each sector, and one of
//! them fetches it from memory. The estimate covers any order of blocks, tiles and heads; a
//! comparison of neighbours along x and y does not.

use super::blocks::trace_beginnings;
use super::sectors::{BySector, Sectors};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use vgpu::Arch;
use vgpu::Module;
use vgpu::exec::launch::{Depth, Launch, LaunchError};
use vgpu::exec::trace::{BlockTrace, FIRST_LOADS};
use vgpu::memory::GlobalMemory;

/// Largest number of blocks whose first loads are traced.
const MAX_SURVEYED_BLOCKS: u64 = 64;
/// Instructions per warp up to which blocks run; most of them are skipped.
const SURVEY_INSTRUCTIONS: u64 = 3072;

/// Share of the sectors of loads that each block fetches from memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reuse {
    /// Share by PTX instruction.
    by_instruction: HashMap<u32, f64>,
    /// Mean share, for loads outside the traces.
    other: f64,
}

impl Reuse {
    /// Creates an estimate without reuse.
    fn none() -> Reuse {
        Reuse {
            by_instruction: HashMap::new(),
            other: 1.0,
        }
    }

    /// Computes the sectors that a block moves from or to memory. A sector used by several blocks
    /// counts as its share.
    pub(crate) fn sectors(&self, trace: &BlockTrace) -> f64 {
        let (mut read, mut written) = (Sectors::default(), Sectors::default());
        let mut sum = 0.0;
        for warp in &trace.warps {
            for access in &warp.accesses {
                let (seen, share) = match access.write {
                    true => (&mut written, 1.0),
                    false => (
                        &mut read,
                        *self.by_instruction.get(&access.pc).unwrap_or(&self.other),
                    ),
                };
                for sector in warp.sectors_of(access) {
                    if seen.insert(*sector) {
                        sum += share;
                    }
                }
            }
        }
        sum
    }
}

/// Traces blocks around `chosen`, of which `together` run at the same time.
///
/// # Errors
/// A refused launch.
pub(super) fn survey(
    module: &Module,
    memory: &mut GlobalMemory,
    arch: &Arch,
    template: &Launch,
    chosen: u64,
    together: u64,
) -> Result<Reuse, LaunchError> {
    let blocks: u64 = template.grid.iter().map(|d| u64::from(*d)).product();
    let wave = together.min(blocks);
    if wave < 2 {
        return Ok(Reuse::none());
    }
    // The last wave may have fewer blocks, which would show less reuse.
    let first = (chosen / wave * wave).min(blocks - wave);
    let list = draw_blocks(wave).into_iter().map(|at| first + at).collect();
    let (each, depth) = (SURVEY_INSTRUCTIONS, Depth::Addresses);
    let traces = trace_beginnings(module, memory, arch, template, list, each, depth)?;
    Ok(estimate_reuse(&traces, wave))
}

/// Selects numbers below `wave`: all, or a random sample. Evenly spaced blocks would all be from
/// different rows of tiles and show no reuse.
fn draw_blocks(wave: u64) -> Vec<u64> {
    if wave <= MAX_SURVEYED_BLOCKS {
        return (0..wave).collect();
    }
    let mut chosen = BTreeSet::new();
    let mut state = 0x5eed_u64;
    while (chosen.len() as u64) < MAX_SURVEYED_BLOCKS {
        // SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        chosen.insert((bits ^ bits >> 31) % wave);
    }
    chosen.into_iter().collect()
}

/// Computes the reuse of these blocks as a sample of `wave` blocks.
fn estimate_reuse(traces: &[BlockTrace], wave: u64) -> Reuse {
    // An ordered map: the sum of floating-point numbers must be the same in every run.
    let mut wanted: BTreeMap<u32, BySector<u32>> = BTreeMap::new();
    for trace in traces {
        for (pc, mine) in first_loads(trace) {
            let counts = wanted.entry(pc).or_default();
            mine.into_iter()
                .for_each(|sector| *counts.entry(sector).or_default() += 1);
        }
    }
    let count = traces.len() as f64;
    let (mut own, mut all) = (0.0, 0.0);
    let mut by_instruction = HashMap::new();
    for (pc, counts) in wanted {
        let asked: f64 = counts.values().map(|n| f64::from(*n)).sum();
        let share = if wave == traces.len() as u64 {
            counts.len() as f64 / asked
        } else {
            // `q` is the share of the pairs of blocks that meet in a sector, of those if all loaded
            // the same.
            let pairs = |n: f64| n * (n - 1.0) / 2.0;
            let met: f64 = counts.values().map(|n| pairs(f64::from(*n))).sum();
            let meetings = pairs(count) * asked / count;
            1.0 / (1.0 + (wave as f64 - 1.0) * (met / meetings.max(1.0)).min(1.0))
        };
        own += share * asked;
        all += asked;
        by_instruction.insert(pc, share);
    }
    Reuse {
        by_instruction,
        other: if all > 0.0 { own / all } else { 1.0 },
    }
}

/// Collects the sectors of a block's first loads, by instruction.
fn first_loads(trace: &BlockTrace) -> HashMap<u32, Sectors> {
    let mut found: HashMap<u32, Sectors> = HashMap::new();
    for warp in &trace.warps {
        let mut times: HashMap<u32, u32> = HashMap::new();
        for access in warp.accesses.iter().filter(|access| !access.write) {
            let list = warp.sectors_of(access);
            let times = times.entry(access.pc).or_default();
            if list.is_empty() || *times >= u32::from(FIRST_LOADS) {
                continue;
            }
            *times += 1;
            found.entry(access.pc).or_default().extend(list);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use vgpu::exec::trace::{Access, Target, WarpTrace};

    /// Creates a block with one warp that loads these sectors, one list per instruction.
    fn block(index: u32, loads: &[&[u64]]) -> BlockTrace {
        let mut warp = WarpTrace::default();
        for (pc, list) in loads.iter().enumerate() {
            warp.accesses.push(Access {
                pc: pc as u32,
                at: pc as u64,
                bytes: 4,
                lanes: 32,
                write: false,
                target: Target::Global {
                    first: warp.sectors.len() as u32,
                    count: list.len() as u16,
                    lookups: 1,
                },
            });
            warp.sectors.extend_from_slice(list);
        }
        BlockTrace {
            block: index,
            warps: vec![warp],
        }
    }

    /// Creates a block of a tiled matrix product: 64 rows of blocks by 64 columns.
    fn product(index: u64) -> BlockTrace {
        let (row, column) = (index / 64, index % 64);
        let a: Vec<u64> = (0..8).map(|i| row * 100 + i).collect();
        let b: Vec<u64> = (0..8).map(|i| 1_000_000 + column * 100 + i).collect();
        block(index as u32, &[&a, &b])
    }

    #[test]
    fn of_all_blocks_together_each_strip_comes_once() {
        let traces: Vec<BlockTrace> = (0..128).map(product).collect();
        let reuse = estimate_reuse(&traces, 128);
        assert!((reuse.by_instruction[&0] - 1.0 / 64.0).abs() < 1e-9);
        assert!((reuse.by_instruction[&1] - 1.0 / 2.0).abs() < 1e-9);
    }

    #[test]
    fn from_some_blocks_the_sharing_of_all_is_known() {
        let traces: Vec<BlockTrace> = draw_blocks(4096).into_iter().map(product).collect();
        let reuse = estimate_reuse(&traces, 4096);
        // Each strip is used by 64 blocks of 4096.
        for pc in [0, 1] {
            let wanted = 1.0 / reuse.by_instruction[&pc];
            assert!((32.0..128.0).contains(&wanted), "{wanted}");
        }
    }

    #[test]
    fn blocks_with_bytes_of_their_own_share_nothing() {
        let traces: Vec<BlockTrace> = (0..32).map(|i| block(i, &[&[u64::from(i)]])).collect();
        assert_eq!(estimate_reuse(&traces, 32).by_instruction[&0], 1.0);
        assert_eq!(estimate_reuse(&traces, 1000).by_instruction[&0], 1.0);
    }
}
