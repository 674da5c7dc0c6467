//! Runs one instruction on many operands through the executor and compares it with a model.

use vgpu::{Arch, Arg, End, GlobalMemory, Launch, Module, launch};

/// Width of an operand's register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum W {
    /// 16 bits.
    H,
    /// 32 bits.
    R,
    /// 64 bits.
    Q,
    /// A predicate: true where the input is not zero; 1 or 0 as a result.
    P,
}
pub(crate) use W::{H, P, Q, R};

const BLOCK: usize = 128;

/// Builds the text of a kernel that applies `snippet` to the operands of one thread.
///
/// In the snippet `{d}` is the destination and `{a}`, `{b}`, `{c}`, `{e}` are the sources.
fn kernel(snippet: &str, d: W, sources: &[W]) -> String {
    let mut text = String::from(
        ".version 8.8\n.target sm_90a\n.address_size 64\n\
         .visible .entry k(.param .u64 out, .param .u64 in) {\n\
         .reg .b16 %h<8>; .reg .b32 %r<16>; .reg .b64 %q<16>; .reg .pred %p<8>;\n\
         mov.u32 %r8, %tid.x; mov.u32 %r9, %ctaid.x; mov.u32 %r10, %ntid.x;\n\
         mad.lo.s32 %r8, %r9, %r10, %r8;\n\
         ld.param.u64 %q8, [out]; ld.param.u64 %q9, [in];\n\
         cvta.to.global.u64 %q8, %q8; cvta.to.global.u64 %q9, %q9;\n",
    );
    text += &format!(
        "mul.wide.u32 %q10, %r8, {}; add.s64 %q9, %q9, %q10;\n",
        8 * sources.len()
    );
    text += "mul.wide.u32 %q10, %r8, 8; add.s64 %q8, %q8, %q10;\n";
    let mut body = snippet.to_owned();
    for (i, (w, name)) in sources.iter().zip(["{a}", "{b}", "{c}", "{e}"]).enumerate() {
        let (load, register) = match w {
            H => (
                format!("ld.global.u16 %h{i}, [%q9+{}];\n", 8 * i),
                format!("%h{i}"),
            ),
            R => (
                format!("ld.global.u32 %r{i}, [%q9+{}];\n", 8 * i),
                format!("%r{i}"),
            ),
            Q => (
                format!("ld.global.u64 %q{i}, [%q9+{}];\n", 8 * i),
                format!("%q{i}"),
            ),
            P => (
                format!(
                    "ld.global.u32 %r{i}, [%q9+{}]; setp.ne.u32 %p{i}, %r{i}, 0;\n",
                    8 * i
                ),
                format!("%p{i}"),
            ),
        };
        text += &load;
        body = body.replace(name, &register);
    }
    let (result, store) = match d {
        H => ("%h7", "cvt.u64.u16 %q12, %h7;\n"),
        R => ("%r7", "cvt.u64.u32 %q12, %r7;\n"),
        Q => ("%q7", "mov.u64 %q12, %q7;\n"),
        P => ("%p7", "selp.u64 %q12, 1, 0, %p7;\n"),
    };
    text += &body.replace("{d}", result);
    text += "\n";
    text += store;
    text += "st.global.u64 [%q8], %q12;\nret;\n}\n";
    text
}

/// Applies the snippet to every row of operands.
pub(crate) fn run(snippet: &str, d: W, sources: &[W], rows: &[Vec<u64>]) -> Vec<u64> {
    let text = kernel(snippet, d, sources);
    let module = Module::load(&text).unwrap_or_else(|e| panic!("{snippet}: {e}"));
    applied(&module, snippet, sources, rows)
}

/// Does the same, with products rounded as the assembler rounds them.
pub(crate) fn run_contracted(snippet: &str, d: W, sources: &[W], rows: &[Vec<u64>]) -> Vec<u64> {
    let text = kernel(snippet, d, sources);
    let module = Module::load_contracted(&text).unwrap_or_else(|e| panic!("{snippet}: {e}"));
    applied(&module, snippet, sources, rows)
}

fn applied(module: &Module, snippet: &str, sources: &[W], rows: &[Vec<u64>]) -> Vec<u64> {
    let blocks = rows.len().div_ceil(BLOCK);
    let mut words: Vec<u64> = rows.iter().flatten().copied().collect();
    words.resize(blocks * BLOCK * sources.len(), 0);
    launch_words(module, "k", blocks, BLOCK, &words, blocks * BLOCK, snippet)
}

/// Launches `entry(out, in)` of 64-bit words and returns `out`.
pub(crate) fn launch_words(
    module: &Module,
    entry: &str,
    blocks: usize,
    threads: usize,
    input: &[u64],
    outputs: usize,
    what: &str,
) -> Vec<u64> {
    let mut memory = GlobalMemory::new(1 << 30);
    let out = memory.alloc(8 * outputs as u64, "out").unwrap();
    let inputs = memory.alloc(8 * input.len().max(1) as u64, "in").unwrap();
    let bytes: Vec<u8> = input.iter().flat_map(|w| w.to_le_bytes()).collect();
    memory.write(inputs, 0, &bytes);
    let arch = Arch::by_name("h100").unwrap();
    let mut spec = Launch::new(
        entry,
        [blocks as u32, 1, 1],
        [threads as u32, 1, 1],
        vec![Arg::Buffer(out), Arg::Buffer(inputs)],
    );
    spec.threads = 1;
    let report = launch(module, &mut memory, arch, &spec).unwrap_or_else(|e| panic!("{what}: {e}"));
    assert!(report.hazards.is_empty(), "{what}: {:?}", report.hazards);
    assert_eq!(report.end, End::Completed, "{what}");
    let bytes = memory.read(out);
    bytes
        .chunks_exact(8)
        .map(|c| u64::from_le_bytes(c.try_into().unwrap()))
        .collect()
}

