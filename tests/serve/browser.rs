//! The dashboard in a real browser: headless Chromium, driven through chromedriver's HTTP interface
//! (<https://www.w3.org/TR/webdriver2/>). Reported as ignored where
//! they are missing.

mod changes;
mod driver;
mod page;
mod plots;

pub(crate) use driver::Browser;
use plots::drawn;

use super::{Daemon, wait_for};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A recorded file whose names would be markup, if anything took them for it.
fn hostile(folder: &std::path::Path) {
    let evil = "<img src=x onerror=\"window.pwned=1\">";
    let row = |x: u32, ms: f64| {
        json!({ "block": x, evil: format!("{evil}{}", x % 3), "time": ms, "times": [ms, ms * 1.01, ms * 1.2],
                "compile_time": 100, "verification_time": 0, "benchmark_time": 10,
                "framework_time": 0, "strategy_time": 0 })
    };
    let rows: serde_json::Map<String, Value> = (1..=24_u32)
        .map(|x| {
            (
                format!("{x},{}", x % 3),
                row(x, 5.0 + f64::from((x * 7) % 24)),
            )
        })
        .collect();
    let values: Vec<u32> = (1..=24).collect();
    let names = [0, 1, 2].map(|number| format!("{evil}{number}"));
    let file = json!({
        "device_name": format!("GPU {evil}"), "kernel_name": format!("kernel{evil}"),
        "problem_size": evil, "tune_params_keys": ["block", evil],
        "tune_params": { "block": values, evil: names },
        "objective": "time", "cache": rows,
    });
    std::fs::write(folder.join("hostile.json"), file.to_string()).unwrap();
}

#[test]
#[cfg_attr(
    not(browser),
    ignore = "no Chromium is here: apt-get install chromium chromium-driver"
)]
fn the_dashboard_shows_runs_results_and_candidates_and_obeys_the_keyboard() {
    let browser = Browser::open(1280, 900, false);
    let dir = TempDir::new().unwrap();
    let daemon = Daemon::start(&dir.path().join("t.db"));
    let root = format!("http://{}", daemon.address);
    browser.go(&root);
    browser.wait_for_text("No runs yet.");
    let id = daemon.submit(6768, 1, "exhaustive");
    // It appears by itself, and its curve with it.
    browser.wait_for_text(&id);
    wait_for("a curve", || {
        let curves = browser.run("return document.querySelectorAll('#live svg path.curve').length");
        (curves.as_u64() > Some(0)
            || daemon.get(&format!("/api/v1/runs/{id}")).1["state"] == "finished")
            .then_some(())
    });
    daemon.wait(&id, "finished");
    browser.wait_for_text("finished");
    browser.picture("dashboard-runs");
    // Rows are reached with j, opened with Enter.
    browser.keys("j\n");
    let page = browser.wait_for_text("Best time so far");
    assert!(
        page.contains("6,768 / 6,768") || page.contains("6,768"),
        "{page}"
    );
    wait_for("the curve of a run that is over", || {
        let curves = browser.run("return document.querySelectorAll('svg path.curve').length");
        (curves == 1).then_some(())
    });
    browser.picture("dashboard-run");
    browser.keys("2");
    browser.wait_for_text("convolution2d 15x15 (BAT)");
    wait_for("ten rows", || {
        let rows = browser.run("return document.querySelectorAll('tbody tr').length");
        (rows == 10).then_some(())
    });
    browser.picture("dashboard-leaderboard");
    // `/` goes to the filter, which takes words of configurations.
    browser.keys("/tile_size_x=2");
    browser.wait_for_text("tile_size_x=2");
    let typed = browser.run("return document.getElementById('filter').value");
    assert_eq!(typed, "tile_size_x=2");
    wait_for("rows of one value", || {
        // What all rows share stands below the table.
        let shared = browser.run("return document.querySelector('section .note')?.innerText || ''");
        shared.as_str()?.contains("tile_size_x=2").then_some(())
    });
    assert!(
        browser
            .run("return location.hash")
            .as_str()
            .unwrap()
            .contains("words=tile_size_x")
    );
    browser.run("document.activeElement.blur()");
    let (_, rows) = daemon.get("/api/v1/leaderboard?top=1");
    let candidate = rows[0]["candidate"].as_str().unwrap();
    browser.go(&format!("{root}/#/candidate/{candidate}"));
    let page = browser.wait_for_text("Verdicts");
    assert!(
        page.contains("block_size_x") && page.contains(&id),
        "{page}"
    );
    browser.keys("3");
    browser.wait_for_text("Each value of a parameter");
    let charts = browser.run("return document.querySelectorAll('svg[role=img]').length");
    assert!(charts.as_u64() >= Some(4), "{charts}");
    browser.picture("dashboard-parameters");
    browser.keys("5");
    browser.wait_for_text("RTX 3090");
    assert_eq!(browser.complaints(), Vec::<Value>::new());
}

