//! The paths, their documentation, and what they answer.

use super::{Daemon, RECORDED, request, serve};
use crate::evolve;
use serde_json::Value;
use tempfile::TempDir;
use tuner_core::record::Verdict;
use tuner_search::StrategyName;

#[test]
fn a_submitted_run_is_carried_out_and_its_results_are_served() {
    let dir = TempDir::new().unwrap();
    let daemon = Daemon::start(&dir.path().join("t.db"));
    let id = daemon.submit(60, 7, "random");
    let run = daemon.wait(&id, "finished");
    assert_eq!((&run["evals"], &run["seed"]), (&60.into(), &"7".into()));
    let task = &run["tasks"][0];
    let curve = task["curve"].as_array().unwrap();
    let falls: Vec<f64> = curve.iter().map(|p| p["us"].as_f64().unwrap()).collect();
    assert!(falls.is_sorted_by(|a, b| a > b), "{falls:?}");
    assert_eq!(falls.last().copied(), task["best_us"].as_f64());
    let (_, rows) = daemon.get("/api/v1/leaderboard?top=3");
    assert_eq!(rows.as_array().unwrap().len(), 3);
    assert_eq!(rows[0]["config"], task["best_config"]);
    assert_eq!(rows[0]["rank"], 1);
    let candidate = rows[0]["candidate"].as_str().unwrap();
    let (status, page) = daemon.get(&format!("/api/v1/candidates/{candidate}"));
    assert_eq!((status, &page["config"]), (200, &rows[0]["config"]));
    assert_eq!(page["attempts"][0]["run"], id.as_str());
    assert_eq!(page["attempts"][0]["measurement"]["p50"], task["best_us"]);
    let (_, effects) = daemon.get("/api/v1/effects");
    let tile = effects["parameters"]
        .as_array()
        .unwrap()
        .iter()
        .find(|effect| effect["parameter"] == "tile_size_x")
        .unwrap();
    let values: Vec<i64> = tile["values"]
        .as_array()
        .unwrap()
        .iter()
        .map(|value| value["value"].as_i64().unwrap())
        .collect();
    assert!(values.len() > 1 && values.is_sorted(), "{values:?}");
    let (_, devices) = daemon.get("/api/v1/devices");
    assert_eq!(devices[0]["kind"], "replay");
    assert!(daemon.metric("tuner_candidates_total{verdict=\"ok\"}") > 0.0);
    assert!(daemon.end().success());
}

#[test]
fn the_openapi_document_names_every_path_and_its_types() {
    let dir = TempDir::new().unwrap();
    let daemon = Daemon::start(&dir.path().join("t.db"));
    let (status, document) = daemon.get("/openapi.json");
    assert_eq!(status, 200);
    assert!(document["openapi"].as_str().unwrap().starts_with("3."));
    let paths: Vec<&str> = document["paths"]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    for path in [
        "/api/v1/candidates/{candidate}",
        "/api/v1/devices",
        "/api/v1/effects",
        "/api/v1/events",
        "/api/v1/evolutions",
        "/api/v1/leaderboard",
        "/api/v1/runs",
        "/api/v1/runs/{id}",
        "/api/v1/runs/{id}/events",
        "/api/v1/runs/{id}/stop",
        "/api/v1/runs/{id}/trials",
        "/healthz",
        "/metrics",
        "/readyz",
    ] {
        assert!(paths.contains(&path), "{path} is not in {paths:?}");
    }
    every_reference_resolves(&document, &document);
    // The layers around all paths answer on every one.
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            for status in ["400", "401", "403", "408", "421", "500", "503"] {
                let answer = &operation["responses"][status];
                assert!(answer.is_object(), "{method} {path} {status}");
            }
        }
    }
    let schemas = &document["components"]["schemas"];
    assert!(schemas["RunView"]["properties"]["tasks"].is_object());
    assert!(schemas["Request"]["properties"]["evals"].is_object());
}

