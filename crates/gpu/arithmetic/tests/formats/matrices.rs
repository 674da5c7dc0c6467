//! Matrix instructions: layouts against the formulas printed in the ISA, products against doubles.

use gpu_arithmetic::layout::{self, a_element, accumulator_element, b_element};
use gpu_arithmetic::mma::{Accumulator, Element, Mma, mma_f64};
use gpu_arithmetic::wmma::{Fragment, Operand, Wmma};
use gpu_arithmetic::{Lanes, Round, half, small};
use proptest::prelude::*;

/// Value of element `sub` of a register.
fn value(element: Element, word: u32, sub: usize) -> f64 {
    let byte = (word >> (8 * (sub % 4))) as u8;
    let nibble = (word >> (4 * sub.min(7))) & 15;
    match element {
        Element::F16 => half::f16_to_f32((word >> (16 * sub)) as u16).into(),
        Element::Bf16 => half::bf16_to_f32((word >> (16 * sub)) as u16).into(),
        Element::Tf32 => f32::from_bits(word & !0x1fff).into(),
        Element::E4m3 => small::to_f32(small::Small::E4m3, byte).into(),
        Element::E5m2 => small::to_f32(small::Small::E5m2, byte).into(),
        Element::S8 => f64::from(byte as i8),
        Element::U8 => f64::from(byte),
        Element::S4 => f64::from(nibble as i32 - if nibble > 7 { 16 } else { 0 }),
        Element::U4 => f64::from(nibble),
        Element::E3m2 => small::to_f32(small::Small::E3m2, byte & 63).into(),
        Element::E2m3 => small::to_f32(small::Small::E2m3, byte & 63).into(),
        Element::E2m1 => small::to_f32(small::Small::E2m1, byte >> 2 & 15).into(),
        Element::PackedE2m1 => small::to_f32(small::Small::E2m1, nibble as u8).into(),
    }
}

/// A register of moderate finite values.
fn word(element: Element, random: u32) -> u32 {
    match element {
        // Exponents 2^-8 to 2^7.
        Element::F16 => random & 0x9fff_9fff | 0x2000_2000 & !(random >> 1),
        Element::Bf16 => random & 0x83ff_83ff | 0x3c00_3c00,
        Element::Tf32 => random & 0x83ff_ffff | 0x3c00_0000,
        Element::E4m3 => random & 0xf7f7_f7f7,
        Element::E5m2 => random & 0xbfbf_bfbf,
        _ => random,
    }
}

fn accumulator(kind: Accumulator, random: u32) -> u32 {
    match kind {
        Accumulator::F16 => word(Element::F16, random),
        Accumulator::F32 => word(Element::Tf32, random) | random & 0x1fff,
        Accumulator::S32 => random,
    }
}

fn accumulated(kind: Accumulator, word: u32, sub: usize) -> f64 {
    match kind {
        Accumulator::F16 => value(Element::F16, word, sub),
        Accumulator::F32 => f32::from_bits(word).into(),
        Accumulator::S32 => f64::from(word as i32),
    }
}

fn mix(seed: u32, index: usize, lane: usize) -> u32 {
    let x = seed
        ^ (index as u32 + 1).wrapping_mul(0x9e37_79b9)
        ^ (lane as u32).wrapping_mul(0x85eb_ca6b);
    let x = (x ^ x >> 16).wrapping_mul(0x7feb_352d);
    let x = (x ^ x >> 15).wrapping_mul(0x846c_a68b);
    x ^ x >> 16
}

fn registers(count: usize, seed: u32, make: impl Fn(u32) -> u32) -> Vec<Lanes> {
    (0..count)
        .map(|r| std::array::from_fn(|l| make(mix(seed, r, l))))
        .collect()
}

fn refs(registers: &[Lanes]) -> Vec<&Lanes> {
    registers.iter().collect()
}

/// Exact product and the sum of magnitudes, for the error bound.
struct Exact {
    value: [[f64; 32]; 32],
    scale: [[f64; 32]; 32],
}

type Matrix = [[f64; 64]; 64];

