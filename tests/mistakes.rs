//! Typical mistakes of a first hour: each message names the place and what to type.
//!
//! The files are those of the example of docs/write-a-kernel.md, with one thing changed. Every row has the place that
//! the message must name and a part of what it tells to do: a person can act on it without reading
//! code.

use std::path::Path;

/// A changed text of a file: the file, what stands there, and what is put instead.
type Edit = (&'static str, &'static str, &'static str);

/// A mistake, the exit code, the place and the advice.
type Mistake = (Edit, &'static str, i32, &'static str, &'static str);

const CHECK: &str = "check scale.yaml --problem ragged";
const YAML: &str = "scale.yaml";
const CUDA: &str = "scale.cu";
const REFERENCE: &str = "scale_reference.cu";
const NONE: Edit = ("", "", "");

#[rustfmt::skip]
const FORM: [Mistake; 21] = [
    ((YAML, "version: 1\n", ""), CHECK, 2, "scale.yaml:1:1", "add `version: …`"),
    ((YAML, "version: 1", "version: 2"), CHECK, 2, "scale.yaml:2:10", "write `version: 1`"),
    ((YAML, "kernel: scale", "kernal: scale"), CHECK, 2, "scale.yaml:3:1", "did you mean `kernel`?"),
    ((YAML, "kernel: scale", "kernel: my scale"), CHECK, 2, "scale.yaml:3:9", "use letters, digits and `_`"),
    ((YAML, "source: scale.cu\n", ""), CHECK, 2, "scale.yaml:1:1", "add `source: …`"),
    ((YAML, "source: scale.cu", "source: scala.cu"), CHECK, 2, "scale.yaml:4:9", "did you mean `scale.cu`?"),
    ((YAML, "problems: { large: { N: 1048576 } }\n", ""), CHECK, 2, "scale.yaml:1:1", "add `problems: …`"),
    ((YAML, "{ large: { N: 1048576 } }", "{ large: 1048576 }"), CHECK, 2, "scale.yaml:5:20", "write `{ NAME: … }`"),
    ((YAML, "{ values: [64", "{ value: [64"), CHECK, 2, "scale.yaml:8:12", "did you mean `values`?"),
    ((YAML, "[64, 128, 256, 512]", "[]"), CHECK, 2, "scale.yaml:8:20", "list at least one value"),
    ((YAML, "[64, 128, 256, 512]", "[64, 64, 128]"), CHECK, 2, "scale.yaml:8:25", "list every value once"),
    ((YAML, "[64, 128, 256, 512]", "64"), CHECK, 2, "scale.yaml:8:20", "write `[64]`"),
    ((YAML, "default: 128", "default: 100"), CHECK, 2, "scale.yaml:8:50", "its values are 64, 128, 256, 512"),
    ((YAML, "values: [64, 128, 256, 512], default: 128", "range: { from: 512, to: 64, step: 64 }"), CHECK, 2, "scale.yaml:8:19", "swap `from` and `to`"),
    ((YAML, "  BLOCK: {", "  BLOCK-X: {"), CHECK, 2, "scale.yaml:8:3", "use letters, digits and `_`"),
    ((YAML, "  VEC: {", "  BLOCK: {"), CHECK, 2, "scale.yaml:9:3", "remove one of the two"),
    ((YAML, "  VEC: {", "  N: {"), CHECK, 2, "scale.yaml:5:22", "rename one of them"),
    ((YAML, "parameters:\n", "parameters:\n\t"), CHECK, 2, "scale.yaml:8:4", "indent with spaces, not tabs"),
    ((YAML, "reference: {", "reference: { oracle: gemm, "), CHECK, 2, "scale.yaml:17:37", "keep one of them"),
    ((YAML, "\"8 * N\"", "\"8 * M\""), CHECK, 2, "scale.yaml:18:23", "the names are BLOCK"),
    ((YAML, "metric: {", "metrics: {"), CHECK, 2, "scale.yaml:18:1", "did you mean `metric`?"),
];

/// Mistakes whose messages once pointed elsewhere.
#[rustfmt::skip]
const MISLEADING: [Mistake; 18] = [
    ((YAML, "[64, 128, 256, 512]", "64 128 256"), CHECK, 2, "scale.yaml:8:20", "write `[64, 128, 256]`"),
    ((YAML, "[64, 128, 256, 512]", "[64 128; 256]"), CHECK, 2, "scale.yaml:8:20", "separate the values by commas: `[64, 128, 256]`"),
    ((YAML, "[64, 128, 256, 512]", "64, 128, 256"), CHECK, 2, "scale.yaml:8:20", "write `[64, 128, 256]`"),
    ((YAML, "[64, 128, 256, 512]", "(64, 128, 256)"), CHECK, 2, "scale.yaml:8:20", "write `[64, 128, 256]`"),
    ((YAML, "[64, 128, 256, 512]", "fast slow"), CHECK, 2, "scale.yaml:8:20", "write `[fast, slow]`"),
    ((YAML, "[\"ceil_div(N, BLOCK * VEC)\", 1, 1]", "\"ceil_div(N, BLOCK * VEC)\""), CHECK, 2, "scale.yaml:16:27", "write `[\"ceil_div(N, BLOCK * VEC)\"]`"),
    ((YAML, "metric: {", "gate: { rtol: -0.7% }\nmetric: {"), CHECK, 2, "scale.yaml:18:15", "write a share of 1: 0.007"),
    ((YAML, "launches:", "  - { name: n, type: i32, role: scalar }\nlaunches:"), CHECK, 2, "scale.yaml:15:", "to pass the size `N`, `value: N`"),
    ((YAML, "launches:", "  - { name: size, type: i32, role: scalar }\nlaunches:"), CHECK, 2, "scale.yaml:15:", "to pass the size `N`, `value: N`"),
    (NONE, "run scale.yaml 10m", 2, "`10m` is not a kernel", "type --budget 10m"),
    (NONE, "run 2h", 2, "`2h` is not a kernel", "type --budget 2h"),
    (NONE, "run scale.yaml 200", 2, "`200` is not a kernel", "type --evals 200"),
    (NONE, "run scale.yaml 1%", 2, "`1%` is not a kernel", "type --until-converged=1%"),
    ((YAML, "metric: {", "gate: { atol: 1e-3, rtol: 1% }\nmetric: {"), CHECK, 2, "scale.yaml:18:27", "write a share of 1: 0.01"),
    ((YAML, "metric: {", "gate: { atol: \"1e-3\" }\nmetric: {"), CHECK, 2, "scale.yaml:18:15", "write it without quotes"),
    ((YAML, "launches:", "  - { name: N, type: i32, role: scalar }\nlaunches:"), CHECK, 2, "scale.yaml:15:", "add `sizes: argument`"),
    (NONE, "run scale.yaml --until-converged 1%", 2, "`1%` is not a kernel", "type --until-converged=1%"),
    ((YAML, "{ N: 1048576 }", "{ N: 1048576, weight: -2 }"), CHECK, 2, "scale.yaml:5:42", "write a number such as 2"),
];

const RULE: &str = "BLOCK * VEC <= 1024";

#[rustfmt::skip]
const EXPRESSIONS: [Mistake; 9] = [
    ((YAML, RULE, "BLOCK * VEK <= 1024"), CHECK, 2, "scale.yaml:11:22", "did you mean `VEC`?"),
    ((YAML, RULE, "BLOCK * VEC <= "), CHECK, 2, "scale.yaml:11:29", "an operand or a bracket is missing"),
    ((YAML, RULE, "BLOCK * VEC = 1024"), CHECK, 2, "scale.yaml:11:26", "write `==`"),
    ((YAML, RULE, "BLOCK <= 1024 && VEC > 0"), CHECK, 2, "scale.yaml:11:28", "write `and`"),
    ((YAML, RULE, "cdiv(N, BLOCK) > 0"), CHECK, 2, "scale.yaml:11:14", "write `ceil_div(a, b)`"),
    ((YAML, RULE, "ceil_div(N) > 0"), CHECK, 2, "scale.yaml:11:14", "give `ceil_div` two arguments"),
    ((YAML, RULE, "(BLOCK * VEC <= 1024"), CHECK, 2, "scale.yaml:11:14", "this bracket is never closed"),
    ((YAML, RULE, "BLOCK * VEC <= 10"), CHECK, 2, "scale.yaml:11:13", "loosen this constraint"),
    ((YAML, RULE, "VEC <= DEVICE_SHARED"), CHECK, 2, "scale.yaml:11:21", "DEVICE_SHARED_BYTES"),
];

#[rustfmt::skip]
const ARGUMENTS: [Mistake; 11] = [
    ((YAML, "type: f32, role: input", "type: float, role: input"), CHECK, 2, "scale.yaml:13:22", "f32"),
    ((YAML, "type: f32, role: output", "type: f64, role: output"), CHECK, 2, "scale.yaml:14:22", "write `type: f32` here"),
    ((YAML, "role: output", "role: out"), CHECK, 2, "scale.yaml:14:33", "output"),
    ((YAML, "role: output", "role: input"), CHECK, 2, "scale.yaml:1:1", "with `role: output`"),
    ((YAML, "role: input, shape: [N]", "role: input"), CHECK, 2, "scale.yaml:13:33", "add `shape: [M, N]`"),
    ((YAML, "role: input, shape", "role: output, shape"), CHECK, 2, "scale.yaml:13:33", "`role: input` here"),
    ((YAML, "name: y,", "name: x,"), CHECK, 2, "scale.yaml:14:13", "rename one of the two"),
    ((YAML, "  - { name: x, type: f32, role: input, shape: [N] }\n", ""), CHECK, 2, "scale.yaml:15:14", "add to `arguments` what is missing"),
    ((YAML, "role: input, shape: [N] }", "role: input, shape: [N], fill: { normal: { mean: 0 } } }"), CHECK, 2, "scale.yaml:13:68", "add `std: …`"),
    ((YAML, "role: input, shape: [N]", "role: input, shape: [\"N - 2000\"]"), CHECK, 2, "scale.yaml:13:48", "change `N - 2000`"),
    ((YAML, "role: output, shape: [N]", "role: output, shape: [\"N / 2\"]"), CHECK, 2, "scale.yaml:14:49", "change `N / 2`"),
];

const GRID: &str = "\"ceil_div(N, BLOCK * VEC)\"";

#[rustfmt::skip]
const LAUNCHES: [Mistake; 15] = [
    ((YAML, "entry: scale,", "entry: scala,"), CHECK, 4, "scale.yaml:16:14", "correct `entry`"),
    ((YAML, ", block: [BLOCK, 1, 1] }", " }"), CHECK, 2, "scale.yaml:16:5", "add `block: …`"),
    ((YAML, "block: [BLOCK", "blocks: [BLOCK"), CHECK, 2, "scale.yaml:16:63", "did you mean `block`?"),
    ((YAML, "block: [BLOCK, 1, 1]", "block: [4096, 1, 1]"), CHECK, 4, "block [4096, 1, 1]", "a block has at most 1024"),
    ((YAML, "block: [BLOCK, 1, 1]", "block: [BLOCK, 1, 1, 1]"), CHECK, 2, "scale.yaml:16:70", "write x, y and z"),
    ((YAML, GRID, "\"N // (BLOCK * 100)\""), CHECK, 2, "scale.yaml:16:28", "a whole number from 1"),
    ((YAML, GRID, "\"N / BLOCK\""), CHECK, 2, "scale.yaml:16:28", "change `N / BLOCK`"),
    ((YAML, GRID, "\"(N + BLOCK - 1) / BLOCK\""), CHECK, 2, "scale.yaml:16:28", "write `ceil_div(a, b)` to round up"),
    ((YAML, GRID, "\"N // (VEC - 1)\""), CHECK, 2, "scale.yaml:16:28", "division by zero"),
    ((YAML, "entry: scale, grid", "entry: scale, args: [x, z], grid"), CHECK, 2, "scale.yaml:16:31", "the arguments are x, y"),
    ((YAML, "entry: scale, grid", "entry: scale, args: [x], grid"), CHECK, 2, "scale.yaml:16:14", "what is missing: parameter 2"),
    ((YAML, "entry: scale, grid", "entry: scale, shared: 400000, grid"), CHECK, 4, "400000 bytes of shared memory", "use smaller tiles"),
    ((YAML, "\"ceil_div(N, 64)\"", "\"N - 1001\""), CHECK, 2, "scale.yaml:17:73", "change `N - 1001`"),
    ((YAML, "N: 1001", "N: -5"), CHECK, 2, "scale.yaml:13:48", "the sizes of `ragged`"),
    ((YAML, "entry: scale_reference", "entry: scale_refer"), CHECK, 2, "scale.yaml:17:49", "correct `entry`"),
];

#[rustfmt::skip]
const SOURCES: [Mistake; 9] = [
    ((YAML, "source: scale_reference.cu", "source: scale_referenc.cu"), CHECK, 2, "scale.yaml:17:22", "did you mean `scale_reference.cu`?"),
    ((YAML, "source: scale_reference.cu, entry: scale_reference, grid: [\"ceil_div(N, 64)\", 1, 1], block: [64, 1, 1] }", "oracle: scale }"), CHECK, 2, "scale.yaml", "the built-in ones are gemm"),
    ((CUDA, "y[at] =", "z[at] ="), CHECK, 4, "scale.cu(11)", "\"z\" is undefined"),
    ((CUDA, "const int at", "const int at_"), CHECK, 4, "scale.cu(11)", "\"at\" is undefined"),
    ((CUDA, "#ifndef BLOCK", "#ifndef BLOC"), CHECK, 2, "scale.cu:5:9", "write `#ifndef N` above it"),
    ((CUDA, "#define BLOCK 128", "#define BLOCK 256"), CHECK, 2, "scale.cu:3", "write `#define BLOCK 128` here"),
    ((CUDA, "if (at < N) ", ""), CHECK, 4, "scale.cu:11", "which has 4004 bytes"),
    ((REFERENCE, "x[at];", "x[at]"), CHECK, 2, "scale_reference.cu(5)", "expected a \";\""),
    ((REFERENCE, "2.0f", "3.0f"), CHECK, 4, "elements of `y` are wrong", "the kernel or its reference"),
];

#[rustfmt::skip]
const COMMANDS: [Mistake; 25] = [
    (NONE, "check scale.cu", 2, "scale.cu is a CUDA file", "name the FILE.yaml"),
    (NONE, "check scal.yaml", 2, "scal.yaml", "did you mean `scale.yaml`?"),
    (NONE, "check scale", 2, "`scale`", "type scale.yaml"),
    (NONE, "check scale.yaml --problem raged", 2, "scale.yaml", "did you mean `ragged`?"),
    (NONE, "check scale.yaml --config BLOK=64", 2, "--config", "did you mean `BLOCK`?"),
    (NONE, "check scale.yaml --config BLOCK=65", 2, "--config", "its values are 64, 128, 256, 512"),
    (NONE, "check scale.yaml --config BLOCK", 2, "`BLOCK`", "--config NAME=VALUE"),
    (NONE, "check scale.yaml --device vgpu:h1000", 2, "--device", "choose one of: l4"),
    (NONE, "check scale.yaml --device replay:x.json", 2, "replay:x.json", "--device vgpu:NAME"),
    (NONE, "check scale.yaml --arch hopper", 2, "`hopper`", "--arch sm_90"),
    (NONE, "check scale.yaml --samples 3", 2, "--samples", "'--sample'"),
    (NONE, "run scale.yaml --device replay:scale.yaml", 2, "scale.yaml", "type `tuner run scale.yaml`"),
    (NONE, "run --device replay:missing.json", 2, "missing.json", "name an existing Kernel Tuner cache file"),
    (NONE, "run scale.yaml --device gpu", 2, "`gpu`", "use auto, cuda"),
    (NONE, "run scale.yaml --budget 5", 2, "`5`", "such as 90s"),
    (NONE, "run scale.yaml --problem ragged", 2, "`ragged`", "choose from: large"),
    (NONE, "run scale.yaml --strategy bayes", 2, "'bayes'", "possible values: evolve"),
    (NONE, "rum scale.yaml", 2, "'rum'", "'run'"),
    (NONE, "leaderboard", 2, "leaderboard/tuner.db", "`tuner run` makes one"),
    (NONE, "export scale.yaml", 2, "leaderboard/tuner.db", "--db FILE names another"),
    (NONE, "space scale.yml", 2, "scale.yml", "check the path"),
    (NONE, "predict scale.yaml --configs c.csv", 2, "c.csv", "first line names parameters"),
    (NONE, "predict scale.yaml --device cuda", 2, "cuda:0", "--device vgpu:NAME"),
    (NONE, "replay scale.yaml", 2, "scale.yaml", "FILE.json.gz"),
    (NONE, "new my-kernel", 2, "`my-kernel`", "such as `my_kernel`"),
];

/// Writes the files of the example of docs/write-a-kernel.md, one of them edited.
fn write(folder: &Path, (file, from, to): Edit) {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/write-a-kernel.md");
    crate::readme::write_files(&std::fs::read_to_string(readme).unwrap(), folder);
    if file.is_empty() {
        return;
    }
    let path = folder.join(file);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{file} has no `{from}`");
    std::fs::write(&path, text.replacen(from, to, 1)).unwrap();
}

fn wrong(mistake: &Mistake) -> Option<String> {
    let (edit, command, code, place, advice) = mistake;
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), *edit);
    let ran = crate::program::run(folder.path(), command);
    let told = ran.stderr + &ran.stdout;
    let right = ran.code == *code && told.contains(place) && told.contains(advice);
    (!right).then(|| {
        format!(
            "{edit:?}: tuner {command}\nwanted: exit code {code}, `{place}`, `{advice}`\ngot: {:?}\n{told}",
            ran.code
        )
    })
}

#[test]
fn every_message_names_the_place_and_what_to_type() {
    let tables: [&[Mistake]; 7] = [
        &FORM,
        &MISLEADING,
        &EXPRESSIONS,
        &ARGUMENTS,
        &LAUNCHES,
        &SOURCES,
        &COMMANDS,
    ];
    let all: Vec<&Mistake> = tables.into_iter().flatten().collect();
    assert!(all.len() >= 65, "{}", all.len());
    let found: Vec<String> = all.into_iter().filter_map(wrong).collect();
    assert!(
        found.is_empty(),
        "{} of them:\n{}",
        found.len(),
        found.join("\n\n")
    );
}