#[test]
#[cfg_attr(
    not(browser),
    ignore = "no Chromium is here: apt-get install chromium chromium-driver"
)]
fn names_that_look_like_markup_are_shown_as_text() {
    let browser = Browser::open(1280, 900, false);
    let dir = TempDir::new().unwrap();
    hostile(dir.path());
    let db = dir.path().join("t.db");
    let daemon = Daemon::from(super::serve(&db).arg("--kernels").arg(dir.path()), &db);
    let body = super::request("hostile.json", 24, 1, "exhaustive");
    let (status, answer) = daemon.post("/api/v1/runs", &body);
    assert_eq!(status, 201, "{answer}");
    let id = answer["id"].as_str().unwrap();
    let run = wait_for("the run's end", || {
        let (_, run) = daemon.get(&format!("/api/v1/runs/{id}"));
        (run["state"] == "finished" || run["state"] == "failed").then_some(run)
    });
    assert_eq!(run["state"], "finished", "{run}");
    let (_, rows) = daemon.get("/api/v1/leaderboard?top=1");
    let candidate = rows[0]["candidate"].as_str().unwrap().to_owned();
    for path in [
        "",
        "#/leaderboard",
        "#/effects",
        "#/devices",
        &format!("#/explore/{id}"),
        &format!("#/compare?runs={id}"),
        &format!("#/run/{id}"),
        &format!("#/candidate/{candidate}"),
    ] {
        browser.go("about:blank");
        browser.go(&format!("http://{}/{path}", daemon.address));
        browser.wait_for_text("<img src=x");
        assert_eq!(
            browser.run("return window.pwned || document.images.length"),
            0,
            "{path}"
        );
    }
    assert_eq!(browser.complaints(), Vec::<Value>::new());
}

/// Gives a failed candidate of the database a hazard at that line, as the virtual GPU would have.
fn plant_hazard(db: &std::path::Path, file: &str, line: u32) -> String {
    let hazard = json!({
        "kind": "race", "detail": "two threads write the same word", "file": file, "line": line,
        "block": [0, 1, 0], "thread": [32, 0, 0], "address": "0x40 of tile",
    });
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let mut connection = crate::rig::database::connected(db).await;
        let (verdict, hash): (i64, String) = sqlx::query_as(
            "SELECT v.id, lower(hex(c.hash)) FROM verdicts v JOIN candidates c ON c.id = v.candidate
             WHERE v.verdict <> 'ok' ORDER BY v.id DESC LIMIT 1",
        )
        .fetch_one(&mut connection)
        .await
        .unwrap();
        sqlx::query("INSERT INTO hazards (verdict, ordinal, body) VALUES (?, 0, ?)")
            .bind(verdict)
            .bind(hazard.to_string())
            .execute(&mut connection)
            .await
            .unwrap();
        // A recording has no source: the hazard is one of the folder's kernel.
        sqlx::query("UPDATE kernels SET name = 'scale'")
            .execute(&mut connection)
            .await
            .unwrap();
        hash
    })
}

