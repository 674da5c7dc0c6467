//! What `tuner run` lets onto the leaderboard.

use crate::user_kernels::case::{Case, Project};
use crate::user_kernels::judge::{Outcomes, batches};
use crate::user_kernels::program::{rows, tuner};
use serde_json::Value;
use std::path::Path;

/// More than all configurations of a project.
const EVALS: &str = "100000";

/// Runs a project's cases in one process; what must rank does, what must not does not, and what
/// has nothing that ranks cannot be exported.
pub(crate) fn rank(project: &Project) -> Outcomes {
    let folder = tempfile::tempdir().unwrap();
    let cases = project.cases.iter().filter(|case| case.exit.is_none());
    let mut outcomes = Vec::new();
    for (number, (order, cases)) in batches(project, cases.collect()).into_iter().enumerate() {
        let own = folder.path().join(number.to_string());
        std::fs::create_dir_all(&own).unwrap();
        let ranked = ranked(&cases, &own);
        for case in cases {
            let outcome = ranked.clone().and_then(|rows| outcome(case, &rows, &own));
            outcomes.push((format!("{} (ranking){order}", case.name), outcome));
        }
    }
    outcomes
}

/// Whether what ranks of a case is what should.
fn outcome(case: &Case, rows: &[Value], folder: &Path) -> Result<String, String> {
    let own: Vec<&Value> = rows
        .iter()
        .filter(|row| row["kernel"] == case.name)
        .collect();
    if let Some(row) = own.iter().find(|row| case.is_wrong(&row["config"])) {
        return Err(format!("ranks with {}", row["config"]));
    }
    match (case.is_partly_right(), own.is_empty()) {
        (true, true) => Err("does not rank".to_owned()),
        (true, false) => Ok(format!("{} rank", own.len())),
        (false, _) => no_header(case, folder),
    }
}

/// The rows of the leaderboard after a run over all configurations.
fn ranked(cases: &[&Case], folder: &Path) -> Result<Vec<Value>, String> {
    let files: Vec<_> = cases.iter().map(|case| case.write(folder)).collect();
    let more = ["--evals", EVALS, "--strategy", "random"];
    let device = ["--device", "vgpu:h100", "--db", "results.db"];
    let run = tuner(folder, "run", &files, &[more, device].concat());
    let codes: &[i32] = match cases {
        [case] if case.alone => &[2, 3],
        _ if cases.iter().any(|case| case.is_partly_right()) => &[0],
        _ => &[3],
    };
    let code = run.status.code().unwrap_or(-1);
    if !codes.contains(&code) {
        let story = String::from_utf8_lossy(&run.stderr);
        return Err(format!("run: exit code {code}, not {codes:?}: {story}"));
    }
    if code == 2 {
        return Ok(Vec::new());
    }
    let board = ["--format", "json", "--db", "results.db", "--top", "1000"];
    rows(&tuner(folder, "leaderboard", &[], &board))
}

/// A kernel without a verified result has nothing to export.
fn no_header(case: &Case, folder: &Path) -> Result<String, String> {
    let more = ["--db", "results.db", "--allow-predicted", "-o", "tuned.h"];
    let export = tuner(folder, "export", &[case.name.clone().into()], &more);
    let written = folder.join("tuned.h").exists();
    match export.status.code() {
        Some(code) if code != 0 && !written => Ok("nothing ranks, nothing is exported".to_owned()),
        code => Err(format!(
            "export: exit code {code:?}, header written: {written}"
        )),
    }
}
