//! A kernel's file: problems, devices, and mistakes in its sections.

use crate::space_command::support::{KERNEL, kernel_refused, space, space_in};
use insta::assert_snapshot;

#[test]
fn problem_and_device_decide_what_is_valid() {
    let valid = |arguments: &[&str]| {
        let arguments: Vec<&str> = arguments
            .iter()
            .copied()
            .chain(["--format", "json"])
            .collect();
        let json = space("k.yaml", KERNEL, &arguments).json();
        assert_eq!(json["name"], "saxpy");
        assert_eq!(json["cartesian"], "24");
        json["valid"].as_str().unwrap().to_owned()
    };
    // 64 to 1024 threads, of which 1024 / BLOCK may be unrolled: 4 + 4 + 4 + 2 + 1.
    assert_eq!(valid(&[]), "15");
    assert_eq!(valid(&["--problem", "small"]), "15");
    assert_eq!(
        valid(&["--problem", "large", "--device", "vgpu:a100"]),
        "20"
    );
    assert_eq!(valid(&["--device", "auto"]), "15");
}

#[test]
fn an_unknown_problem_is_told_the_known_ones() {
    let ran = space("k.yaml", KERNEL, &["--problem", "huge"]);
    assert_snapshot!(ran.refusal(), @r"error: k.yaml: unknown problem `huge`: the problems are small, large");
    // Whether this machine has a driver or none, it has no hundred GPUs.
    let ran = space("k.yaml", KERNEL, &["--device", "cuda:99"]);
    assert!(ran.refusal().contains("`cuda:99`"), "{}", ran.refusal());
}

#[test]
fn a_kernel_is_found_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("search_spaces/deeper")).unwrap();
    std::fs::write(folder.path().join("search_spaces/saxpy.yaml"), KERNEL).unwrap();
    let deeper = folder.path().join("search_spaces/deeper");
    assert_eq!(
        space_in(&deeper, &["saxpy", "--format", "json"]).json()["valid"],
        "15"
    );
    let ran = space_in(folder.path(), &["saxpi"]);
    assert_snapshot!(ran.refusal(), @r"
    error: there is no kernel `saxpi`; did you mean `saxpy`?
    help: the known kernels are saxpy
    ");
}

