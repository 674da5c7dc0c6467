//! Kernels as users write them, in spaces of their own: wrong ones, each refused for its reason,
//! and right ones that pass. Every case goes through the real program: `tuner check` gives the verdict,
//! `tuner run`, `tuner leaderboard` and `tuner export` show that nothing wrong ranks or ships, and
//! `tuner gate` finds what turned wrong after it was tuned.
//!
//! **A case.** `projects/*.toml` holds one project a file: a search space, a kernel, a reference
//! kernel, and under `[right.NAME]` and `[wrong.NAME]` what is changed in them. A wrong case is its
//! project with one mistake, so that it is refused for that mistake and nothing else.
//!
//! ```toml
//! [wrong.the_last_element_is_left_out]
//! why = "a comment, where the name does not say it"
//! edit = [["kernel", "i < N", "i < N - 1"]]     # [part, text, what stands there instead]
//! verdict = "incorrect"                         # or a list of verdicts
//! says = "never written"                    # part of the detail of one refused row
//! where = { BLOCK = 256 }                       # only these configurations are wrong
//! ```
//!
//! - Parts are `space`, `kernel` and `reference`; an edit whose text does not occur is an error.
//! - `$KERNEL` in a space is the name of the project and the case.
//! - Every configuration that is wrong must be refused on some problem with one of the verdicts,
//!   and on none with another one; every other configuration is `ok` on every problem.
//! - `exit = 2` instead of a verdict: the space itself is refused, by `check` and by `run`, and
//!   `says` (a text, or a list of them) stands in the message.
//! - `alone = true`: judged in a process of its own, because `run` may refuse the space.
//! - `slow = true`: a project that takes about a minute; `make nightly` alone ranks and gates it, and
//!   checks more than a third of its cases.
//! - A project's other cases are judged in one process, one after the other, and with `both_orders`
//!   in the reverse order as well: none may profit or suffer from what is remembered of another.
//!
//! `cargo test --test program user_kernels:: -- --nocapture` prints the table; `TUNER_USER_KERNELS_ONLY=text`
//! keeps the cases whose name contains the text.

mod case;
mod judge;
mod program;
mod ranking;
mod shipped;

use case::{Case, Kind, Project};
use std::fmt::Write as _;
use std::sync::Mutex;

/// Judges projects on a few threads, and panics with all that is not as expected.
fn suite(
    mut projects: Vec<Project>,
    judge: impl Fn(&Project) -> Vec<(String, Result<String, String>)> + Sync,
) {
    // Threads take the last one: with the largest first none is left alone with it at the end.
    projects.sort_by_key(|project| project.cases.len());
    let waiting = Mutex::new(projects);
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    let (failures, judged) = (Mutex::new(String::new()), Mutex::new(0));
    std::thread::scope(|scope| {
        for _ in 0..threads.min(4) {
            scope.spawn(|| {
                loop {
                    let Some(project) = waiting.lock().unwrap().pop() else {
                        return;
                    };
                    for (name, outcome) in judge(&project) {
                        *judged.lock().unwrap() += 1;
                        match outcome {
                            Ok(seen) => eprintln!("  {name:70} {seen}"),
                            Err(why) => {
                                eprintln!("! {name:70} {why}");
                                let _ = writeln!(failures.lock().unwrap(), "{name}: {why}");
                            }
                        }
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    let count = failures.lines().count();
    eprintln!("{} judged, {count} failures", judged.into_inner().unwrap());
    assert!(failures.is_empty(), "{failures}");
}

#[test]
fn wrong_kernels_are_refused_for_their_reason_and_right_ones_pass() {
    suite(case::checked_projects(), judge::check);
}

#[test]
fn nothing_wrong_ranks_and_everything_right_does() {
    // A rank needs a verdict, which `check` gives of every project: here the way from it counts.
    suite(case::share_of_projects(6), ranking::rank);
}

#[test]
fn a_tuned_kernel_that_turns_wrong_fails_the_gate() {
    // The gate judges as `check` does, which sees every project: here the way to it counts.
    suite(case::share_of_projects(4), shipped::gate);
}

#[test]
fn the_suite_holds_at_least_sixty_wrong_kernels_and_forty_right_ones() {
    if std::env::var_os("TUNER_USER_KERNELS_ONLY").is_none() {
        let projects = case::projects();
        let cases = || projects.iter().flat_map(|project| &project.cases);
        let of = |kind| cases().filter(|case: &&Case| case.kind == kind).count();
        assert!(of(Kind::Wrong) >= 60, "{}", of(Kind::Wrong));
        assert!(of(Kind::Right) >= 40, "{}", of(Kind::Right));
        eprintln!("{} wrong, {} right", of(Kind::Wrong), of(Kind::Right));
    }
}

#[test]
fn the_cheats_are_forty_at_least_and_twenty_have_a_public_address() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/user_kernels/projects/cheats.toml");
    let file: toml::Table = std::fs::read_to_string(path).unwrap().parse().unwrap();
    let cheats = file["wrong"].as_table().unwrap();
    let public = cheats.values().filter(|one| {
        let why = one["why"].as_str().unwrap();
        why.contains("https://")
    });
    assert!(cheats.len() >= 40, "{}", cheats.len());
    assert!(public.count() >= 20);
}
