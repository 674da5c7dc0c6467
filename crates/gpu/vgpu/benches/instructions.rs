//! Time of single instructions in the executor, all lanes active:
//! `cargo bench -p vgpu --bench instructions`.

use std::time::Instant;
use vgpu::{Arch, Arg, GlobalMemory, Launch, Module, launch};

const UNROLL: usize = 32;
const TURNS: usize = 4000;

/// Instructions over `%f` (f32), `%r` (b32), `%d` (f64), `%q` (b64), `%p`; registers 1 to 3 hold
/// ordinary values, 0 is the destination.
const TABLE: &[&str] = &[
    "add.s32 %r0, %r1, %r2;",
    "mad.lo.s32 %r0, %r1, %r2, %r3;",
    "mul.wide.s32 %q0, %r1, %r2;",
    "add.s64 %q0, %q1, %q2;",
    "shl.b32 %r0, %r1, 3;",
    "and.b32 %r0, %r1, %r2;",
    "lop3.b32 %r0, %r1, %r2, %r3, 0x2d;",
    "prmt.b32 %r0, %r1, %r2, 0x5410;",
    "setp.lt.s32 %p0, %r1, %r2;",
    "setp.lt.f32 %p0, %f1, %f2;",
    "selp.f32 %f0, %f1, %f2, %p1;",
    "mov.f32 %f0, %f1;",
    "add.f32 %f0, %f1, %f2;",
    "add.ftz.f32 %f0, %f1, %f2;",
    "sub.f32 %f0, %f1, %f2;",
    "mul.f32 %f0, %f1, %f2;",
    "mul.ftz.f32 %f0, %f1, %f2;",
    "fma.rn.f32 %f0, %f1, %f2, %f3;",
    "fma.rn.ftz.f32 %f0, %f1, %f2, %f3;",
    "fma.rm.f32 %f0, %f1, %f2, %f3;",
    "max.f32 %f0, %f1, %f2;",
    "max.ftz.f32 %f0, %f1, %f2;",
    "min.f32 %f0, %f1, %f2;",
    "ex2.approx.ftz.f32 %f0, %f1;",
    "ex2.approx.f32 %f0, %f1;",
    "lg2.approx.f32 %f0, %f2;",
    "rcp.approx.ftz.f32 %f0, %f2;",
    "rsqrt.approx.f32 %f0, %f2;",
    "tanh.approx.f32 %f0, %f1;",
    "div.rn.f32 %f0, %f1, %f2;",
    "neg.f32 %f0, %f1;",
    "cvt.rn.f16.f32 %h0, %f1;",
    "cvt.f32.f16 %f0, %h1;",
    "cvt.rn.f16x2.f32 %r0, %f1, %f2;",
    "cvt.rn.bf16x2.f32 %r0, %f1, %f2;",
    "cvt.rn.f32.s32 %f0, %r1;",
    "cvt.rzi.s32.f32 %r0, %f1;",
    "cvt.s64.s32 %q0, %r1;",
    "fma.rn.f16x2 %r0, %r1, %r2, %r3;",
    "add.f16x2 %r0, %r1, %r2;",
    "fma.rn.bf16x2 %r0, %r1, %r2, %r3;",
    "add.f64 %d0, %d1, %d2;",
    "fma.rn.f64 %d0, %d1, %d2, %d3;",
    "mov.b64 {%r0, %r4}, %q1;",
    "shfl.sync.bfly.b32 %r0|%p0, %r1, 4, 31, -1;",
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f4,%f5,%f6,%f7}, {%r1,%r2,%r3,%r1}, {%r2,%r3}, {%f1,%f2,%f3,%f1};",
    "ld.shared.f32 %f0, [%r9];",
    "ld.shared.v4.f32 {%f4,%f5,%f6,%f7}, [%r8];",
    "st.shared.f32 [%r9], %f1;",
    "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r4,%r5,%r6,%r7}, [%r8];",
    "ld.global.f32 %f0, [%q9];",
    "ld.global.v4.f32 {%f4,%f5,%f6,%f7}, [%q8];",
    "st.global.f32 [%q9], %f1;",
];

fn kernel(instruction: &str) -> String {
    let body = format!("{instruction}\n").repeat(UNROLL);
    format!(
        ".version 8.8\n.target sm_90a\n.address_size 64\n\
         .visible .entry k(.param .u64 p) {{\n\
         .reg .b16 %h<8>; .reg .b32 %r<16>; .reg .f32 %f<8>; .reg .f64 %d<8>; .reg .b64 %q<16>; .reg .pred %p<4>;\n\
         .shared .align 16 .b8 s[1024];\n\
         mov.u32 %r10, %tid.x; ld.param.u64 %q7, [p]; mul.wide.u32 %q10, %r10, 16; add.s64 %q8, %q7, %q10;\n\
         mul.wide.u32 %q10, %r10, 4; add.s64 %q9, %q7, %q10;\n\
         mov.u32 %r11, s; shl.b32 %r12, %r10, 4; add.u32 %r8, %r11, %r12; shl.b32 %r12, %r10, 2; add.u32 %r9, %r11, %r12;\n\
         st.shared.v4.u32 [%r8], {{%r10, %r10, %r10, %r10}}; bar.sync 0;\n\
         mul.lo.u32 %r1, %r10, 77; xor.b32 %r2, %r10, 0x3c003801; xor.b32 %r3, %r1, 0x38003c01;\n\
         cvt.rn.f32.u32 %f1, %r10; add.f32 %f2, %f1, 0f3F000000; mul.f32 %f3, %f2, 0f3E99999A; mul.f32 %f1, %f3, 0fBF400000;\n\
         cvt.f64.f32 %d1, %f1; cvt.f64.f32 %d2, %f2; cvt.f64.f32 %d3, %f3; cvt.u64.u32 %q1, %r1; cvt.u64.u32 %q2, %r2;\n\
         cvt.rn.f16.f32 %h1, %f2; setp.gt.u32 %p1, %r10, 13; mov.u32 %r13, 0;\n\
         L: {body} add.u32 %r13, %r13, 1; setp.lt.u32 %p2, %r13, {TURNS}; @%p2 bra L;\nret;\n}}\n"
    )
}

#[expect(clippy::print_stdout, reason = "a benchmark's figures are its output")]
fn main() {
    let Some(arch) = Arch::by_name("h100") else {
        return;
    };
    for instruction in TABLE {
        let module = match Module::load(&kernel(instruction)) {
            Ok(module) => module,
            Err(error) => {
                println!("{instruction}: {error}");
                continue;
            }
        };
        let mut memory = GlobalMemory::new(1 << 20);
        let Ok(buffer) = memory.alloc(1024, "p") else {
            return;
        };
        memory.write(buffer, 0, &[0; 1024]);
        let mut spec = Launch::new("k", [1, 1, 1], [32, 1, 1], vec![Arg::Buffer(buffer)]);
        spec.threads = 1;
        let start = Instant::now();
        let report = launch(&module, &mut memory, arch, &spec);
        let ns = start.elapsed().as_nanos() as f64 / (UNROLL * TURNS) as f64;
        let hazards = report.map_or(99, |r| r.hazards.len());
        let note = if hazards > 0 { "  (hazards!)" } else { "" };
        println!("{ns:8.1} ns a warp  {instruction}{note}");
    }
}