#[test]
#[cfg_attr(
    not(browser),
    ignore = "no Chromium is here: apt-get install chromium chromium-driver"
)]
fn a_failed_candidate_is_found_from_its_run_and_shows_the_line_of_its_hazard() {
    let browser = Browser::open(1280, 900, false);
    let dir = TempDir::new().unwrap();
    let folder = dir.path().join("kernels");
    std::fs::create_dir(&folder).unwrap();
    let source = "extern \"C\" __global__ void scale(const float* x, float* tile) { int i = threadIdx.x;\n  \
                  tile[i] = x[i]; // <b>\n}\n";
    let space = "version: 1\nkernel: scale\nsource: kernel.cu\nproblems: { small: { N: 32 } }\n\
                 parameters: { BLOCK: { values: [32] } }\narguments:\n\
                 - { name: x, type: f32, role: input, shape: [N] }\n\
                 - { name: tile, type: f32, role: output, shape: [N] }\n\
                 launches: [{ entry: scale, grid: [1], block: [BLOCK] }]\nreference: none\n";
    std::fs::write(folder.join("kernel.cu"), source).unwrap();
    std::fs::write(folder.join("scale.yaml"), space).unwrap();
    std::fs::write(dir.path().join("outside.cu"), "secret\nsecret\n").unwrap();
    let db = dir.path().join("t.db");
    let daemon = Daemon::from(super::serve(&db).arg("--kernels").arg(&folder), &db);
    let id = daemon.submit(60, 1, "random");
    daemon.wait(&id, "finished");
    let hash = plant_hazard(&db, "kernel.cu", 2);
    browser.go(&format!("http://{}/#/run/{id}", daemon.address));
    browser.wait_for_text("Latest failures");
    wait_for("a failed candidate in the table", || {
        let script = format!("return !!document.querySelector('tr[data-href*=\"{hash}\"]')");
        (browser.run(&script) == true).then_some(())
    });
    browser.run(&format!(
        "document.querySelector('tr[data-href*=\"{hash}\"]').click()"
    ));
    let page = browser.wait_for_text("two threads write the same word");
    for part in [
        "race",
        "kernel.cu:2",
        "tile[i] = x[i]; // <b>",
        "thread 32,0,0",
        "0x40 of tile",
    ] {
        assert!(page.contains(part), "{part} is not in {page}");
    }
    browser.picture("dashboard-hazard");
}

#[test]
#[cfg_attr(
    not(browser),
    ignore = "no Chromium is here: apt-get install chromium chromium-driver"
)]
fn at_400_pixels_and_in_the_dark_nothing_hangs_over_the_edge() {
    let browser = Browser::open(400, 800, true);
    let dir = TempDir::new().unwrap();
    let daemon = Daemon::start(&dir.path().join("t.db"));
    let id = daemon.submit(200, 1, "random");
    daemon.wait(&id, "finished");
    let (_, rows) = daemon.get("/api/v1/leaderboard?top=1");
    let candidate = rows[0]["candidate"].as_str().unwrap().to_owned();
    for (path, text, name) in [
        ("#/".to_owned(), "finished", "runs"),
        (format!("#/run/{id}"), "Best time so far", "run"),
        ("#/leaderboard".to_owned(), "rank", "leaderboard"),
        (format!("#/candidate/{candidate}"), "Verdicts", "candidate"),
        ("#/effects".to_owned(), "Each value", "parameters"),
        ("#/devices".to_owned(), "RTX 3090", "devices"),
        (format!("#/explore/{id}"), "of 200 trials", "trials"),
        (format!("#/compare?runs={id}"), "passed", "compare"),
        ("#/start".to_owned(), "Start a run", "start"),
        ("#/fleet".to_owned(), "--fleet", "fleet"),
    ] {
        browser.go("about:blank");
        browser.go(&format!("http://{}/{path}", daemon.address));
        browser.wait_for_text(text);
        let width = browser.run("return document.documentElement.scrollWidth");
        assert!(width.as_u64() <= Some(400), "{path} is {width} wide");
        browser.picture(&format!("dashboard-{name}-400"));
    }
    let background = browser.run("return getComputedStyle(document.body).backgroundColor");
    assert_eq!(
        background, "rgb(18, 20, 23)",
        "the dark colours follow the system"
    );
    // A daemon without a fleet says so with 404.
    let own = |entry: &Value| {
        !entry["message"]
            .as_str()
            .unwrap_or_default()
            .contains("/fleet")
    };
    let complaints: Vec<Value> = browser.complaints().into_iter().filter(own).collect();
    assert_eq!(complaints, Vec::<Value>::new());
}

