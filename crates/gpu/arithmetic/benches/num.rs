//! Time of the numerics for one warp of 32 lanes: `cargo bench -p gpu-arithmetic --bench num`.

use gpu_arithmetic::half::{self, Bfloat16, Fp16};
use gpu_arithmetic::mma::{Accumulator, Element, Mma};
use gpu_arithmetic::{Lanes, approx, single};
use std::hint::black_box;
use std::time::Instant;

/// Runs `f` for about a tenth of a second and prints nanoseconds a call.
fn time(name: &str, mut f: impl FnMut()) {
    let mut count = 1_u32;
    loop {
        let start = Instant::now();
        for _ in 0..count {
            f();
        }
        let ns = start.elapsed().as_nanos();
        if ns > 100_000_000 {
            report(name, ns as f64 / f64::from(count));
            return;
        }
        count = count.saturating_mul(2);
    }
}

#[expect(clippy::print_stdout, reason = "a benchmark's figures are its output")]
fn report(name: &str, ns: f64) {
    println!("{name:<28} {ns:>8.1} ns a warp");
}

fn map(a: &Lanes, f: impl Fn(f32) -> f32) -> Lanes {
    std::array::from_fn(|i| f(f32::from_bits(a[i])).to_bits())
}

fn main() {
    let a: Lanes = std::array::from_fn(|i| (i as f32 * 0.37 - 5.0).to_bits());
    let b: Lanes = std::array::from_fn(|i| (i as f32 * 0.11 + 0.3).to_bits());
    let h: Lanes = std::array::from_fn(|i| 0x3c00_3800 + i as u32 * 0x0001_0011);
    time("fma.rn.f32", || {
        black_box(single::fma_rn_lanes::<false>(
            black_box(&a),
            black_box(&b),
            black_box(&a),
        ));
    });
    time("add.rn.f32", || {
        let (a, b) = (black_box(&a), black_box(&b));
        let d: Lanes = std::array::from_fn(|i| {
            single::add_rn(f32::from_bits(a[i]), f32::from_bits(b[i])).to_bits()
        });
        black_box(d);
    });
    time("max.f32", || {
        let (a, b) = (black_box(&a), black_box(&b));
        let d: Lanes = std::array::from_fn(|i| {
            single::max(f32::from_bits(a[i]), f32::from_bits(b[i])).to_bits()
        });
        black_box(d);
    });
    time("ex2.approx.ftz.f32", || {
        black_box(map(black_box(&a), |x| {
            single::ftz(approx::ex2(single::ftz(x)))
        }));
    });
    time("lg2.approx.f32", || {
        black_box(map(black_box(&b), approx::lg2));
    });
    time("rcp.approx.f32", || {
        black_box(map(black_box(&b), approx::rcp));
    });
    time("rsqrt.approx.f32", || {
        black_box(map(black_box(&b), approx::rsqrt));
    });
    time("sin.approx.f32", || {
        black_box(map(black_box(&a), approx::sin));
    });
    time("tanh.approx.f32", || {
        black_box(map(black_box(&a), approx::tanh));
    });
    time("cvt.rn.f16.f32", || {
        let a = black_box(&a);
        let d: Lanes = std::array::from_fn(|i| half::f32_to_f16(f32::from_bits(a[i])).into());
        black_box(d);
    });
    time("cvt.f32.f16", || {
        let h = black_box(&h);
        let d: Lanes = std::array::from_fn(|i| half::f16_to_f32(h[i] as u16).to_bits());
        black_box(d);
    });
    time("fma.rn.f16x2 of lanes", || {
        let h = black_box(&h);
        black_box(half::fma_lanes::<Fp16>(h, h, h));
    });
    time("fma.rn.bf16x2 of lanes", || {
        let h = black_box(&h);
        black_box(half::fma_lanes::<Bfloat16>(h, h, h));
    });
    time("fma.rn.f16x2", || {
        let h = black_box(&h);
        let d: Lanes = std::array::from_fn(|i| half::map3(h[i], h[i], h[i], half::fma::<Fp16>));
        black_box(d);
    });
    for (name, element, k) in [
        ("mma.m16n8k16.f32.f16", Element::F16, 16),
        ("mma.m16n8k16.f32.bf16", Element::Bf16, 16),
        ("mma.m16n8k8.f32.tf32", Element::Tf32, 8),
        ("mma.m16n8k32.f32.e4m3", Element::E4m3, 32),
    ] {
        time_mma(name, element, Accumulator::F32, k);
    }
    time_mma("mma.m16n8k16.f16.f16", Element::F16, Accumulator::F16, 16);
    time_mma("mma.m16n8k32.s32.s8", Element::S8, Accumulator::S32, 32);
}

fn time_mma(name: &str, element: Element, accumulator: Accumulator, k: usize) {
    let form = Mma {
        m: 16,
        n: 8,
        k,
        a: element,
        b: element,
        c: accumulator,
        d: accumulator,
        saturate: false,
    };
    let Some(n) = form.registers() else { return };
    let fill = |count| vec![[0x3c01_3c02_u32; 32]; count];
    let (a, b, c, mut d) = (fill(n.a), fill(n.b), fill(n.c), fill(n.d));
    let refs = |v: &'static [Lanes]| v.iter().collect::<Vec<&Lanes>>();
    let [a, b, c] = [a, b, c].map(|v| refs(v.leak()));
    time(name, || {
        form.run(black_box(&a), black_box(&b), black_box(&c), &mut d);
        black_box(&d);
    });
}
