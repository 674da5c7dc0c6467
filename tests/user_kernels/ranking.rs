//! What `tuner run` lets onto the leaderboard.

use crate::case::{Case, Project};
use crate::judge::Outcomes;
use crate::program::{rows, tuner};
use serde_json::Value;
use std::path::Path;

/// More than all configurations of a project.
const EVALS: &str = "100000";

/// Runs a project's cases in one process; what must rank does, what must not does not, and what
/// has nothing that ranks cannot be exported.
pub(crate) fn rank(project: &Project) -> Outcomes {
    let folder = tempfile::tempdir().unwrap();
    let cases: Vec<&Case> = project
        .cases
        .iter()
        .filter(|case| case.exit.is_none())
        .collect();
    if cases.is_empty() {
        return Vec::new();
    }
    let ranked = ranked(&cases, folder.path());
    let outcome = |case: &Case| {
        let rows = ranked.as_ref().map_err(Clone::clone)?;
        let mine: Vec<&Value> = rows
            .iter()
            .filter(|row| row["kernel"] == case.name)
            .collect();
        if let Some(row) = mine.iter().find(|row| case.is_wrong(&row["config"])) {
            return Err(format!("ranks with {}", row["config"]));
        }
        match (case.is_partly_right(), mine.is_empty()) {
            (true, true) => Err("does not rank".to_owned()),
            (true, false) => Ok(format!("{} rank", mine.len())),
            (false, _) => no_header(case, folder.path()),
        }
    };
    cases
        .iter()
        .map(|case| (format!("{} (ranking)", case.name), outcome(case)))
        .collect()
}

/// The rows of the leaderboard after a run over all configurations.
fn ranked(cases: &[&Case], folder: &Path) -> Result<Vec<Value>, String> {
    let files: Vec<_> = cases.iter().map(|case| case.write(folder)).collect();
    let more = ["--evals", EVALS, "--strategy", "random"];
    let device = ["--device", "vgpu:h100", "--db", "results.db"];
    let run = tuner(folder, "run", &files, &[more, device].concat());
    let all_wrong = !cases.iter().any(|case| case.is_partly_right());
    let code = if all_wrong { 3 } else { 0 };
    if run.status.code() != Some(code) {
        let story = String::from_utf8_lossy(&run.stderr);
        return Err(format!(
            "run: exit code {:?}, expected {code}: {story}",
            run.status.code()
        ));
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
