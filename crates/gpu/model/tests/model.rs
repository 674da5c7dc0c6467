//! Timing model on SASS that the assembler unrolled.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::panic, reason = "a test that cannot go on should fail")]

use gpu_model::{Estimate, Sampled, Shape, estimate, trace};
use sass_machine::Machine;
use vgpu::{Arch, Arg, GlobalMemory, Launch, Module};

const PTX: &str = include_str!("model/unrolled.ptx");
const CUBIN: &[u8] = include_bytes!("model/unrolled.cubin");

/// Predicts `unrolled.cu` with `n` steps and `blocks` blocks on the named GPU.
fn predicted(gpu: &str, n: i32, blocks: u32) -> Estimate {
    let arch = Arch::by_name(gpu).unwrap();
    let module = Module::load(PTX).unwrap();
    let mut memory = GlobalMemory::new(1 << 30);
    let a = memory
        .alloc(u64::from(blocks) * 1024 + n as u64 * 4096, "a")
        .unwrap();
    let b = memory.alloc(4096, "b").unwrap();
    let args = vec![
        Arg::Buffer(a),
        Arg::Buffer(b),
        Arg::Bytes(n.to_le_bytes().to_vec()),
    ];
    let launch = Launch::new("unrolled", [blocks, 1, 1], [256, 1, 1], args);
    let machine = Machine::load(CUBIN, "unrolled").unwrap();
    let shape = Shape {
        grid: [blocks, 1, 1],
        threads: 256,
        registers: 27,
        shared_bytes: 1024,
    };
    let traces = trace(&machine, &module, &mut memory, arch, &launch, 1).unwrap();
    estimated(arch, &machine, traces, &shape)
}

fn estimated(arch: &Arch, machine: &Machine, found: Sampled, shape: &Shape) -> Estimate {
    match found {
        Sampled::Traced(traces) => estimate(arch, machine, *traces, shape).unwrap(),
        Sampled::Withheld(why) => panic!("{why}"),
    }
}

const BLOCKS_PTX: &str = include_str!("model/blocks.ptx");
const BLOCKS_CUBIN: &[u8] = include_bytes!("model/blocks.cubin");

/// Predicts an entry of `blocks.cu` on the named GPU: two buffers of that size, then numbers.
fn blocks(
    gpu: &str,
    (entry, registers, shared_bytes): (&str, u32, u64),
    grid: [u32; 3],
    block: [u32; 3],
    (buffers, bytes): (usize, u64),
    numbers: &[i32],
) -> Estimate {
    let arch = Arch::by_name(gpu).unwrap();
    let module = Module::load(BLOCKS_PTX).unwrap();
    let mut memory = GlobalMemory::new(1 << 32);
    let mut args: Vec<Arg> = (0..buffers)
        .map(|_| Arg::Buffer(memory.alloc(bytes, "buffer").unwrap()))
        .collect();
    args.extend(numbers.iter().map(|n| Arg::Bytes(n.to_le_bytes().to_vec())));
    let launch = Launch::new(entry, grid, block, args);
    let shape = Shape {
        grid,
        threads: block.iter().product(),
        registers,
        shared_bytes,
    };
    let resident = gpu_model::resident_blocks(arch, shape.threads, registers, shared_bytes);
    let together = u64::from(resident * arch.sm_count);
    let machine = Machine::load(BLOCKS_CUBIN, entry).unwrap();
    let traces = trace(&machine, &module, &mut memory, arch, &launch, together);
    estimated(arch, &machine, traces.unwrap(), &shape)
}

/// Predicts 512 tiles, each with work in proportion to its index, eight times over.
fn triangle(reverse: i32) -> Estimate {
    let kernel = ("triangle", 13, 0);
    let numbers = [512, reverse];
    blocks(
        "a100",
        kernel,
        [4096, 1, 1],
        [128, 1, 1],
        (2, 1 << 22),
        &numbers,
    )
}

#[test]
fn a_launch_whose_data_fit_in_half_of_the_cache_reads_nothing_from_memory() {
    let (small, large) = (
        streamed("h200", "copy", 1024),
        streamed("h200", "copy", 4096),
    );
    assert!(small.traffic.dram_bytes == 0.0 && small.floor.us == 0.0);
    assert!(large.traffic.dram_bytes > 1e8);
    assert!(large.us / small.us > 20.0, "{} {}", large.us, small.us);
}

#[test]
fn blocks_of_unequal_work_are_predicted_by_their_mean_whatever_their_order() {
    let (there, back) = (triangle(0), triangle(1));
    assert!(
        (0.8..1.25).contains(&(there.us / back.us)),
        "{} {}",
        there.us,
        back.us
    );
    // Multiply-adds at the peak rate: 128 threads, 64 per tile, 257 tiles on average.
    let arch = Arch::by_name("a100").unwrap();
    let floor = 4096.0 * 128.0 * 64.0 * 256.5 * 2.0 / arch.peak_fp32() * 1e6;
    assert!(
        there.us > floor * 0.8 && there.us < floor * 6.0,
        "{} {floor}",
        there.us
    );
}

