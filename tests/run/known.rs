//! What is stored counts: a repeated command judges nothing twice.

use super::proof::{KERNEL, REFERENCE, SPACE};
use crate::program::{folder, replace, run};

#[test]
fn a_repeated_command_says_what_is_known_and_fresh_judges_anew() {
    let folder = folder(&[
        ("space.yaml", SPACE),
        ("kernel.cu", KERNEL),
        ("ref.cu", REFERENCE),
    ]);
    let line = "run space.yaml --device vgpu:l4 --evals 2 --db t.db";
    let first = run(folder.path(), line);
    assert_eq!(first.code, 0, "{}", first.stderr);
    assert!(!first.stdout.contains("known"), "{}", first.stdout);
    let board = "leaderboard --db t.db --format json";
    let before = run(folder.path(), board).rows();
    let again = run(folder.path(), line);
    assert!(
        again
            .stdout
            .contains("2 of 2 known: judged by earlier runs"),
        "{}",
        again.stdout
    );
    let after = run(folder.path(), board).rows();
    assert_eq!(before.len(), after.len());
    for (before, after) in before.iter().zip(&after) {
        for key in ["rank", "config", "time_us_p50", "compared", "max_error"] {
            assert_eq!(before[key], after[key], "{key}");
        }
    }
    let fresh = run(folder.path(), &format!("{line} --fresh"));
    assert!(!fresh.stdout.contains("known"), "{}", fresh.stdout);
    replace(&folder.path().join("kernel.cu"), "400", "401");
    let edited = run(folder.path(), line);
    assert!(!edited.stdout.contains("known"), "{}", edited.stdout);
}
