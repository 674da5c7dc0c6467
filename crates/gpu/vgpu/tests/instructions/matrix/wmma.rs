//! `wmma`: matrices in memory, in every layout.

use super::{E, Matrix, compare, list};
use crate::harness::{Random, launch_words};
use vgpu::{Arch, Arg, GlobalMemory, HazardKind, Launch, Module, launch};

#[test]
fn wmma_multiplies_matrices_in_memory_in_every_layout() {
    for (a_row, b_row, c_row) in [
        (true, true, true),
        (true, false, true),
        (false, true, false),
        (false, false, true),
    ] {
        for (m, n, k) in [(16, 16, 16), (32, 8, 16), (8, 32, 16)] {
            check_wmma(&Shape {
                m,
                n,
                k,
                a_row,
                b_row,
                c_row,
                e: E::F16,
                acc: E::F32,
                types: "f32.f32",
                load: "f16",
            });
            check_wmma(&Shape {
                m,
                n,
                k,
                a_row,
                b_row,
                c_row,
                e: E::F16,
                acc: E::F16,
                types: "f16.f16",
                load: "f16",
            });
            check_wmma(&Shape {
                m,
                n,
                k,
                a_row,
                b_row,
                c_row,
                e: E::Bf16,
                acc: E::F32,
                types: "f32.bf16.bf16.f32",
                load: "bf16",
            });
            check_wmma(&Shape {
                m,
                n,
                k,
                a_row,
                b_row,
                c_row,
                e: E::S8,
                acc: E::S32,
                types: "s32.s8.s8.s32",
                load: "s8",
            });
        }
        check_wmma(&Shape {
            m: 16,
            n: 16,
            k: 8,
            a_row,
            b_row,
            c_row,
            e: E::Tf32,
            acc: E::F32,
            types: "f32.tf32.tf32.f32",
            load: "tf32",
        });
    }
}

struct Shape {
    m: usize,
    n: usize,
    k: usize,
    a_row: bool,
    b_row: bool,
    c_row: bool,
    e: E,
    acc: E,
    types: &'static str,
    load: &'static str,
}

impl Shape {
    /// Returns the numbers of registers of the fragments as in the PTX ISA.
    fn registers(&self) -> (usize, usize, usize) {
        let elements = |rows: usize, columns: usize, per: usize| rows * columns / 32 / per;
        let per = self.e.per_register();
        let (a, b) = match self.e {
            E::F16 => (8, 8),
            _ => (elements(self.m, self.k, per), elements(self.k, self.n, per)),
        };
        (a, b, elements(self.m, self.n, self.acc.per_register()))
    }
}

fn major(row: bool) -> &'static str {
    if row { "row" } else { "col" }
}

fn check_wmma(s: &Shape) {
    let mut random = Random((s.m * s.n + s.k) as u64);
    let mut pack = |e: E, count: usize| -> Vec<u64> {
        (0..count / e.per_register())
            .map(|_| e.register(&mut random))
            .collect()
    };
    // The matrices are stored consecutively, two 32-bit registers per word.
    let (a, b, c) = (
        pack(s.e, s.m * s.k),
        pack(s.e, s.k * s.n),
        pack(s.acc, s.m * s.n),
    );
    let all: Vec<u64> = a.iter().chain(&b).chain(&c).copied().collect();
    let words: Vec<u64> = all
        .chunks(2)
        .map(|p| p[0] | p.get(1).map_or(0, |h| h << 32))
        .collect();
    let (na, nb, nc) = s.registers();
    let acc = match s.acc {
        E::F16 => "f16",
        E::S32 => "s32",
        _ => "f32",
    };
    let shape = format!("m{}n{}k{}", s.m, s.n, s.k);
    let stride = |row: bool, rows: usize, columns: usize| if row { columns } else { rows };
    let text = format!(
        ".version 8.8\n.target sm_90a\n.address_size 64\n\
         .visible .entry k(.param .u64 out, .param .u64 in) {{\n\
         .reg .b32 %a<8>; .reg .b32 %b<8>; .reg .b32 %c<8>; .reg .b32 %d<8>; .reg .b64 %q<8>;\n\
         ld.param.u64 %q0, [out]; ld.param.u64 %q1, [in]; add.s64 %q2, %q1, {}; add.s64 %q3, %q1, {};\n\
         wmma.load.a.sync.aligned.{am}.{shape}.global.{} {}, [%q1], {};\n\
         wmma.load.b.sync.aligned.{bm}.{shape}.global.{} {}, [%q2], {};\n\
         wmma.load.c.sync.aligned.{cm}.{shape}.global.{acc} {}, [%q3], {};\n\
         wmma.mma.sync.aligned.{am}.{bm}.{shape}.{} {}, {}, {}, {};\n\
         wmma.store.d.sync.aligned.{cm}.{shape}.global.{acc} [%q0], {}, {};\nret;\n}}\n",
        4 * a.len(),
        4 * (a.len() + b.len()),
        s.load,
        list("%a", 0..na),
        stride(s.a_row, s.m, s.k),
        s.load,
        list("%b", 0..nb),
        stride(s.b_row, s.k, s.n),
        list("%c", 0..nc),
        stride(s.c_row, s.m, s.n),
        s.types,
        list("%d", 0..nc),
        list("%a", 0..na),
        list("%b", 0..nb),
        list("%c", 0..nc),
        list("%d", 0..nc),
        stride(s.c_row, s.m, s.n),
        am = major(s.a_row),
        bm = major(s.b_row),
        cm = major(s.c_row),
    );
    let module = Module::load(&text).unwrap_or_else(|e| panic!("{text}: {e}"));
    let outputs = c.len().div_ceil(2);
    let results = launch_words(&module, "k", 1, 32, &words, outputs, &text);
    let halves: Vec<u64> = results
        .iter()
        .flat_map(|w| [w & 0xffff_ffff, w >> 32])
        .collect();
    let matrix = |e: E, words: &[u64], rows: usize, columns: usize, row_major: bool| -> Matrix {
        let per = e.per_register();
        (0..rows)
            .map(|i| {
                (0..columns)
                    .map(|j| {
                        let at = if row_major {
                            i * columns + j
                        } else {
                            j * rows + i
                        };
                        e.value(words[at / per], at % per)
                    })
                    .collect()
            })
            .collect()
    };
    compare(
        &text,
        s.acc,
        &matrix(s.e, &a, s.m, s.k, s.a_row),
        &matrix(s.e, &b, s.k, s.n, s.b_row),
        &matrix(s.acc, &c, s.m, s.n, s.c_row),
        &matrix(s.acc, &halves, s.m, s.n, s.c_row),
    );
}

