//! The limits of the GPUs that the virtual GPU knows by name.

use crate::space::DeviceLimits;

/// The virtual GPU that `auto` falls back to.
pub const DEFAULT: &str = "h100";

/// One GPU: its name here, its compute capability times ten, its number of multiprocessors.
///
/// Multiprocessor counts: NVIDIA's architecture whitepapers (Turing, Ampere GA100 and GA102, Ada,
/// Hopper) and the data sheets of the boards; `h100` is the SXM5 board.
const GPUS: [(&str, u32, u32); 9] = [
    ("l4", 89, 58),
    ("a100", 80, 108),
    ("a4000", 86, 48),
    ("a6000", 86, 84),
    ("rtx2080ti", 75, 68),
    ("rtx3090", 86, 82),
    ("rtx4090", 89, 128),
    ("h100", 90, 132),
    ("h200", 90, 132),
];

/// Shared memory a block may opt in to, static included, bytes: CUDA C++ Programming Guide, table
/// of technical specifications by compute capability.
#[must_use]
pub fn shared_bytes(cc: u32) -> u32 {
    match cc {
        75 => 65_536,
        80 | 87 => 166_912,
        86 | 89 | 120 => 101_376,
        90 | 100 => 232_448,
        _ => 49_152,
    }
}

/// The limits of the virtual GPU of that name.
#[must_use]
pub fn by_name(name: &str) -> Option<DeviceLimits> {
    let &(_, cc, sm_count) = GPUS.iter().find(|(known, ..)| *known == name)?;
    Some(DeviceLimits {
        sm_count,
        shared_bytes: shared_bytes(cc),
        cc,
        max_threads: 1024,
    })
}

/// All names, for messages and help.
#[must_use]
pub fn names() -> String {
    GPUS.map(|(name, ..)| name).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_gpu_of_the_contract_has_limits() {
        for name in names().split(", ") {
            assert!(by_name(name).is_some_and(|limits| limits.sm_count > 0));
        }
        assert_eq!(
            by_name("h100").map(|limits| limits.shared_bytes),
            Some(232_448)
        );
        assert_eq!(
            by_name("rtx4090").map(|limits| limits.shared_bytes),
            Some(101_376)
        );
        assert_eq!(by_name("nope"), None);
    }
}