impl Exact {
    /// Checks one element of a product that sums so many terms.
    fn check(
        &self,
        (i, j): (usize, usize),
        (kind, k): (Accumulator, usize),
        got: f64,
        saturate: bool,
    ) {
        check(kind, k, got, self.value[i][j], self.scale[i][j], saturate);
    }
}

fn exact(k: usize, a: &Matrix, b: &Matrix, c: &Matrix) -> Exact {
    let mut e = Exact {
        value: [[0.0; 32]; 32],
        scale: [[0.0; 32]; 32],
    };
    for i in 0..32 {
        for j in 0..32 {
            e.value[i][j] = c[i][j] + (0..k).map(|p| a[i][p] * b[p][j]).sum::<f64>();
            e.scale[i][j] = c[i][j].abs() + (0..k).map(|p| (a[i][p] * b[p][j]).abs()).sum::<f64>();
        }
    }
    e
}

fn check(kind: Accumulator, k: usize, got: f64, exact: f64, scale: f64, saturate: bool) {
    match kind {
        Accumulator::S32 if saturate => {
            assert_eq!(got, exact.clamp(i32::MIN.into(), i32::MAX.into()));
        }
        Accumulator::S32 => assert_eq!((got - exact).rem_euclid(4_294_967_296.0), 0.0),
        Accumulator::F32 => {
            let bound = (k + 1) as f64 * 2.0_f64.powi(-24) * scale;
            assert!((got - exact).abs() <= bound, "{got} {exact} {bound}");
        }
        Accumulator::F16 => {
            let bound = k as f64 * 2.0_f64.powi(-24) * scale + 2.0_f64.powi(-11) * exact.abs();
            assert!(
                got.is_infinite() && exact.abs() > 65000.0 || (got - exact).abs() <= bound + 1e-7
            );
        }
    }
}

fn forms() -> Vec<Mma> {
    use Element::{Bf16, E2m1, E2m3, E3m2, E4m3, E5m2, F16, PackedE2m1, S4, S8, Tf32, U4, U8};
    let elements = [
        F16, Bf16, Tf32, E4m3, E5m2, E3m2, E2m3, E2m1, PackedE2m1, S8, U8, S4, U4,
    ];
    let accumulators = [Accumulator::F16, Accumulator::F32, Accumulator::S32];
    let mut forms = Vec::new();
    for (m, k) in [8, 16]
        .into_iter()
        .flat_map(|m| [4, 8, 16, 32, 64].map(|k| (m, k)))
    {
        for a in elements {
            for b in elements {
                for acc in accumulators {
                    for saturate in [false, true] {
                        forms.push(Mma {
                            m,
                            n: 8,
                            k,
                            a,
                            b,
                            c: acc,
                            d: acc,
                            saturate,
                        });
                    }
                }
            }
        }
    }
    forms.retain(|f| f.registers().is_some());
    forms
}

#[test]
fn every_form_of_mma_computes_the_product_of_its_fragments() {
    let forms = forms();
    assert!(forms.len() >= 60, "{}", forms.len());
    for (index, form) in forms.iter().enumerate() {
        for seed in 0..4 {
            check_mma(form, (index as u32) << 8 | seed);
        }
    }
}

fn check_mma(form: &Mma, seed: u32) {
    let n = form.registers().unwrap();
    let a = registers(n.a, seed, |r| word(form.a, r));
    let b = registers(n.b, !seed, |r| word(form.b, r));
    let c = registers(n.c, seed ^ 0x5555, |r| accumulator(form.c, r));
    let mut d = vec![[0; 32]; n.d];
    form.run(&refs(&a), &refs(&b), &refs(&c), &mut d);
    let mut plain = d.clone();
    form.run_here(&refs(&a), &refs(&b), &refs(&c), &mut plain);
    assert_eq!(d, plain, "the host's vectors change the bits of {form:?}");
    let (mut am, mut bm, mut cm) = ([[0.0; 64]; 64], [[0.0; 64]; 64], [[0.0; 64]; 64]);
    let per = form.a.per_register();
    for lane in 0..32 {
        for sub in 0..per {
            for (r, words) in a.iter().enumerate() {
                let (i, j) = a_element(form.m, per, lane, r, sub);
                am[i][j] = value(form.a, words[lane], sub);
            }
            for (r, words) in b.iter().enumerate() {
                let (i, j) = b_element(per, lane, r, sub);
                bm[i][j] = value(form.b, words[lane], sub);
            }
        }
        for sub in 0..form.c.per_register() {
            for (r, words) in c.iter().enumerate() {
                let (i, j) = accumulator_element(form.c.per_register(), lane, r, sub);
                cm[i][j] = accumulated(form.c, words[lane], sub);
            }
        }
    }
    let e = exact(form.k, &am, &bm, &cm);
    for (r, words) in d.iter().enumerate() {
        for (lane, word) in words.iter().enumerate() {
            for sub in 0..form.d.per_register() {
                let (i, j) = accumulator_element(form.d.per_register(), lane, r, sub);
                let got = accumulated(form.d, *word, sub);
                e.check((i, j), (form.d, form.k), got, form.saturate);
            }
        }
    }
}

