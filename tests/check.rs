//! `tuner check`, as a user runs it, up to the compile.

use crate::program::{ended, folder, in_folder, json, root, run, tuner, words};
use std::path::Path;

/// Builds one configuration after the other, and runs nothing.
const COMPILED: &str = "check scale --arch sm_90";

const KERNEL: &str = "\
#ifndef BLOCK
#define BLOCK 128  // threads a block
#endif
#ifndef N
#define N 1000
#endif
extern \"C\" __global__ void scale(const float* x, float* y) {
  int i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < N) y[i] = FACTOR * x[i];
}
";

const SPACE: &str = "\
version: 1
kernel: scale
source: ../templates/scale/kernel.cu
problems:
  small: { N: 1000 }
parameters:
  BLOCK: { values: [64, 128, 256], default: 128 }
  FACTOR: { values: [1, 2], default: 2 }
constraints:
  - { rule: \"BLOCK * FACTOR <= 256\", why: the test says so }
arguments:
  - { name: x, type: f32, role: input, shape: [N] }
  - { name: y, type: f32, role: output, shape: [N] }
launches:
  - { entry: scale, grid: [\"ceil_div(N, BLOCK)\", 1, 1], block: [BLOCK, 1, 1] }
reference: { source: ../templates/scale/kernel.cu, entry: scale, grid: [\"ceil_div(N, 128)\", 1, 1], block: [128, 1, 1] }
";

/// A project of one kernel.
fn scaled(kernel: &str, space: &str) -> tempfile::TempDir {
    folder(&[
        ("templates/scale/kernel.cu", kernel),
        ("search_spaces/scale.yaml", space),
    ])
}

#[test]
fn sampled_gemm_configurations_compile_for_ada_and_hopper() {
    for arch in ["sm_89", "sm_90"] {
        let line = format!("check gemm_f32 --arch {arch} --sample 12");
        let (code, rows) = json(root(), &line);
        assert_eq!(code, 0, "{rows:#?}");
        assert_eq!(rows.len(), 12);
        for row in &rows {
            assert_eq!(row["verdict"], "ok", "{row:#}");
            assert_eq!(row["device"], arch);
            assert!(
                (8..=255).contains(&row["registers"].as_u64().unwrap()),
                "{row:#}"
            );
            assert!(
                row["spill_bytes"].is_u64() && row["shared_bytes"].is_u64(),
                "{row:#}"
            );
            assert_eq!(row["hazards"], serde_json::json!([]));
        }
    }
}

#[test]
fn every_row_that_was_compared_says_under_which_tolerance() {
    let folder = scaled(KERNEL, SPACE);
    let (code, rows) = json(folder.path(), "check scale --device vgpu:h100");
    assert!(code == 0 || code == 4, "{rows:#?}");
    for row in &rows {
        let told = row["tolerance"].as_str();
        assert_eq!(told.is_some(), row["max_error"].is_number(), "{row:#}");
        let told = told.unwrap_or("y: f32 against a kernel, sums of 1 terms");
        assert!(
            told.starts_with("y: f32 against a kernel, sums of 1 terms"),
            "{told}"
        );
    }
    let text = run(folder.path(), "check scale --config BLOCK=128").stderr;
    assert_eq!(
        text.matches("tolerance of scale (small): y: f32").count(),
        1,
        "{text}"
    );
}

#[test]
fn what_passes_on_a_problem_is_one_row_and_what_fails_is_listed() {
    let wide = SPACE.replace(
        "[64, 128, 256]",
        "[32, 64, 96, 128, 160, 192, 224, 256, 2048]",
    );
    let wide = wide.replace("\"BLOCK * FACTOR <= 256\"", "\"BLOCK > 0\"");
    let wide = wide.replace("values: [1, 2]", "values: [2]");
    let dir = scaled(KERNEL, &wide);
    let rows = |line: &str| {
        let said = run(dir.path(), line);
        assert_eq!(said.code, 4, "{}", said.stderr);
        let rows = said.stdout.lines().skip(1).map(str::to_owned);
        rows.collect::<Vec<String>>()
    };
    let sample = "check scale --device vgpu:h100 --config default --sample 40";
    let short = rows(sample);
    assert_eq!(short.len(), 2, "{short:#?}");
    let passed = short.iter().find(|row| row.contains(" ok ")).unwrap();
    for part in ["scale", "small", "8 configurations", "whole", "4-32"] {
        assert!(passed.contains(part), "{part} is not in {passed}");
    }
    let failed = short
        .iter()
        .find(|row| row.contains("launch_failed"))
        .unwrap();
    assert!(
        failed.contains("2048 threads; a block has at most 1024"),
        "{failed}"
    );
    assert_eq!(rows(&format!("{sample} --verbose")).len(), 9);
    for format in ["json", "csv"] {
        let whole = run(dir.path(), &format!("{sample} --format {format}")).stdout;
        assert_eq!(whole.matches("launch_failed").count(), 1, "{whole}");
    }
    let (_, all) = json(dir.path(), sample);
    assert_eq!(all.len(), 9);
    // Nothing was compiled for the refused.
    for row in all.iter().filter(|row| row["verdict"] != "ok") {
        assert!(row["registers"].is_null(), "{row:#}");
    }
}

/// The project of one kernel with another body.
fn with_body(body: &str) -> tempfile::TempDir {
    scaled(
        &KERNEL.replace("  if (i < N) y[i] = FACTOR * x[i];", body),
        SPACE,
    )
}

#[test]
fn barriers_on_different_lines_are_a_warning_and_no_failure() {
    let folder = with_body(
        "  __shared__ float s[BLOCK];
  s[threadIdx.x] = i < N ? x[i] : 0.0f;
  if (threadIdx.x < 32) {
    __syncthreads();
    if (i < N) y[i] = FACTOR * s[threadIdx.x];
  } else {
    __syncthreads();
    if (i < N) y[i] = s[threadIdx.x] + (FACTOR - 1) * s[threadIdx.x];
  }",
    );
    let (code, rows) = json(folder.path(), "check scale --config BLOCK=128");
    assert_eq!(code, 0, "{rows:#?}");
    let row = &rows[0];
    assert_eq!(
        (row["verdict"].as_str(), &row["hazards"]),
        (Some("ok"), &serde_json::json!([])),
        "{row:#}"
    );
    let told = row["warnings"][0].as_str().unwrap_or_default();
    for part in ["kernel.cu:15", "kernel.cu:12", "different barriers"] {
        assert!(told.contains(part), "{part} is not in {row:#}");
    }
    let text = run(folder.path(), "check scale --config BLOCK=128").stderr;
    assert!(text.contains("warning: scale small: "), "{text}");
    assert!(text.contains("different barriers"), "{text}");
    // Beside a failure it would distract from that.
    let kernel = folder.path().join("templates/scale/kernel.cu");
    crate::program::replace(
        &kernel,
        "  if (threadIdx.x < 32) {",
        "  y[i] = 0.0f;\n  if (threadIdx.x < 32) {",
    );
    let failed = run(folder.path(), "check scale --config BLOCK=128");
    assert_eq!(failed.code, 4, "{}", failed.stderr);
    assert!(
        !failed.stderr.contains("warning: scale"),
        "{}",
        failed.stderr
    );
}

#[test]
fn what_depends_on_the_order_of_blocks_is_found_by_the_second_schedule() {
    // No race: the block that comes last leaves its number.
    let folder = with_body(
        "  if (i > 0 && i < N) y[i] = FACTOR * x[i];
  if (threadIdx.x == 0)
    asm volatile(\"st.relaxed.gpu.global.f32 [%0], %1;\" ::\"l\"(y), \"f\"((float)blockIdx.x));",
    );
    let line = "check scale --config BLOCK=128 --schedules 2";
    let (code, rows) = json(folder.path(), line);
    assert_eq!(code, 4, "{rows:#?}");
    assert_eq!(rows[0]["verdict"], "nondeterministic", "{:#}", rows[0]);
}

#[test]
fn the_same_seed_draws_the_same_pairs_and_another_does_not() {
    let draw = |seed: u32| {
        let line = format!("check gemm_f32.quick --arch sm_90 --sample 5 --seed {seed}");
        json(root(), &line).1
    };
    assert_eq!(draw(7), draw(7));
    assert_ne!(draw(7), draw(8));
}

#[test]
fn a_small_space_is_checked_whole_when_more_is_asked_for() {
    let dir = scaled(KERNEL, SPACE);
    let (code, rows) = json(dir.path(), "check --arch sm_90 --sample 100");
    // 64 and 128 with both factors, 256 with factor 1.
    assert_eq!((rows.len(), code), (5, 0), "{rows:#?}");
}

#[test]
fn a_given_configuration_takes_defaults_and_may_be_rejected_with_its_reason() {
    let dir = scaled(KERNEL, SPACE);
    let (code, rows) = json(dir.path(), "check scale --arch sm_90 --config BLOCK=64");
    assert_eq!(code, 0);
    assert_eq!(rows.len(), 1);
    assert_eq!(
        rows[0]["config"],
        serde_json::json!({ "BLOCK": 64, "FACTOR": 2 })
    );
    let (code, rows) = json(dir.path(), "check scale --arch sm_90 --config BLOCK=256");
    assert_eq!((rows[0]["verdict"].as_str(), code), (Some("rejected"), 4));
    assert_eq!(rows[0]["detail"], "the test says so");
}

#[test]
fn a_seed_for_another_device_is_left_out_with_a_note() {
    let space = SPACE.replace(
        "arguments:",
        "  - { rule: \"FACTOR == 2 or DEVICE_CC == 90\", why: for Hopper }\narguments:",
    );
    let space = format!("{space}seeds: [{{ FACTOR: 1 }}, {{ BLOCK: 64 }}]\n");
    let dir = scaled(KERNEL, &space);
    for (arch, rows_expected, notes) in [("sm_90", 5, 0), ("sm_89", 2, 1)] {
        let line = format!("check scale --arch {arch}");
        let (code, rows) = json(dir.path(), &line);
        assert_eq!((rows.len(), code), (rows_expected, 0), "{rows:#?}");
        let told = run(dir.path(), &line).stderr;
        let note = "note: search_spaces/scale.yaml: seed 1 is left out: for Hopper";
        assert_eq!(told.matches(note).count(), notes, "{told}");
    }
}

#[test]
fn a_broken_template_fails_at_its_own_line() {
    let dir = scaled(&KERNEL.replace("FACTOR * x[i]", "FACTOR * x[j]"), SPACE);
    let (code, rows) = json(dir.path(), "check scale --arch sm_90 --config BLOCK=64");
    assert_eq!(
        (rows[0]["verdict"].as_str(), code),
        (Some("compile_failed"), 4)
    );
    let detail = rows[0]["detail"].as_str().unwrap();
    assert!(
        detail.contains("templates/scale/kernel.cu(9): error"),
        "{detail}"
    );
}

#[test]
fn a_reference_that_does_not_compile_is_the_authors_to_mend() {
    let own = "source: reference.cu, entry: other, grid: [";
    let dir = scaled(
        KERNEL,
        &SPACE.replace(
            "source: ../templates/scale/kernel.cu, entry: scale, grid: [",
            own,
        ),
    );
    std::fs::write(
        dir.path().join("search_spaces/reference.cu"),
        KERNEL.to_owned() + "// ",
    )
    .unwrap();
    let said = run(dir.path(), COMPILED);
    said.says(2, &["no kernel `other` (found: scale)"]);
}

#[test]
fn a_parameter_of_the_launch_alone_is_no_mistake() {
    let kernel = KERNEL.replace("FACTOR *", "2 *");
    let space = SPACE.replace(
        "block: [BLOCK, 1, 1] }",
        "block: [BLOCK, 1, 1], shared: \"4 * FACTOR\" }",
    );
    assert_ne!(space, SPACE);
    let dir = scaled(&kernel, &space);
    let said = run(dir.path(), COMPILED);
    let text = said.stdout.clone() + &said.stderr;
    assert!(!text.contains("never mentions"), "{text}");
}

#[test]
fn what_is_wrong_between_template_and_space_is_named() {
    let cases: [(&str, String, String, i32, &[&str]); 3] = [
        (
            "defaults that differ, with both places",
            KERNEL.replace("BLOCK 128", "BLOCK 64"),
            SPACE.to_owned(),
            2,
            &[
                "templates/scale/kernel.cu:2",
                "search_spaces/scale.yaml",
                "#define BLOCK 128",
            ],
        ),
        (
            "a parameter that the template never mentions",
            KERNEL.replace("FACTOR *", "2 *"),
            SPACE.to_owned(),
            0,
            &["never mentions the parameter FACTOR"],
        ),
        (
            "a constraint that nothing satisfies",
            KERNEL.to_owned(),
            SPACE.replace("<= 256", "<= 1"),
            2,
            &["no valid configuration"],
        ),
    ];
    for (what, kernel, space, code, parts) in cases {
        let dir = scaled(&kernel, &space);
        run(dir.path(), COMPILED).says_of(&what, code, parts);
    }
}

#[test]
fn wrong_names_are_answered_with_those_there_are() {
    let dir = scaled(KERNEL, SPACE);
    for (arguments, hint) in [
        ("scael", "did you mean `scale`?"),
        ("scale --problem large", "it has small"),
        ("scale --config BLOK=64", "BLOK"),
        ("scale --config BLOCK=65", "64, 128, 256"),
        ("scale --device cuda:99", "cuda:99"),
        ("scale --arch sm_12", "does not compile for sm_12"),
        ("nowhere/scale.yaml", "nowhere/scale.yaml"),
    ] {
        run(dir.path(), &format!("check {arguments}")).says_of(&arguments, 2, &[hint]);
    }
}

#[test]
fn without_nvrtc_the_command_that_gets_it_is_named() {
    let mut command = tuner(root());
    command.args(["check", "gemm_f32", "--arch", "sm_90"]);
    let said = ended(command.env("TUNER_NVRTC", "/nonexistent"));
    assert_ne!(said.code, 0);
    assert!(said.stderr.contains("make nvrtc"), "{}", said.stderr);
}

#[test]
fn a_folder_of_search_spaces_that_cannot_be_read_is_not_called_missing() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    use std::os::unix::process::CommandExt as _;
    let dir = scaled(KERNEL, SPACE);
    let mode = |path: &Path, bits| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(bits)).unwrap();
    };
    mode(dir.path(), 0o755);
    mode(&dir.path().join("search_spaces"), 0o111);
    let program = dir.path().join("tuner");
    crate::rig::executable::copied(Path::new(env!("CARGO_BIN_EXE_tuner")), &program);
    let mut command = in_folder(&program, dir.path());
    command.args(words(COMPILED));
    // The super-user may read any folder.
    if std::fs::metadata("/proc/self").unwrap().uid() == 0 {
        command.uid(65534).gid(65534);
    }
    let said = ended(&mut command);
    said.says(
        2,
        &["cannot read the folder search_spaces: Permission denied"],
    );
}

#[test]
fn the_outputs_of_one_configuration_are_written_as_they_are_after_the_run() {
    let folder = scaled(KERNEL, SPACE);
    let at = folder.path();
    let line = "check scale --config BLOCK=64 --problem small --outputs out";
    let (code, rows) = json(at, line);
    assert_eq!((code, &rows[0]["verdict"]), (0, &"ok".into()), "{rows:#?}");
    let outputs = std::fs::read(at.join("out/1.bin")).unwrap();
    assert_eq!(outputs.len(), 4000);
    // The fill is not zero, and FACTOR is 2.
    assert!(outputs.chunks_exact(4).any(|each| each != [0; 4]));
    assert!(!at.join("out/0.bin").exists(), "an input is no output");
    let refused = run(
        at,
        "check scale --config BLOCK=64 --config BLOCK=128 --outputs out",
    );
    assert_eq!(refused.code, 2);
    assert!(
        refused.stderr.contains("--outputs takes one configuration"),
        "{}",
        refused.stderr
    );
}

/// Four products of a warp group, each of which waits for the one before where `WAITS` is 1.
const PRODUCTS: &str = "\
__device__ unsigned long long tile(const void* at) {
  unsigned long long address = __cvta_generic_to_shared(at);
  return (address & 0x3ffff) >> 4 | 128ull >> 4 << 16 | 256ull >> 4 << 32;
}
extern \"C\" __global__ void __launch_bounds__(128) products(const unsigned* x, float* y) {
  __shared__ alignas(128) unsigned a[64 * 8], b[8 * 8];
  for (unsigned i = threadIdx.x; i < 64 * 8; i += 128) a[i] = x[i];
  for (unsigned i = threadIdx.x; i < 8 * 8; i += 128) b[i] = x[i];
  asm volatile(\"fence.proxy.async;\" ::: \"memory\");
  __syncthreads();
  unsigned long long left = tile(a), right = tile(b);
  float d[4] = {};
#pragma unroll
  for (int i = 0; i < 4; i++) {
    if (i == 0 || WAITS) asm volatile(\"wgmma.fence.sync.aligned;\" ::: \"memory\");
    asm volatile(\"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;\"
                 : \"+f\"(d[0]), \"+f\"(d[1]), \"+f\"(d[2]), \"+f\"(d[3]) : \"l\"(left), \"l\"(right));
    if (i == 3 || WAITS)
      asm volatile(\"wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\" ::: \"memory\");
  }
  for (int i = 0; i < 4; i++) y[threadIdx.x * 4 + i] = d[i];
}
";

const PRODUCTS_SPACE: &str = "\
version: 1
kernel: products
source: products.cu
problems:
  small: { N: 512 }
parameters:
  WAITS: { values: [0, 1], default: 0 }
arguments:
  - { name: x, type: u32, role: input, shape: [N], fill: zeros }
  - { name: y, type: f32, role: output, shape: [N] }
launches:
  - { entry: products, grid: [1], block: [128] }
reference: none
";

#[test]
fn serialized_products_of_warp_groups_are_a_warning() {
    let folder = folder(&[
        ("products.cu", PRODUCTS),
        ("products.yaml", PRODUCTS_SPACE),
        ("both.csv", "WAITS\n0\n1\n"),
    ]);
    for (waits, told) in [(0, false), (1, true)] {
        let mut command = tuner(folder.path());
        command.args(words("check products.yaml --device vgpu:h100 --config"));
        let checked = ended(command.arg(format!("WAITS={waits}")));
        let warned = checked
            .stderr
            .contains("its wgmma is serialized: 75 % of the products");
        assert_eq!(warned, told, "{}", checked.stderr);
    }
    let line = "predict products.yaml --device vgpu:h100 --configs both.csv";
    let predicted = run(folder.path(), line).stderr;
    let wanted = "the wgmma of 1 of 2 configurations is serialized";
    assert!(predicted.contains(wanted), "{predicted}");
}
