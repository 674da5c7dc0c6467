//! Which of the bytes that a block asks for others ask for at the same time.
//!
//! Some of the blocks that are on the device together run to their first loads; addresses alone
//! are computed. Of each load instruction: if a sector of one block is also another's with
//! probability `q`, then of `n` blocks together about `1 + (n - 1) q` want each sector, and one of
//! them brings it from memory. Any order of blocks, tiles and heads shows in that, as no
//! comparison of neighbours along x and y does.

use super::sample::beginnings;
use super::sectors::{BySector, Sectors};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use vgpu::Arch;
use vgpu::Module;
use vgpu::exec::launch::{Depth, Launch, LaunchError};
use vgpu::exec::trace::{BlockTrace, FIRST_LOADS};
use vgpu::memory::GlobalMemory;

/// Blocks whose first loads are looked at.
const LOOKED_AT: u64 = 64;
/// Instructions of a warp, of which most are passed over.
const BEGINNING: u64 = 3072;

/// Share of the sectors of loads that come from memory for each block.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sharing {
    /// By PTX instruction.
    of: HashMap<u32, f64>,
    /// Of loads that were not seen: the mean of those that were.
    other: f64,
}

impl Sharing {
    /// Nothing is shared.
    fn none() -> Sharing {
        Sharing {
            of: HashMap::new(),
            other: 1.0,
        }
    }

    /// Sectors that a block has brought from memory or written to it, those counted that others
    /// bring as well as the share that falls to it.
    pub(crate) fn sectors(&self, trace: &BlockTrace) -> f64 {
        let (mut read, mut written) = (Sectors::default(), Sectors::default());
        let mut sum = 0.0;
        for warp in &trace.warps {
            for access in &warp.accesses {
                let (seen, share) = match access.write {
                    true => (&mut written, 1.0),
                    false => (&mut read, *self.of.get(&access.pc).unwrap_or(&self.other)),
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

/// Looks at the blocks around `chosen`, of which `together` run at the same time.
///
/// # Errors
/// A launch that is refused.
pub(super) fn survey(
    module: &Module,
    memory: &mut GlobalMemory,
    arch: &Arch,
    template: &Launch,
    (chosen, together): (u64, u64),
) -> Result<Sharing, LaunchError> {
    let blocks: u64 = template.grid.iter().map(|d| u64::from(*d)).product();
    let wave = together.min(blocks);
    if wave < 2 {
        return Ok(Sharing::none());
    }
    let first = (chosen / wave * wave).min(blocks - wave);
    let list = drawn(wave).into_iter().map(|at| first + at).collect();
    let wanted = (BEGINNING, Depth::Addresses);
    let traces = beginnings(module, memory, arch, template, list, wanted)?;
    Ok(share(&traces, wave))
}

/// Numbers below `wave`: all, or so many drawn at random. (Evenly spaced ones would be of different
/// rows of tiles each, and never meet.)
fn drawn(wave: u64) -> Vec<u64> {
    if wave <= LOOKED_AT {
        return (0..wave).collect();
    }
    let mut chosen = BTreeSet::new();
    let mut state = 0x5eed_u64;
    while (chosen.len() as u64) < LOOKED_AT {
        // SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        chosen.insert((bits ^ bits >> 31) % wave);
    }
    chosen.into_iter().collect()
}

/// What blocks share, of which these are some of `wave`.
fn share(traces: &[BlockTrace], wave: u64) -> Sharing {
    // Blocks that want each sector, by instruction: in order, for the same sum every time.
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
    let mut of = HashMap::new();
    for (pc, counts) in wanted {
        let asked: f64 = counts.values().map(|n| f64::from(*n)).sum();
        let share = if wave == traces.len() as u64 {
            counts.len() as f64 / asked
        } else {
            let pairs = |n: f64| n * (n - 1.0) / 2.0;
            let met: f64 = counts.values().map(|n| pairs(f64::from(*n))).sum();
            let meetings = pairs(count) * asked / count;
            1.0 / (1.0 + (wave as f64 - 1.0) * (met / meetings.max(1.0)).min(1.0))
        };
        own += share * asked;
        all += asked;
        of.insert(pc, share);
    }
    Sharing {
        of,
        other: if all > 0.0 { own / all } else { 1.0 },
    }
}

/// The sectors of a block's first loads, by instruction.
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

    /// A block whose one warp loads these sectors, an instruction each list.
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
                    count: list.len() as u8,
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

    /// A product of matrices in tiles: 64 rows of blocks by 64 columns.
    fn product(index: u64) -> BlockTrace {
        let (row, column) = (index / 64, index % 64);
        let a: Vec<u64> = (0..8).map(|i| row * 100 + i).collect();
        let b: Vec<u64> = (0..8).map(|i| 1_000_000 + column * 100 + i).collect();
        block(index as u32, &[&a, &b])
    }

    #[test]
    fn of_all_blocks_together_each_strip_comes_once() {
        let traces: Vec<BlockTrace> = (0..128).map(product).collect();
        let sharing = share(&traces, 128);
        assert!((sharing.of[&0] - 1.0 / 64.0).abs() < 1e-9);
        assert!((sharing.of[&1] - 1.0 / 2.0).abs() < 1e-9);
    }

    #[test]
    fn from_some_blocks_the_sharing_of_all_is_known() {
        let traces: Vec<BlockTrace> = drawn(4096).into_iter().map(product).collect();
        let sharing = share(&traces, 4096);
        // Each strip is wanted by 64 blocks of 4096.
        for pc in [0, 1] {
            let wanted = 1.0 / sharing.of[&pc];
            assert!((32.0..128.0).contains(&wanted), "{wanted}");
        }
    }

    #[test]
    fn blocks_with_bytes_of_their_own_share_nothing() {
        let traces: Vec<BlockTrace> = (0..32).map(|i| block(i, &[&[u64::from(i)]])).collect();
        assert_eq!(share(&traces, 32).of[&0], 1.0);
        assert_eq!(share(&traces, 1000).of[&0], 1.0);
    }
}