#[test]
fn layouts_are_the_formulas_of_the_isa() {
    for lane in 0..32 {
        let (group, thread) = (lane >> 2, lane % 4);
        for i in 0..8 {
            // m16n8k16, 16-bit: row = groupID for i in {0,1,4,5}, else groupID + 8.
            let row = if [0, 1, 4, 5].contains(&i) {
                group
            } else {
                group + 8
            };
            let column = thread * 2 + (i & 1) + if i >= 4 { 8 } else { 0 };
            assert_eq!(a_element(16, 2, lane, i / 2, i % 2), (row, column));
        }
        for i in 0..4 {
            let row = thread * 2 + (i & 1) + if i >= 2 { 8 } else { 0 };
            assert_eq!(b_element(2, lane, i / 2, i % 2), (row, group));
            let row = if i < 2 { group } else { group + 8 };
            assert_eq!(
                accumulator_element(1, lane, i, 0),
                (row, thread * 2 + (i & 1))
            );
            assert_eq!(
                accumulator_element(2, lane, i / 2, i % 2),
                (row, thread * 2 + (i & 1))
            );
            // m16n8k8 tf32.
            let row = if i == 0 || i == 2 { group } else { group + 8 };
            let column = if i < 2 { thread } else { thread + 4 };
            assert_eq!(a_element(16, 1, lane, i, 0), (row, column));
        }
        for i in 0..16 {
            // m16n8k32, 8-bit.
            let row = if i < 4 || (8..12).contains(&i) {
                group
            } else {
                group + 8
            };
            let column = thread * 4 + (i & 3) + if i < 8 { 0 } else { 16 };
            assert_eq!(a_element(16, 4, lane, i / 4, i % 4), (row, column));
        }
        for i in 0..8 {
            let row = thread * 4 + (i & 3) + if i < 4 { 0 } else { 16 };
            assert_eq!(b_element(4, lane, i / 4, i % 4), (row, group));
        }
        assert_eq!(b_element(1, lane, 1, 0), (thread + 4, group));
        assert_eq!(a_element(8, 4, lane, 0, 3), (group, thread * 4 + 3));
    }
}

#[test]
fn double_mma_is_a_chain_of_fused_multiply_adds() {
    for (m, k) in [(8, 4), (16, 4), (16, 8), (16, 16)] {
        let make = |count: usize, seed: u32| -> Vec<[u64; 32]> {
            (0..count)
                .map(|r| {
                    std::array::from_fn(|l| (f64::from(mix(seed, r, l) as i32) / 3e9).to_bits())
                })
                .collect()
        };
        let (a, b, c) = (make(m * k / 32, 1), make(k / 4, 2), make(m / 4, 3));
        let mut d = vec![[0; 32]; m / 4];
        mma_f64(m, k, &a, &b, &c, &mut d, Round::Rn);
        for r in 0..m / 4 {
            for lane in 0..32 {
                let (i, j) = accumulator_element(1, lane, r, 0);
                let mut sum = f64::from_bits(c[r][lane]);
                for p in 0..k {
                    let left =
                        (0..32 * a.len()).find(|&x| a_element(m, 1, x % 32, x / 32, 0) == (i, p));
                    let right =
                        (0..32 * b.len()).find(|&x| b_element(1, x % 32, x / 32, 0) == (p, j));
                    let (left, right) = (left.unwrap(), right.unwrap());
                    let x = f64::from_bits(a[left / 32][left % 32]);
                    sum = x.mul_add(f64::from_bits(b[right / 32][right % 32]), sum);
                }
                assert_eq!(f64::from_bits(d[r][lane]), sum);
            }
        }
    }
}

