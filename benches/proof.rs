//! The cost of proofs: shipped kernels on their timed problems, judged with and without running the
//! default configuration whole. `cargo bench --bench proof -- gemm_f16` keeps names that contain the text.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Kernels with a problem each: the product of 4096³ is the largest work of them.
const CASES: [(&str, &str); 6] = [
    ("gemm_f16", "square4096"),
    ("gemm_f32", "square1024"),
    ("conv2d_f32", "filter15"),
    ("softmax", "square4096"),
    ("layernorm", "square4096"),
    ("reduce_sum", "all16m"),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with("--"))
        .collect();
    let folder = tempfile::tempdir()?;
    println!("kernel       problem       without proof  with proof  compared");
    for (kernel, problem) in CASES {
        if !wanted.is_empty() && !wanted.iter().any(|text| kernel.contains(text)) {
            continue;
        }
        let (without, _) = judge(folder.path(), kernel, problem, "0")?;
        let (with, compared) = judge(folder.path(), kernel, problem, "3e10")?;
        println!("{kernel:12} {problem:13} {without:>11.1} s  {with:>8.1} s  {compared}");
    }
    Ok(())
}

/// Seconds of a run of the default configuration, and the states of what it stored.
fn judge(
    folder: &Path,
    kernel: &str,
    problem: &str,
    budget: &str,
) -> Result<(f64, String), Box<dyn std::error::Error>> {
    let database = folder.join(format!("{kernel}-{budget}.db"));
    let mut run = Command::new(env!("CARGO_BIN_EXE_tuner"));
    run.args(["run", kernel, "--device", "vgpu:h100", "--evals", "1"])
        .args(["--prove-budget", budget, "--no-baseline", "--db"])
        .arg(&database);
    if !problem.is_empty() {
        run.args(["--problem", problem]);
    }
    let clock = Instant::now();
    let output = run.output()?;
    let seconds = clock.elapsed().as_secs_f64();
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let states = text.lines().filter_map(|line| {
        let state = line.trim().strip_prefix("compared ")?;
        state.split(':').next()
    });
    Ok((seconds, states.collect::<Vec<_>>().join(" ")))
}
