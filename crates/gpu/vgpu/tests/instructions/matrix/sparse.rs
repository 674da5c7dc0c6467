//! `mma.sp` against sums over the whole matrix in double precision.

use super::{E, list, warp};
use crate::harness::Random;

const ROWS: usize = 16;

/// A product whose first factor is sparse.
struct Form {
    text: &'static str,
    k: usize,
    a: E,
    b: E,
    c: E,
    /// Values of the selector.
    selectors: u64,
}

const fn form(text: &'static str, k: usize, [a, b, c]: [E; 3], selectors: u64) -> Form {
    Form {
        text,
        k,
        a,
        b,
        c,
        selectors,
    }
}

/// Places of the elements of A that registers have, in the order of the registers' columns, and the metadata of
/// each row.
struct Pattern {
    places: Vec<Vec<usize>>,
    metadata: Vec<u64>,
}

impl Pattern {
    fn new(form: &Form, random: &mut Random) -> Pattern {
        let per = form.a.per_register();
        // Elements of a chunk, and those that one index places.
        let (chunk, each) = match per {
            1 => (2, 1),
            8 => (8, 2),
            _ => (4, 1),
        };
        let mut pattern = Pattern {
            places: vec![Vec::new(); ROWS],
            metadata: vec![0; ROWS],
        };
        for row in 0..ROWS {
            for number in 0..form.k / chunk {
                let code = match per {
                    1 => [0b0100, 0b1110][random.next() as usize % 2],
                    // The first place is below the second.
                    _ => {
                        [0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110][random.next() as usize % 6]
                    }
                };
                pattern.metadata[row] |= code << (4 * number);
                let first = number * chunk;
                let indices = match per {
                    1 => vec![code as usize >> 1 & 1],
                    _ => vec![code as usize & 3, code as usize >> 2],
                };
                let of = |index: usize| (0..each).map(move |n| first + index * each + n);
                pattern.places[row].extend(indices.into_iter().flat_map(of));
            }
        }
        pattern
    }

    /// The metadata that a lane gives.
    fn of_lane(&self, form: &Form, lane: usize, selector: usize) -> Option<u64> {
        let (group, thread) = (lane / 4, lane % 4);
        let per = form.a.per_register();
        let units = form.k / (8 * per);
        if per <= 2 {
            let part = |row: usize| self.metadata[row] >> (16 * (thread % units)) & 0xffff;
            return (thread / units == selector).then(|| part(group) | part(group + 8) << 16);
        }
        let unit = thread % (2 * units) / 2;
        let row = group + 8 * (thread % 2);
        (thread / (2 * units) == selector).then(|| self.metadata[row] >> (32 * unit) & 0xffff_ffff)
    }
}

fn check(form: &Form, selector: u64) {
    let mut random = Random(form.k as u64 + form.text.len() as u64 + selector);
    let pattern = Pattern::new(form, &mut random);
    let per = form.a.per_register();
    let in_a = form.k / per / 4;
    let in_b = form.k / per / 4;
    let in_c = 4 / form.c.per_register();
    let all = in_a + in_b + in_c + 1;
    let mut words = Vec::new();
    for lane in 0..32 {
        words.extend((0..in_a).map(|_| form.a.register(&mut random)));
        words.extend((0..in_b).map(|_| form.b.register(&mut random)));
        words.extend((0..in_c).map(|_| form.c.register(&mut random)));
        let metadata = pattern.of_lane(form, lane, selector as usize);
        words.push(metadata.unwrap_or_else(|| random.next() & 0xffff_ffff));
    }
    let (b, c) = (in_a + in_b, in_a + in_b + in_c);
    let body = format!(
        "mma.{} {}, {}, {}, {}, %r{c}, {selector};",
        form.text,
        list("%d", 0..in_c),
        list("%r", 0..in_a),
        list("%r", in_a..b),
        list("%r", b..c),
    );
    let results = warp(&body, all, in_c, &words);
    let word = |lane: usize, register: usize| words[all * lane + register];
    for (at, result) in results.iter().enumerate() {
        for sub in 0..form.c.per_register() {
            let (lane, register) = (at / in_c, at % in_c);
            let number = register * form.c.per_register() + sub;
            let (row, column) = (lane / 4 + number / 2 * 8, lane % 4 * 2 + number % 2);
            let start = form.c.value(word(lane, b + register), sub);
            let (mut exact, mut size) = (start, start.abs());
            for (n, k) in pattern.places[row].iter().enumerate() {
                let (group, inner) = (n / (4 * per), n % (4 * per));
                let left = word(row % 8 * 4 + inner / per, 2 * group + row / 8);
                let (below, within) = (k / (4 * per), k % (4 * per));
                let right = word(column * 4 + within / per, in_a + below);
                let product = form.a.value(left, inner % per) * form.b.value(right, within % per);
                exact += product;
                size += product.abs();
            }
            let got = form.c.value(*result, sub);
            let bits = if form.c == E::F16 { -10 } else { -22 };
            let bound = match form.c {
                E::S32 => 0.0,
                _ => 2.0_f64.powi(bits) * size * form.k as f64,
            };
            let exact = if form.c == E::S32 {
                f64::from(exact as i64 as i32)
            } else {
                exact
            };
            assert!(
                (got - exact).abs() <= bound,
                "{} {selector} ({row}, {column}): {got}, exactly {exact}",
                form.text
            );
        }
    }
}

#[test]
fn sparse_matrices_are_multiplied_where_their_metadata_place_them() {
    let forms = [
        form(
            "sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
            16,
            [E::F16, E::F16, E::F32],
            4,
        ),
        form(
            "sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32",
            32,
            [E::F16, E::F16, E::F32],
            2,
        ),
        form(
            "sp.sync.aligned.m16n8k32.row.col.f16.f16.f16.f16",
            32,
            [E::F16, E::F16, E::F16],
            2,
        ),
        form(
            "sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32",
            32,
            [E::Bf16, E::Bf16, E::F32],
            2,
        ),
        form(
            "sp.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
            8,
            [E::Tf32, E::Tf32, E::F32],
            4,
        ),
        form(
            "sp.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32",
            16,
            [E::Tf32, E::Tf32, E::F32],
            2,
        ),
        form(
            "sp.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32",
            32,
            [E::S8, E::U8, E::S32],
            2,
        ),
        form(
            "sp.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32",
            64,
            [E::S8, E::S8, E::S32],
            1,
        ),
        form(
            "sp.sync.aligned.m16n8k64.row.col.s32.u4.s4.s32",
            64,
            [E::U4, E::S4, E::S32],
            2,
        ),
        form(
            "sp.sync.aligned.m16n8k128.row.col.s32.s4.s4.s32",
            128,
            [E::S4, E::S4, E::S32],
            1,
        ),
        form(
            "sp.sync.aligned.m16n8k64.row.col.f32.e4m3.e5m2.f32",
            64,
            [E::Fp8, E::Wide8, E::F32],
            1,
        ),
    ];
    for form in &forms {
        for selector in 0..form.selectors {
            check(form, selector);
        }
    }
}
