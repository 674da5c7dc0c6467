//! A daemon whose disk fails for a while: it lives, says so, and goes on by itself.

use super::{OPEN, READ, Rig, SYNC, WRITE, shim};
use crate::serve::Daemon;
use std::process::Command;

/// The daemon on the rig's database, with the shim around it.
fn daemon(rig: &Rig) -> Daemon {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tuner"));
    command
        .args(["serve", "--listen", "127.0.0.1:0", "--db"])
        .arg(rig.db())
        .arg("--kernels")
        .arg(rig.folder.path())
        .env_remove("TUNER_TOKEN")
        .env("LD_PRELOAD", shim())
        .env("FAULTS_FOLDER", rig.folder.path().join("data"))
        .env("FAULTS_CONTROL", rig.folder.path().join("control"));
    Daemon::from(&mut command, &rig.folder.path().join("daemon"))
}

fn request(seed: usize) -> String {
    format!(
        "{{\"device\": \"replay:kernels.json\", \"strategy\": \"random\", \"seed\": {seed}, \
         \"evals\": 40}}"
    )
}

/// One daemon meets a fault of each kind at several moments of a run; after each it must be well
/// again and finish what it took.
fn survive(operations: i64, error: i32, moments: &[i64]) {
    let rig = Rig::new();
    rig.arm(0, 0, 0..0);
    let daemon = daemon(&rig);
    for (seed, moment) in moments.iter().enumerate() {
        rig.arm(operations, i64::from(error), *moment..i64::MAX);
        let (status, answer) = daemon.post("/api/v1/runs", &request(seed));
        let taken = answer["id"].as_str().map(str::to_owned);
        assert!(matches!(status, 201 | 503), "{status} {answer}");
        assert_eq!(taken.is_some(), status == 201, "{answer}");
        std::thread::sleep(std::time::Duration::from_millis(700));
        assert_eq!(daemon.get("/healthz").0, 200);
        rig.arm(0, 0, 0..0);
        if let Some(id) = taken {
            assert_eq!(daemon.wait(&id, "finished")["evals"], 40, "{moment}");
        }
        assert_eq!(daemon.get("/healthz").1["status"], "ok", "{moment}");
    }
    assert!(!daemon.log().contains("panicked"), "{}", daemon.log());
    assert_eq!(daemon.end().code(), Some(0));
}

#[test]
fn a_daemon_goes_on_after_a_full_disk() {
    survive(WRITE | SYNC, libc::ENOSPC, &[0, 4, 11, 23, 60]);
}

#[test]
fn a_daemon_goes_on_after_a_broken_disk() {
    survive(OPEN | READ | WRITE | SYNC, libc::EIO, &[0, 3, 17, 41]);
}

#[test]
#[ignore = "every moment of a run; minutes"]
fn a_daemon_goes_on_after_a_fault_at_every_moment() {
    let moments: Vec<i64> = (0..120).collect();
    std::thread::scope(|scope| {
        for part in moments.chunks(15) {
            scope.spawn(|| survive(WRITE | SYNC, libc::ENOSPC, part));
            scope.spawn(|| survive(OPEN | READ | WRITE | SYNC, libc::EIO, part));
        }
    });
}
