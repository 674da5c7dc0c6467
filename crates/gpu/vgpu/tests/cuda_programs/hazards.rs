//! Hazards as data, and the lines that are blamed.

use std::collections::HashSet;

use crate::harness::{Program, int};
use vgpu::{Arg, HazardAccess, HazardKind, Space};

const BASIC: &str = include_str!("../ptx/basic.ptx");

#[test]
fn lines_of_headers_are_not_blamed() {
    let mut program = Program::new(include_str!("ptx/lines.ptx"));
    let (input, out) = (program.ints(&[1; 128]), program.unwritten(1));
    let args = vec![Arg::Buffer(input), Arg::Buffer(out)];
    let report = program.run("reduce", 1, 128, args);
    let races: Vec<_> = report
        .hazards
        .iter()
        .filter(|h| h.kind == HazardKind::Race)
        .collect();
    assert!(!races.is_empty());
    for hazard in races {
        for line in [&hazard.source, &hazard.other] {
            let line = line.as_ref().unwrap();
            assert_eq!(&*line.file, "lines.cu", "{hazard:?}");
            assert!((7..=8).contains(&line.line), "{hazard:?}");
        }
    }
}

#[test]
fn a_race_names_both_accesses() {
    let mut program = Program::new(BASIC);
    let input = program.ints(&[1; 777]);
    let mut keys = HashSet::new();
    for n in [777, 700] {
        let out = program.unwritten(1);
        let args = vec![Arg::Buffer(input), Arg::Buffer(out), int(n)];
        let mut wanted = program.launch_named("reduce_bad", 1, 256, args);
        wanted.threads = 1;
        let report = program.started(&wanted);
        let hazard = &report.hazards[0];
        assert_eq!(
            (hazard.kind, hazard.space),
            (HazardKind::Race, Space::Shared)
        );
        let access = hazard.access.unwrap();
        assert_eq!(access.bytes, 4);
        let other = hazard.conflict.unwrap();
        assert!(access.write || other.write);
        assert_eq!((other.bytes, other.asynchronous), (Some(4), false));
        let [block, thread] = other.thread.unwrap();
        assert_eq!(block, [0; 3]);
        assert_ne!(thread, hazard.thread);
        keys.insert(hazard.key());
    }
    assert_eq!(keys.len(), 1);
}

#[test]
fn an_access_out_of_bounds_names_its_allocation() {
    let mut program = Program::new(BASIC);
    let buffer = program.unwritten(100);
    let wanted = program.launch_named("oob", 1, 128, vec![Arg::Buffer(buffer), int(100)]);
    let first = program.started(&wanted).hazards.remove(0);
    let access = HazardAccess {
        bytes: 4,
        write: true,
    };
    assert_eq!(first.access, Some(access));
    assert_eq!(first.conflict, None);
    let allocation = first.allocation.clone().unwrap();
    assert_eq!(allocation.buffer, buffer);
    assert_eq!(
        (allocation.offset, allocation.bytes, allocation.freed),
        (400, 400, false)
    );
    // Another buffer, the same mistake.
    let other = program.unwritten(100);
    let wanted = program.launch_named("oob", 1, 128, vec![Arg::Buffer(other), int(100)]);
    let second = program.started(&wanted).hazards.remove(0);
    assert_ne!(second.address, first.address);
    assert_eq!(second.key(), first.key());
}

#[test]
fn a_stale_pointer_names_the_freed_buffer() {
    let mut program = Program::new(BASIC);
    let buffer = program.memory.alloc(400, "gone").unwrap();
    let address = program.memory.address(buffer);
    program.unwritten(100);
    program.memory.free(buffer);
    program.memory.free(buffer);
    let args = vec![Arg::Bytes(address.to_le_bytes().to_vec()), int(100)];
    let wanted = program.launch_named("oob", 1, 128, args);
    let hazard = program.started(&wanted).hazards.remove(0);
    assert_eq!(hazard.kind, HazardKind::OutOfBounds);
    assert_eq!(hazard.repeated, 128);
    assert!(
        hazard.detail.contains("`gone`, which was freed"),
        "{hazard:?}"
    );
    let allocation = hazard.allocation.unwrap();
    assert!(allocation.freed);
    assert_eq!((allocation.name.as_str(), allocation.bytes), ("gone", 400));
}

#[test]
fn a_local_variable_that_is_loaded_and_discarded_is_not_read() {
    let text = ".version 9.0\n.target sm_80\n.address_size 64\n\
        .visible .entry k(.param .u64 out)\n{\n.local .align 4 .b8 v[4];\n.reg .b32 %r<4>;\n\
        .reg .b64 %q<2>;\n.reg .pred %p1;\nld.param.u64 %q1, [out];\nmov.u32 %r1, %tid.x;\n\
        setp.ge.u32 %p1, %r1, 0;\nld.local.u32 %r2, [v];\nselp.b32 %r3, -1, %r2, %p1;\n\
        st.global.u32 [%q1], %r3;\nret;\n}\n";
    let mut program = Program::new(text);
    let out = program.unwritten(1);
    let wanted = program.launch_named("k", 1, 1, vec![Arg::Buffer(out)]);
    let report = program.started(&wanted);
    assert_eq!(report.hazards, []);
    assert_eq!(program.read(out), [-1]);
}

/// Reads of a word by several blocks are recorded in a byte for each launch.
#[test]
fn reads_of_a_launch_do_not_hide_a_race_of_a_much_later_one() {
    const PTX: &str = ".version 8.0
.target sm_80
.address_size 64
.visible .entry read(.param .u64 p, .param .u32 writer) {
    .reg .b32 %r<4>; .reg .b64 %rd<2>; .reg .pred %p<2>;
    ld.param.u64 %rd1, [p];
    ld.param.u32 %r1, [writer];
    mov.u32 %r2, %ctaid.x;
    setp.eq.u32 %p1, %r1, %r2;
    @%p1 bra WRITE;
    ld.global.u32 %r3, [%rd1];
    ret;
WRITE:
    st.global.u32 [%rd1], %r2;
    ret;
}
.visible .entry idle() { ret; }";
    let mut program = Program::new(PTX);
    let word = program.ints(&[1; 32]);
    let mut launched = |entry: &str, writer: i32| {
        let args = match entry {
            "idle" => Vec::new(),
            _ => vec![Arg::Buffer(word), int(writer)],
        };
        let mut wanted = program.launch_named(entry, 8, 1, args);
        wanted.threads = 1;
        program.started(&wanted).hazards.len()
    };
    // A buffer as the host wrote it is not watched.
    assert_eq!(launched("read", 7), 1);
    assert_eq!(launched("read", 8), 0);
    for _ in 0..254 {
        launched("idle", 0);
    }
    assert_eq!(launched("read", 7), 1);
}
