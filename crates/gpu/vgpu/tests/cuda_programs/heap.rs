//! `malloc`, `free`, `new` and `delete` in kernels.

use crate::harness::{Program, h100, int};
use vgpu::{Arg, End, HazardKind, LaunchReport, launch};

const PTX: &str = include_str!("ptx/heap.ptx");

fn clean(report: &LaunchReport) {
    assert_eq!(report.hazards, []);
    assert_eq!(report.end, End::Completed);
}

fn only(report: &LaunchReport, kind: HazardKind, text: &str) {
    let hazard = report.hazards.first().unwrap();
    assert_eq!(hazard.kind, kind, "{report:?}");
    assert!(hazard.detail.contains(text), "{hazard:?}");
}

#[test]
fn every_thread_has_its_block_whatever_the_workers() {
    for threads in [1, 4] {
        let mut program = Program::new(PTX);
        let out = program.unwritten(256);
        let mut wanted = program.launch("blocks", 8, 32, vec![Arg::Buffer(out)]);
        wanted.threads = threads;
        let report = launch(&program.module, &mut program.memory, h100(), &wanted).unwrap();
        clean(&report);
        let expected: Vec<i32> = (0..256).map(|i| i % 32).collect();
        assert_eq!(program.read(out), expected);
    }
}

#[test]
fn memory_stays_allocated_from_launch_to_launch() {
    let mut program = Program::new(PTX);
    let out = program.unwritten(64);
    clean(&program.run("build", 1, 64, vec![int(10)]));
    clean(&program.run("sum", 1, 64, vec![Arg::Buffer(out)]));
    let expected: Vec<i32> = (0..64).map(|t| 45 + 10 * t).collect();
    assert_eq!(program.read(out), expected);
    clean(&program.run("drop", 1, 64, vec![]));
    clean(&program.run("sum", 1, 64, vec![Arg::Buffer(out)]));
    assert_eq!(program.read(out), [0; 64]);
}

#[test]
fn a_full_heap_returns_null_and_its_size_can_be_set() {
    for (mebibytes, blocks) in [(8, 7), (4, 3)] {
        let mut program = Program::new(PTX);
        assert!(program.memory.set_heap_bytes(mebibytes << 20));
        let out = program.unwritten(3);
        clean(&program.run("exhaust", 1, 1, vec![Arg::Buffer(out)]));
        assert_eq!(program.read(out), [blocks, 1, 0]);
        assert!(!program.memory.set_heap_bytes(1 << 30));
        assert_eq!(program.memory.heap_bytes(), mebibytes << 20);
    }
}

#[test]
fn blocks_are_used_again_without_races() {
    let mut program = Program::new(PTX);
    let out = program.unwritten(256);
    clean(&program.run("loops", 4, 64, vec![int(100), Arg::Buffer(out)]));
}

#[test]
fn accesses_outside_of_blocks_are_out_of_bounds() {
    let mut program = Program::new(PTX);
    let out = program.ints(&[0; 2]);
    for (name, kind, text) in [
        (
            "beyond",
            HazardKind::OutOfBounds,
            "at byte 12 of a block of 12 bytes",
        ),
        ("stale", HazardKind::OutOfBounds, "after its `free`"),
        ("unset", HazardKind::Uninitialized, "the heap of malloc"),
        ("reused", HazardKind::Uninitialized, "the heap of malloc"),
    ] {
        let report = program.run(name, 1, 1, vec![Arg::Buffer(out)]);
        only(&report, kind, text);
    }
}

#[test]
fn blocks_are_freed_once() {
    let mut program = Program::new(PTX);
    let keep = program.ints(&[0; 4]);
    clean(&program.run("null", 1, 1, vec![]));
    clean(&program.run("twice", 1, 1, vec![Arg::Buffer(keep)]));
    clean(&program.run("twice", 1, 1, vec![Arg::Buffer(keep)]));
    let report = program.run("twice", 1, 1, vec![Arg::Buffer(keep)]);
    only(&report, HazardKind::OutOfBounds, "freed already");
    let foreign = program.memory.address(keep) + 4;
    program.memory.write(keep, 0, &foreign.to_le_bytes());
    let report = program.run("twice", 1, 1, vec![Arg::Buffer(keep)]);
    only(&report, HazardKind::OutOfBounds, "did not return");
}

#[test]
fn threads_that_share_a_block_race() {
    let mut program = Program::new(PTX);
    let report = program.run("race", 1, 32, vec![]);
    only(&report, HazardKind::Race, "global memory");
    let allocation = report.hazards[0].allocation.as_ref().unwrap();
    assert_eq!(allocation.name, "the heap of malloc");
}
