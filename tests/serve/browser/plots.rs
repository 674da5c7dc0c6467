//! The plots of a run, and its table.

use super::Browser;
use crate::serve::{Daemon, request, serve, wait_for};
use crate::store::support::{config, start, submitted, timed};
use serde_json::{Value, json};
use std::path::Path;
use tempfile::TempDir;
use tuner_core::record::DeviceKind;
use tuner_store::{RunEnd, Store};

/// What the plot under a heading shows, as its library tells it. Its library writes the plot's label
/// anew whenever it draws, so plots are found by their headings.
pub(super) fn drawn(browser: &Browser, title: &str, what: &str) -> Value {
    let script = format!(
        "const at = [...document.querySelectorAll('.plot')]
           .find((at) => at.parentElement.querySelector('h3').textContent.includes({title:?}));
         const chart = window.echarts && at && window.echarts.getInstanceByDom(at);
         if (!chart) return null;
         const option = chart.getOption();
         return {what};"
    );
    wait_for(&format!("the plot {title}"), || {
        let value = browser.run(&script);
        (!value.is_null()).then_some(value)
    })
}

#[test]
#[cfg_attr(
    not(browser),
    ignore = "no Chromium is here: apt-get install chromium chromium-driver"
)]
fn all_trials_of_a_run_are_plotted_sorted_filtered_and_downloaded() {
    for (width, dark) in [(1280, false), (1280, true), (390, false), (390, true)] {
        let browser = Browser::open(width, 900, dark);
        let dir = TempDir::new().unwrap();
        let daemon = Daemon::start(&dir.path().join("t.db"));
        let id = daemon.submit(400, 3, "evolve");
        daemon.wait(&id, "finished");
        browser.go(&format!("http://{}/#/explore/{id}", daemon.address));
        browser.wait_for_text("400 of 400 trials");
        wait_for("five plots", || {
            let plots =
                browser.run("return document.querySelectorAll('.plot[_echarts_instance_]').length");
            (plots == 5).then_some(())
        });
        let name = if dark { "dark" } else { "light" };
        browser.picture(&format!("dashboard-trials-{width}-{name}"));
        // Plots follow the width of their place a frame later.
        wait_for(&format!("a page no wider than {width}"), || {
            let now = browser.run("return document.documentElement.scrollWidth");
            (now.as_u64() <= Some(u64::from(width))).then_some(())
        });
        if (width, dark) != (1280, false) {
            browser.run("window.scrollTo(0, 900)");
            browser.picture(&format!("dashboard-plots-{width}-{name}"));
            assert_eq!(browser.complaints(), Vec::<Value>::new());
            continue;
        }
        scatter_and_table(&browser, &daemon, &id);
        assert_eq!(browser.complaints(), Vec::<Value>::new());
    }
}

/// The contour of e² through corners of e⁰ below and e⁴ above crosses both sides half way up; one
/// corner alone is cut off; where nothing crosses there is nothing.
fn contours_cross_where_the_time_is(browser: &Browser) {
    let contours = |logs: [i32; 4]| {
        let [a, b, c, d] = logs;
        browser.run(&format!(
            "return contourIn([{{at: [0, 0], log: {a}}}, {{at: [0, 1], log: {b}}}, \
             {{at: [1, 1], log: {c}}}, {{at: [1, 0], log: {d}}}], 2)"
        ))
    };
    assert_eq!(contours([0, 4, 4, 0]), json!([[[0, 0.5], [1, 0.5]]]));
    assert_eq!(contours([0, 8, 8, 8]), json!([[[0, 0.25], [0.25, 0]]]));
    assert_eq!(contours([0, 4, 0, 4]).as_array().map(Vec::len), Some(2));
    assert_eq!(contours([0, 1, 1, 0]), json!([]));
}

/// The axis ends near the best times, however few there are.
fn an_outlier_flattens_nothing(browser: &Browser) {
    for (times, max) in [
        ("[1000, 5, 4.9]", 19.6),
        ("[1000, 900, 5, 5, 5, 5, 5, 5, 5, 5, 5, 4.9]", 19.6),
        ("[1, 5, 6, 7]", 5.0),
        ("[...Array(37).fill(5), 1000, 1000, 1000]", 5.25),
    ] {
        let found = browser.run(&format!("return timeAxis('quantile', {times}).max"));
        let found = found.as_f64().unwrap();
        assert!((found - max).abs() < 1e-6, "{times}: {found}");
    }
    assert_eq!(
        browser.run("return quantile([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 0.9)"),
        9
    );
}

