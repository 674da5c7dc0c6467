//! Each operation of a small run fails, once or from then on.

use super::{
    OPEN, READ, RENAME, ROWS, Rig, SHORT, SYNC, TRUNCATE, UNLINK, WRITE, announced,
    assert_ended_in_words,
};
use crate::run::{assert_stored, stored};
use std::collections::BTreeMap;

/// Which operations fail in which ways.
pub(super) fn kinds() -> Vec<(i64, i64, &'static str)> {
    let (eio, enospc) = (i64::from(libc::EIO), i64::from(libc::ENOSPC));
    let (emfile, eintr) = (i64::from(libc::EMFILE), i64::from(libc::EINTR));
    vec![
        (OPEN, eio, "open EIO"),
        (OPEN, emfile, "open EMFILE"),
        (OPEN, enospc, "open ENOSPC"),
        (OPEN, i64::from(libc::EACCES), "open EACCES"),
        (READ, eio, "read EIO"),
        (READ, eintr, "read EINTR"),
        (READ, SHORT, "read short"),
        (WRITE, eio, "write EIO"),
        (WRITE, enospc, "write ENOSPC"),
        (WRITE, eintr, "write EINTR"),
        (WRITE, SHORT, "write short"),
        (SYNC, eio, "sync EIO"),
        (SYNC, enospc, "sync ENOSPC"),
        (TRUNCATE, eio, "truncate EIO"),
        (TRUNCATE | UNLINK, enospc, "truncate or unlink ENOSPC"),
        (RENAME, eio, "rename EIO"),
    ]
}

/// What an undisturbed run stores.
fn undisturbed(rig: &Rig) -> BTreeMap<String, String> {
    rig.arm(0, 0, 0..0);
    let output = rig.run(&[]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let all = stored(&rig.db());
    assert_eq!(all.len(), ROWS);
    all
}

/// One point: the run must end in words, with everything stored that it announced, and after the
/// fault go on to what an undisturbed run stores.
fn survive(rig: &Rig, what: &str, all: &BTreeMap<String, String>) {
    let output = rig.run(&[]).output().unwrap();
    assert_ended_in_words(&output, what);
    let told = announced(&output.stdout);
    rig.arm(0, 0, 0..0);
    if !told.is_empty() {
        assert_stored(&rig.db(), &told);
    }
    let resumed = rig.run(&["--resume"]).output().unwrap();
    let errors = String::from_utf8_lossy(&resumed.stderr);
    assert!(resumed.status.success(), "{what}, resumed: {errors}");
    assert_eq!(&stored(&rig.db()), all, "{what}");
}

/// For how many operations a fault lasts: once, and from then on. A call that is interrupted is
/// repeated without end by design, so that fault ends after three.
pub(super) fn lengths(error: i64) -> [i64; 2] {
    if error == i64::from(libc::EINTR) {
        [1, 3]
    } else {
        [1, i64::MAX / 2]
    }
}

/// Tries every `step`-th point of every kind, starting at a different one for each, in a run from
/// the beginning and in one that goes on.
fn try_points(step: usize) -> usize {
    let rig = Rig::new();
    let all = undisturbed(&rig);
    let mut points = 0;
    for begun in [false, true] {
        let prepare = || {
            rig.clear();
            if begun {
                rig.arm(0, 0, 0..0);
                let output = rig.run(&["--evals", "20"]).output().unwrap();
                assert!(output.status.success());
            }
        };
        for (kind, (operations, error, name)) in kinds().into_iter().enumerate() {
            prepare();
            rig.arm(operations, 0, 0..0);
            assert!(rig.run(&[]).output().unwrap().status.success());
            let turns = rig.counted().0;
            for turn in (0..turns).skip((7 * kind) % step).step_by(step) {
                for length in lengths(error) {
                    prepare();
                    rig.arm(operations, error, turn..turn + length);
                    survive(&rig, &format!("{name} at {turn} for {length}"), &all);
                    points += 1;
                }
            }
        }
    }
    points
}

#[test]
fn a_run_survives_faults_of_the_file_system() {
    let points = try_points(41);
    assert!(points >= 40, "only {points} points");
}

#[test]
#[ignore = "every point; a quarter of an hour"]
fn a_run_survives_every_fault_of_the_file_system() {
    println!("{} points", try_points(1));
}
