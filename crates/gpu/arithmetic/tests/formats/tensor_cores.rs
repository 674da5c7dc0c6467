//! Products of 8-bit floats against those that an H200 computed (docs/evidence/hardware.md).

use gpu_arithmetic::Lanes;
use gpu_arithmetic::mma::{Accumulator, Element, Mma};

/// Results of m64n8k32, by kind: a line with its name, then 128 threads of four words.
const RECORDED: &str = include_str!("h200.txt");

/// Seed of the first block of a kind, as the recorded program has it.
fn seed(kind: u32) -> u32 {
    kind * 0x20_0000 + 0x800_0000
}

fn mixed(value: u32) -> u32 {
    let value = (value ^ value >> 16).wrapping_mul(0x7feb_352d);
    let value = (value ^ value >> 15).wrapping_mul(0x846c_a68b);
    value ^ value >> 16
}

/// Four finite numbers.
fn finite(seed: u32, element: Element) -> u32 {
    let (special, flip) = match element {
        Element::E4m3 => (0x7f, 1),
        _ => (0x7c, 4),
    };
    let bytes = mixed(seed).to_le_bytes();
    let kept = bytes.map(|byte| match byte & special == special {
        true => byte ^ flip,
        false => byte,
    });
    u32::from_le_bytes(kept)
}

/// Four numbers of any kind, of which three in four are zero, or finite ones.
fn factor(seed: u32, kind: u32, element: Element) -> u32 {
    match kind {
        0 | 1 => mixed(seed),
        2 | 3 => {
            let zeros = mixed(seed ^ 0x5555_aaaa).to_le_bytes();
            let numbers = finite(seed, element).to_le_bytes();
            u32::from_le_bytes(std::array::from_fn(|at| {
                if zeros[at] & 3 == 0 { numbers[at] } else { 0 }
            }))
        }
        _ => finite(seed, element),
    }
}

fn halves(seed: u32) -> u32 {
    let one = |bits: u32| (bits & 1) << 15 | (12 + (bits >> 8) % 6) << 10 | bits >> 16 & 0x3ff;
    one(mixed(seed)) | one(mixed(seed ^ 0x9e37_79b9)) << 16
}

/// A number between -8 and 8.
fn single(seed: u32) -> f32 {
    mixed(seed) as i32 as f32 * 4.656_613e-10 * 8.0
}

/// Word of a row of 32 bytes in core matrices of 8 rows by 16 bytes, two to a group of rows.
fn word(row: u32, k: u32) -> u32 {
    (row / 8 * 2 + k / 16) * 32 + row % 8 * 4 + k % 16 / 4
}

/// Computes what a warp of the recorded product leaves, in the order of the recording.
fn computed(kind: u32, warp: u32) -> Vec<u32> {
    let element = [Element::E4m3, Element::E5m2][kind as usize % 2];
    let half = kind >= 4;
    let accumulator = [Accumulator::F32, Accumulator::F16][usize::from(half)];
    let form = Mma {
        m: 16,
        n: 8,
        k: 32,
        a: element,
        b: element,
        c: accumulator,
        d: accumulator,
        saturate: false,
    };
    let id = seed(kind);
    let lanes = |word: &dyn Fn(u32, u32) -> u32, register: u32| -> Lanes {
        std::array::from_fn(|lane| word(lane as u32, register))
    };
    let a = |lane: u32, register: u32| {
        let row = 16 * warp + lane / 4 + register % 2 * 8;
        let k = lane % 4 * 4 + register / 2 * 16;
        factor(id + word(row, k), kind, element)
    };
    let b = |lane: u32, register: u32| {
        let k = lane % 4 * 4 + register * 16;
        factor(id + 999 + word(lane / 4, k), kind, element)
    };
    let c = |lane: u32, register: u32| {
        let at = (32 * warp + lane) * 4 + register;
        match kind {
            4 | 5 => halves(id + 3000 + (32 * warp + lane) * 2 + register),
            2 | 3 if mixed(id + 2000 + at) & 1 == 1 => 0,
            2 | 3 => 1.5_f32.to_bits(),
            _ => single(id + 2000 + at).to_bits(),
        }
    };
    let a: Vec<Lanes> = (0..4).map(|register| lanes(&a, register)).collect();
    let b: Vec<Lanes> = (0..2).map(|register| lanes(&b, register)).collect();
    let registers = if half { 2 } else { 4 };
    let c: Vec<Lanes> = (0..registers).map(|register| lanes(&c, register)).collect();
    let mut d = vec![[0; 32]; c.len()];
    form.run_narrow(&rows_of(&a), &rows_of(&b), &rows_of(&c), &mut d);
    let of = |lane: usize| (0..4).map(move |register| (lane, register));
    (0..32)
        .flat_map(of)
        .map(|(lane, register)| d.get(register).map_or(0, |row| row[lane]))
        .collect()
}

fn rows_of(rows: &[Lanes]) -> Vec<&Lanes> {
    rows.iter().collect()
}

#[test]
fn eight_bit_products_are_the_hardwares_bit_for_bit() {
    let kinds: Vec<&str> = RECORDED.split("wgmma ").skip(1).collect();
    assert_eq!(kinds.len(), 6);
    for (kind, text) in (0..).zip(kinds) {
        let (name, words) = text.split_once('\n').unwrap();
        let words: Vec<u32> = words
            .split_whitespace()
            .map(|word| u32::from_str_radix(word, 16).unwrap())
            .collect();
        let computed: Vec<u32> = (0..4).flat_map(|warp| computed(kind, warp)).collect();
        let wrong: Vec<_> = (0..512)
            .filter(|at| words[*at] != computed[*at])
            .map(|at| format!("{at}: {:08x} for {:08x}", computed[at], words[at]))
            .collect();
        assert!(
            wrong.is_empty(),
            "{name}: {} differ, {:?}",
            wrong.len(),
            &wrong[..3.min(wrong.len())]
        );
    }
}