fn every_reference_resolves(value: &Value, document: &Value) {
    match value {
        Value::Object(object) => {
            if let Some(reference) = object.get("$ref").and_then(Value::as_str) {
                let pointer = reference.strip_prefix('#').unwrap();
                assert!(document.pointer(pointer).is_some(), "{reference}");
            }
            for value in object.values() {
                every_reference_resolves(value, document);
            }
        }
        Value::Array(values) => {
            for value in values {
                every_reference_resolves(value, document);
            }
        }
        _ => {}
    }
}

/// Requests without a body that are refused.
#[rustfmt::skip]
const UNFOUND: [(&str, &str, u16, &str); 12] = [
    ("GET", "/api/v1/runs/none", 404, "no run `none`"),
    ("GET", "/api/v1/runs/none/events", 404, "no run `none`"),
    ("POST", "/api/v1/runs/none/stop", 404, "no run `none`"),
    ("GET", "/api/v1/runs?state=odd", 400, "choose from"),
    ("GET", "/api/v1/leaderboard?top=many", 400, "top"),
    ("GET", "/api/v1/leaderboard?sort=up", 400, "sort"),
    ("GET", "/api/v1/candidates/zz", 404, "no such candidate"),
    ("GET", "/api/v1/leaderboard?top=0", 400, "1 to 100000"),
    ("GET", "/api/v1/runs?limit=0", 400, "1 to 100"),
    ("GET", "/api/v1/runs?limit=101", 400, "1 to 100"),
    ("GET", "/nowhere", 404, "/openapi.json"),
    ("DELETE", "/api/v1/runs", 405, "/openapi.json"),
];

