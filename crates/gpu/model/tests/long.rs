//! Extrapolation of long blocks.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::panic, reason = "a test that cannot go on should fail")]

use gpu_model::{Estimate, Sampled, Shape, Traces, estimate, trace};
use sass_machine::Machine;
use vgpu::{Arch, Arg, GlobalMemory, Launch, Module};

const PTX: &str = include_str!("model/long.ptx");
const CUBIN: &[u8] = include_bytes!("model/long.cubin");

/// Predicts an entry of `long.cu` with one block per multiprocessor.
fn predicted(entry: &str, n: i32) -> (Traces, Estimate) {
    let arch = Arch::by_name("a100").unwrap();
    let module = Module::load(PTX).unwrap();
    let mut memory = GlobalMemory::new(1 << 33);
    let x = memory.alloc(n as u64 * 4, "x").unwrap();
    let out = memory.alloc(108 * 256 * 4, "out").unwrap();
    let args = vec![
        Arg::Buffer(x),
        Arg::Buffer(out),
        Arg::Bytes(n.to_le_bytes().to_vec()),
    ];
    let launch = Launch::new(entry, [108, 1, 1], [256, 1, 1], args);
    let machine = Machine::load(CUBIN, entry).unwrap();
    let shape = Shape {
        grid: [108, 1, 1],
        threads: 256,
        registers: 32,
        shared_bytes: 1024,
    };
    match trace(&machine, &module, &mut memory, arch, &launch, 108).unwrap() {
        Sampled::Traced(traces) => {
            let estimated = estimate(arch, &machine, (*traces).clone(), &shape).unwrap();
            (*traces, estimated)
        }
        Sampled::Withheld(why) => panic!("{why}"),
    }
}

#[test]
fn a_long_block_is_known_by_its_beginning_and_counts_and_lasts_as_the_whole() {
    let (short, there) = predicted("sum", 1 << 23);
    let (long, then) = predicted("sum", 1 << 28);
    assert!(short.complete && long.complete);
    assert_eq!(short.beyond, 1.0);
    assert!(long.beyond > 8.0, "{}", long.beyond);
    assert_eq!(short.counters.global_load_bytes, 4 << 23);
    assert_eq!(long.counters.global_load_bytes, 4 << 28);
    assert_eq!(long.counters.global_store_bytes, 4);
    let times = long.by_opcode["FADD"] as f64 / short.by_opcode["FADD"] as f64;
    assert!((31.5..32.5).contains(&times), "{times}");
    let slower = then.cycles / there.cycles;
    assert!((30.0..34.0).contains(&slower), "{slower}");
    assert!(then.doubts.is_empty(), "{:?}", then.doubts);
}

#[test]
fn a_loop_over_tiles_is_known_by_some_of_them() {
    let (tiles, _) = predicted("tiles", 1 << 20);
    assert!(tiles.beyond > 2.0, "{}", tiles.beyond);
    assert_eq!(tiles.counters.global_load_bytes, 4 << 20);
    assert_eq!(tiles.counters.barriers, 2 * (1 << 12));
}

#[test]
fn a_block_that_turns_to_other_instructions_late_is_executed_whole() {
    let (turns, _) = predicted("turns", 1 << 26);
    assert_eq!(turns.beyond, 1.0);
    assert!(
        turns.by_opcode.contains_key("MUFU"),
        "{:?}",
        turns.by_opcode
    );
}

#[test]
fn work_that_does_not_grow_in_a_straight_line_is_executed_whole() {
    let (square, _) = predicted("square", 1024);
    assert!(square.complete);
    assert_eq!(square.beyond, 1.0);
}
