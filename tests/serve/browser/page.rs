//! Parts of the page: choices that exist, work in progress, a search, deletion, saved plots.

use super::{Browser, drawn};
use crate::run::proof::{KERNEL, REFERENCE, SPACE};
use crate::serve::{Daemon, serve, wait_for};
use serde_json::Value;
use tempfile::TempDir;

/// Has the page keep what it would save: name, type and size.
const KEEP_SAVED: &str = "window.kept = []; window.made = null; const keep = URL.createObjectURL;
     URL.createObjectURL = (blob) => { window.made = blob; return keep(blob); };
     HTMLAnchorElement.prototype.click = function () {
         window.kept.push([this.download, window.made.type, window.made.size]); };";

#[test]
#[cfg_attr(
    not(browser),
    ignore = "no Chromium is here: apt-get install chromium chromium-driver"
)]
fn the_form_offers_what_exists_and_the_page_says_what_is_at_work() {
    let browser = Browser::open(1280, 900, false);
    let dir = TempDir::new().unwrap();
    let kernels = dir.path().join("kernels");
    std::fs::create_dir(&kernels).unwrap();
    // Ten candidates, so that one is at work whenever the page is read.
    let space = SPACE.replace("values: [0, 1]", "values: [0, 2, 3, 4, 5, 6, 7, 8, 9, 10]");
    let kernel = KERNEL.replace("(WAY ? 300 : 400)", "(400 + WAY)");
    let kernel = kernel.replace("WAY && blockIdx.x == 1237", "blockIdx.x > gridDim.x");
    std::fs::write(kernels.join("one_block.yaml"), space).unwrap();
    std::fs::write(kernels.join("kernel.cu"), kernel).unwrap();
    std::fs::write(kernels.join("ref.cu"), REFERENCE).unwrap();
    super::hostile(&kernels);
    std::fs::rename(kernels.join("hostile.json"), kernels.join("times.json")).unwrap();
    // JSON, and no recording.
    std::fs::write(kernels.join("schema.json"), "{}").unwrap();
    let db = dir.path().join("t.db");
    let daemon = Daemon::from(serve(&db).arg("--kernels").arg(&kernels), &db);
    browser.go(&format!("http://{}/#/start", daemon.address));
    browser.wait_for_text("one_block.");
    let offered = |field: &str| {
        let script = format!(
            "const field = document.getElementById('{field}'); field.dispatchEvent(new Event('focus'));
             return [...field.list.options].map((option) => option.value)"
        );
        browser.run(&script).to_string()
    };
    assert_eq!(offered("kernels"), "[\"one_block\"]");
    assert_eq!(offered("problems"), "[\"large\"]");
    let devices = offered("device");
    for device in ["auto", "vgpu:h100", "replay:times.json"] {
        assert!(devices.contains(&format!("\"{device}\"")), "{devices}");
    }
    assert!(!devices.contains("schema.json"), "{devices}");
    browser.run(
        "document.getElementById('device').value = 'vgpu:l4';
         document.getElementById('kernels').value = 'one_block';
         document.getElementById('start').click();",
    );
    browser.wait_for_text("Start a run of one_block");
    browser.run("document.getElementById('confirm').click()");
    browser.wait_for_text("At work");
    wait_for("a candidate at work, and for how long", || {
        let text = browser.run("return document.querySelector('.activities')?.innerText || ''");
        let text = text.as_str()?.to_owned();
        let stage = ["compiling ", "judging ", "proving "];
        let told = stage
            .iter()
            .any(|stage| text.contains(&format!("{stage}one_block large: ")));
        (told && text.contains(" s")).then_some(())
    });
    browser.picture("dashboard-at-work");
    let (_, runs) = daemon.get("/api/v1/runs");
    let id = runs["runs"][0]["id"].as_str().unwrap().to_owned();
    daemon.wait(&id, "finished");
    assert_eq!(browser.complaints(), Vec::<Value>::new());
}

#[test]
#[cfg_attr(
    not(browser),
    ignore = "no Chromium is here: apt-get install chromium chromium-driver"
)]
fn runs_are_searched_and_deleted_and_each_plot_is_saved() {
    let browser = Browser::open(1280, 900, false);
    let dir = TempDir::new().unwrap();
    let daemon = Daemon::start(&dir.path().join("t.db"));
    let root = format!("http://{}", daemon.address);
    let kept = daemon.submit(60, 1, "random");
    daemon.wait(&kept, "finished");
    let gone = daemon.submit(80, 2, "annealing");
    daemon.wait(&gone, "finished");
    browser.go(&root);
    browser.wait_for_text(&gone);
    browser.run(
        "const field = document.getElementById('filter'); field.value = 'annealing';
         field.dispatchEvent(new Event('input'));",
    );
    wait_for("one run", || {
        let rows = browser.run("return document.querySelectorAll('#runs tbody tr').length");
        (rows == 1 && browser.text().contains(&gone)).then_some(())
    });
    saves_plots(&browser, &root, &gone);
    browser.go(&format!("{root}/#/run/{gone}"));
    browser.wait_for_text("Best time so far");
    browser.run("document.getElementById('delete').click()");
    browser.wait_for_text("This cannot be undone");
    browser.run("document.getElementById('confirm').click()");
    wait_for("its end", || {
        (daemon.get(&format!("/api/v1/runs/{gone}")).0 == 404).then_some(())
    });
    assert_eq!(daemon.get(&format!("/api/v1/runs/{kept}")).0, 200);
    browser.wait_for_text("Under way");
    assert_eq!(browser.complaints(), Vec::<Value>::new());
}