/// Asserts that the request is answered with that status and hint, as `/openapi.json` documents it.
fn refused(
    daemon: &Daemon,
    document: &Value,
    (method, path, headers, body): (&str, &str, &str, &str),
    (status, hint): (u16, &str),
) {
    let answer = daemon
        .request(method, path, headers, body.as_bytes())
        .unwrap();
    let detail = answer.json()["detail"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let what = format!(
        "{method} {path} {:.60}: {} {}",
        body, answer.status, answer.body
    );
    assert_eq!(answer.status, status, "{what}");
    assert!(answer.head.contains("application/problem+json"), "{what}");
    assert!(detail.contains(hint), "{what}");
    let template = path.split('?').next().unwrap();
    let template = template
        .replace("/none", "/{id}")
        .replace("/zz", "/{candidate}");
    let operation = &document["paths"][&template][method.to_ascii_lowercase()];
    if !operation.is_null() {
        let documented = &operation["responses"][answer.status.to_string()]["content"];
        let problem = &documented["application/problem+json"];
        assert!(problem.is_object(), "{what}: not in /openapi.json");
    }
    assert!(!answer.body.contains("root:"), "{what}");
}

#[test]
fn every_bad_request_is_answered_with_a_problem_that_says_what_to_do() {
    let dir = TempDir::new().unwrap();
    let daemon = Daemon::start(&dir.path().join("t.db"));
    let json = "content-type: application/json\r\n";
    let long = format!("{{\"device\":\"{}\"}}", "x".repeat(70_000));
    let outside = request("../../../../etc/passwd", 5, 1, "random");
    let absolute = request("/etc/passwd", 5, 1, "random");
    let strategy = request(RECORDED, 5, 1, "guess");
    let document = daemon.get("/openapi.json").1;
    let posted = [
        (json, long.as_str(), 413, "longer than 65536"),
        (json, r#"{"kernels": ["#, 400, "EOF"),
        (json, "", 400, "EOF"),
        ("", "{}", 415, "Content-Type"),
        (json, r#"{"kernel":"x"}"#, 422, "unknown field `kernel`"),
        (json, r#"{"seed":-1}"#, 422, "seed"),
        (json, &outside, 422, "--kernels DIR"),
        (json, &absolute, 422, "--kernels DIR"),
        (
            json,
            r#"{"kernels":["/etc/passwd.yaml"]}"#,
            422,
            "--kernels DIR",
        ),
        (
            json,
            r#"{"kernels":["nothing"]}"#,
            422,
            "no kernel `nothing`",
        ),
        (json, &strategy, 422, "guess"),
        (json, r#"{"device":"gpu"}"#, 422, "vgpu:NAME"),
        (
            json,
            r#"{"knowledge":["/proc/self/environ"]}"#,
            422,
            "--kernels DIR",
        ),
        (json, r#"{"objective":"time,colour"}"#, 422, "--objective"),
        (json, r#"{"evals":0}"#, 422, "at least 1"),
        (json, r#"{"budget":"soon"}"#, 422, "90s"),
    ];
    for (headers, body, status, hint) in posted {
        refused(
            &daemon,
            &document,
            ("POST", "/api/v1/runs", headers, body),
            (status, hint),
        );
    }
    for (method, path, status, hint) in UNFOUND {
        refused(&daemon, &document, (method, path, "", ""), (status, hint));
    }
    let (_, runs) = daemon.get("/api/v1/runs");
    assert_eq!(runs["runs"], serde_json::json!([]), "nothing was queued");
}

#[test]
fn verdicts_and_strategies_are_listed_for_the_page() {
    let dir = TempDir::new().unwrap();
    let daemon = Daemon::start(&dir.path().join("t.db"));
    let verdicts = daemon.get("/api/v1/verdicts").1;
    let names = verdicts.as_array().unwrap().iter();
    let names: Vec<&str> = names.filter_map(|it| it["verdict"].as_str()).collect();
    let known: Vec<&str> = Verdict::ALL.iter().map(|verdict| verdict.name()).collect();
    assert_eq!(names, known);
    assert_eq!(
        (&verdicts[0]["class"], &verdicts[8]["class"]),
        (&"passed".into(), &"wrong".into())
    );
    let document = daemon.get("/openapi.json").1;
    let strategies = StrategyName::ALL.iter().map(|strategy| strategy.name());
    assert_eq!(
        document["components"]["schemas"]["StrategyName"]["enum"],
        serde_json::json!(strategies.collect::<Vec<_>>())
    );
}

#[test]
#[cfg_attr(not(node), ignore = "no node is here: apt-get install nodejs")]
fn the_script_of_the_page_can_be_parsed() {
    let dir = TempDir::new().unwrap();
    let daemon = Daemon::start(&dir.path().join("t.db"));
    let script = daemon.request("GET", "/dashboard.js", "", b"").unwrap();
    let path = dir.path().join("dashboard.js");
    std::fs::write(&path, script.body).unwrap();
    let mut node = std::process::Command::new("node");
    let checked = node.arg("--check").arg(&path).output().unwrap();
    let message = String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.success(), "{message}");
}

#[test]
fn with_a_token_only_those_who_show_it_are_answered() {
    let dir = TempDir::new().unwrap();
    let db = dir.path().join("t.db");
    let token = "a-token-of-some-length";
    let daemon = Daemon::from(serve(&db).env("TUNER_TOKEN", token), &db);
    for path in ["/healthz", "/", "/dashboard.js", "/openapi.json"] {
        assert_eq!(
            daemon.request("GET", path, "", b"").unwrap().status,
            200,
            "{path}"
        );
    }
    let wrong = format!("authorization: Bearer {token}x\r\n");
    for headers in ["", wrong.as_str(), "authorization: Basic abc\r\n"] {
        for path in ["/api/v1/runs", "/metrics", "/api/v1/events", "/nowhere"] {
            let answer = daemon.request("GET", path, headers, b"").unwrap();
            assert_eq!(answer.status, 401, "{path} {headers:?}");
            assert!(answer.body.contains("Bearer TOKEN"));
        }
    }
    let lower = format!("authorization: bearer {token}\r\n");
    let answer = daemon.request("GET", "/api/v1/runs", &lower, b"");
    assert_eq!(answer.unwrap().status, 200);
    let right = format!("authorization: Bearer {token}\r\n");
    assert_eq!(
        daemon
            .request("GET", "/api/v1/runs", &right, b"")
            .unwrap()
            .status,
        200
    );
}

#[test]
fn a_listener_for_others_needs_a_token_that_cannot_be_guessed() {
    let dir = TempDir::new().unwrap();
    let db = dir.path().join("t.db");
    for (listen, token, hint) in [
        ("0.0.0.0:0", None, "set a token"),
        ("[::]:0", None, "set a token"),
        ("0.0.0.0:0", Some("short"), "openssl rand"),
        ("127.0.0.1:0", Some("short"), "openssl rand"),
        (
            "127.0.0.1:0",
            Some("a-token-of-two\nlines-of-text"),
            "one line",
        ),
        (
            "127.0.0.1:0",
            Some("a-token-with-\u{7f}-control"),
            "printable",
        ),
    ] {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tuner"));
        command.args(["serve", "--listen", listen, "--db"]).arg(&db);
        command.env_remove("TUNER_TOKEN");
        if let Some(token) = token {
            command.env("TUNER_TOKEN", token);
        }
        let output = command.output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(hint), "{message}");
    }
    assert!(
        !db.exists(),
        "nothing is made before the arguments are right"
    );
}

#[test]
fn pages_of_strangers_cannot_ask_through_a_browser() {
    let dir = TempDir::new().unwrap();
    let daemon = Daemon::start(&dir.path().join("t.db"));
    let port = daemon.address.rsplit(':').next().unwrap();
    // PORT stands for the daemon's.
    for (headers, status) in [
        ("host: evil.example:PORT", 421),
        ("host: localhost:PORT", 200),
        ("host: localhost:PORT|origin: http://evil.example", 403),
        ("host: localhost:PORT|origin: http://localhost:PORT", 200),
        ("host: localhost:PORT|origin: null", 403),
        ("host: localhost:PORT@evil.example", 421),
        ("host: localhost:PORT|host: evil.example", 400),
        ("host: localhost:PORT|origin: http://ev\u{ef}l.example", 400),
    ] {
        let headers = format!("{headers}\r\n").replace("PORT", port);
        let headers = headers.replace('|', "\r\n");
        let answer = daemon
            .request("GET", "/api/v1/runs", &headers, b"")
            .unwrap();
        assert_eq!(answer.status, status, "{headers}");
        assert!(!answer.head.contains("access-control-allow-origin"));
        assert!(
            answer
                .head
                .contains("content-security-policy: default-src 'none'")
        );
    }
}

#[test]
fn evolutions_are_family_trees_with_their_figures() {
    let folder = evolve::project();
    let folder = folder.path();
    let mutator = evolve::with_source(folder, evolve::FAST);
    evolve::evolve(folder, &mutator, &["--rounds", "1"]).says(0, &["predicted better"]);
    let daemon = Daemon::start(&folder.join("t.db"));
    let (status, all) = daemon.get("/api/v1/evolutions?kernel=scale");
    assert_eq!((status, &all[0]["state"]), (200, &"finished".into()));
    let title = all[0]["title"].as_str().unwrap();
    assert!(title.starts_with("scale on "), "{title}");
    let change = &all[0]["changes"][0];
    assert_eq!(change["outcome"], "predicted better");
    assert_eq!(
        (&change["depth"], &change["better"]),
        (&1.into(), &true.into())
    );
    assert!(
        change["diff"]
            .as_str()
            .unwrap()
            .contains("+    if (i < N) y[i]")
    );
    assert_eq!(all[0]["figures"][2]["name"], "best gain");
    assert_eq!(
        daemon.get("/api/v1/evolutions?kernel=other").1,
        Value::Array(Vec::new())
    );
    for wrong in ["top=0", "top=201", "sort=age"] {
        assert_eq!(
            daemon.get(&format!("/api/v1/evolutions?{wrong}")).0,
            400,
            "{wrong}"
        );
    }
}
