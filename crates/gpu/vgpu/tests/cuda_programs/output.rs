//! `printf`, `assert` and `trap` of kernels.

use crate::harness::{Program, h100, int};
use vgpu::{Arg, End, HazardKind, Stop, launch};

const PTX: &str = include_str!("ptx/printf.ptx");

/// The struct `Sample` of `printf.cu`.
#[expect(clippy::approx_constant, reason = "the digits of printf.txt")]
fn sample(text: u64) -> Vec<u8> {
    let mut bytes = vec![b'c', -3i8 as u8];
    bytes.extend((-300i16).to_le_bytes());
    bytes.extend(42i32.to_le_bytes());
    bytes.extend((-1_234_567_890_123i64).to_le_bytes());
    bytes.extend(u64::MAX.to_le_bytes());
    bytes.extend(0.1f32.to_le_bytes());
    bytes.extend([0; 4]);
    for number in [3.141_592_653_589_79, f64::MAX, 5e-324, f64::NAN] {
        bytes.extend(f64::to_le_bytes(number));
    }
    for pointer in [0x7100_dead_beef, 0, text] {
        bytes.extend(u64::to_le_bytes(pointer));
    }
    bytes
}

#[test]
fn every_conversion_is_formatted_as_the_c_library_does() {
    let mut program = Program::new(PTX);
    let text = program.memory.alloc(5, "text").unwrap();
    program.memory.write(text, 0, b"text\0");
    let bytes = sample(program.memory.address(text));
    let buffer = program.memory.alloc(bytes.len() as u64, "sample").unwrap();
    program.memory.write(buffer, 0, &bytes);
    let report = program.run("every_conversion", 1, 1, vec![Arg::Buffer(buffer)]);
    assert_eq!(report.hazards, []);
    let printed = String::from_utf8(report.output).unwrap();
    let expected = include_str!("ptx/printf.txt");
    for (printed, expected) in printed.lines().zip(expected.lines()) {
        assert_eq!(printed, expected);
    }
    assert_eq!(printed, expected);
}

#[test]
fn text_is_ordered_by_block_whatever_the_workers() {
    let mut expected = String::new();
    for block in 0..100 {
        for thread in [1, 17] {
            expected += &format!("block {block} thread {thread} of who\n");
        }
    }
    for threads in [1, 2, 7] {
        let mut program = Program::new(PTX);
        let returned = program.unwritten(100);
        let mut wanted = program.launch("who", 100, 32, vec![Arg::Buffer(returned)]);
        wanted.threads = threads;
        wanted.checks.same_value_writes_allowed = true;
        let report = launch(&program.module, &mut program.memory, h100(), &wanted).unwrap();
        assert_eq!(String::from_utf8(report.output).unwrap(), expected);
        assert_eq!(report.output_dropped, 0);
        assert_eq!(program.read(returned), [3; 100]);
    }
}

#[test]
fn the_last_mebibyte_is_kept() {
    let lines = |block: u32, from| (from..10_000).map(move |i| format!("{block:4} {i:10}\n"));
    let all: String = (0..10).flat_map(|block| lines(block, 0)).collect();
    for threads in [1, 3] {
        let mut program = Program::new(PTX);
        let mut wanted = program.launch("much", 10, 1, vec![int(10_000)]);
        wanted.threads = threads;
        let report = launch(&program.module, &mut program.memory, h100(), &wanted).unwrap();
        let dropped = all.len() - (1 << 20);
        assert_eq!(report.output_dropped, dropped as u64);
        assert!(report.output == all.as_bytes()[dropped..]);
    }
}

#[test]
fn text_uses_up_the_instruction_budget() {
    let mut program = Program::new(PTX);
    let mut wanted = program.launch("much", 1, 1, vec![int(1 << 17)]);
    // Enough for the instructions, not for two million bytes of text.
    wanted.instruction_budget = 7 << 20;
    let report = launch(&program.module, &mut program.memory, h100(), &wanted).unwrap();
    assert_eq!(report.hazards[0].kind, HazardKind::Timeout);
    assert!(report.output.len() + (report.output_dropped as usize) < 2 << 20);
}

#[test]
fn text_is_not_doubled_where_a_launch_is_attempted_again() {
    let mut program = Program::new(PTX);
    let sum = program.ints(&[0]);
    let mut wanted = program.launch("exchange", 20, 1, vec![Arg::Buffer(sum)]);
    wanted.threads = 4;
    let report = launch(&program.module, &mut program.memory, h100(), &wanted).unwrap();
    let expected: String = (0..20).map(|b| format!("before {b}\n")).collect();
    assert_eq!(String::from_utf8(report.output).unwrap(), expected);
}

#[test]
fn text_without_an_end_is_out_of_bounds() {
    let mut program = Program::new(PTX);
    let text = program.memory.alloc(3, "short").unwrap();
    program.memory.write(text, 0, b"abc");
    let report = program.run("astray", 1, 1, vec![Arg::Buffer(text)]);
    let hazard = report.hazards.first().unwrap();
    assert_eq!(hazard.kind, HazardKind::OutOfBounds);
    assert!(hazard.detail.contains("`short`"), "{hazard:?}");
    assert_eq!((report.end, report.output), (End::Completed, vec![]));
}

#[test]
fn a_failed_assertion_ends_the_launch_with_its_text() {
    let mut program = Program::new(PTX);
    let mut values = vec![1; 64];
    (values[3], values[9]) = (5, 5);
    let buffer = program.ints(&values);
    let report = program.run("asserts", 1, 64, vec![Arg::Buffer(buffer)]);
    assert_eq!(report.stop, Some(Stop::Assertion));
    assert!(matches!(report.end, End::Stopped(_)));
    let texts: Vec<String> = report.assertions.iter().map(ToString::to_string).collect();
    let line = report.assertions[0].line;
    let text = |thread| {
        format!(
            "printf.cu:{line}: void asserts(int *): block: [0,0,0], thread: [{thread},0,0] \
             Assertion `p[threadIdx.x] != 5 && \"five\"` failed."
        )
    };
    assert_eq!(texts, [text(3), text(9)]);
    assert_eq!(report.hazards[0].kind, HazardKind::Crashed);
    assert!(report.hazards[0].detail.ends_with(&text(3)));
    assert_eq!(report.output.split(|b| *b == b'\n').count(), 33);
}

#[test]
fn traps_and_breakpoints_are_told_apart() {
    let mut program = Program::new(PTX);
    let buffer = program.ints(&[5; 32]);
    let report = program.run("traps", 1, 32, vec![Arg::Buffer(buffer)]);
    assert_eq!(report.stop, Some(Stop::Trap));
    assert_eq!(report.assertions, []);
    let report = program.run("breaks", 1, 32, vec![]);
    assert_eq!(report.stop, Some(Stop::Breakpoint));
}
