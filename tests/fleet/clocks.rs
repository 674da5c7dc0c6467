//! Machines whose clocks disagree: the wall clock of each process is moved, and nothing else.

use super::{Process, Site, assert_same, device, tuner};
use std::path::PathBuf;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

/// Moves what every way of asking the C library for the time of day says.
const SHIFT: &str = r#"
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static long shift(void) {
  const char *text = getenv("TEST_CLOCK_SHIFT_S");
  return text ? atol(text) : 0;
}
int clock_gettime(clockid_t clock, struct timespec *at) {
  int code = (int)syscall(SYS_clock_gettime, clock, at);
  if (code == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) at->tv_sec += shift();
  return code;
}
int gettimeofday(struct timeval *at, void *zone) {
  struct timespec now;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &now);
  at->tv_sec = now.tv_sec;
  at->tv_usec = now.tv_nsec / 1000;
  return 0;
}
time_t time(time_t *at) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (at) *at = now.tv_sec;
  return now.tv_sec;
}
"#;

const HOUR: i64 = 3600;

/// The library that moves clocks.
fn library(site: &Site) -> PathBuf {
    let (source, library) = (site.path("shift.c"), site.path("shift.so"));
    std::fs::write(&source, SHIFT).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O1", "-o"]);
    let made = compiler.arg(&library).arg(&source).status();
    // Rust links with it, so where tests are built it is there.
    assert!(made.expect("cc compiles").success());
    library
}

/// The command with its clock moved.
fn shifted(mut command: Command, library: &PathBuf, seconds: i64) -> Command {
    command.env("LD_PRELOAD", library);
    command.env("TEST_CLOCK_SHIFT_S", seconds.to_string());
    command
}

#[test]
#[cfg_attr(not(nats_server), ignore = "no nats-server is here: scripts/get-nats")]
fn clocks_that_are_an_hour_apart_change_nothing() {
    let site = Site::new();
    let library = library(&site);
    let wanted = ["--evals", "1200", "--strategy", "random", "--seed", "5"];
    let alone = site.alone(&wanted);
    let worker = |name: &str, seconds: i64| {
        let mut command = tuner();
        let url = site.server.url();
        command.args(["worker", "--fleet", &url, "--device", &device()]);
        let log = site.path(&format!("{name}.log"));
        Process::start(&mut shifted(command, &library, seconds), log)
    };
    let (_early, _late) = (worker("early", -HOUR), worker("late", HOUR));
    let mut other = worker("other", 2 * HOUR);
    let hub = |seconds: i64, more: &[&str]| {
        let command = site.run_command("t.db", &[&wanted[..], more].concat());
        let log = site.path(&format!("hub{seconds}.log"));
        Process::start(&mut shifted(command, &library, seconds), log)
    };
    let mut run = hub(HOUR, &[]);
    site.until_stored(&run, "t.db", 100);
    // Everybody is seen by one whose clock is right, so nobody has expired.
    let seen = super::status(&site);
    assert_eq!(seen["workers"].as_array().unwrap().len(), 3, "{seen}");
    assert_eq!(seen["hubs"].as_array().unwrap().len(), 1, "{seen}");
    other.kill();
    site.until_stored(&run, "t.db", 300);
    run.kill();
    // The one that goes on lives two hours earlier.
    let mut run = hub(-HOUR, &["--resume"]);
    assert_same(&site, "t.db", &alone, &mut run);
    let started = super::ask(
        &site.path("t.db"),
        "SELECT CAST(strftime('%s', started_at) AS INTEGER) FROM runs",
        |row| sqlx::Row::get::<i64, _>(row, 0),
    );
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let ahead = started[0] - i64::try_from(now.as_secs()).unwrap();
    // Or the test moves no clocks.
    assert!(ahead > HOUR / 2, "{ahead} s");
}