fn wmma_forms() -> Vec<Wmma> {
    use Accumulator::{F16, F32, S32};
    use Element as E;
    let tall = [(16, 16, 16), (32, 8, 16), (8, 32, 16)];
    let mut forms = Vec::new();
    let mut push = |(m, n, k), e, c, d| {
        for saturate in [false, true] {
            forms.push(Wmma(Mma {
                m,
                n,
                k,
                a: e,
                b: e,
                c,
                d,
                saturate,
            }));
        }
    };
    for shape in tall {
        for (c, d) in [(F16, F16), (F16, F32), (F32, F16), (F32, F32)] {
            push(shape, E::F16, c, d);
        }
        push(shape, E::Bf16, F32, F32);
        push(shape, E::S8, S32, S32);
        push(shape, E::U8, S32, S32);
    }
    push((16, 16, 8), E::Tf32, F32, F32);
    push((8, 8, 32), E::S4, S32, S32);
    push((8, 8, 32), E::U4, S32, S32);
    forms
}

#[test]
fn every_form_of_wmma_computes_the_product_of_its_fragments() {
    for (index, form) in wmma_forms().iter().enumerate() {
        check_wmma(form, index as u32 * 77);
    }
}

fn check_wmma(whole: &Wmma, seed: u32) {
    let [fa, fb, fc, fd] = whole.fragments().unwrap();
    let form = &whole.0;
    let a = load(&fa, seed, |r| word(form.a, r));
    let b = load(&fb, !seed, |r| word(form.b, r));
    let c = load(&fc, seed ^ 0x5555, |r| accumulator(form.c, r));
    let mut d = vec![[0; 32]; fd.registers];
    whole.run(&refs(&a), &refs(&b), &refs(&c), &mut d);
    let am = matrix(&fa, &a, |w, s| value(form.a, w, s));
    let bm = matrix(&fb, &b, |w, s| value(form.b, w, s));
    let cm = matrix(&fc, &c, |w, s| accumulated(form.c, w, s));
    let dm = matrix(&fd, &d, |w, s| accumulated(form.d, w, s));
    let e = exact(form.k, &am, &bm, &cm);
    for (i, row) in dm.iter().enumerate().take(form.m) {
        for (j, got) in row.iter().copied().enumerate().take(form.n) {
            if form.saturate && form.d == Accumulator::F16 && got.abs() == 65504.0 {
                assert!(e.value[i][j].abs() > 65000.0);
                continue;
            }
            e.check((i, j), (form.d, form.k), got, form.saturate);
        }
    }
}

/// Random registers in which repeated elements agree, as a load makes them.
fn load(fragment: &Fragment, seed: u32, make: impl Fn(u32) -> u32) -> Vec<Lanes> {
    let mut regs = registers(fragment.registers, seed, make);
    let first = (1..fragment.registers)
        .find(|&r| fragment.element(0, r, 0) == fragment.element(0, 0, 0))
        .unwrap_or(fragment.registers);
    for r in first..fragment.registers {
        regs[r] = regs[r % first];
    }
    regs
}

fn matrix(fragment: &Fragment, regs: &[Lanes], value: impl Fn(u32, usize) -> f64) -> Matrix {
    let mut m = [[f64::NAN; 64]; 64];
    for (r, words) in regs.iter().enumerate() {
        for (lane, word) in words.iter().enumerate() {
            for sub in 0..fragment.per_register {
                let (i, j) = fragment.element(lane, r, sub);
                m[i][j] = value(*word, sub);
            }
        }
    }
    m
}

