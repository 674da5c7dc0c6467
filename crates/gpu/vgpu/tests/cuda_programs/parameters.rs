//! Parameters of kernels by address.

use crate::harness::Program;
use vgpu::{Arg, End, HazardKind, Space};

const PTX: &str = include_str!("ptx/param_register.ptx");

fn table() -> Arg {
    Arg::Bytes((0..64).flat_map(|i: i32| (100 + i).to_le_bytes()).collect())
}

/// Launches one warp with a table and gives what it stores.
fn stored(name: &str, table_first: bool) -> Vec<i32> {
    let mut program = Program::new(PTX);
    let out = program.unwritten(32);
    let args = match table_first {
        true => vec![table(), Arg::Buffer(out)],
        false => vec![Arg::Buffer(out), table()],
    };
    let report = program.run(name, 1, 32, args);
    assert_eq!(report.hazards, [], "{name}");
    assert_eq!(report.end, End::Completed, "{name}");
    program.read(out)
}

fn expected(f: impl Fn(i32) -> i32) -> Vec<i32> {
    (0..32).map(f).collect()
}

#[test]
fn a_by_value_struct_is_indexed_at_run_time() {
    assert_eq!(stored("constant", true), expected(|i| 100 + i));
    assert_eq!(stored("indexed", true), expected(|i| 100 + (i * 7) % 64));
}

#[test]
fn the_address_of_a_parameter_is_passed_on() {
    let sum = |i| (100 + i) + 104 + (100 + i);
    assert_eq!(stored("address", false), expected(sum));
}

#[test]
fn a_struct_that_is_written_is_a_copy() {
    let value = |i: i32| {
        let at = (i * 7) % 64;
        (if at == i { -1 } else { 100 + at }) - 1
    };
    assert_eq!(stored("written", false), expected(value));
}

#[test]
fn a_load_behind_the_parameters_is_out_of_bounds() {
    let mut program = Program::new(PTX);
    let out = program.unwritten(32);
    let report = program.run("outside", 1, 32, vec![Arg::Buffer(out), table()]);
    let hazard = report.hazards.first().unwrap();
    assert_eq!(hazard.kind, HazardKind::OutOfBounds);
    assert_eq!((hazard.space, hazard.repeated), (Space::Param, 32));
}

#[test]
fn pointers_in_a_struct_are_used() {
    let mut program = Program::new(PTX);
    let buffers = [(); 4].map(|()| program.ints(&[-1; 32]));
    let addresses = buffers
        .iter()
        .flat_map(|b| program.memory.address(*b).to_le_bytes());
    let args = vec![Arg::Bytes(addresses.collect())];
    let report = program.run("pointers", 1, 32, args);
    assert_eq!(report.hazards, []);
    for (n, buffer) in (0..).zip(buffers) {
        let own = |i: i32| if i % 4 == n { i } else { -1 };
        assert_eq!(program.read(buffer), expected(own));
    }
}