/// Every trial is a point, times begin at zero until something else is chosen, and the table obeys.
fn scatter_and_table(browser: &Browser, daemon: &Daemon, id: &str) {
    let (_, trials) = daemon.get(&format!("/api/v1/runs/{id}/trials?limit=1000"));
    let trials = trials.as_array().unwrap();
    let passed = trials
        .iter()
        .filter(|trial| trial["time_us"].is_number())
        .count();
    let points = drawn(browser, "Trials", "option.series[0].data.length");
    assert_eq!(points.as_u64(), Some(passed as u64));
    let failed = "option.series.slice(2).reduce((sum, one) => sum + one.data.length, 0)";
    let failed = drawn(browser, "Trials", failed).as_u64().unwrap() as usize;
    assert_eq!(passed + failed, trials.len());
    let choose = |id: &str, value: &str| {
        browser.run(&format!(
            "const at = document.getElementById('{id}'); at.value = '{value}';
             at.dispatchEvent(new Event('change', {{ bubbles: true }}));"
        ));
    };
    choose("choose-mode", "zero");
    wait_for("an axis from zero", || {
        (drawn(browser, "Trials", "option.yAxis[0].min") == 0).then_some(())
    });
    choose("choose-mode", "cut");
    wait_for("times cut to those near the best", || {
        let axis = drawn(browser, "Trials", "option.yAxis[0].name");
        axis.as_str()?.contains("axis cut").then_some(())
    });
    let shares = "option.series[0].data.map((bar) => bar.value ?? bar)";
    let shares = drawn(browser, "Importance", shares);
    let sum: f64 = shares
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_f64)
        .sum();
    assert!((sum - 100.0).abs() < 10.0, "{shares}");
    choose("choose-slice", "use_padding");
    wait_for("times over the padding", || {
        (drawn(browser, "One parameter", "option.xAxis[0].name") == "use_padding").then_some(())
    });
    assert!(drawn(browser, "Two parameters", "option.series[0].data.length").as_u64() > Some(3));
    assert!(drawn(browser, "Two parameters", "option.series[1].data.length").as_u64() > Some(0));
    contours_cross_where_the_time_is(browser);
    an_outlier_flattens_nothing(browser);
    let problems = "return document.querySelectorAll('.problem').length";
    assert_eq!(browser.run(problems), 0);
    let lines = drawn(browser, "Parallel", "option.series[0].data.length");
    assert_eq!(lines.as_u64(), Some(passed as u64));
    // Sorted by time, the first row is the best; sorted once more, the slowest.
    let first = "return document.querySelector('#trials tbody tr td:nth-child(3)').innerText";
    let best = browser.run(first);
    browser.run("document.querySelectorAll('#trials .sort')[2].click()");
    assert_ne!(browser.run(first), best);
    browser.run(
        "const at = document.getElementById('filter'); at.value = 'use_padding=0';
         at.dispatchEvent(new Event('input', { bubbles: true }));",
    );
    wait_for("fewer trials", || {
        let page = browser.text();
        (page.contains(" of 400 trials") && !page.contains("400 of 400 trials")).then_some(())
    });
    let csv = browser.run(
        "const made = []; const keep = URL.createObjectURL;
         URL.createObjectURL = (blob) => { made.push(blob); return keep(blob); };
         document.getElementById('csv').click();
         return new Promise((resolve) => made[0].text().then(resolve));",
    );
    let csv = csv.as_str().unwrap();
    assert_eq!(csv.trim_end().lines().count(), 401, "{csv}");
    assert!(
        csv.starts_with("result,verdict,time_us,timing,block_size_x"),
        "{csv}"
    );
    let header = browser.run(
        "window.kept = []; const keep = URL.createObjectURL;
         URL.createObjectURL = (blob) => { window.kept.push(blob); return keep(blob); };
         document.getElementById('header').click(); return true;",
    );
    assert_eq!(header, true);
    let header = wait_for("the header", || {
        let text = "return window.kept[0] ? new Promise((resolve) => window.kept[0].text().then(resolve)) : null";
        browser.run(text).as_str().map(str::to_owned)
    });
    assert!(
        header.contains("_TUNED_ENTRY 0") && header.contains("tuner-entry"),
        "{header}"
    );
}

/// A run that has ended, of candidates with these times and registers; its name.
async fn run_of(db: &Path, points: &[(f64, u32)]) -> String {
    let store = Store::open(db).await.unwrap();
    let start = start(DeviceKind::Cuda);
    let trial = |(at, (us, registers)): (usize, &(f64, u32))| {
        let tile = [16, 32, 64, 128][at / 2];
        let config = config(tile, 8 * (at % 2) as i64);
        let mut trial = timed(&start, at as u64, config, *us);
        trial.compilation.as_mut().unwrap().registers = *registers;
        trial
    };
    let trials: Vec<_> = points.iter().enumerate().map(trial).collect();
    let run = submitted(&store, &start, &trials).await;
    store.finish_run(&run, RunEnd::Finished).await.unwrap();
    store.close().await.unwrap();
    run.as_str().to_owned()
}

