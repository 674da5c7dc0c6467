//! `mma.sync` on floats of a byte or less, with and without `.block_scale`, against sums in double precision.

use super::{Random, list, warp};

/// A format of `exponent` and `fraction` bits from bit `low` of a container of `container` bits.
#[derive(Clone, Copy)]
struct Format {
    exponent: u32,
    fraction: u32,
    low: u32,
    container: u32,
}

const E4M3: Format = byte(4, 3, 0);
const E5M2: Format = byte(5, 2, 0);
const E3M2: Format = byte(3, 2, 0);
const E2M3: Format = byte(2, 3, 0);
const E2M1: Format = byte(2, 1, 2);
const PACKED: Format = Format {
    container: 4,
    ..byte(2, 1, 0)
};

const fn byte(exponent: u32, fraction: u32, low: u32) -> Format {
    Format {
        exponent,
        fraction,
        low,
        container: 8,
    }
}

impl Format {
    fn per_register(self) -> usize {
        32 / self.container as usize
    }

    fn value(self, register: u64, position: usize) -> f64 {
        let code = register >> (self.container * position as u32 + self.low);
        let fraction = (code & ((1 << self.fraction) - 1)) as f64 / f64::from(1 << self.fraction);
        let exponent = (code >> self.fraction & ((1 << self.exponent) - 1)) as i32;
        let bias = (1 << (self.exponent - 1)) - 1;
        let magnitude = match exponent {
            0 => fraction * 2.0_f64.powi(1 - bias),
            exponent => (1.0 + fraction) * 2.0_f64.powi(exponent - bias),
        };
        match code >> (self.exponent + self.fraction) & 1 {
            0 => magnitude,
            _ => -magnitude,
        }
    }

    /// Returns a register without NaN and infinity.
    fn register(self, random: &mut Random) -> u64 {
        random.next()
            & 0xffff_ffff
            & if self.exponent >= 4 {
                0xbfbf_bfbf
            } else {
                u64::MAX
            }
    }
}

/// Number of scales of a row, whether they are `ue4m3`, and first byte and thread of A and of B.
#[derive(Clone, Copy)]
struct Scales {
    blocks: usize,
    fractions: bool,
    a: (usize, usize),
    b: (usize, usize),
}

impl Scales {
    fn value(self, register: u64, byte: usize) -> f64 {
        let code = register >> (8 * byte) & 0xff;
        match self.fractions {
            true => E4M3.value(code & 0x7f, 0),
            false => 2.0_f64.powi(code as i32 - 127),
        }
    }
}

/// Runs a product on random registers and compares it with sums in double precision.
fn check(form: &str, k: usize, [left, right]: [Format; 2], scales: Option<Scales>) {
    let mut random = Random(k as u64 + form.len() as u64);
    // Four registers of A, two of B, four of C, and the scales.
    let words: Vec<u64> = (0..32 * 12)
        .map(|i| match i % 12 {
            0..4 => left.register(&mut random),
            4..6 => right.register(&mut random),
            6..10 => random.next() & 0x80ff_ffff | 0x3f00_0000,
            // Scales from 2^-7 to 2^8, or around one.
            _ => {
                random.next() & 0x0f0f_0f0f
                    | if form.ends_with("ue4m3") {
                        0x3030_3030
                    } else {
                        0x7878_7878
                    }
            }
        })
        .collect();
    let selectors = scales.map(|s| {
        format!(
            ", %r10, {{{}, {}}}, %r11, {{{}, {}}}",
            s.a.0, s.a.1, s.b.0, s.b.1
        )
    });
    let body = format!(
        "mma.sync.aligned.{form} {}, {}, {}, {}{};",
        list("%d", 0..4),
        list("%r", 0..4),
        list("%r", 4..6),
        list("%r", 6..10),
        selectors.unwrap_or_default()
    );
    let results = warp(&body, 12, 4, &words);
    let word = |lane: usize, register: usize| words[12 * lane + register];
    for (at, result) in results.iter().enumerate() {
        let (lane, register) = (at / 4, at % 4);
        let (row, column) = (lane / 4 + register / 2 * 8, lane % 4 * 2 + register % 2);
        let accumulator = f64::from(f32::from_bits(word(lane, 6 + register) as u32));
        let (mut exact, mut size) = (accumulator, accumulator.abs());
        for i in 0..k {
            let per = left.per_register();
            // Four lanes share a row; registers go down the rows first.
            let (group, inner) = (i / (4 * per), i % (4 * per));
            let a = word(row % 8 * 4 + inner / per, 2 * group + row / 8);
            let b = word(column * 4 + inner / per, 4 + group);
            let product = left.value(a, inner % per) * right.value(b, inner % per);
            let scale = scales.map_or(1.0, |s| {
                let block = i * s.blocks / k;
                let of_a = word(row % 8 * 4 + 2 * s.a.1 + row / 8, 10);
                let of_b = word(column * 4 + s.b.1, 11);
                s.value(of_a, s.a.0 + block) * s.value(of_b, s.b.0 + block)
            });
            exact += product * scale;
            size += (product * scale).abs();
        }
        let got = f64::from(f32::from_bits(*result as u32));
        let bound = 2.0_f64.powi(-23) * size * k as f64;
        assert!(
            (got - exact).abs() <= bound,
            "{form} ({row}, {column}): {got}, exactly {exact}"
        );
    }
}

