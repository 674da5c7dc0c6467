//! What `tuner check` says of each case.

use crate::program::words;
use crate::user_kernels::case::{Case, Kind, Project};
use crate::user_kernels::program::{rows, tuner};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// The outcome of a case by its name: what was seen, or what is not as expected.
pub(crate) type Outcomes = Vec<(String, Result<String, String>)>;

/// Checks a project's cases in one process, in both orders; refused spaces in one each.
pub(crate) fn check(project: &Project) -> Outcomes {
    let folder = tempfile::tempdir().unwrap();
    let (refused, kernels): (Vec<_>, Vec<_>) =
        project.cases.iter().partition(|case| case.exit.is_some());
    let mut outcomes: Outcomes = refused
        .into_iter()
        .map(|case| (case.name.clone(), space_refused(case, folder.path())))
        .collect();
    for (order, cases) in batches(project, kernels) {
        let said = together(&cases, folder.path());
        outcomes.extend(cases.iter().map(|case| {
            let outcome = match &said {
                Ok(said) => verdicts(case, said.get(&case.name).map_or(&[][..], Vec::as_slice)),
                Err(why) => Err(why.clone()),
            };
            (format!("{}{order}", case.name), outcome)
        }));
    }
    outcomes
}

/// Cases that share a process: each that stands alone, the others, and the others backwards.
pub(crate) fn batches<'a>(
    project: &Project,
    cases: Vec<&'a Case>,
) -> Vec<(&'static str, Vec<&'a Case>)> {
    let (alone, others): (Vec<_>, Vec<_>) = cases.into_iter().partition(|case| case.alone);
    let mut batches: Vec<_> = alone.into_iter().map(|case| ("", vec![case])).collect();
    if project.both_orders {
        batches.push((" (backwards)", others.iter().rev().copied().collect()));
    }
    batches.push(("", others));
    batches.retain(|(_, cases)| !cases.is_empty());
    batches
}

/// The rows of all cases, by the case's name, from one process.
fn together(cases: &[&Case], folder: &Path) -> Result<BTreeMap<String, Vec<Value>>, String> {
    let files: Vec<_> = cases.iter().map(|case| case.write(folder)).collect();
    let output = tuner(folder, "check", &files, &["--format", "json"]);
    let mut by_case: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for row in rows(&output)? {
        let kernel = row["kernel"].as_str().unwrap_or_default().to_owned();
        by_case.entry(kernel).or_default().push(row);
    }
    let all_ok = by_case.values().flatten().all(|row| row["verdict"] == "ok");
    let code = if all_ok { 0 } else { 4 };
    match output.status.code() {
        Some(seen) if seen == code => Ok(by_case),
        other => Err(format!("exit code {other:?}, expected {code}")),
    }
}

/// Whether a case's rows are those it asks for.
fn verdicts(case: &Case, rows: &[Value]) -> Result<String, String> {
    if rows.is_empty() {
        return Err("no rows".to_owned());
    }
    let mut caught: BTreeMap<String, bool> = BTreeMap::new();
    let mut first = None;
    let mut said: Vec<&str> = Vec::new();
    for row in rows {
        let (verdict, detail) = (text(row, "verdict"), text(row, "detail"));
        let wrong = case.is_wrong(&row["config"]);
        let caught = caught.entry(row["config"].to_string()).or_insert(!wrong);
        if verdict == "ok" {
            continue;
        }
        if !wrong || !case.verdicts.iter().any(|known| known == verdict) {
            return Err(format!(
                "{verdict} on problem {} with {}: {detail}",
                row["problem"], row["config"]
            ));
        }
        *caught = true;
        said.push(detail);
        first.get_or_insert(format!("{verdict}: {detail}"));
    }
    if let Some((config, _)) = caught.iter().find(|(_, caught)| !**caught) {
        return Err(format!("passes with {config}"));
    }
    let missing = |says: &&String| !said.iter().any(|detail| detail.contains(says.as_str()));
    match case.says.iter().find(missing) {
        Some(says) => Err(format!("does not say `{says}`: {said:?}")),
        None => Ok(first.unwrap_or_else(|| "ok".to_owned())),
    }
}

fn text<'a>(row: &'a Value, key: &str) -> &'a str {
    row[key].as_str().unwrap_or_default()
}

/// Whether the space is refused by the commands that would run it.
fn space_refused(case: &Case, folder: &Path) -> Result<String, String> {
    assert_eq!(case.kind, Kind::Wrong);
    let file = [case.write(folder)];
    let run: &[&str] = &words("--evals 2 --device vgpu:h100 --db refused.db");
    let mut first = String::new();
    for (command, more) in [("check", &[][..]), ("run", run)] {
        let output = tuner(folder, command, &file, more);
        let message = String::from_utf8_lossy(&output.stderr);
        if output.status.code() != case.exit {
            let code = output.status.code();
            return Err(format!("{command}: exit code {code:?}: {message}"));
        }
        if let Some(says) = case
            .says
            .iter()
            .find(|says| !message.contains(says.as_str()))
        {
            return Err(format!("{command} does not say `{says}`: {message}"));
        }
        let error = message.lines().find(|line| line.contains("error"));
        first = error.unwrap_or_default().to_owned();
    }
    Ok(first)
}