/// Kind of an operand's values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Any bits, small and large integers often.
    Int,
    /// Integers of 0 to 80.
    Shift,
    /// Singles.
    F32,
    /// Doubles.
    F64,
    /// IEEE halves, in pairs where the register is 32 bits wide.
    F16,
    /// bfloat16s, in pairs where the register is 32 bits wide.
    Bf16,
}

/// A small deterministic generator (splitmix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// Returns the next 64 bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn pick(&mut self, list: &[u64]) -> u64 {
        list[self.next() as usize % list.len()]
    }

    /// Returns one operand.
    pub(crate) fn operand(&mut self, kind: Kind, width: W) -> u64 {
        let bits = match width {
            H => 16,
            R => 32,
            Q => 64,
            P => return self.next() & 1,
        };
        let mask = u64::MAX >> (64 - bits);
        let value = match kind {
            Kind::Int => self.integer(bits),
            Kind::Shift => self.next() % 80,
            Kind::F32 => self.single().into(),
            Kind::F64 => self.double(),
            Kind::F16 | Kind::Bf16 => {
                let low = self.half(kind);
                low | self.half(kind) << 16
            }
        };
        value & mask
    }

    fn integer(&mut self, bits: u32) -> u64 {
        let top = 1_u64 << (bits - 1);
        let edges = [
            0,
            1,
            2,
            3,
            31,
            32,
            255,
            256,
            65535,
            top,
            top - 1,
            top + 1,
            u64::MAX,
            u64::MAX - 1,
        ];
        match self.next() % 4 {
            0 => self.pick(&edges),
            1 => self.next() >> (self.next() % 64),
            _ => self.next(),
        }
    }

    fn single(&mut self) -> u32 {
        let edges = [
            0,
            0x8000_0000,
            1,
            0x8000_0001,
            0x007f_ffff,
            0x0080_0000,
            0x3f80_0000,
            0xbf80_0000,
            0x3f80_0001,
            0x3f00_0000,
            0x4000_0000,
            0x4b80_0000,
            0x7f7f_ffff,
            0xff7f_ffff,
            0x7f80_0000,
            0xff80_0000,
            0x7fc0_0000,
            0xffc0_0001,
            0x7f80_0001,
            0x4f00_0000,
            0xcf00_0000,
        ];
        match self.next() % 4 {
            0 => self.pick(&edges) as u32,
            1 => self.next() as u32,
            _ => {
                let exponent = 110 + (self.next() % 40) as u32;
                (self.next() as u32 & 0x807f_ffff) | exponent << 23
            }
        }
    }

    fn double(&mut self) -> u64 {
        match self.next() % 4 {
            0 => f64::from(f32::from_bits(self.single())).to_bits(),
            1 => self.next(),
            2 => ((self.next() as i64 >> (self.next() % 60)) as f64 * 0.5).to_bits(),
            _ => (self.next() & 0x800f_ffff_ffff_ffff) | (1003 + self.next() % 40) << 52,
        }
    }

    fn half(&mut self, kind: Kind) -> u64 {
        let f16 = [
            0, 0x8000, 1, 0x83ff, 0x0400, 0x3c00, 0xbc00, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00,
            0xfd01,
        ];
        let bf16 = [
            0, 0x8000, 1, 0x807f, 0x0080, 0x3f80, 0xbf80, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7fc0,
            0xff81,
        ];
        match (self.next() % 4, kind) {
            (0, Kind::F16) => self.pick(&f16),
            (0, _) => self.pick(&bf16),
            (1, _) => self.next() & 0xffff,
            (_, Kind::F16) => (self.next() & 0x83ff) | (8 + self.next() % 14) << 10,
            _ => (self.next() & 0x807f) | (118 + self.next() % 20) << 7,
        }
    }
}

/// Returns rows of operands for sources of these widths and kinds.
pub(crate) fn rows(seed: &str, count: usize, sources: &[(W, Kind)]) -> Vec<Vec<u64>> {
    let seed = seed
        .bytes()
        .fold(7, |s: u64, b| s.wrapping_mul(31).wrapping_add(b.into()));
    let mut random = Random(seed);
    (0..count)
        .map(|_| {
            sources
                .iter()
                .map(|(w, k)| random.operand(*k, *w))
                .collect()
        })
        .collect()
}

/// Runs the snippet on 2048 rows and requires `accept(operands, result)` to be `Ok` for all.
pub(crate) fn accept(
    snippet: &str,
    d: W,
    sources: &[(W, Kind)],
    accept: impl Fn(&[u64], u64) -> Result<(), String>,
) {
    let rows = rows(snippet, 2048, sources);
    let widths: Vec<W> = sources.iter().map(|s| s.0).collect();
    let results = run(snippet, d, &widths, &rows);
    for (row, result) in rows.iter().zip(results) {
        if let Err(why) = accept(row, result) {
            panic!("{snippet} of {row:x?} is {result:#x}: {why}");
        }
    }
}

/// Runs the snippet on 2048 rows and requires exactly the model's bits.
pub(crate) fn check(snippet: &str, d: W, sources: &[(W, Kind)], model: impl Fn(&[u64]) -> u64) {
    accept(snippet, d, sources, |row, result| {
        let expected = model(row);
        if expected == result {
            Ok(())
        } else {
            Err(format!("expected {expected:#x}"))
        }
    });
}