#[test]
fn floats_of_a_byte_or_less_are_multiplied() {
    let names = [
        ("e4m3", E4M3),
        ("e5m2", E5M2),
        ("e3m2", E3M2),
        ("e2m3", E2M3),
        ("e2m1", E2M1),
    ];
    for (a, left) in names {
        for (b, right) in names {
            let form = format!("m16n8k32.row.col.kind::f8f6f4.f32.{a}.{b}.f32");
            check(&form, 32, [left, right], None);
        }
    }
}

#[test]
fn blocks_of_a_product_are_scaled() {
    for (byte, thread) in [(0, 0), (1, 1), (2, 0), (3, 1)] {
        let scales = Scales {
            blocks: 1,
            fractions: false,
            a: (byte, thread),
            b: (3 - byte, byte),
        };
        let form =
            "m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e3m2.e4m3.f32.ue8m0";
        check(form, 32, [E3M2, E4M3], Some(scales));
        let scales = Scales {
            blocks: 2,
            a: (byte / 2 * 2, thread),
            b: (2 - byte / 2 * 2, byte),
            ..scales
        };
        let form = "m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0";
        check(form, 64, [PACKED; 2], Some(scales));
        let scales = Scales {
            blocks: 4,
            fractions: true,
            a: (0, thread),
            b: (0, byte),
        };
        let form =
            "m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3";
        check(form, 64, [PACKED; 2], Some(scales));
    }
}

#[test]
fn packed_elements_are_loaded_into_bytes() {
    for (form, bits, bytes) in [("b6x16_p32", 6, 12), ("b4x16_p64", 4, 8)] {
        // Each lane writes the row of a matrix that it names, but not the padding.
        let mut random = Random(bits);
        let words: Vec<u64> = (0..32 * 3).map(|_| random.next() & 0xffff_ffff).collect();
        let stores: Vec<String> = (0..bytes / 4)
            .map(|word| format!("st.shared.u32 [%a+{}], %r{word};", 4 * word))
            .collect();
        let body = format!(
            ".shared .align 16 .b8 rows[512]; .reg .b32 %a;\n\
             mov.u32 %a, rows; mad.lo.u32 %a, %t, 16, %a;\n{}\nbar.warp.sync 0xffffffff;\n\
             ldmatrix.sync.aligned.m8n16.x4.shared.b8x16.{form} {}, [%a];",
            stores.join("\n"),
            list("%d", 0..4)
        );
        let results = warp(&body, 3, 4, &words);
        for (at, result) in results.iter().enumerate() {
            let (lane, matrix) = (at / 4, at % 4);
            let row = &words[3 * (8 * matrix + lane / 4)..][..3];
            let packed = row
                .iter()
                .rev()
                .fold(0u128, |all, word| all << 32 | u128::from(*word));
            for byte in 0..4 {
                let code = packed >> (bits as usize * (lane % 4 * 4 + byte)) & ((1 << bits) - 1);
                assert_eq!(
                    u128::from(result >> (8 * byte) & 0xff),
                    code,
                    "{form} lane {lane}"
                );
            }
        }
    }
}