/// Loads a matrix from byte `offset` of a buffer in global or shared memory, with rows `stride` elements apart.
fn misaligned(which: &str, registers: usize, offset: u32, stride: u32) -> Vec<HazardKind> {
    let (matrix, ty) = which.split_once(' ').unwrap();
    let (form, space) = matrix.split_once(':').unwrap();
    let text = format!(
        ".version 8.8\n.target sm_90a\n.address_size 64\n\
         .visible .entry k(.param .u64 at) {{\n.shared .align 128 .b8 tile[4096];\n\
         .reg .b32 %a<8>; .reg .b64 %q<2>;\n\
         ld.param.u64 %q0, [at]; {} add.s64 %q0, %q0, {offset};\n\
         wmma.load.{form}.m16n16k16.{space}.{ty} {}, [%q0], {stride};\nret;\n}}\n",
        if space == "shared" {
            "mov.u64 %q0, tile;"
        } else {
            ""
        },
        list("%a", 0..registers),
    );
    let module = Module::load(&text).unwrap();
    let mut memory = GlobalMemory::new(1 << 20);
    let buffer = memory.alloc(4096, "matrix").unwrap();
    memory.write(buffer, 0, &[0; 4096]);
    let mut spec = Launch::new("k", [1, 1, 1], [32, 1, 1], vec![Arg::Buffer(buffer)]);
    spec.threads = 1;
    spec.checks.uninitialized = false;
    let arch = Arch::by_name("h100").unwrap();
    let report = launch(&module, &mut memory, arch, &spec).unwrap();
    report.hazards.iter().map(|hazard| hazard.kind).collect()
}

#[test]
fn rows_of_a_matrix_in_memory_begin_where_machine_code_needs_it() {
    // What ptxas makes: LDSM of rows, words of pairs along K, single elements; STG.64 of sums in rows.
    for (which, registers, aligned, askew) in [
        (
            "a.sync.aligned.row:shared f16",
            8,
            &[(0, 24), (16, 16)][..],
            &[(0, 17), (0, 18), (8, 16), (4, 24)][..],
        ),
        ("a.sync.aligned.col:shared f16", 8, &[(0, 24)], &[(0, 18)]),
        (
            "a.sync.aligned.row:global f16",
            8,
            &[(4, 18), (8, 16)],
            &[(0, 17), (2, 16)],
        ),
        ("a.sync.aligned.col:global f16", 8, &[(2, 17)], &[]),
        (
            "a.sync.aligned.row:shared s8",
            2,
            &[(0, 32), (16, 16)],
            &[(0, 24), (8, 16)],
        ),
        ("b.sync.aligned.row:shared s8", 2, &[(0, 24), (1, 17)], &[]),
        (
            "c.sync.aligned.row:global f32",
            8,
            &[(8, 18), (0, 20)],
            &[(0, 17), (4, 16)],
        ),
        ("c.sync.aligned.col:shared f32", 8, &[(0, 17), (4, 18)], &[]),
    ] {
        for (places, wanted) in [(aligned, None), (askew, Some(HazardKind::Misaligned))] {
            for (offset, stride) in places {
                let found = misaligned(which, registers, *offset, *stride);
                assert_eq!(found.first().copied(), wanted, "{which} {offset} {stride}");
            }
        }
    }
}
