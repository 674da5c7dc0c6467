//! Speed of the executor: scalar code on one core, an attention tile kernel on all.
#![expect(
    clippy::expect_used,
    reason = "a benchmark that cannot go on should end"
)]
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::time::Instant;

use gpu_arithmetic::half::{f16_to_f32, f32_to_f16};
use vgpu::{Arch, Arg, Checks, GlobalMemory, Launch, LaunchReport, Module, launch};

fn int(v: i32) -> Arg {
    Arg::Bytes(v.to_le_bytes().to_vec())
}

fn best(runs: u32, mut f: impl FnMut() -> LaunchReport) -> (f64, LaunchReport) {
    let mut best = f64::INFINITY;
    let mut report = None;
    for _ in 0..runs {
        let start = Instant::now();
        report = Some(f());
        best = best.min(start.elapsed().as_secs_f64());
    }
    (best, report.expect("at least one run"))
}

fn scalar(arch: &Arch) {
    let module = Module::load(include_str!("scalar.ptx")).expect("the kernel loads");
    let mut memory = GlobalMemory::new(1 << 30);
    let n = 1 << 14;
    let x = memory.alloc(n * 4, "x").expect("memory");
    let y = memory.alloc(n * 4, "y").expect("memory");
    memory.write(x, 0, &vec![0; n as usize * 4]);
    let args = vec![Arg::Buffer(x), Arg::Buffer(y), int(n as i32), int(256)];
    let mut l = Launch::new("scalar", [n as u32 / 256, 1, 1], [256, 1, 1], args);
    l.threads = 1;
    let (seconds, report) = best(5, || {
        launch(&module, &mut memory, arch, &l).expect("the launch is legal")
    });
    assert_eq!(report.hazards, []);
    let rate = report.counters.lane_instructions as f64 / seconds / 1e6;
    println!("scalar: {rate:.0} M lane-instructions/s on one core ({seconds:.4} s)");
}

fn pseudo(seed: u64, i: u64) -> f32 {
    let mut z = seed.wrapping_add(i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z >> 40) as f32 / (1 << 23) as f32 - 1.0
}

fn halves(seed: u64, n: u64) -> Vec<u8> {
    (0..n)
        .flat_map(|i| f32_to_f16(pseudo(seed, i)).to_le_bytes())
        .collect()
}

/// Computes one row of the result, in double precision.
fn reference(
    q: &[u8],
    k: &[u8],
    v: &[u8],
    head: usize,
    row: usize,
    s: usize,
    d: usize,
) -> Vec<f64> {
    let at = |m: &[u8], r: usize, c: usize| {
        let i = ((head * s + r) * d + c) * 2;
        f64::from(f16_to_f32(u16::from_le_bytes([m[i], m[i + 1]])))
    };
    let scores: Vec<f64> = (0..s)
        .map(|j| (0..d).map(|c| at(q, row, c) * at(k, j, c)).sum::<f64>() / (d as f64).sqrt())
        .collect();
    let most = scores.iter().copied().fold(f64::MIN, f64::max);
    let weights: Vec<f64> = scores.iter().map(|x| (x - most).exp()).collect();
    let total: f64 = weights.iter().sum();
    (0..d)
        .map(|c| (0..s).map(|j| weights[j] * at(v, j, c)).sum::<f64>() / total)
        .collect()
}

fn attention(arch: &Arch, checks: bool) {
    let (heads, s, d) = (8usize, 512usize, 64usize);
    let n = (heads * s * d) as u64;
    let module = Module::load(include_str!("fa2.ptx")).expect("the kernel loads");
    let mut memory = GlobalMemory::new(1 << 30);
    let data: Vec<Vec<u8>> = (1..4).map(|seed| halves(seed, n)).collect();
    let mut ids = Vec::new();
    for (name, bytes) in ["q", "k", "v"].iter().zip(&data) {
        let id = memory.alloc(n * 2, name).expect("memory");
        memory.write(id, 0, bytes);
        ids.push(id);
    }
    let o = memory.alloc(n * 2, "o").expect("memory");
    ids.push(o);
    let mut args: Vec<Arg> = ids.into_iter().map(Arg::Buffer).collect();
    let scale = std::f32::consts::LOG2_E / (d as f32).sqrt();
    args.extend([int(s as i32), Arg::Bytes(scale.to_le_bytes().to_vec())]);
    let mut l = Launch::new(
        "attention",
        [s as u32 / 64, heads as u32, 1],
        [128, 1, 1],
        args,
    );
    l.dynamic_shared_bytes = 5 * 64 * 72 * 2;
    l.checks = Checks {
        races: checks,
        uninitialized: checks,
        ..Checks::default()
    };
    let (seconds, report) = best(3, || {
        launch(&module, &mut memory, arch, &l).expect("the launch is legal")
    });
    assert_eq!(report.hazards, []);
    let out = memory.read(o);
    let mut worst = 0.0f64;
    for (head, row) in [(0, 0), (3, 77), (7, 511)] {
        for (c, x) in reference(&data[0], &data[1], &data[2], head, row, s, d)
            .iter()
            .enumerate()
        {
            let i = ((head * s + row) * d + c) * 2;
            let y = f64::from(f16_to_f32(u16::from_le_bytes([out[i], out[i + 1]])));
            worst = worst.max((x - y).abs());
        }
    }
    assert!(worst < 2e-3, "attention is wrong by {worst}");
    let with = if checks { "with" } else { "without" };
    println!(
        "attention B=1 H=8 S=512 D=64, {with} hazard checks: {seconds:.3} s on all cores \
         ({} warp instructions, largest error {worst:.1e})",
        report.counters.warp_instructions
    );
}