#[test]
fn mistakes_in_sections_are_shown_where_they_stand() {
    assert_snapshot!(kernel_refused("launches:", "lanches:"), @r"
    k.yaml:1:1: error: the key `launches` is missing
     1 | version: 1
       | ^
      help: add `launches: …`
    k.yaml:18:1: error: unknown key `lanches`
     18 | lanches:
        | ^^^^^^^
      help: did you mean `launches`?
    ");
    assert_snapshot!(kernel_refused("version: 1", "version: 2"), @r"
    k.yaml:1:10: error: version 2 is not known to this program
     1 | version: 2
       |          ^
      help: write `version: 1`
    ");
    assert_snapshot!(kernel_refused("source: kernel.cu\n", ""), @r"
    k.yaml:1:1: error: the key `source` is missing
     1 | version: 1
       | ^
      help: add `source: …`
    ");
    assert_snapshot!(kernel_refused("role: input", "role: inputs"), @r"
    k.yaml:16:33: error: `inputs` is none of input, output, inout, scratch, scalar
     16 |   - { name: x, type: f32, role: inputs, shape: [N] }
        |                                 ^^^^^^
      help: did you mean `input`?
    ");
    assert_snapshot!(kernel_refused("type: f32", "type: float"), @r"
    k.yaml:16:22: error: `float` is none of f16, bf16, f32, f64, bool, i8, u8, i16, u16, i32, u32, i64, u64, f8e4m3, f8e5m2, nor a vector such as float4
     16 |   - { name: x, type: float, role: input, shape: [N] }
        |                      ^^^^^
      help: write `f32`
    ");
    assert_snapshot!(kernel_refused("shape: [N]", "shape: N"), @r#"
    k.yaml:16:47: error: expected a list, found the text "N"
     16 |   - { name: x, type: f32, role: input, shape: N }
        |                                               ^
      help: write `[N]`
    "#);
    assert_snapshot!(kernel_refused("[BLOCK, 1, 1]", "[BLOCK, 1, 1, 1]"), @r#"
    k.yaml:19:63: error: expected one to three extents, found 4
     19 |   - { entry: saxpy, grid: ["ceil_div(N, TILE)", 1, 1], block: [BLOCK, 1, 1, 1] }
        |                                                               ^^^^^^^^^^^^^^^^
      help: write x, y and z, for example `["ceil_div(N, BN)", M, 1]`
    "#);
    assert_snapshot!(kernel_refused("{ N: 1024 }", "{ N: big }"), @r"
    k.yaml:5:15: error: the size `N` is text
     5 |   small: { N: big }
       |               ^^^
      help: sizes are numbers or booleans
    ");
    assert_snapshot!(kernel_refused("{ N: 1024 }", "{ M: 1024 }"), @r#"
    k.yaml:14:21: error: unknown name `N`
     14 |   - { rule: TILE <= N, why: the tile must fit in the vector }
        |                     ^
      help: the names are BLOCK, DEVICE_CC, DEVICE_MAX_THREADS, DEVICE_SHARED_BYTES, DEVICE_SM_COUNT, M, TILE, UNROLL
    k.yaml:16:48: error: unknown name `N`
     16 |   - { name: x, type: f32, role: input, shape: [N] }
        |                                                ^
      help: the names are BLOCK, DEVICE_CC, DEVICE_MAX_THREADS, DEVICE_SHARED_BYTES, DEVICE_SM_COUNT, M, TILE, UNROLL
    k.yaml:17:49: error: unknown name `N`
     17 |   - { name: y, type: f32, role: output, shape: [N] }
        |                                                 ^
      help: the names are BLOCK, DEVICE_CC, DEVICE_MAX_THREADS, DEVICE_SHARED_BYTES, DEVICE_SM_COUNT, M, TILE, UNROLL
    k.yaml:19:38: error: unknown name `N`
     19 |   - { entry: saxpy, grid: ["ceil_div(N, TILE)", 1, 1], block: [BLOCK, 1, 1] }
        |                                      ^
      help: the names are BLOCK, DEVICE_CC, DEVICE_MAX_THREADS, DEVICE_SHARED_BYTES, DEVICE_SM_COUNT, M, TILE, UNROLL
    "#);
    assert_snapshot!(kernel_refused("TILE: BLOCK", "UNROLL: BLOCK"), @r"
    k.yaml:11:11: error: `UNROLL` is a derived value and a parameter
     11 |   UNROLL: BLOCK * UNROLL
        |           ^^^^^^^^^^^^^^
      help: rename one of them
    ");
    assert_snapshot!(kernel_refused("why: a block has no more threads", "why: a, b"), @r"
    k.yaml:13:50: error: unknown key `b`
     13 |   - { rule: BLOCK <= DEVICE_MAX_THREADS, why: a, b }
        |                                                  ^
      help: a comma ends unquoted text inside { }: put the whole text in quotes
    ");
}

#[test]
fn sections_are_mappings_with_named_keys() {
    assert_snapshot!(kernel_refused("{ oracle: gemm }", "gemm"), @r#"
    k.yaml:20:12: error: expected a mapping with `oracle`, `source` or `values`, or the word none, found the text "gemm"
     20 | reference: gemm
        |            ^^^^
    "#);
    assert_snapshot!(kernel_refused("role: input, shape: [N]", "role: input, shape: [N], fill: { normal: [0, 1] }"), @r"
    k.yaml:16:68: error: expected a mapping of keys, found a list
     16 |   - { name: x, type: f32, role: input, shape: [N], fill: { normal: [0, 1] } }
        |                                                                    ^^^^^^
      help: the keys here are mean, std
    ");
    assert_snapshot!(kernel_refused("reference:", "gate: [1e-3, 1e-2]\nreference:"), @r"
    k.yaml:20:7: error: expected a mapping of keys, found a list
     20 | gate: [1e-3, 1e-2]
        |       ^^^^^^^^^^^^
      help: the keys here are atol, rtol, terms, deterministic, same_value_writes
    ");
}

#[test]
fn several_mistakes_are_shown_at_once_in_the_order_of_the_file() {
    let text = KERNEL
        .replace("default: 128", "default: 100")
        .replace("role: output", "role: out");
    let text = text.replace("entry: saxpy", "entries: saxpy");
    let ran = space("k.yaml", text, &[]);
    assert_snapshot!(ran.refusal(), @r#"
    k.yaml:17:33: error: `out` is none of input, output, inout, scratch, scalar
     17 |   - { name: y, type: f32, role: out, shape: [N] }
        |                                 ^^^
      help: write one of these
    k.yaml:19:7: error: unknown key `entries`
     19 |   - { entries: saxpy, grid: ["ceil_div(N, TILE)", 1, 1], block: [BLOCK, 1, 1] }
        |       ^^^^^^^
      help: the keys here are entry, when, args, grid, block, shared, cluster, cooperative, guessed
    "#);
}

#[test]
fn a_space_that_is_empty_for_one_problem_says_so() {
    let text = KERNEL.replace("small: { N: 1024 }", "small: { N: 16 }");
    let ran = space("k.yaml", &text, &["--format", "csv"]);
    assert_eq!(ran.code, Some(2));
    assert_snapshot!(ran.stderr, @r"
    k.yaml:14:13: error: problem `small` on vgpu:h100 has no valid configuration: no configuration satisfies the constraint `TILE <= N` (the tile must fit in the vector)
     14 |   - { rule: TILE <= N, why: the tile must fit in the vector }
        |             ^^^^^^^^^
      help: loosen this constraint, or give its parameters other values
    ");
    assert_eq!(
        space("k.yaml", &text, &["--problem", "large", "--format", "csv"]).code,
        Some(0)
    );
}
