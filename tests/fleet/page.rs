//! The dashboard's page of a fleet, in a real browser.

use super::{Site, device, finish, tuner};
use crate::serve::browser::Browser;
use serde_json::Value;

#[test]
#[cfg_attr(
    not(all(nats_server, browser)),
    ignore = "no nats-server or no Chromium is here: scripts/get-nats, apt-get install chromium chromium-driver"
)]
fn workers_runs_and_queues_are_on_the_page() {
    let mut site = Site::new();
    let _device = site.worker();
    let url = site.server.url();
    let _compiler = site.worker_with(&url, &["--compile-only"]);
    let daemon = site.daemon("t.db");
    let mut run = tuner();
    run.args(["run", "--evals", "60", "--seed", "5", "--device", &device()]);
    finish(run.arg("--db").arg(site.path("t.db")));

    let browser = Browser::open(1280, 900, false);
    browser.go(&format!("http://{}/#/fleet", daemon.address));
    let page = browser.wait_for_text("compiles only");
    for text in ["Workers", "Runs", "Queues", "RTX 3090", "connection", "up"] {
        assert!(page.contains(text), "{text}: {page}");
    }
    let judged = "const row = [...document.querySelectorAll('tr')].find((row) => row.innerText.includes('RTX 3090'));
                  const at = [...row.closest('table').querySelectorAll('th')].findIndex((head) => head.innerText === 'judged');
                  return Number(row.cells[at].innerText) >= 60;";
    // Workers tell what they have done every few seconds; they judge more than is stored in the end.
    super::until(
        || browser.run(judged) == true,
        || browser.wait_for_text("Workers"),
    );
    browser.picture("dashboard-fleet");

    assert_eq!(browser.complaints(), Vec::<Value>::new());
}
