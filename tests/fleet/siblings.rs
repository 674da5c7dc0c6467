//! Several GPUs of one kind, on the stand-in for the driver, whose clock each worker sets.

use super::{Process, Site, kernels, status};
use crate::program::in_folder;
use std::process::{Command, Stdio};

/// What the tests' GPU is called.
const GPU: &str = "fake GPU of the tests";

/// A space of sixty-four candidates, so that workers can join in the middle.
fn lay_out(site: &Site) {
    kernels::lay_out(site.folder.path());
    kernels::widen(site);
}

/// The program with the stand-in.
fn program(site: &Site, db: &str) -> Command {
    let mut command = in_folder(crate::rig::program(), site.folder.path());
    command
        .stdin(Stdio::null())
        .env("TUNER_FAKE_GPU", site.path(db))
        .env("TUNER_CACHE", site.path("cache"));
    command
}

/// A worker whose GPU takes so many thousandths longer for everything.
fn worker(site: &Site, name: &str, thousandths: u32) -> Process {
    let mut command = program(site, "t.db");
    command
        .env("TUNER_FAKE_SLOWER", thousandths.to_string())
        .args(["worker", "--fleet", &site.server.url()])
        .args(["--device", "cuda:0", "--jobs", "1"]);
    Process::start(&mut command, site.path(&format!("{name}.log")))
}

fn run(site: &Site, db: &str, device: &str, more: &[&str]) -> Process {
    let mut command = program(site, db);
    command
        .args(["run", "spaces/scale.yaml", "--fleet", &site.server.url()])
        .args(["--device", device, "--strategy", "exhaustive", "--db", db])
        .args(more);
    Process::start(&mut command, site.path(&format!("{db}.log")))
}

#[test]
#[cfg_attr(not(nats_server), ignore = "no nats-server is here: scripts/get-nats")]
#[cfg_attr(nats_server, ignore = "some minutes: run it by name, with --ignored")]
fn gpus_of_one_kind_share_a_run_and_one_that_differs_forms_a_group_of_its_own() {
    let mut site = Site::new();
    lay_out(&site);
    // A fleet must be there for its workers to be seen.
    let mut opens = site.run("opens.db", &["--evals", "5"]);
    let _recorded = site.worker();
    let first = worker(&site, "first", 0);
    assert_eq!(opens.code(), 0, "{}", opens.log());
    super::until(
        || status(&site)["workers"].to_string().contains(GPU),
        || first.log(),
    );
    let mut hub = run(&site, "t.db", "cuda", &[]);
    site.until_stored(&hub, "t.db", 4);
    let (_near, mut slow) = (worker(&site, "near", 10), worker(&site, "slow", 60));
    slow.says("this GPU is in a separate group");
    assert_eq!(hub.code(), 0, "{}", hub.log());
    let said = hub.log();
    for words in [
        "forms a separate group",
        "the reference takes",
        "final comparison of the best 5 on the GPU of",
        "final comparison of the best 5, repeated on the GPU of",
    ] {
        assert!(said.contains(words), "`{words}`: {said}");
    }
    // Every time is in units of one GPU's reference, whoever took it.
    let units = super::ask(
        &site.path("t.db"),
        "SELECT DISTINCT reference_us FROM timing_evidence WHERE stage = 'race'",
        |row| sqlx::Row::get::<f64, _>(row, 0),
    );
    assert_eq!(units.len(), 1, "{units:?}: {said}");
    assert_eq!(site.stored("t.db"), 64);

    // The group has a name, by which it is tuned for, on a leaderboard of its own.
    let seen = status(&site);
    let all = seen["workers"].as_array().unwrap();
    let apart = all.iter().find(|one| one["group"] != "").unwrap();
    let device = apart["device"].as_str().unwrap().to_owned();
    assert!(device.starts_with(&format!("{GPU} (apart: ")), "{seen}");
    let mut own = run(&site, "own.db", &device, &["--evals", "6"]);
    assert_eq!(own.code(), 0, "{}\n{}", own.log(), slow.log());
    let devices = super::ask(&site.path("own.db"), "SELECT name FROM devices", |row| {
        sqlx::Row::get::<String, _>(row, 0)
    });
    assert_eq!(devices, [device]);
}
