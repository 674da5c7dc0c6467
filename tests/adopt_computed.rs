//! `tuner adopt`: template arguments that the host computes, libraries of headers, and sizes that only a loop has.

use crate::program::{ended, root, tuner};
use crate::unseen::{has, verdicts};
use std::path::Path;

/// Adopts a file of the test data; returns what was said.
fn adopt(folder: &Path, file: &str) -> String {
    let path = root().join("tests/data/adopt").join(file);
    let said = ended(tuner(folder).arg("adopt").arg(path));
    said.says(0, &[]);
    said.stderr
}

fn space(folder: &Path, kernel: &str) -> String {
    std::fs::read_to_string(folder.join(format!("adopted/{kernel}.yaml"))).expect("the space")
}

#[test]
fn template_arguments_that_the_host_computes_vary_with_the_block_or_keep_it() {
    let dir = tempfile::tempdir().unwrap();
    let said = adopt(dir.path(), "computed.cu");
    for (kernel, parts) in [
        (
            "row_sum",
            [
                "row_sum<({THREADS} / 32), float>",
                "THREADS: { values: [64, 128, 256, 512, 1024]",
            ],
        ),
        (
            "fill",
            [
                "fill<(1024 / {BLOCK})>",
                "BLOCK: { values: [32, 64, 128, 256, 512]",
            ],
        ),
        ("least", ["entry: \"least<32>\"", "SIZE: { values: [64]"]),
        ("ranked", ["entry: \"ranked<8>\"", "block: [256, 1, 1]"]),
    ] {
        has(&space(dir.path(), kernel), &parts);
    }
    assert!(!space(dir.path(), "ranked").contains("values:"));
    let kept = |kernel: &str, name: &str| {
        format!(
            "adopted/{kernel}.yaml: the threads of a block are not varied: template arguments depend on them by `{name}`"
        )
    };
    has(&said, &[&kept("least", "HALF"), &kept("ranked", "all")]);
    let line = "check adopted/row_sum.yaml --problem small";
    assert_eq!(verdicts(dir.path(), line), ["unchecked"]);
}

/// A part that is cut out of such a header lacks its namespace.
#[test]
fn headers_that_cannot_be_cut_are_included_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let said = adopt(dir.path(), "macro_library/use.cu");
    has(
        &said,
        &["the template includes headers of the project as they are"],
    );
    let template = std::fs::read_to_string(dir.path().join("adopted/halve.cu")).unwrap();
    has(&template, &["macro_library/library.h\"", "void halve("]);
    assert!(!template.contains("int main"), "{template}");
    has(&space(dir.path(), "halve"), &["halve<1>"]);
    let line = "check adopted/halve.yaml --problem small";
    assert_eq!(verdicts(dir.path(), line), ["unchecked"]);
}

/// Without these macros another branch of the header was compiled, and the kernel computed something else.
#[test]
fn whole_headers_have_the_macros_and_the_settings_of_the_file() {
    let dir = tempfile::tempdir().unwrap();
    adopt(dir.path(), "settings/use.cu");
    let template = std::fs::read_to_string(dir.path().join("adopted/scale_both.cu")).unwrap();
    let lines = template.lines().filter(|line| !line.starts_with("#line"));
    // The place of a header depends on that of the folder.
    let lines = lines.map(|line| match line.rsplit_once('/') {
        Some((start, name)) if start.starts_with("#include \"") => name,
        _ => line,
    });
    let lines: Vec<&str> = lines.skip_while(|line| *line != "config.h\"").collect();
    let text = lines.join("\n");
    let before = "config.h\"\n#define TWICE 2\n#ifdef PARTS_FAST\n#define FACTOR TWICE\n#else\n#define SLOW 1\n#endif\n\
                  #define LIMIT 3\n#define SLOW 2\n#undef SLOW\nparts.h\"\n__global__ void scale_both(";
    assert!(text.starts_with(before), "{template}");
    let line = "check adopted/scale_both.yaml --problem small";
    assert_eq!(verdicts(dir.path(), line), ["unchecked"]);
}

#[test]
fn template_arguments_keep_their_casts_and_follow_the_block() {
    let dir = tempfile::tempdir().unwrap();
    let said = adopt(dir.path(), "written.cu");
    for (kernel, entry, values) in [
        ("act", "act<static_cast<ns::Mode>(1)>", None),
        (
            "act_on_local",
            "act_on_local<static_cast<ns::Mode>(1)>",
            None,
        ),
        (
            "act_on_block",
            "act_on_block<static_cast<ns::Mode>(128 / 128)>",
            Some("[128]"),
        ),
        ("of_size", "of_size<sizeof(ns::Item)>", None),
        ("of_own_size", "of_own_size<12>", None),
        ("most", "most<std::max(1, ns::pick(2))>", None),
        (
            "shifted",
            "shifted<(1 << {LOG})>",
            Some("[2, 4, 8, 16, 32]"),
        ),
        (
            "shifted_down",
            "shifted_down<{THREADS}, (1 << ({THREADS} / 32))>",
            Some("[32, 64, 128, 256, 512]"),
        ),
        // No expression of the space has a condition.
        ("decided", "decided<{THREADS}, 4>", Some("[128]")),
        ("counted", "counted<{THREADS}, bits_of(128)>", Some("[128]")),
        ("compared", "compared<(256 > 128)>", None),
    ] {
        let space = space(dir.path(), kernel);
        has(&space, &[&format!("entry: \"{entry}\"")]);
        match values {
            Some(values) => has(&space, &[&format!("values: {values},")]),
            None => assert!(!space.contains("values:"), "{space}"),
        }
    }
    for name in ["M", "W", "BITS"] {
        has(
            &said,
            &[&format!("template arguments depend on them by `{name}`")],
        );
    }
    assert!(!said.contains("guessed"), "{said}");
    let line = "check adopted/shifted_down.yaml --problem small";
    assert_eq!(verdicts(dir.path(), line), ["unchecked"]);
}

/// All sizes count where the extents are guessed: such a loop was as long as a whole buffer, and `adopt` took minutes.
#[test]
fn a_loop_whose_bound_is_in_no_extent_is_short_on_the_small_problem() {
    let dir = tempfile::tempdir().unwrap();
    adopt(dir.path(), "loop_bound.cu");
    has(&space(dir.path(), "decayed"), &["small: { B: 4, T: 256 }"]);
}

#[test]
fn a_program_whose_launch_is_not_found_is_told_that_a_run_shows_it() {
    let text = "__global__ void shift(float* y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] += 1; }\n\
                template <typename K, typename... A> void launch(K kernel, int n, A... all) { kernel<<<(n + 63) / 64, 64>>>(all...); }\n\
                int main() { float* y; cudaMalloc(&y, 4000); launch(shift, 1000, y, 1000); }\n";
    let dir = crate::program::folder(&[("app.cu", text)]);
    let said = ended(tuner(dir.path()).args(["adopt", "app.cu"]));
    said.says(
        0,
        &[
            "are guessed: hazards are not judged",
            "or read it from a run: tuner adopt app.cu --force --run 'nvcc -lineinfo app.cu -o app && ./app'",
        ],
    );
}