#[test]
#[cfg_attr(
    not(browser),
    ignore = "no Chromium is here: apt-get install chromium chromium-driver"
)]
fn a_run_is_started_noted_compared_and_stopped_from_the_page() {
    let browser = Browser::open(1280, 900, false);
    let dir = TempDir::new().unwrap();
    let daemon = Daemon::start(&dir.path().join("t.db"));
    let root = format!("http://{}", daemon.address);
    let before = daemon.submit(60, 1, "random");
    daemon.wait(&before, "finished");
    browser.go(&format!("{root}/#/start"));
    browser.wait_for_text("Start a run");
    let (_, run) = daemon.get(&format!("/api/v1/runs/{before}"));
    let device = run["request"]["device"].as_str().unwrap();
    browser.run(&format!(
        "document.getElementById('device').value = {device:?};
         document.getElementById('evals').value = '80';
         document.getElementById('strategy').value = 'random';
         document.getElementById('start').click();"
    ));
    browser.wait_for_text("(80 trials)?");
    // Nothing is asked for before it is confirmed.
    assert_eq!(
        daemon.get("/api/v1/runs").1["runs"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    browser.run("document.getElementById('confirm').click()");
    browser.wait_for_text("Best time so far");
    // The list may be an answer of a moment ago.
    let started = wait_for("a second run", || {
        let (_, list) = daemon.get("/api/v1/runs");
        let latest = list["runs"][0]["id"].as_str()?.to_owned();
        (latest != before).then_some(latest)
    });
    daemon.wait(&started, "finished");
    browser.run(
        "document.getElementById('note').value = 'with <b>padding</b>';
         document.getElementById('save-note').click();",
    );
    browser.wait_for_text("saved 2");
    let (_, note) = daemon.get(&format!("/api/v1/runs/{started}/note"));
    assert_eq!(note["text"], "with <b>padding</b>");
    browser.go("about:blank");
    browser.go(&format!("{root}/#/run/{started}"));
    wait_for("the note", || {
        let text = browser.run("return document.getElementById('note')?.value");
        (text == "with <b>padding</b>").then_some(())
    });
    browser.go(&format!(
        "{root}/#/compare?runs={before},{started},run-that-is-not"
    ));
    browser.wait_for_text("No run run-that-is-not.");
    let curves = drawn(&browser, "convolution", "option.series.length");
    assert_eq!(curves, 2);
    browser.picture("dashboard-compare");
    for view in ["run", "explore"] {
        browser.go(&format!("{root}/#/{view}/nowhere"));
        browser.wait_for_text("No run nowhere");
    }
    let long = daemon.submit(6768, 1, "annealing");
    browser.go(&format!("{root}/#/run/{long}"));
    let stop = format!("document.querySelector('button[aria-label=\"Stop run {long}\"]')");
    let offered = wait_for("a button", || {
        let there = browser.run(&format!("return !!{stop}")) == true;
        let over = daemon.get(&format!("/api/v1/runs/{long}")).1["state"] == "finished";
        (there || over).then_some(there)
    });
    if offered {
        browser.run(&format!("{stop}.click()"));
        browser.wait_for_text("Its results are kept");
        browser.run("document.getElementById('confirm').click()");
    }
    wait_for("its end", || {
        let state = daemon.get(&format!("/api/v1/runs/{long}")).1["state"].clone();
        (state == "stopped" || state == "finished").then_some(())
    });
    // Refusals of the API are expected; what the page itself does wrong is not.
    let own = |entry: &Value| {
        !entry["message"]
            .as_str()
            .unwrap_or_default()
            .contains("404")
    };
    let complaints: Vec<Value> = browser.complaints().into_iter().filter(own).collect();
    assert_eq!(complaints, Vec::<Value>::new());
}
