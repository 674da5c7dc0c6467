//! Work that blocks take from a counter.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::panic, reason = "a test that cannot go on should fail")]

use gpu_model::{Estimate, Sampled, Shape, estimate, trace};
use sass_machine::Machine;
use vgpu::{Arch, Arg, GlobalMemory, Launch, Module};

const PTX: &str = include_str!("model/queue.ptx");
const CUBIN: &[u8] = include_bytes!("model/queue.cubin");
const BLOCKS: u32 = 108;
const THREADS: u32 = 128;

/// Predicts an entry of `queue.cu` with one block per multiprocessor, whose shared memory it fills.
fn predicted(entry: &str, tiles: u32) -> Estimate {
    let arch = Arch::by_name("a100").unwrap();
    let module = Module::load(PTX).unwrap();
    let mut memory = GlobalMemory::new(1 << 30);
    let a = memory.alloc(u64::from(THREADS) * 4, "a").unwrap();
    let b = memory.alloc(u64::from(tiles * THREADS) * 4, "b").unwrap();
    let counter = memory.alloc(4, "counter").unwrap();
    memory.write(a, 0, &[0; 4 * THREADS as usize]);
    memory.write(counter, 0, &[0; 4]);
    let args = vec![
        Arg::Buffer(a),
        Arg::Buffer(b),
        Arg::Buffer(counter),
        Arg::Bytes(tiles.to_le_bytes().to_vec()),
    ];
    let launch = Launch::new(entry, [BLOCKS, 1, 1], [THREADS, 1, 1], args);
    let machine = Machine::load(CUBIN, entry).unwrap();
    let shape = Shape {
        grid: launch.grid,
        threads: THREADS,
        registers: 40,
        shared_bytes: 160 << 10,
    };
    match trace(&machine, &module, &mut memory, arch, &launch, 108).unwrap() {
        Sampled::Traced(traces) => estimate(arch, &machine, *traces, &shape).unwrap(),
        Sampled::Withheld(why) => panic!("{why}"),
    }
}

#[test]
fn blocks_that_take_tiles_from_a_counter_share_them() {
    let tiles = 10 * BLOCKS + 54;
    let turns = predicted("in_turns", tiles);
    // Threads that take numbers wait for each of them, where other blocks' work hides nothing.
    for (entry, most) in [("taken", 1.5), ("taken_by_threads", 6.0)] {
        let taken = predicted(entry, tiles);
        let ratio = taken.us / turns.us;
        assert!((0.8..most).contains(&ratio), "{entry}: {ratio}");
        let unequal = |doubt: &String| doubt.contains("differ");
        assert!(!taken.doubts.iter().any(unequal), "{:?}", taken.doubts);
    }
}

#[test]
fn a_number_that_only_finds_the_last_block_is_no_queue() {
    let last = predicted("last", BLOCKS);
    assert!(
        last.doubts.iter().any(|doubt| doubt.contains("differ")),
        "{:?}",
        last.doubts
    );
}
