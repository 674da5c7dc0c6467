//! The timing model on machine code that the assembler unrolled.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use vgpu::model::{Estimate, Shape, estimate, trace};
use vgpu::sass::Sass;
use vgpu::{Arch, Arg, GlobalMemory, Launch, Module};

const PTX: &str = include_str!("model/unrolled.ptx");
const CUBIN: &[u8] = include_bytes!("model/unrolled.cubin");

/// `unrolled.cu` with `n` steps and so many blocks on the named GPU.
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
    let traces = trace(&module, &mut memory, arch, &launch, 1)
        .unwrap()
        .unwrap();
    let sass = Sass::read(CUBIN).unwrap();
    let shape = Shape {
        entry: "unrolled".to_owned(),
        grid: [blocks, 1, 1],
        threads: 256,
        registers: 27,
        shared_bytes: 1024,
    };
    estimate(
        arch,
        sass.kernel("unrolled").unwrap(),
        &module,
        traces,
        &shape,
    )
    .unwrap()
}

#[test]
fn an_unrolled_loop_is_followed_whatever_its_trip_count() {
    for n in [0, 1, 2, 3, 4, 7, 64] {
        let estimate = predicted("a100", n, 500);
        assert_eq!(estimate.missed, 0.0, "{n} steps");
        assert_eq!(estimate.doubts, Vec::<String>::new(), "{n} steps");
    }
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
    assert!(Sass::read(b"").is_err());
    for end in (0..CUBIN.len()).step_by(97) {
        _ = Sass::read(&CUBIN[..end]);
    }
    let mut torn = CUBIN.to_vec();
    for at in (0..torn.len()).step_by(13) {
        torn[at] ^= 0x5a;
        _ = Sass::read(&torn);
    }
}
