//! Matrices of bits, of elements of less than a byte, and of doubles; sparse products with block scales.

use crate::memory::{random, run};

/// Loads `count` registers of a thread from its words of the input, from `first` on.
fn loads(names: &[usize], first: usize) -> String {
    let load =
        |(n, r): (usize, &usize)| format!("ld.global.u32 %r{r}, [%q10+{}];\n", 8 * (first + n));
    names.iter().enumerate().map(load).collect()
}

fn list(names: &[usize]) -> String {
    let names: Vec<String> = names.iter().map(|r| format!("%r{r}")).collect();
    format!("{{{}}}", names.join(","))
}

/// Lets each of 32 threads apply an instruction to `inputs` words of its own; returns `outputs` words of each.
fn warp(instruction: &str, inputs: &[&[usize]], output: &[usize], words: &[u64]) -> Vec<u64> {
    let count: usize = inputs.iter().map(|names| names.len()).sum();
    let mut body = format!(
        "mul.wide.u32 %q10, %r8, {}; add.s64 %q10, %q9, %q10;\nmul.wide.u32 %q11, %r8, {}; add.s64 %q11, %q8, %q11;\n",
        8 * count,
        8 * output.len()
    );
    let mut first = 0;
    for names in inputs {
        body += &loads(names, first);
        first += names.len();
    }
    body += instruction;
    for (n, r) in output.iter().enumerate() {
        body += &format!(
            "\ncvt.u64.u32 %q12, %r{r}; st.global.u64 [%q11+{}], %q12;",
            8 * n
        );
    }
    run("", &body, 32, words, 32 * output.len())
}

#[test]
fn products_of_bits_count_them() {
    for (m, k) in [(8, 128), (16, 128), (16, 256)] {
        for op in ["xor", "and"] {
            let (a, b, c) = (m * k / 1024, k / 128, m / 4);
            let names = |first: usize, count: usize| (first..first + count).collect::<Vec<_>>();
            let (a, b, c) = (names(10, a), names(14, b), names(16, c));
            let d = names(0, m / 4);
            let text = format!(
                "mma.sync.aligned.m{m}n8k{k}.row.col.s32.b1.b1.s32.{op}.popc {}, {}, {}, {};",
                list(&d),
                list(&a),
                list(&b),
                list(&c)
            );
            let each = a.len() + b.len() + c.len();
            let words = random(32 * each);
            let got = warp(&text, &[&a, &b, &c], &d, &words);
            let word = |lane: usize, n: usize| words[lane * each + n] as u32;
            for row in 0..m {
                for column in 0..8 {
                    let pairs = (0..k / 32).map(|w| {
                        let a = word(row % 8 * 4 + w % 4, w / 4 * (m / 8) + row / 8);
                        let b = word(column * 4 + w % 4, a_count(m, k) + w / 4);
                        if op == "and" { a & b } else { a ^ b }
                    });
                    let count: u32 = pairs.map(u32::count_ones).sum();
                    let (lane, register) = (row % 8 * 4 + column / 2, row / 8 * 2 + column % 2);
                    let c = word(lane, a_count(m, k) + k / 128 + register);
                    let want = u64::from(c.wrapping_add(count));
                    assert_eq!(
                        got[lane * d.len() + register],
                        want,
                        "{text} {row} {column}"
                    );
                }
            }
        }
    }
}

fn a_count(m: usize, k: usize) -> usize {
    m * k / 1024
}