#[test]
fn wmma_fragments_have_ptxs_register_counts_and_cover_their_matrix() {
    let count = |operand, shape, element| {
        Fragment::multiplicand(operand, shape, element).map(|f| f.registers)
    };
    use Element as E;
    use Operand::{A, B};
    let tall = [(16, 16, 16), (32, 8, 16), (8, 32, 16)];
    assert_eq!(tall.map(|s| count(A, s, E::F16)), [Some(8); 3]);
    assert_eq!(
        tall.map(|s| count(A, s, E::Bf16)),
        [Some(4), Some(8), Some(2)]
    );
    assert_eq!(
        tall.map(|s| count(B, s, E::Bf16)),
        [Some(4), Some(2), Some(8)]
    );
    assert_eq!(
        tall.map(|s| count(A, s, E::S8)),
        [Some(2), Some(4), Some(1)]
    );
    assert_eq!(
        tall.map(|s| count(B, s, E::U8)),
        [Some(2), Some(1), Some(4)]
    );
    assert_eq!(count(A, (16, 16, 8), E::Tf32), Some(4));
    assert_eq!(count(A, (8, 8, 32), E::S4), Some(1));
    assert_eq!(count(A, (16, 16, 16), E::Tf32), None);
    for form in wmma_forms() {
        let [a, b, c, d] = form.fragments().unwrap();
        let form = form.0;
        for (fragment, rows, columns) in [
            (a, form.m, form.k),
            (b, form.k, form.n),
            (c, form.m, form.n),
            (d, form.m, form.n),
        ] {
            let regs = vec![[0; 32]; fragment.registers];
            let covered = matrix(&fragment, &regs, |_, _| 0.0);
            let n = covered.iter().flatten().filter(|x| !x.is_nan()).count();
            assert_eq!(n, rows * columns);
            assert!(
                covered[..rows]
                    .iter()
                    .all(|r| r[..columns].iter().all(|x| !x.is_nan()))
            );
        }
    }
}

#[test]
fn non_finite_values_pass_through_mma() {
    let form = Mma {
        m: 16,
        n: 8,
        k: 16,
        a: Element::F16,
        b: Element::F16,
        c: Accumulator::F32,
        d: Accumulator::F32,
        saturate: false,
    };
    let one = 0x3c00_3c00;
    let (mut a, b) = (vec![[one; 32]; 4], vec![[one; 32]; 2]);
    // Lane 0 holds row 0: an infinity there reaches columns 0 to 7 of row 0 only.
    a[0][0] = 0x3c00_7c00;
    a[1][4] = 0x3c00_7e01;
    let c = vec![[1.0_f32.to_bits(); 32]; 4];
    let mut d = vec![[0; 32]; 4];
    form.run(&refs(&a), &refs(&b), &refs(&c), &mut d);
    let (mut uppers, mut lowers) = ([0; 32], [0; 32]);
    for lane in 0..32 {
        let row = lane / 4;
        let upper = if row == 0 {
            f32::INFINITY.to_bits()
        } else {
            17.0_f32.to_bits()
        };
        let lower = if row == 1 {
            0x7fff_ffff
        } else {
            17.0_f32.to_bits()
        };
        (uppers[lane], lowers[lane]) = (upper, lower);
    }
    assert_eq!(d, [uppers, uppers, lowers, lowers]);
}

proptest! {
    #[test]
    fn ldmatrix_and_stmatrix_are_inverse_and_transpose(words in prop::array::uniform32(any::<u32>())) {
        let mut rows = [[0; 4]; 8];
        for (i, w) in words.iter().enumerate() {
            rows[i / 4][i % 4] = *w;
        }
        let element = |rows: &[[u32; 4]; 8], r: usize, c: usize| (rows[r][c / 2] >> (16 * (c % 2))) as u16;
        let plain = layout::ldmatrix(&rows, false);
        let turned = layout::ldmatrix(&rows, true);
        for lane in 0..32 {
            let (g, t) = (lane / 4, lane % 4);
            prop_assert_eq!(half::unpack(plain[lane]), (element(&rows, g, 2 * t), element(&rows, g, 2 * t + 1)));
            prop_assert_eq!(half::unpack(turned[lane]), (element(&rows, 2 * t, g), element(&rows, 2 * t + 1, g)));
        }
        prop_assert_eq!(layout::stmatrix(&plain, false), rows);
        prop_assert_eq!(layout::stmatrix(&turned, true), rows);
        prop_assert_eq!(layout::movmatrix(&plain), turned);
    }
}
