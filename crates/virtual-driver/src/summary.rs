//! Summary of a program's kernels: launches, work, virtual time and hazards.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;
use vgpu::{Counters, Hazard};

use crate::names::plain_name;

/// Launches of one kernel.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct KernelSummary {
    /// Mangled name.
    pub symbol: String,
    /// Name as in the source.
    pub name: String,
    /// Number of launches.
    pub launches: u64,
    /// Blocks of all launches.
    pub blocks: u64,
    /// Instructions that lanes executed.
    pub lane_instructions: u64,
    /// Virtual time, µs: an estimate.
    pub time_us: f64,
}

/// Equal hazards of one kernel.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FoldedHazard {
    /// Such as `race` or `out_of_bounds`; `unordered` between operations of streams.
    pub kind: String,
    /// Kernel, as in the source; empty between operations.
    pub kernel: String,
    /// Memory of the access, such as `global` or `shared`.
    pub space: String,
    /// Bytes of the access of one thread; null if there is none.
    pub bytes: Option<u32>,
    /// The access is a store.
    pub write: bool,
    /// One sentence about the first occurrence.
    pub detail: String,
    /// File and line of the access.
    pub source: Option<String>,
    /// File and line of the conflicting access.
    pub other: Option<String>,
    /// Block of the first occurrence.
    pub block: [u32; 3],
    /// Thread of the first occurrence.
    pub thread: [u32; 3],
    /// Occurrences in all launches.
    pub count: u64,
    /// Launches in which it occurred.
    pub launches: u64,
    /// Number of the last launch in which it occurred.
    #[serde(skip)]
    last_launch: u64,
}

/// Launches of one kernel that did not run, because the virtual GPU lacks a feature.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UnsupportedLaunch {
    /// Name as in the source.
    pub kernel: String,
    /// Missing instruction or feature, with its line if it has one.
    pub reason: String,
    /// Number of launches.
    pub launches: u64,
}

/// Everything that one program did.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Kernels in the order of their first launch.
    pub kernels: Vec<KernelSummary>,
    /// Hazards in the order of their first occurrence.
    pub hazards: Vec<FoldedHazard>,
    /// Functions that the program called and the device does not implement.
    pub unsupported: Vec<String>,
    /// Kernels that did not run: the program's results lack theirs.
    pub unsupported_launches: Vec<UnsupportedLaunch>,
    /// Other messages, such as modules that were not loaded, and refused launches.
    pub notes: Vec<String>,
    /// Virtual time of the whole program, µs: an estimate.
    pub time_us: f64,
    /// Launches of all kernels.
    #[serde(skip)]
    pub(crate) launches: u64,
    #[serde(skip)]
    places: BTreeMap<Place, usize>,
}

/// Identity of a hazard.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    kind: String,
    kernel: String,
    /// Source lines of both accesses, in order.
    lines: [Option<String>; 2],
    /// Line of the PTX, if there is no source line.
    ptx_line: u32,
}

impl Summary {
    /// Adds one launch.
    pub(crate) fn add_launch(&mut self, symbol: &str, counters: &Counters, time_us: f64) {
        let position = self
            .kernels
            .iter()
            .position(|kernel| kernel.symbol == symbol);
        let index = position.unwrap_or_else(|| {
            self.kernels.push(KernelSummary {
                symbol: symbol.to_owned(),
                name: plain_name(symbol),
                ..KernelSummary::default()
            });
            self.kernels.len() - 1
        });
        self.launches += 1;
        if let Some(kernel) = self.kernels.get_mut(index) {
            kernel.launches += 1;
            kernel.blocks += counters.blocks;
            kernel.lane_instructions += counters.lane_instructions;
            kernel.time_us += time_us;
        }
    }

    /// Adds a hazard of a launch; returns whether its place is new.
    pub(crate) fn add_hazard(&mut self, kernel: &str, hazard: &Hazard) -> bool {
        let text = |line: &Option<vgpu::SourceLine>| line.as_ref().map(ToString::to_string);
        let (source, other) = (text(&hazard.source), text(&hazard.other));
        let folded = FoldedHazard {
            kind: hazard.kind.name().to_owned(),
            kernel: plain_name(kernel),
            space: hazard.space.to_string(),
            bytes: hazard.access.map(|access| access.bytes),
            write: hazard.access.is_some_and(|access| access.write),
            detail: hazard.detail.clone(),
            source,
            other,
            block: hazard.block,
            thread: hazard.thread,
            count: hazard.repeated,
            launches: 1,
            last_launch: self.launches,
        };
        let line = if folded.source.is_some() {
            0
        } else {
            hazard.ptx_line
        };
        self.fold(folded, line)
    }

