//! Machines, servers and disks that fail.

use super::proxy::Proxy;
use super::{Site, assert_same, device, rows};
use std::time::Duration;

#[test]
#[cfg_attr(not(nats_server), ignore = "no nats-server is here: scripts/get-nats")]
fn a_server_that_is_down_at_the_start_is_waited_for() {
    let mut site = Site::new();
    let wanted = ["--evals", "100", "--seed", "1"];
    let alone = site.alone(&wanted);
    site.server.kill();
    let mut worker = site.worker();
    let mut run = site.run("t.db", &wanted);
    worker.says("no NATS server answers at");
    run.says("no NATS server answers at");
    site.server.restart();
    assert_same(&site, "t.db", &alone, &mut run);
}

#[test]
#[cfg_attr(not(nats_server), ignore = "no nats-server is here: scripts/get-nats")]
fn a_server_that_is_killed_in_the_middle_costs_nothing_but_time() {
    let mut site = Site::new();
    let wanted = ["--evals", "1500", "--strategy", "random", "--seed", "2"];
    let (alone, _workers, mut run) = site.begin(2, &wanted);
    for stored in [100, 600] {
        site.until_stored(&run, "t.db", stored);
        site.server.kill();
        std::thread::sleep(Duration::from_millis(300));
        site.server.restart();
    }
    assert_same(&site, "t.db", &alone, &mut run);
}

#[test]
#[cfg_attr(not(nats_server), ignore = "no nats-server is here: scripts/get-nats")]
fn a_server_that_loses_its_disk_is_set_up_again() {
    let mut site = Site::new();
    let wanted = ["--evals", "800", "--strategy", "random", "--seed", "3"];
    let (alone, _workers, mut run) = site.begin(2, &wanted);
    site.until_stored(&run, "t.db", 100);
    site.server.lose_disk();
    site.server.restart();
    assert_same(&site, "t.db", &alone, &mut run);
}

#[test]
#[cfg_attr(not(nats_server), ignore = "no nats-server is here: scripts/get-nats")]
fn a_killed_hub_goes_on_where_it_was_and_nothing_is_judged_twice() {
    let mut site = Site::new();
    let wanted = ["--evals", "2000", "--strategy", "random", "--seed", "4"];
    let (alone, _workers, mut run) = site.begin(2, &wanted);
    for stored in [100, 500, 900] {
        site.until_stored(&run, "t.db", stored);
        run.kill();
        assert!(site.stored("t.db") < 2000, "it was over before");
        run = site.run("t.db", &[&wanted[..], &["--resume"]].concat());
    }
    assert_same(&site, "t.db", &alone, &mut run);
}

#[test]
#[cfg_attr(not(nats_server), ignore = "no nats-server is here: scripts/get-nats")]
fn workers_that_are_killed_or_stopped_are_replaced_by_the_others() {
    let mut site = Site::new();
    let wanted = ["--evals", "1500", "--strategy", "random", "--seed", "5"];
    let alone = site.alone(&wanted);
    let (mut killed, stopped, _steady) = (site.worker(), site.worker(), site.worker());
    let mut run = site.run("t.db", &wanted);
    site.until_stored(&run, "t.db", 100);
    stopped.signal("STOP");
    site.until_stored(&run, "t.db", 300);
    killed.kill();
    // Longer than --fleet-patience; then late answers come a second time.
    std::thread::sleep(Duration::from_millis(2500));
    stopped.signal("CONT");
    assert_same(&site, "t.db", &alone, &mut run);
}

#[test]
#[cfg_attr(not(nats_server), ignore = "no nats-server is here: scripts/get-nats")]
fn a_worker_whose_network_swallows_everything_is_replaced() {
    let mut site = Site::new();
    let wanted = ["--evals", "1500", "--strategy", "random", "--seed", "6"];
    let alone = site.alone(&wanted);
    let proxy = Proxy::to(site.server.port());
    let _far = site.worker_with(&proxy.url(), &["--device", &device()]);
    let _near = site.worker();
    let mut run = site.run("t.db", &wanted);
    site.until_stored(&run, "t.db", 100);
    proxy.cut(true);
    std::thread::sleep(Duration::from_millis(2500));
    proxy.cut(false);
    assert_same(&site, "t.db", &alone, &mut run);
}