/// `C = A·B` of 1024x1024 singles, whole, on all cores.
fn gemm(arch: &Arch) {
    let n = 1024usize;
    let bytes = (n * n * 4) as u64;
    let module = Module::load(include_str!("gemm.ptx")).expect("the kernel loads");
    let mut memory = GlobalMemory::new(1 << 30);
    let mut ids = Vec::new();
    for (seed, name) in ["a", "b", "c"].iter().enumerate() {
        let id = memory.alloc(bytes, name).expect("memory");
        let values = (0..(n * n) as u64).flat_map(|i| pseudo(seed as u64, i).to_le_bytes());
        if *name != "c" {
            memory.write(id, 0, &values.collect::<Vec<u8>>());
        }
        ids.push(id);
    }
    let mut args: Vec<Arg> = ids.iter().copied().map(Arg::Buffer).collect();
    args.push(int(n as i32));
    let l = Launch::new("gemm", [8, 8, 1], [256, 1, 1], args);
    let (seconds, report) = best(2, || {
        launch(&module, &mut memory, arch, &l).expect("the launch is legal")
    });
    assert_eq!(report.hazards, []);
    let c = memory.read(ids[2]);
    let mut worst = 0.0f64;
    for (row, column) in [(0, 0), (77, 1000), (1023, 1023)] {
        let x: f64 = (0..n)
            .map(|k| {
                let a = pseudo(0, (row * n + k) as u64);
                let b = pseudo(1, (k * n + column) as u64);
                f64::from(a) * f64::from(b)
            })
            .sum();
        let i = (row * n + column) * 4;
        let y = f32::from_le_bytes([c[i], c[i + 1], c[i + 2], c[i + 3]]);
        worst = worst.max((x - f64::from(y)).abs());
    }
    assert!(worst < 1e-3, "the product is wrong by {worst}");
    let rate = report.counters.lane_instructions as f64 / seconds / 1e6;
    println!(
        "f32 GEMM 1024x1024x1024, with hazard checks: {seconds:.3} s on all cores \
         ({rate:.0} M lane-instructions/s, largest error {worst:.1e})"
    );
}

/// Blocks with almost no work: the cost of setting one up.
fn tiny(arch: &Arch) {
    let blocks = 20_000u32;
    let module = Module::load(include_str!("gemm.ptx")).expect("the kernel loads");
    let mut memory = GlobalMemory::new(1 << 30);
    let x = memory.alloc(u64::from(blocks) * 256, "x").expect("memory");
    for (dynamic, what) in [(0, "256 B"), (48 << 10, "48 KiB")] {
        let mut l = Launch::new("tiny", [blocks, 1, 1], [64, 1, 1], vec![Arg::Buffer(x)]);
        l.dynamic_shared_bytes = dynamic;
        l.threads = 1;
        let (seconds, report) = best(2, || {
            launch(&module, &mut memory, arch, &l).expect("the launch is legal")
        });
        assert_eq!(report.hazards, []);
        let each = seconds / f64::from(blocks) * 1e6;
        println!("tiny blocks of 64 threads, {what} of shared memory: {each:.1} us a block");
    }
}

fn main() {
    let arch = Arch::by_name("h100").expect("a known device");
    scalar(arch);
    attention(arch, true);
    attention(arch, false);
    gemm(arch);
    tiny(arch);
}
