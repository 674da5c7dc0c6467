//! What a fleet does when nothing goes wrong.

use super::{Site, assert_same, finish, rows, status, tuner, until};

#[test]
#[cfg_attr(not(nats_server), ignore = "no nats-server is here: scripts/get-nats")]
fn a_fleet_finds_what_one_machine_finds_and_leaves_nothing_behind() {
    let mut site = Site::new();
    let wanted = ["--evals", "400", "--seed", "7"];
    let (alone, workers, mut run) = site.begin(3, &wanted);
    assert_same(&site, "t.db", &alone, &mut run);
    let seen = status(&site);
    assert_eq!(seen["workers"].as_array().unwrap().len(), workers.len());
    assert_eq!(seen["hubs"].as_array().unwrap().len(), 0, "{seen}");
    assert_eq!(seen["results_waiting"], 0, "{seen}");
    for queue in seen["queues"].as_array().unwrap() {
        assert_eq!(
            (&queue["waiting"], &queue["in_hand"]),
            (&0.into(), &0.into()),
            "{seen}"
        );
    }
    let text = finish(tuner().args(["status", "--fleet", &site.server.url()])).stdout;
    let text = String::from_utf8(text).unwrap();
    assert!(
        text.contains("3 workers") && text.contains("replay:"),
        "{text}"
    );
}

#[test]
#[cfg_attr(not(nats_server), ignore = "no nats-server is here: scripts/get-nats")]
fn workers_come_and_go_and_two_runs_share_them() {
    let mut site = Site::new();
    let (one, two) = (
        ["--evals", "600", "--seed", "1"],
        ["--evals", "600", "--seed", "2"],
    );
    let (alone_one, alone_two) = (site.alone(&one), site.alone(&two));
    let mut first = site.run("one.db", &one);
    let mut second = site.run("two.db", &two);
    let mut early = site.worker();
    site.until_stored(&first, "one.db", 100);
    let _late = site.worker();
    early.signal("TERM");
    assert_eq!(early.code(), 0, "{}", early.log());
    for (run, db, alone) in [
        (&mut first, "one.db", &alone_one),
        (&mut second, "two.db", &alone_two),
    ] {
        assert_same(&site, db, alone, run);
    }
}

#[test]
#[cfg_attr(not(nats_server), ignore = "no nats-server is here: scripts/get-nats")]
fn an_interrupted_run_goes_on_with_what_workers_answered_meanwhile() {
    let mut site = Site::new();
    let wanted = ["--evals", "1500", "--strategy", "random", "--seed", "3"];
    let (alone, _workers, mut run) = site.begin(2, &wanted);
    site.until_stored(&run, "t.db", 200);
    run.signal("INT");
    assert_eq!(run.code(), 130, "{}", run.log());
    assert!(site.stored("t.db") < 1500, "it was over before");
    let mut run = site.run("t.db", &[&wanted[..], &["--resume"]].concat());
    assert_same(&site, "t.db", &alone, &mut run);
}

#[test]
#[cfg_attr(not(nats_server), ignore = "no nats-server is here: scripts/get-nats")]
fn the_daemon_has_its_runs_judged_by_the_fleet_and_shows_it() {
    let mut site = Site::new();
    let alone = site.alone(&["--evals", "200", "--seed", "5"]);
    let _worker = site.worker();
    let db = site.path("t.db");
    let daemon = site.daemon("t.db");
    let mut run = tuner();
    run.args([
        "run",
        "--device",
        &super::device(),
        "--evals",
        "200",
        "--seed",
        "5",
        "--db",
    ]);
    finish(run.arg(&db));
    assert_eq!(rows(&db), alone);
    // Workers tell of themselves every second, and the run may be over before.
    let page = || get(&daemon.address, "/metrics");
    until(
        || {
            let page = page();
            page.contains("tuner_fleet_workers{") && page.contains("} 1")
        },
        page,
    );
    let fleet = get(&daemon.address, "/api/v1/fleet");
    assert!(
        fleet.contains("\"judged\":") && fleet.contains("replay:"),
        "{fleet}"
    );
}

/// A page of the daemon.
fn get(address: &str, path: &str) -> String {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}
