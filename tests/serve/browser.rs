//! The dashboard in a real browser: headless Chromium, driven through chromedriver's HTTP interface
//! (<https://www.w3.org/TR/webdriver2/>). Reported as ignored where
//! they are missing.

use super::{Daemon, wait_for};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// A browser window.
pub(crate) struct Browser {
    driver: Child,
    port: u16,
    session: String,
    _profile: TempDir,
}

fn on_path(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .flat_map(|folder| names.iter().map(move |name| folder.join(name)))
        .find(|file| file.is_file())
}

impl Browser {
    /// A window of that size.
    pub(crate) fn open(width: u32, height: u32, dark: bool) -> Self {
        let chromium = on_path(&["chromium", "chromium-browser", "google-chrome"]).unwrap();
        let driver = on_path(&["chromedriver"]).unwrap();
        let profile = TempDir::new().unwrap();
        let mut driver = Command::new(driver)
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let port = BufReader::new(driver.stdout.take().unwrap())
            .lines()
            .map_while(Result::ok)
            .find_map(|line| {
                let (_, rest) = line.split_once("successfully on port ")?;
                rest.trim_end_matches('.').parse().ok()
            })
            .unwrap();
        let mut arguments = vec![
            "--headless=new".to_owned(),
            "--no-sandbox".to_owned(),
            "--disable-gpu".to_owned(),
            "--disable-quic".to_owned(),
            "--no-first-run".to_owned(),
            "--disable-background-networking".to_owned(),
            "--disable-component-update".to_owned(),
            "--disable-sync".to_owned(),
            "--disable-dev-shm-usage".to_owned(),
            "--hide-scrollbars".to_owned(),
            format!("--user-data-dir={}", profile.path().display()),
        ];
        if dark {
            arguments.push("--blink-settings=preferredColorScheme=0".to_owned());
        }
        let options = json!({ "binary": chromium, "args": arguments });
        let capabilities = json!({ "capabilities": { "alwaysMatch": {
            "goog:chromeOptions": options, "goog:loggingPrefs": { "browser": "ALL" } } } });
        let mut browser = Self {
            driver,
            port,
            session: String::new(),
            _profile: profile,
        };
        let answer = browser.ask("POST", "", &capabilities);
        browser.session = format!("/{}", answer["sessionId"].as_str().unwrap());
        // A window of a headless browser has a least width; a device has not.
        let metrics = json!({ "cmd": "Emulation.setDeviceMetricsOverride", "params": {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false } });
        browser.ask("POST", "/goog/cdp/execute", &metrics);
        browser
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(180)))
            .unwrap();
        let body = if method == "GET" {
            String::new()
        } else {
            body.to_string()
        };
        let head = format!(
            "{method} /session{}{path} HTTP/1.1\r\nhost: 127.0.0.1:{}\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n",
            self.session,
            self.port,
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        // The answer ends where its length says, not where the connection does.
        let mut reader = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut bytes = vec![0; length];
        reader.read_exact(&mut bytes).unwrap();
        let answer: Value = serde_json::from_slice(&bytes).unwrap();
        assert!(answer["value"]["error"].is_null(), "{path}: {answer}");
        answer["value"].clone()
    }

    pub(crate) fn go(&self, url: &str) {
        self.ask("POST", "/url", &json!({ "url": url }));
    }

    /// What the script returns.
    pub(crate) fn run(&self, script: &str) -> Value {
        let body = json!({ "script": script, "args": [] });
        self.ask("POST", "/execute/sync", &body)
    }

    fn text(&self) -> String {
        let text = self.run("return document.body.innerText");
        text.as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn wait_for_text(&self, text: &str) -> String {
        wait_for(&format!("`{text}` on the page"), || {
            let page = self.text();
            page.contains(text).then_some(page)
        })
    }

    /// Types keys at whatever has the focus.
    fn keys(&self, keys: &str) {
        let actions: Vec<Value> = keys
            .chars()
            .flat_map(|key| {
                let key = if key == '\n' { '\u{e007}' } else { key };
                [
                    json!({ "type": "keyDown", "value": key }),
                    json!({ "type": "keyUp", "value": key }),
                ]
            })
            .collect();
        let body = json!({ "actions": [{ "type": "key", "id": "keyboard", "actions": actions }] });
        self.ask("POST", "/actions", &body);
    }

    /// Errors that the page caused, such as what the content policy refused.
    pub(crate) fn complaints(&self) -> Vec<Value> {
        let log = self.ask("POST", "/se/log", &json!({ "type": "browser" }));
        let severe = |entry: &&Value| entry["level"] == "SEVERE";
        log.as_array()
            .unwrap()
            .iter()
            .filter(severe)
            .cloned()
            .collect()
    }

    /// Keeps a picture of the page where `TUNER_SCREENSHOTS` names a folder.
    pub(crate) fn picture(&self, name: &str) {
        let Some(folder) = std::env::var_os("TUNER_SCREENSHOTS") else {
            return;
        };
        let picture = self.ask("GET", "/screenshot", &Value::Null);
        let file = PathBuf::from(folder).join(format!("{name}.png"));
        std::fs::write(file, base64(picture.as_str().unwrap())).unwrap();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Chromium outlives its driver: it is asked to go first, also after a test that failed.
        if !self.session.is_empty()
            && let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port))
        {
            let _ = stream.set_read_timeout(Some(Duration::from_secs(10)));
            let request = format!(
                "DELETE /session{} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 0\r\n\r\n",
                self.session
            );
            let _ = stream.write_all(request.as_bytes());
            let _ = stream.read(&mut [0; 64]);
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// Reads base64 (RFC 4648).
fn base64(text: &str) -> Vec<u8> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let mut bytes = Vec::new();
    let (mut bits, mut held) = (0_u32, 0);
    for byte in text.bytes().filter(|byte| *byte != b'=') {
        bits = bits << 6 | u32::from(digit(byte));
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
        }
    }
    bytes
}

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
    use sqlx::Connection as _;
    let hazard = json!({
        "kind": "race", "detail": "two threads write the same word", "file": file, "line": line,
        "block": [0, 1, 0], "thread": [32, 0, 0], "address": "0x40 of tile",
    });
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(db);
        let mut connection = sqlx::SqliteConnection::connect_with(&options)
            .await
            .unwrap();
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
    std::fs::write(
        folder.join("kernel.cu"),
        "one\n  tile[i] = x; // <b>\nthree\n",
    )
    .unwrap();
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
        "tile[i] = x; // <b>",
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

/// What the plot under a heading shows, as its library tells it. Its library writes the plot's label
/// anew whenever it draws, so plots are found by their headings.
fn drawn(browser: &Browser, title: &str, what: &str) -> Value {
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
    assert_eq!(drawn(browser, "Trials", "option.yAxis[0].min"), 0);
    let choose = |id: &str, value: &str| {
        browser.run(&format!(
            "const at = document.getElementById('{id}'); at.value = '{value}';
             at.dispatchEvent(new Event('change', {{ bubbles: true }}));"
        ));
    };
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
        csv.starts_with("result,verdict,time_us,block_size_x"),
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
        header.contains("#ifndef") && header.contains("tuner-entry"),
        "{header}"
    );
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
    browser.wait_for_text("There is no run run-that-is-not.");
    let curves = drawn(&browser, "convolution", "option.series.length");
    assert_eq!(curves, 2);
    browser.picture("dashboard-compare");
    for view in ["run", "explore"] {
        browser.go(&format!("{root}/#/{view}/nowhere"));
        browser.wait_for_text("There is no run nowhere");
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
        browser.wait_for_text("What it found is kept");
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