#[test]
fn wmma_multiplies_doubles() {
    for (rows_of_a, rows_of_b) in [("row", "col"), ("col", "row"), ("row", "row")] {
        let body = format!(
            "wmma.load.a.sync.aligned.{rows_of_a}.m8n8k4.global.f64 {{%q10}}, [%q9], %r9;\n\
             add.s64 %q1, %q9, 800; wmma.load.b.sync.aligned.{rows_of_b}.m8n8k4.global.f64 {{%q11}}, [%q1], %r9;\n\
             add.s64 %q1, %q9, 1600; wmma.load.c.sync.aligned.row.m8n8k4.global.f64 {{%q12, %q13}}, [%q1];\n\
             wmma.mma.sync.aligned.{rows_of_a}.{rows_of_b}.m8n8k4.rn.f64.f64.f64.f64 {{%q14, %q15}}, {{%q10}}, {{%q11}}, {{%q12, %q13}};\n\
             wmma.store.d.sync.aligned.col.m8n8k4.global.f64 [%q8], {{%q14, %q15}}, %r9;"
        );
        let numbers: Vec<f64> = (0..300)
            .map(|n| f64::from(n * n % 97) * 0.25 - 9.0)
            .collect();
        let words: Vec<u64> = numbers.iter().map(|x| x.to_bits()).collect();
        let got = run("", &format!("mov.u32 %r9, 9;\n{body}"), 32, &words, 72);
        let at = |first: usize, layout: &str, row: usize, column: usize| match layout {
            "row" => numbers[first + 9 * row + column],
            _ => numbers[first + 9 * column + row],
        };
        for row in 0..8 {
            for column in 0..8 {
                let c = numbers[200 + 8 * row + column];
                let want = (0..4).fold(c, |sum, k| {
                    at(0, rows_of_a, row, k).mul_add(at(100, rows_of_b, k, column), sum)
                });
                let got = f64::from_bits(got[9 * column + row]);
                assert_eq!(got, want, "{rows_of_a} {rows_of_b} {row} {column}");
            }
        }
    }
}

#[test]
fn wmma_loads_elements_of_less_than_a_byte() {
    // A at byte 0 with 48 bytes a row, B at byte 512 with 32 bytes a column.
    for (ty, k, strides, op) in [
        ("s4", 32, [96, 64], ""),
        ("u4", 32, [96, 64], ""),
        ("b1", 128, [384, 256], ".and.popc"),
    ] {
        let [of_a, of_b] = strides;
        let body = format!(
            "wmma.load.a.sync.aligned.row.m8n8k{k}.global.{ty} {{%r10}}, [%q9], {of_a};\n\
             mov.u32 %r15, {of_b}; wmma.load.b.sync.aligned.col.m8n8k{k}.global.{ty} {{%r11}}, [%q9+512], %r15;\n\
             mov.u32 %r12, 0;\n\
             wmma.mma{op}.sync.aligned.row.col.m8n8k{k}.s32.{ty}.{ty}.s32 {{%r13, %r14}}, {{%r10}}, {{%r11}}, {{%r12, %r12}};\n\
             wmma.store.d.sync.aligned.row.m8n8k{k}.global.s32 [%q8], {{%r13, %r14}}, 8;"
        );
        let words = random(128);
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        let got = run("", &body, 32, &words, 32);
        let element = |first: usize, n: usize| match ty {
            "b1" => i32::from(bytes[first + n / 8] >> (n % 8) & 1),
            "u4" => i32::from(bytes[first + n / 2] >> (n % 2 * 4) & 15),
            _ => i32::from((bytes[first + n / 2] << (4 - n % 2 * 4)) as i8 >> 4),
        };
        for row in 0..8 {
            for column in 0..8 {
                let products = (0..k).map(|n| element(48 * row, n) * element(512 + 32 * column, n));
                let want: i32 = products.sum();
                let word = got[4 * row + column / 2] >> (32 * (column % 2)) as u32;
                assert_eq!(word as u32 as i32, want, "{ty} {row} {column}");
            }
        }
    }
}