fn streamed(gpu: &str, entry: &str, width: u32) -> Estimate {
    let kernel = match entry {
        "copy" => ("copy", 24, 0),
        _ => ("turn", 26, 4096),
    };
    let (grid, bytes) = (
        [width / 32, width / 32, 1],
        u64::from(width) * u64::from(width) * 4,
    );
    blocks(gpu, kernel, grid, [32, 8, 1], (2, bytes), &[width as i32])
}

#[test]
fn no_transpose_beats_a_copy_and_bytes_go_at_the_same_rate_however_many() {
    for gpu in ["a4000", "a100", "h200", "l4", "rtx4090"] {
        let (copy, turn) = (streamed(gpu, "copy", 4096), streamed(gpu, "turn", 4096));
        assert!(turn.us >= copy.us * 0.98, "{gpu}: {} {}", turn.us, copy.us);
        // Nine sixteenths of the bytes, still more than any of the caches holds.
        let less = streamed(gpu, "copy", 3072);
        assert!(
            (1.6..2.0).contains(&(copy.us / less.us)),
            "{gpu}: {} {}",
            copy.us,
            less.us
        );
        // Half of the bytes are written.
        let arch = Arch::by_name(gpu).unwrap();
        let floor = copy.floor.us * (1.0 + f64::from(arch.dram_write_pct) / 100.0) / 2.0;
        assert!(copy.us >= floor && copy.us < floor * 1.2, "{gpu}");
    }
}

#[test]
fn schedulers_are_idle_or_issue_and_nothing_else() {
    for estimate in [streamed("l4", "turn", 4096), predicted("a100", 64, 2000)] {
        let arch = Arch::by_name("a100").unwrap();
        let metrics = estimate.metrics(arch);
        let shares = metrics.iter().filter(|(name, _)| {
            name.starts_with("idle_") || name.starts_with("smsp__issue_active")
        });
        let sum: f64 = shares.map(|(_, share)| share).sum();
        assert!((50.0..=100.5).contains(&sum), "{sum}");
    }
}

#[test]
fn an_order_of_blocks_that_keeps_strips_close_saves_bytes_from_memory() {
    let bytes = |group: i32| {
        let (n, tiles) = (8192, 128);
        let size = 8192 * 8192 * 4;
        let kernel = ("strips", 24, 0);
        let numbers = [n, group];
        let estimate = blocks(
            "l4",
            kernel,
            [tiles * tiles, 1, 1],
            [64, 1, 1],
            (3, size),
            &numbers,
        );
        estimate.traffic.dram_bytes
    };
    let (rows, bands) = (bytes(1), bytes(16));
    assert!(bands < rows * 0.8, "{bands} {rows}");
}

#[test]
fn an_unrolled_loop_is_followed_whatever_its_trip_count() {
    for n in [1, 2, 3, 4, 7, 64] {
        let estimate = predicted("a100", n, 500);
        assert_eq!(estimate.doubts, Vec::<String>::new(), "{n} steps");
    }
    // Without a step, only the four blocks that store their sums do anything.
    let doubts = predicted("a100", 0, 500).doubts;
    assert_eq!(doubts.len(), 1, "{doubts:?}");
    assert!(
        doubts[0].starts_with("99 % of the blocks do nothing"),
        "{doubts:?}"
    );
}

#[test]
fn waves_beyond_those_that_are_replayed_go_at_the_rate_of_the_last() {
    let a_wave = 58 * predicted("l4", 64, 58).resident;
    let cycles = |waves: u32| predicted("l4", 64, a_wave * waves).cycles;
    // At steady rates some of nine waves are not replayed and count as long as the previous ones.
    let (one, three, nine) = (cycles(1), cycles(3), cycles(9));
    let each = (three - one) / 2.0;
    let follow = (nine - three) / 6.0;
    assert!((follow / each - 1.0).abs() < 0.15, "{one} {three} {nine}");
}

#[test]
fn the_same_input_gives_the_same_figures() {
    let (one, two) = (predicted("l4", 16, 300), predicted("l4", 16, 300));
    let arch = Arch::by_name("l4").unwrap();
    assert_eq!(one.us, two.us);
    assert_eq!(one.metrics(arch), two.metrics(arch));
}

#[test]
fn more_work_takes_longer_and_no_time_is_below_the_roofline() {
    let times: Vec<f64> = [4, 16, 64].map(|n| predicted("a100", n, 2000).us).to_vec();
    assert!(times.is_sorted(), "{times:?}");
    let few = predicted("a100", 64, 108);
    let many = predicted("a100", 64, 108 * 64);
    assert!(many.us > few.us * 4.0);
    assert!(many.us >= many.floor.us && few.us >= few.floor.us);
}

#[test]
fn machine_code_that_is_cut_short_is_an_error_and_no_panic() {
    assert!(Machine::load(b"", "unrolled").is_err());
    for end in (0..CUBIN.len()).step_by(97) {
        _ = Machine::load(&CUBIN[..end], "unrolled");
    }
    let mut torn = CUBIN.to_vec();
    for at in (0..torn.len()).step_by(13) {
        torn[at] ^= 0x5a;
        _ = Machine::load(&torn, "unrolled");
    }
}
