//! The commit story, end to end.

use crate::program::words;
use crate::report::support::{commit, edit, git, json, project, run, tune, tune_some};
use std::collections::BTreeSet;
use std::path::Path;

fn leaderboard(folder: &Path, more: &[&str]) -> Vec<serde_json::Value> {
    let mut arguments = vec!["leaderboard", "--db", "t.db", "--format", "json"];
    arguments.extend(more);
    let rows = json(folder, &arguments);
    rows.as_array().cloned().expect("an array")
}

fn commits(rows: &[serde_json::Value]) -> BTreeSet<String> {
    let commits = rows.iter().filter_map(|row| row["commit"].as_str());
    commits.map(str::to_owned).collect()
}

#[test]
fn results_follow_their_commits_and_edits_make_them_stale() {
    let folder = project();
    let folder = folder.path();
    let first = git(folder, &["rev-parse", "HEAD"]);
    tune(folder, "1");
    let rows = leaderboard(folder, &[]);
    assert_eq!(commits(&rows), BTreeSet::from([first.clone()]));
    assert!(
        rows.iter()
            .all(|row| row["stale"] == false && row["dirty"] == false)
    );
    assert!(rows.iter().all(|row| row["diff_hash"].is_null()));

    // An edit: stored results are stale, new ones say that the tree was dirty, and how.
    edit(folder, "// edited");
    let rows = leaderboard(folder, &[]);
    assert!(rows.iter().all(|row| row["stale"] == true));
    let (_, told) = run(folder, &["leaderboard", "--db", "t.db"], 0);
    assert!(
        told.contains("stale: the template of scale was edited"),
        "{told}"
    );
    let export = ["export", "scale", "--db", "t.db", "--allow-predicted"];
    assert!(
        run(folder, &export, 0)
            .0
            .contains("STALE: the template was edited since")
    );
    tune(folder, "1");
    let rows = leaderboard(folder, &[]);
    let expected = sha256_of_diff(folder);
    assert!(
        rows.iter()
            .all(|row| row["dirty"] == true && row["stale"] == false)
    );
    assert!(
        rows.iter().all(|row| row["diff_hash"] == expected),
        "{expected} {rows:?}"
    );
    assert!(
        run(folder, &export, 0)
            .0
            .contains(&format!("diff {expected}"))
    );

    // A commit later the leaderboard of the first one is still there: nine configurations are more than
    // the six that were tried before.
    let second = commit(folder);
    tune_some(folder, 9, "7");
    assert_eq!(commits(&leaderboard(folder, &["--at", &second])).len(), 2);
    for name in [first.as_str(), &first[..8], "HEAD~1"] {
        let rows = leaderboard(folder, &["--at", name]);
        assert_eq!(commits(&rows), BTreeSet::from([first.clone()]), "{name}");
        assert!(!rows.is_empty());
    }
    // Of the first commit, the newest version ranks: the dirty one.
    let rows = leaderboard(folder, &["--at", &first]);
    assert!(rows.iter().all(|row| row["dirty"] == true));
    let (_, told) = run(
        folder,
        &["leaderboard", "--db", "t.db", "--at", "nowhere"],
        2,
    );
    assert!(told.contains("git knows no such commit"), "{told}");
}

#[test]
fn the_history_tells_what_was_best_when_and_why_it_ended() {
    let folder = project();
    let folder = folder.path();
    let first = git(folder, &["rev-parse", "HEAD"]);
    tune(folder, "1");
    edit(folder, "// edited");
    let second = commit(folder);
    tune(folder, "1");
    let history = json(
        folder,
        &words("leaderboard --db t.db --history --format json"),
    );
    let history = history.as_array().expect("an array");
    assert_eq!(history.len(), 2, "{history:?}");
    assert_eq!(history[0]["since"]["commit"], first);
    assert_eq!(history[0]["until"]["commit"], second);
    assert_eq!(history[0]["ended_by"], "another version of the kernel");
    assert_eq!(history[1]["since"]["commit"], second);
    assert!(history[1]["until"].is_null());
    let (table, _) = run(folder, &["leaderboard", "--db", "t.db", "--history"], 0);
    assert!(
        table.contains(&first[..10]) && table.contains("still"),
        "{table}"
    );
}

/// As a user checks it.
fn sha256_of_diff(folder: &Path) -> String {
    let output = std::process::Command::new("sh")
        .args([
            "-c",
            "git diff --name-only HEAD | xargs sha256sum | sha256sum",
        ])
        .current_dir(folder)
        .output()
        .expect("a shell runs");
    String::from_utf8_lossy(&output.stdout)
        .chars()
        .take(64)
        .collect()
}