#[test]
#[cfg_attr(
    not(browser),
    ignore = "no Chromium is here: apt-get install chromium chromium-driver"
)]
fn what_no_other_beats_in_time_and_registers_is_joined_by_a_line() {
    let dir = TempDir::new().unwrap();
    let db = dir.path().join("t.db");
    let points = [(16.0, 40), (10.0, 64), (15.0, 32), (11.0, 80), (12.0, 40)];
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let id = runtime.block_on(run_of(&db, &points));
    let daemon = Daemon::start(&db);
    let (_, trials) = daemon.get(&format!("/api/v1/runs/{id}/trials?limit=10"));
    assert_eq!(trials[0]["registers"], 40, "{trials}");
    assert_eq!(trials[0]["time_us_p90"], 12.0, "{trials}");
    assert_eq!(trials[0]["code_bytes"], 4096, "{trials}");
    let browser = Browser::open(1280, 900, false);
    browser.go(&format!("http://{}/#/explore/{id}", daemon.address));
    let all = drawn(
        &browser,
        "Two objectives",
        "option.series[0].data.map((point) => point.value)",
    );
    assert_eq!(all.as_array().map(Vec::len), Some(points.len()), "{all}");
    let front = drawn(
        &browser,
        "Two objectives",
        "option.series[1].data.map((point) => point.value)",
    );
    assert_eq!(front, json!([[64, 10], [40, 12], [32, 15]]));
    // All have equally much code, and p90 is the median: neither is worth a plot.
    let offered =
        "return [...document.querySelectorAll('#choose-objective option')].map((one) => one.value)";
    assert_eq!(browser.run(offered), json!(["registers"]));
    browser.run("document.querySelectorAll('.plot')[5]?.scrollIntoView()");
    browser.picture("dashboard-front");
    assert_eq!(browser.complaints(), Vec::<Value>::new());
}

/// Lines of text of a plot: text, left, right, top, bottom.
const LINES_OF_TEXT: &str = "chart.getZr().storage.getDisplayList(true).filter((one) => one.type === 'tspan' && one.style.text)
     .map((one) => { const box = one.getBoundingRect().clone(); if (one.transform) box.applyTransform(one.transform);
       return [one.style.text, box.x, box.x + box.width, box.y, box.y + box.height]; })";

#[test]
#[cfg_attr(
    not(browser),
    ignore = "no Chromium is here: apt-get install chromium chromium-driver"
)]
fn long_names_of_parameters_are_whole_and_apart() {
    let dir = TempDir::new().unwrap();
    let names = [
        "number_of_output_rows_per_thread_block",
        "shared_memory_padding_in_elements",
        "unroll",
    ];
    let rows = (0..64_u32).map(|at| {
        let values = [1 + at % 4, at / 4 % 4, 1 + at / 16];
        let mut row = json!({ "time": 1.0 + f64::from(at), "times": [1.0 + f64::from(at)], "compile_time": 100,
            "verification_time": 0, "benchmark_time": 10, "framework_time": 0, "strategy_time": 0 });
        for (name, value) in names.iter().zip(values) {
            row[name] = json!(value);
        }
        (values.map(|value| value.to_string()).join(","), row)
    });
    let rows: serde_json::Map<String, Value> = rows.collect();
    let values = json!({ names[0]: [1, 2, 3, 4], names[1]: [0, 1, 2, 3], names[2]: [1, 2, 3, 4] });
    let file = json!({ "device_name": "GPU", "kernel_name": "long", "problem_size": "p", "tune_params_keys": names,
        "tune_params": values, "objective": "time", "cache": rows });
    std::fs::write(dir.path().join("long.json"), file.to_string()).unwrap();
    let db = dir.path().join("t.db");
    let daemon = Daemon::from(serve(&db).arg("--kernels").arg(dir.path()), &db);
    let (status, answer) = daemon.post("/api/v1/runs", &request("long.json", 64, 1, "exhaustive"));
    assert_eq!(status, 201, "{answer}");
    let id = answer["id"].as_str().unwrap();
    daemon.wait(id, "finished");
    for width in [1280, 390] {
        let browser = Browser::open(width, 900, false);
        browser.go(&format!("http://{}/#/explore/{id}", daemon.address));
        let lines = |title: &str| {
            let lines = drawn(&browser, title, LINES_OF_TEXT);
            serde_json::from_value::<Vec<(String, f64, f64, f64, f64)>>(lines).unwrap()
        };
        let parallel = lines("Parallel");
        for name in names {
            assert!(parallel.iter().any(|line| line.0 == name), "{parallel:?}");
        }
        let important = lines("Importance");
        for (at, line) in important.iter().enumerate() {
            for other in &important[at + 1..] {
                let apart_x = line.2 <= other.1 || other.2 <= line.1;
                let apart_y = line.4 <= other.3 + 1.0 || other.4 <= line.3 + 1.0;
                assert!(apart_x || apart_y, "{width}: {line:?} {other:?}");
            }
        }
        browser.picture(&format!("dashboard-long-names-{width}"));
    }
}