    /// Adds a fault of machine code, which has no source line.
    pub(crate) fn add_fault(&mut self, kernel: &str, detail: String) {
        let folded = FoldedHazard {
            kind: "crashed".to_owned(),
            kernel: plain_name(kernel),
            space: "global".to_owned(),
            bytes: None,
            write: false,
            detail,
            source: None,
            other: None,
            block: [0; 3],
            thread: [0; 3],
            count: 1,
            launches: 1,
            last_launch: self.launches,
        };
        self.fold(folded, 0);
    }

    /// Adds a conflict between operations of streams.
    pub(crate) fn add_unordered(&mut self, names: [&str; 2], detail: String) -> bool {
        let [earlier, later] = names.map(str::to_owned);
        let folded = FoldedHazard {
            kind: "unordered".to_owned(),
            kernel: String::new(),
            space: "global".to_owned(),
            bytes: None,
            write: false,
            detail,
            source: Some(earlier),
            other: Some(later),
            block: [0; 3],
            thread: [0; 3],
            count: 1,
            launches: 1,
            last_launch: self.launches,
        };
        self.fold(folded, 0)
    }

    fn fold(&mut self, hazard: FoldedHazard, ptx_line: u32) -> bool {
        // Either access of a race may be the later one.
        let mut lines = [hazard.source.clone(), hazard.other.clone()];
        lines.sort_unstable();
        let place = Place {
            kind: hazard.kind.clone(),
            kernel: hazard.kernel.clone(),
            lines,
            ptx_line,
        };
        if let Some(known) = self
            .places
            .get(&place)
            .and_then(|index| self.hazards.get_mut(*index))
        {
            known.count += hazard.count;
            // Pairs of accesses at the same lines count as one hazard.
            known.launches += u64::from(known.last_launch != hazard.last_launch);
            known.last_launch = hazard.last_launch;
            return false;
        }
        self.places.insert(place, self.hazards.len());
        self.hazards.push(hazard);
        true
    }

    /// Adds a message once; returns whether it is new.
    pub(crate) fn add_note(&mut self, note: String) -> bool {
        let new = !self.notes.contains(&note);
        if new {
            self.notes.push(note);
        }
        new
    }

    /// Adds the name of an unsupported function once.
    pub(crate) fn add_unsupported(&mut self, function: &str) {
        if !self.unsupported.iter().any(|known| known == function) {
            self.unsupported.push(function.to_owned());
        }
    }

    /// Adds a launch that did not run; returns whether its reason is new.
    pub(crate) fn add_unsupported_launch(&mut self, symbol: &str, reason: &str) -> bool {
        self.merge_unsupported_launch(UnsupportedLaunch {
            kernel: plain_name(symbol),
            reason: reason.to_owned(),
            launches: 1,
        })
    }

    fn merge_unsupported_launch(&mut self, launch: UnsupportedLaunch) -> bool {
        let mut all = self.unsupported_launches.iter_mut();
        let same = |known: &&mut UnsupportedLaunch| {
            known.kernel == launch.kernel && known.reason == launch.reason
        };
        if let Some(known) = all.find(same) {
            known.launches += launch.launches;
            return false;
        }
        self.unsupported_launches.push(launch);
        true
    }

    /// Adds the summary of another process of the program.
    pub fn merge(&mut self, other: Summary) {
        for kernel in other.kernels {
            match self
                .kernels
                .iter_mut()
                .find(|own| own.symbol == kernel.symbol)
            {
                Some(own) => {
                    own.launches += kernel.launches;
                    own.blocks += kernel.blocks;
                    own.lane_instructions += kernel.lane_instructions;
                    own.time_us += kernel.time_us;
                }
                None => self.kernels.push(kernel),
            }
        }
        let by_index: BTreeMap<usize, u32> = other
            .places
            .iter()
            .map(|(place, index)| (*index, place.ptx_line))
            .collect();
        for (index, hazard) in other.hazards.into_iter().enumerate() {
            self.fold(hazard, by_index.get(&index).copied().unwrap_or(0));
        }
        other
            .unsupported
            .iter()
            .for_each(|function| self.add_unsupported(function));
        other.unsupported_launches.into_iter().for_each(|launch| {
            self.merge_unsupported_launch(launch);
        });
        other.notes.into_iter().for_each(|note| {
            self.add_note(note);
        });
        self.time_us += other.time_us;
    }
}

/// Formats a launch's coordinates, such as `block (1,0,0), thread (31,0,0)`.
#[must_use]
pub(crate) fn coordinates(block: [u32; 3], thread: [u32; 3]) -> String {
    let mut text = String::new();
    let [bx, by, bz] = block;
    let [tx, ty, tz] = thread;
    let _ = write!(text, "block ({bx},{by},{bz}), thread ({tx},{ty},{tz})");
    text
}
