//! Two hundred kills over hub, workers and server: what is stored is what one undisturbed machine
//! stores.

use super::{Process, Row, Site, assert_stored};
use rand::{RngExt as _, SeedableRng as _};
use std::time::{Duration, Instant};

/// Kills in all.
const KILLS: u32 = 200;

/// Candidates of a run.
const EVALS: &str = "5000";

/// Workers at a time.
const WORKERS: usize = 4;

/// One run under way, and what it must come to.
struct Under {
    db: String,
    wanted: Vec<String>,
    alone: Vec<Row>,
    run: Process,
    /// The hub was killed after the run's end.
    over: bool,
}

impl Under {
    fn begin(site: &Site, number: u32) -> Self {
        let seed = number.to_string();
        let wanted = ["--evals", EVALS, "--strategy", "random", "--seed", &seed];
        let alone = site.alone(&wanted);
        let db = format!("run{number}.db");
        let run = site.run(&db, &wanted);
        let wanted = wanted.map(str::to_owned).to_vec();
        Self {
            db,
            wanted,
            alone,
            run,
            over: false,
        }
    }

    fn resume(&mut self, site: &Site) {
        self.run.kill();
        let path = site.path(&self.db);
        let states = super::ask(&path, "SELECT state FROM runs", |row| {
            sqlx::Row::get::<String, _>(row, 0)
        });
        if states == ["finished"] {
            // The kill came after the end: there is nothing to go on with.
            assert_stored(site, &self.db, &self.alone, &self.run);
            self.over = true;
            return;
        }
        let mut wanted: Vec<&str> = self.wanted.iter().map(String::as_str).collect();
        wanted.push("--resume");
        self.run = site.run(&self.db, &wanted);
    }

    /// Whether it ended, and then as it must.
    fn ended(&mut self, site: &Site) -> bool {
        if self.over {
            return true;
        }
        let Some(status) = self.run.child.try_wait().unwrap() else {
            return false;
        };
        assert!(status.success(), "{status}: {}", self.run.log());
        assert_stored(site, &self.db, &self.alone, &self.run);
        true
    }
}

#[test]
#[cfg_attr(not(nats_server), ignore = "no nats-server is here: scripts/get-nats")]
#[cfg_attr(nats_server, ignore = "some minutes: make nightly")]
fn two_hundred_kills_lose_nothing_and_store_nothing_twice() {
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(200);
    let mut site = Site::new();
    let mut workers: Vec<Process> = (0..WORKERS).map(|_| site.worker()).collect();
    let began = Instant::now();
    let (mut kills, mut runs) = ([0_u32; 3], 1);
    let mut under = Under::begin(&site, runs);
    while kills.iter().sum::<u32>() < KILLS {
        std::thread::sleep(Duration::from_millis(rng.random_range(50..600)));
        if under.ended(&site) {
            runs += 1;
            under = Under::begin(&site, runs);
            continue;
        }
        let what = rng.random_range(0..3);
        kills[what] += 1;
        match what {
            0 => under.resume(&site),
            1 => {
                let worker = rng.random_range(0..WORKERS);
                workers[worker].kill();
                workers[worker] = site.worker();
            }
            _ => {
                site.server.kill();
                std::thread::sleep(Duration::from_millis(rng.random_range(0..300)));
                site.server.restart();
            }
        }
    }
    while !under.ended(&site) {
        std::thread::sleep(Duration::from_millis(50));
    }
    let [hubs, workers, servers] = kills;
    eprintln!(
        "{hubs} hubs, {workers} workers and {servers} servers killed in {:.0} s over {runs} runs of \
         {EVALS} candidates: every stored result is that of one undisturbed machine",
        began.elapsed().as_secs_f64()
    );
}
