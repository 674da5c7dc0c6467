//! Calls through pointers, virtual functions and recursion.

use crate::harness::{Program, int};
use vgpu::{Arg, End, HazardKind, Launch, LaunchReport, Stop};

const PTX: &str = include_str!("ptx/calls.ptx");

/// Launches one warp and gives what it stores.
fn stored(program: &mut Program, name: &str, more: &[Arg]) -> Vec<i32> {
    let out = program.unwritten(32);
    let args = std::iter::once(Arg::Buffer(out)).chain(more.iter().cloned());
    let report = program.run(name, 1, 32, args.collect());
    assert_eq!(report.hazards, [], "{name}");
    assert_eq!(report.end, End::Completed, "{name}");
    program.read(out)
}

fn expected(f: impl Fn(i32) -> i32) -> Vec<i32> {
    (0..32).map(f).collect()
}

fn twice_or_thrice(second: bool, x: i32) -> i32 {
    if second { 3 * x + 1 } else { 2 * x + 1 }
}

#[test]
fn virtual_functions_and_tables_are_called_for_each_lane() {
    let mut program = Program::new(PTX);
    for n in [0, 1] {
        let value = |i: i32| {
            let own = if i % 2 == 1 { 2 * i } else { 3 * i };
            own + twice_or_thrice((i + n) % 2 == 1, i)
        };
        let found = stored(&mut program, "virtuals", &[int(n)]);
        assert_eq!(found, expected(value));
    }
}

#[test]
fn a_function_with_barriers_is_called_by_all() {
    let mut program = Program::new(PTX);
    let sum = (0..32).sum();
    assert_eq!(stored(&mut program, "together", &[int(1)]), [sum; 32]);
    assert_eq!(
        stored(&mut program, "together", &[int(0)]),
        expected(|i| 2 * i + 1)
    );
}

#[test]
fn lanes_meet_again_after_different_functions() {
    let mut program = Program::new(PTX);
    let value = |i: i32| match i % 3 {
        0 => -1,
        k => twice_or_thrice(k == 2, i),
    };
    assert_eq!(
        stored(&mut program, "some", &[int(0)]),
        expected(|i| value(i ^ 1))
    );
}

#[test]
fn pointers_in_constant_memory_and_from_other_launches_are_called() {
    let mut program = Program::new(PTX);
    let value = |i: i32| if i & 1 == 0 { 3 } else { 7 };
    assert_eq!(stored(&mut program, "constant", &[]), expected(value));
    for (n, add) in [(1, 1), (0, 2)] {
        program.run("choose", 1, 1, vec![int(n)]);
        assert_eq!(stored(&mut program, "use", &[]), expected(|i| i + add));
    }
    assert_eq!(
        stored(&mut program, "packed", &[]),
        expected(|i| 97 + 2 * (i & 1) + i + 1)
    );
}

fn crash(report: &LaunchReport, stop: Stop, text: &str) {
    assert_eq!(report.stop, Some(stop));
    let hazard = report.hazards.first().unwrap();
    assert_eq!(hazard.kind, HazardKind::Crashed);
    assert!(hazard.detail.contains(text), "{hazard:?}");
}

#[test]
fn a_call_of_no_function_is_a_hazard() {
    let mut program = Program::new(PTX);
    let out = program.unwritten(32);
    let buffer = program.memory.address(out);
    for address in [0u64, 16, buffer, u64::MAX, 0x7400_0000_0001] {
        let f = Arg::Bytes(address.to_le_bytes().to_vec());
        let report = program.run("given", 1, 32, vec![f, Arg::Buffer(out)]);
        crash(&report, Stop::IllegalTarget, &format!("0x{address:x}"));
    }
    // A function of another type.
    program.run("choose", 1, 1, vec![int(1)]);
    let id = program
        .memory
        .buffers()
        .find(|b| program.memory.name(b.index()) == "chosen");
    let mut pointer = [0; 8];
    program.memory.read_at(id.unwrap(), 0, &mut pointer);
    let args = vec![Arg::Buffer(out), Arg::Bytes(pointer.to_vec()), int(0)];
    let report = program.run("untyped", 1, 32, args.clone());
    crash(&report, Stop::IllegalTarget, "no function of this type");
    let right = vec![args[0].clone(), args[1].clone(), int(1)];
    assert_eq!(program.run("untyped", 1, 32, right).hazards, []);
}

#[test]
fn functions_that_call_themselves_have_frames() {
    let mut program = Program::new(PTX);
    for line in include_str!("ptx/calls.txt").lines() {
        let (name, numbers) = line.split_once(' ').unwrap();
        let numbers: Vec<i32> = numbers.split(' ').map(|n| n.parse().unwrap()).collect();
        assert_eq!(stored(&mut program, name, &[]), numbers, "{name}");
    }
}

#[test]
fn endless_recursion_overflows_the_stack() {
    let mut program = Program::new(PTX);
    let out = program.unwritten(32);
    let report = program.run("overflow", 1, 32, vec![Arg::Buffer(out)]);
    crash(&report, Stop::StackOverflow, "forever");
}

#[test]
fn parameters_and_frames_are_there_after_the_inner_call() {
    // f(n) = n ? f(n - 1) + n + (n stored in its frame) : 0, which reads both after the inner call.
    let text = ".version 9.0\n.target sm_80\n.address_size 64\n\
        .func (.param .b32 r) f(.param .b32 n)\n{\n.local .align 4 .b8 mine[4];\n\
        .reg .b32 %r<8>;\n.reg .pred %p<2>;\nld.param.b32 %r1, [n];\nst.param.b32 [r], 0;\n\
        setp.eq.u32 %p1, %r1, 0;\n@%p1 ret;\nst.local.b32 [mine], %r1;\nsub.u32 %r2, %r1, 1;\n\
        {\n.param .b32 a;\n.param .b32 b;\nst.param.b32 [a], %r2;\ncall (b), f, (a);\n\
        ld.param.b32 %r3, [b];\n}\nld.param.b32 %r4, [n];\nld.local.b32 %r5, [mine];\n\
        add.u32 %r3, %r3, %r4;\nadd.u32 %r3, %r3, %r5;\nst.param.b32 [r], %r3;\nret;\n}\n\
        .visible .entry k(.param .u64 out)\n{\n.reg .b32 %r<4>;\n.reg .b64 %q<4>;\n\
        ld.param.u64 %q1, [out];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %q2, %r1, 4;\nadd.u64 %q1, %q1, %q2;\n\
        {\n.param .b32 a;\n.param .b32 b;\nst.param.b32 [a], %r1;\ncall (b), f, (a);\n\
        ld.param.b32 %r2, [b];\n}\nst.global.b32 [%q1], %r2;\nret;\n}\n";
    let mut program = Program::new(text);
    let out = program.unwritten(32);
    let wanted = program.launch_named("k", 1, 32, vec![Arg::Buffer(out)]);
    let report = program.started(&wanted);
    assert_eq!(report.hazards, []);
    assert_eq!(program.read(out), expected(|n| n * (n + 1)));
    // The last lane has 32 frames of 16 bytes, the alignment of stacks, with return addresses.
    for (bytes, stop) in [(768, None), (767, Some(Stop::StackOverflow))] {
        let wanted = Launch {
            stack_bytes: bytes,
            ..wanted.clone()
        };
        assert_eq!(program.started(&wanted).stop, stop, "{bytes}");
    }
}
