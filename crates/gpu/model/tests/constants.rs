//! Constants in the timing model: caches, and lanes with different addresses.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::panic, reason = "a test that cannot go on should fail")]

use gpu_model::{Estimate, Sampled, Shape, estimate, trace};
use sass_machine::Machine;
use vgpu::{Arch, Arg, GlobalMemory, Launch, Module};

const PTX: &str = include_str!("model/constants.ptx");
const CUBIN: &[u8] = include_bytes!("model/constants.cubin");

/// Predicts an entry of `constants.cu` with these numbers and a block of 256 threads per
/// multiprocessor.
fn predicted(entry: &str, registers: u32, numbers: &[i32]) -> Estimate {
    let arch = Arch::by_name("a100").unwrap();
    let module = Module::load(PTX).unwrap();
    let mut memory = GlobalMemory::new(1 << 28);
    let out = memory.alloc(108 * 256 * 4, "out").unwrap();
    let mut args = vec![Arg::Buffer(out)];
    args.extend(numbers.iter().map(|n| Arg::Bytes(n.to_le_bytes().to_vec())));
    let launch = Launch::new(entry, [108, 1, 1], [256, 1, 1], args);
    let machine = Machine::load(CUBIN, entry).unwrap();
    let shape = Shape {
        grid: [108, 1, 1],
        threads: 256,
        registers,
        shared_bytes: 0,
    };
    match trace(&machine, &module, &mut memory, arch, &launch, 108).unwrap() {
        Sampled::Traced(traces) => estimate(arch, &machine, *traces, &shape).unwrap(),
        Sampled::Withheld(why) => panic!("{why}"),
    }
}

fn metric(estimate: &Estimate, name: &str) -> f64 {
    let all = estimate.metrics(Arch::by_name("a100").unwrap());
    all.iter().find(|(known, _)| *known == name).unwrap().1
}

#[test]
fn lanes_that_ask_for_different_constants_are_served_one_after_the_other() {
    let same = predicted("lanes", 17, &[256, 256, 0]);
    let apart = predicted("lanes", 17, &[256, 256, 1]);
    // 8 warps, 256 loads of 32 addresses each, two cycles per address.
    let least = 8.0 * 256.0 * 32.0 * 2.0;
    assert!(apart.cycles > least, "{} {least}", apart.cycles);
    assert!(
        apart.cycles > same.cycles * 5.0,
        "{} {}",
        apart.cycles,
        same.cycles
    );
}

#[test]
fn a_table_that_the_constant_cache_does_not_hold_is_loaded_again_and_again() {
    let (held, not) = (
        predicted("lanes", 17, &[4096, 256, 0]),
        predicted("lanes", 17, &[4096, 8192, 0]),
    );
    assert!(
        not.cycles > held.cycles * 1.3,
        "{} {}",
        not.cycles,
        held.cycles
    );
}

#[test]
fn operands_that_are_constants_wait_where_there_are_too_many_of_them() {
    let (few, many) = (predicted("few", 71, &[64]), predicted("many", 12, &[64]));
    let waits = |of: &Estimate| metric(of, "idle_imc_miss_pct");
    assert!(waits(&few) < 5.0, "{}", waits(&few));
    assert!(waits(&many) > 20.0, "{}", waits(&many));
    assert!(
        many.cycles > few.cycles * 1.3,
        "{} {}",
        many.cycles,
        few.cycles
    );
}