/// Saves each plot of the library and each drawing of the page as SVG and as PNG.
fn saves_plots(browser: &Browser, root: &str, id: &str) {
    for (view, least) in [("explore", 4), ("run", 1)] {
        browser.go(&format!("{root}/#/{view}/{id}"));
        if view == "explore" {
            drawn(browser, "Trials", "option.series.length");
            let all = "return [...document.querySelectorAll('.plot')].every((at) => at.hasAttribute('_echarts_instance_'))";
            wait_for("all plots", || (browser.run(all) == true).then_some(()));
        } else {
            browser.wait_for_text("Best time so far");
        }
        browser.run(KEEP_SAVED);
        let buttons = "document.querySelectorAll('button[aria-label^=\"Save \"]')";
        let labels = browser.run(&format!(
            "return [...{buttons}].map((button) => button.getAttribute('aria-label'))"
        ));
        let labels: Vec<String> = serde_json::from_value(labels).unwrap();
        for (kind, media) in [("SVG", "image/svg+xml"), ("PNG", "image/png")] {
            let of_kind = labels.iter().enumerate();
            let of_kind = of_kind.filter(|(_, label)| label.ends_with(&format!("as {kind}")));
            let of_kind: Vec<(usize, &String)> = of_kind.collect();
            assert!(of_kind.len() >= least, "{view}: {labels:?}");
            for (place, label) in of_kind {
                browser.run(&format!("window.kept = []; {buttons}[{place}].click()"));
                let saved = wait_for(label, || {
                    let saved = browser.run("return window.kept[0] || null");
                    saved.is_array().then_some(saved)
                });
                let name = saved[0].as_str().unwrap();
                assert!(name.ends_with(&kind.to_lowercase()), "{name}");
                assert_eq!(saved[1], media, "{label}");
                assert!(saved[2].as_u64() > Some(500), "{label}: {saved}");
            }
        }
    }
}

#[test]
#[cfg_attr(
    not(browser),
    ignore = "no Chromium is here: apt-get install chromium chromium-driver"
)]
fn on_a_telephone_the_outcome_of_a_run_is_seen() {
    let browser = Browser::open(390, 800, false);
    let dir = TempDir::new().unwrap();
    let daemon = Daemon::start(&dir.path().join("t.db"));
    let id = daemon.submit(60, 1, "random");
    let run = daemon.wait(&id, "finished");
    let message = run["message"].as_str().unwrap();
    assert!(!message.is_empty());
    browser.go(&format!("http://{}", daemon.address));
    browser.wait_for_text(message);
    let width = browser.run("return document.documentElement.scrollWidth");
    assert!(width.as_u64() <= Some(390), "{width}");
}

#[test]
#[cfg_attr(
    not(browser),
    ignore = "no Chromium is here: apt-get install chromium chromium-driver"
)]
fn an_outlier_flattens_no_plot_and_all_rows_are_shown() {
    let browser = Browser::open(1280, 900, false);
    let dir = TempDir::new().unwrap();
    let daemon = Daemon::start(&dir.path().join("t.db"));
    let root = format!("http://{}", daemon.address);
    let id = daemon.submit(1500, 1, "random");
    let run = daemon.wait(&id, "finished");
    browser.go(&format!("{root}/#/explore/{id}"));
    let limits = drawn(
        &browser,
        "Trials",
        "[option.yAxis[0].max, option.yAxis[0].name]",
    );
    let (_, trials) = daemon.get(&format!("/api/v1/runs/{id}/trials?limit=20000"));
    let times = trials
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["time_us"].as_f64());
    let times: Vec<f64> = times.collect();
    let above = times
        .iter()
        .filter(|time| **time > limits[0].as_f64().unwrap())
        .count();
    let share = above as f64 / times.len() as f64;
    assert!((0.05..=0.1).contains(&share), "{share} {limits}");
    assert!(
        limits[1].as_str().unwrap().contains("90 % quantile"),
        "{limits}"
    );
    let passed = run["tasks"][0]["verdicts"]["ok"].as_u64().unwrap();
    assert!(passed > 1000, "{passed}");
    browser.go(&format!("{root}/#/leaderboard?top=100000"));
    wait_for("all rows", || {
        let rows = browser.run("return document.querySelectorAll('tbody tr').length");
        (rows.as_u64() == Some(passed)).then_some(())
    });
}