#[test]
fn sparse_products_have_a_scale_for_each_block() {
    // A and B are ones: a block is as many products as A has nonzero elements there.
    let names = |first: usize, count: usize| (first..first + count).collect::<Vec<_>>();
    for (kind, k, one, blocks, types) in [
        ("mxf4", 128, 0x2222_2222_u64, 2, "e2m1.e2m1.f32"),
        ("mxf4nvf4", 128, 0x2222_2222, 4, "e2m1.e2m1.f32"),
        ("mxf8f6f4", 64, 0x3838_3838, 1, "e4m3.e4m3.f32"),
    ] {
        let text = format!(
            "mov.b32 {{%h1, %h2}}, 0;\n\
             mma.sp::ordered_metadata.sync.aligned.m16n8k{k}.row.col.kind::{kind}.block_scale.scale_vec::{blocks}X.f32.{types}.ue8m0 \
             {}, {}, {}, {}, %r18, 0, %r19, {{%h1, %h2}}, %r20, {{%h1, %h2}};",
            list(&names(0, 4)),
            list(&names(10, 4)),
            list(&names(14, 4)),
            list(&[21, 21, 21, 21])
        );
        // Metadata 0x4: the first two of four elements, or pairs.
        let inputs: [&[usize]; 3] = [&names(10, 8), &[18, 19, 20], &[21]];
        let scale = |lane: u64, block: u64, side: u64| 127 + (lane * 5 + block * 3 + side) % 7;
        let mut words = Vec::new();
        for lane in 0..32 {
            words.extend([one; 8]);
            let of = |side| {
                (0..4).fold(0, |all, block| {
                    all | scale(lane, block, side) << (8 * block)
                })
            };
            words.extend([0x4444_4444, of(0), of(1), 0]);
        }
        let got = warp(&text, &inputs, &names(0, 4), &words);
        for row in 0..16_u64 {
            for column in 0..8_u64 {
                let power = |code: u64| 2.0_f32.powi(code as i32 - 127);
                let sums = (0..blocks).map(|block| {
                    let of_a = scale(row % 8 * 4 + row / 8, block, 0);
                    let of_b = scale(column * 4, block, 1);
                    (k as u64 / 2 / blocks) as f32 * power(of_a) * power(of_b)
                });
                let want: f32 = sums.sum();
                let place = (row % 8 * 4 + column / 2) * 4 + row / 8 * 2 + column % 2;
                assert_eq!(
                    f32::from_bits(got[place as usize] as u32),
                    want,
                    "{kind} {row} {column}"
                );
            }
        }
    }
}

#[test]
fn columns_of_bytes_are_stored_as_rows() {
    for count in [1, 2, 4] {
        let names: Vec<usize> = (0..count).collect();
        let body = format!(
            "mul.wide.u32 %q10, %r8, 32; add.s64 %q10, %q9, %q10;\n{}\
             mov.u32 %r10, tile; shl.b32 %r11, %r8, 4; add.u32 %r12, %r10, %r11;\n\
             stmatrix.sync.aligned.m16n8.x{count}.trans.shared.b8 [%r12], {};\n\
             bar.warp.sync -1; setp.ge.u32 %p1, %r8, {}; @%p1 bra done; ld.shared.v2.u64 {{%q1, %q2}}, [%r12];\n\
             mul.wide.u32 %q10, %r8, 16; add.s64 %q10, %q8, %q10; st.global.v2.u64 [%q10], {{%q1, %q2}};\ndone:",
            loads(&names, 0),
            list(&names),
            8 * count
        );
        let words = random(4 * 32);
        let got = run(
            ".shared .align 16 .b8 tile[512];",
            &body,
            32,
            &words,
            16 * count,
        );
        let bytes: Vec<u8> = got.iter().flat_map(|w| w.to_le_bytes()).collect();
        for matrix in 0..count {
            for (column, row) in (0..8).flat_map(|column| (0..16).map(move |row| (column, row))) {
                let lane = row % 8 * 4 + column / 2;
                let register = words[4 * lane + matrix] as u32;
                let want = (register >> (8 * (column % 2 + row / 8 * 2))) as u8;
                assert_eq!(
                    bytes[128 * matrix + 16 * column + row],
                    want,
                    "x{count} {column} {row}"
                );
            }
        }
    }
}
