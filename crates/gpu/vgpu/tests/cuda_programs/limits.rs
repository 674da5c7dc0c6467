//! Limits of a whole launch.

use std::time::{Duration, Instant};

use crate::harness::{Program, h100};
use vgpu::{Arg, End, HazardKind, LaunchReport, Stop, launch};

const PTX: &str = include_str!("ptx/deadline.ptx");

fn stopped(report: &LaunchReport, stop: Stop) {
    assert_eq!(report.stop, Some(stop));
    assert!(matches!(report.end, End::Stopped(_)), "{report:?}");
    assert_eq!(report.hazards[0].kind, HazardKind::Timeout);
}

#[test]
fn many_short_blocks_end_at_the_deadline() {
    for threads in [1, 2] {
        let mut program = Program::new(PTX);
        let out = program.unwritten(1);
        let mut wanted = program.launch("shorts", 1 << 26, 128, vec![Arg::Buffer(out)]);
        wanted.threads = threads;
        let begin = Instant::now();
        wanted.wall_deadline = Some(begin + Duration::from_millis(200));
        let report = launch(&program.module, &mut program.memory, h100(), &wanted).unwrap();
        assert!(begin.elapsed() < Duration::from_secs(5));
        stopped(&report, Stop::Deadline);
        assert!(report.counters.blocks < 1 << 26);
    }
}

#[test]
fn a_launch_has_a_budget_of_lane_instructions() {
    for (name, grid) in [("shorts", 1 << 20), ("longs", 4)] {
        let mut program = Program::new(PTX);
        let out = program.unwritten(1);
        let mut wanted = program.launch(name, grid, 128, vec![Arg::Buffer(out)]);
        wanted.lane_budget = Some(1_000_000);
        wanted.threads = 1;
        let report = launch(&program.module, &mut program.memory, h100(), &wanted).unwrap();
        stopped(&report, Stop::LaneBudget);
        let executed = report.counters.lane_instructions;
        assert!((1_000_000..4_000_000).contains(&executed), "{executed}");
    }
}

#[test]
fn a_launch_within_its_budget_is_complete() {
    let mut program = Program::new(PTX);
    let out = program.unwritten(1);
    let mut wanted = program.launch("shorts", 100, 128, vec![Arg::Buffer(out)]);
    wanted.lane_budget = Some(1_000_000);
    wanted.wall_deadline = Some(Instant::now() + Duration::from_secs(60));
    let report = launch(&program.module, &mut program.memory, h100(), &wanted).unwrap();
    assert_eq!((report.end, report.stop), (End::Completed, None));
}
