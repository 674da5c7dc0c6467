//! Bugs planted in a copy of the GEMM template: each gets its verdict, at its own source line.

use crate::program::{ended, root, tuner};
use std::path::{Path, PathBuf};

/// One bug: what is replaced in the template, and what must come of it.
struct Bug {
    name: &'static str,
    find: &'static str,
    replace: &'static str,
    config: &'static str,
    problem: &'static str,
    verdict: &'static str,
    /// Text of the lines that may be named; empty where the verdict has no line.
    lines: &'static [&'static str],
}

/// Where a tile is filled.
const FILLING: &[&str] = &[
    "tile[(k + j) * kStrideA + row] = ",
    "to) = pack;",
    "(from);",
];

const BUGS: &[Bug] = &[
    Bug {
        name: "no barrier at the loop head: the tile is overwritten while others still read it",
        find: "if (STAGES == 1) __syncthreads();",
        replace: "",
        config: "PREFETCH=1",
        problem: "even",
        verdict: "race",
        lines: FILLING,
    },
    Bug {
        name: "no barrier between filling the tile and reading it",
        find: "    stage(tile, share_a, share_b);\n    __syncthreads();",
        replace: "    stage(tile, share_a, share_b);",
        config: "STAGES=2",
        problem: "even",
        verdict: "race",
        lines: FILLING,
    },
    Bug {
        name: "rows beyond the matrix are stored",
        find: "    if (row >= M) continue;\n",
        replace: "",
        config: "BLOCK_M=64",
        problem: "ragged",
        verdict: "out_of_bounds",
        lines: &["to[l] = sum"],
    },
    Bug {
        name: "rows beyond the matrix are loaded",
        find: "if (row < M && k < K)",
        replace: "if (k < K)",
        config: "BLOCK_M=64",
        problem: "vectors",
        verdict: "out_of_bounds",
        lines: &["(from);"],
    },
    Bug {
        name: "vectors where rows do not start on a vector boundary",
        find: "kVecB = ALIGNED ? VEC_B : 1;",
        replace: "kVecB = VEC_B;",
        config: "VEC_B=4",
        problem: "ragged",
        verdict: "out_of_bounds",
        lines: &["(from);"],
    },
    Bug {
        name: "the first row of the tile is read as vectors off their boundary",
        find: "tile + kTileA + k * BLOCK_N + column);",
        replace: "tile + kTileA + k * BLOCK_N + column + (k == 0));",
        config: "BLOCK_K=16",
        problem: "even",
        verdict: "misaligned",
        lines: &["(from);"],
    },
    Bug {
        name: "a barrier under a condition that splits warps",
        find: "if (STAGES == 1) __syncthreads();",
        replace: "if (thread_n < 8) __syncthreads();",
        config: "STAGES=1",
        problem: "even",
        verdict: "barrier_divergence",
        lines: &["if (thread_n < 8) __syncthreads();", "    __syncthreads();"],
    },
    Bug {
        name: "the reduction adds a part that does not exist",
        find: "part < SPLIT_K - 1; ++part",
        replace: "part < SPLIT_K; ++part",
        config: "SPLIT_K=2",
        problem: "even",
        verdict: "out_of_bounds",
        lines: &["sum += partial[part * size + index];"],
    },
    Bug {
        name: "only the first part is stored",
        find: "  store(out, M, N, row0, column0, thread_m, thread_n, sum);",
        replace: "  if (blockIdx.z == 0) store(out, M, N, row0, column0, thread_m, thread_n, sum);",
        config: "SPLIT_K=2",
        problem: "even",
        verdict: "uninitialized",
        lines: &["sum += partial[part * size + index];"],
    },
    Bug {
        name: "the last step of the tile is left out",
        find: "for (int k = 0; k < BLOCK_K; ++k) {",
        replace: "for (int k = 0; k < BLOCK_K - 1; ++k) {",
        config: "UNROLL_K=1",
        problem: "even",
        verdict: "incorrect",
        lines: &[],
    },
    Bug {
        name: "the last columns are never stored",
        find: "if (column + l < N) to[l]",
        replace: "if (column + l < N - 1) to[l]",
        config: "BLOCK_M=64",
        problem: "ragged",
        verdict: "incorrect",
        lines: &[],
    },
];

/// The project's GEMM with another template.
fn planted(folder: &Path, template: &str) -> PathBuf {
    let root = root();
    let space =
        std::fs::read_to_string(root.join("search_spaces/gemm_f32.yaml")).expect("the space file");
    let space = space.replace("../templates/gemm_f32/kernel.cu", "kernel.cu");
    let file = folder.join("space.yaml");
    std::fs::write(&file, space).expect("written");
    std::fs::write(folder.join("kernel.cu"), template).expect("written");
    file
}

fn check(space: &Path, config: &str, problem: &str) -> serde_json::Value {
    let mut command = tuner(root());
    command.args([
        "check",
        "--format",
        "json",
        "--config",
        config,
        "--problem",
        problem,
    ]);
    let ran = ended(command.arg(space));
    let rows = ran.rows();
    assert_eq!(rows.len(), 1);
    let code = if rows[0]["verdict"] == "ok" { 0 } else { 4 };
    assert_eq!(ran.code, code);
    rows[0].clone()
}

#[test]
fn each_planted_bug_gets_its_verdict_at_its_line_and_the_template_without_it_is_right() {
    let root = root();
    let right = std::fs::read_to_string(root.join("templates/gemm_f32/kernel.cu")).unwrap();
    for bug in BUGS {
        let folder = tempfile::tempdir().unwrap();
        assert!(
            right.contains(bug.find),
            "{}: the template has changed",
            bug.name
        );
        let clean = check(&planted(folder.path(), &right), bug.config, bug.problem);
        assert_eq!(
            clean["verdict"], "ok",
            "{} without the bug: {clean:#}",
            bug.name
        );

        let wrong = right.replacen(bug.find, bug.replace, 1);
        let row = check(&planted(folder.path(), &wrong), bug.config, bug.problem);
        assert_eq!(row["verdict"], bug.verdict, "{}: {row:#}", bug.name);
        let lines: Vec<&str> = wrong.lines().collect();
        let hazards = row["hazards"].as_array().unwrap();
        assert_eq!(
            hazards.is_empty(),
            bug.lines.is_empty(),
            "{}: {row:#}",
            bug.name
        );
        for hazard in hazards
            .iter()
            .filter(|hazard| hazard["kind"] == bug.verdict)
        {
            let line = usize::try_from(hazard["line"].as_u64().unwrap()).unwrap();
            let text = lines[line - 1];
            assert!(hazard["file"].as_str().unwrap().ends_with("kernel.cu"));
            assert!(
                bug.lines.iter().any(|expected| text.contains(expected)),
                "{}: line {line} `{text}`\n{row:#}",
                bug.name
            );
            assert_eq!(hazard["thread"].as_array().unwrap().len(), 3, "{hazard}");
            assert!(
                hazard["address"].as_str().unwrap().starts_with("0x"),
                "{hazard}"
            );
        }
    }
}