/// A worker that takes one message three times and never answers. Where it has several orders, the
/// fourth worker says so, and what comes next has one. Gives that order's name.
async fn lose_one(context: async_nats::jetstream::Context) -> String {
    let consumer = super::hostile::work_queue(&context).await;
    loop {
        let mut message = super::hostile::next_order(&consumer).await;
        for delivery in 1..=3 {
            assert_eq!(message.info().unwrap().delivered, delivery);
            // Longer than --fleet-patience. What was taken first comes first again.
            tokio::time::sleep(Duration::from_millis(1200)).await;
            if delivery < 3 {
                message = super::hostile::next_order(&consumer).await;
            }
        }
        let sent: serde_json::Value = rmp_serde::from_slice(&message.payload).unwrap();
        let orders = sent["orders"].as_array().unwrap();
        if let [only] = &orders[..] {
            return only["id"].as_str().unwrap().to_owned();
        }
        let message = super::hostile::next_order(&consumer).await;
        assert_eq!(message.info().unwrap().delivered, 4);
        let lost = |_: &serde_json::Value| serde_json::json!({ "lost": 3 });
        super::hostile::answer(&context, &message, lost).await;
    }
}

#[test]
#[cfg_attr(not(nats_server), ignore = "no nats-server is here: scripts/get-nats")]
fn a_candidate_that_is_handed_out_three_times_for_nothing_gets_a_verdict_that_says_so() {
    let mut site = Site::new();
    // A strategy that chooses what is judged next may leave the lost one to the end, and then out.
    let wanted = ["--evals", "20", "--strategy", "random", "--seed", "7"];
    let alone = site.alone(&wanted);
    let mut run = site.run("t.db", &wanted);
    let lost = site.server.with_client(lose_one);
    let _worker = site.worker();
    assert_eq!(run.code(), 0, "{}", run.log());
    let stored = rows(&site.path("t.db"));
    let not_judged: Vec<_> = stored.iter().filter(|row| row.3 == "not_judged").collect();
    assert_eq!(not_judged.len(), 1, "{lost}: {stored:?} {}", run.log());
    let details = super::ask(
        &site.path("t.db"),
        "SELECT detail FROM verdicts WHERE verdict = 'not_judged'",
        |row| sqlx::Row::get::<String, _>(row, 0),
    );
    assert!(details[0].contains("handed out 3 times"), "{details:?}");
    assert_eq!(stored.len(), alone.len());
}

#[test]
#[cfg_attr(not(nats_server), ignore = "no nats-server is here: scripts/get-nats")]
fn a_server_whose_disk_is_full_is_waited_for() {
    let mut site =
        Site::with("jetstream { store_dir: 'STORE', max_file_store: 24MB, max_memory_store: 8MB }");
    let wanted = ["--evals", "800", "--strategy", "random", "--seed", "8"];
    let (alone, _worker, mut run) = site.begin(1, &wanted);
    site.until_stored(&run, "t.db", 50);
    site.server.with_client(async |context| {
        let config = async_nats::jetstream::stream::Config {
            name: "JUNK".to_owned(),
            subjects: vec!["junk".to_owned()],
            ..Default::default()
        };
        context.create_stream(config).await.unwrap();
        let junk = bytes::Bytes::from(vec![7; 500_000]);
        let mut full = false;
        for _ in 0..80 {
            let sent = context.publish("junk", junk.clone()).await.unwrap();
            full |= sent.await.is_err();
        }
        assert!(full, "the disk is not full");
        tokio::time::sleep(Duration::from_secs(1)).await;
        context.delete_stream("JUNK").await.unwrap();
    });
    assert_same(&site, "t.db", &alone, &mut run);
}

#[test]
#[cfg_attr(not(nats_server), ignore = "no nats-server is here: scripts/get-nats")]
fn a_hub_that_does_not_read_is_cut_off_and_goes_on() {
    let mut site = Site::with("write_deadline: '300ms'");
    let wanted = ["--evals", "800", "--strategy", "random", "--seed", "9"];
    let (alone, _workers, mut run) = site.begin(2, &wanted);
    site.until_stored(&run, "t.db", 100);
    let id = super::status(&site)["hubs"][0]["run"]
        .as_str()
        .unwrap()
        .to_owned();
    run.signal("STOP");
    site.server.with_client(async |context| {
        // More than the sockets between hold.
        for number in 0..64 {
            let subject = format!("tuner.tuner.v2.result.{id}.junk{number}");
            let junk = bytes::Bytes::from(vec![b'x'; 900_000]);
            context.publish(subject, junk).await.unwrap().await.unwrap();
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
    });
    run.signal("CONT");
    assert_same(&site, "t.db", &alone, &mut run);
    // It meets what it was sent, or the end of its connection, whichever comes first.
    let met = ["is dropped", "is gone"];
    let log = run.log();
    assert!(met.iter().any(|what| log.contains(what)), "{log}");
}
