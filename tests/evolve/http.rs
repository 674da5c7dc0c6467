//! `--mutator http` against a stand-in for the endpoint.

use super::{FAST, changes, lineages, project};
use crate::program::{Ended, ended, tuner};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};

/// Answer of the stand-in to one request.
enum Canned {
    /// Status, further headers and body.
    Document(u16, &'static str, String),
    /// Events of a stream.
    Stream(Vec<String>),
    /// No answer.
    Silence,
}

/// A request as it arrived.
struct Arrived {
    head: String,
    body: Value,
}

/// Starts a stand-in that gives these answers, one a connection; its port and the requests.
fn stand_in(answers: Vec<Canned>) -> (u16, Receiver<Arrived>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut silent = Vec::new();
        for canned in answers {
            let (stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream);
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                reader.read_line(&mut head).unwrap();
            }
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                (name.eq_ignore_ascii_case("content-length")).then(|| value.trim().parse().unwrap())
            });
            let mut body = vec![0; length.unwrap_or(0)];
            reader.read_exact(&mut body).unwrap();
            let _ = sender.send(Arrived {
                head,
                body: serde_json::from_slice(&body).unwrap(),
            });
            let mut stream = reader.into_inner();
            match canned {
                Canned::Document(status, headers, body) => {
                    let length = body.len();
                    let _ = write!(
                        stream,
                        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n{headers}content-length: {length}\r\n\r\n{body}"
                    );
                }
                Canned::Stream(events) => {
                    let _ = write!(
                        stream,
                        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
                    );
                    for event in events {
                        let _ = write!(stream, "data: {event}\n\n");
                        let _ = stream.flush();
                    }
                }
                Canned::Silence => silent.push(stream),
            }
        }
        // Open connections stay open until the tuner gives up.
        std::thread::sleep(std::time::Duration::from_secs(600));
    });
    (port, receiver)
}

/// A stream with this text, in pieces.
fn stream(text: &str) -> Canned {
    let pieces = text.as_bytes().chunks(7).map(|piece| {
        json!({"choices": [{"delta": {"content": String::from_utf8_lossy(piece)}}]}).to_string()
    });
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 1000, "completion_tokens": 200}})
        .to_string();
    Canned::Stream(pieces.chain([usage, "[DONE]".to_owned()]).collect())
}

fn fast() -> String {
    format!("Leave the passes out.\n\n```cuda\n{FAST}```\n")
}

const KEY: &str = "sk-stand-in-secret";

fn evolve(folder: &Path, port: u16, more: &[&str]) -> Ended {
    ended(
        tuner(folder)
            .args([
                "evolve",
                "space.yaml",
                "--mutator",
                "http",
                "--device",
                "vgpu:h100",
                "--db",
                "t.db",
            ])
            .args(["--evals", "2", "--base-evals", "2", "--min-gain", "3%:1"])
            .args(more)
            .env("TUNER_LLM_URL", format!("http://127.0.0.1:{port}/v1"))
            .env("TUNER_LLM_MODEL", "stand-in-1")
            .env("TUNER_LLM_KEY", KEY)
            .env("TUNER_LLM_PRICES", "2,10"),
    )
}

/// No file below the folder has the key.
fn assert_no_key(folder: &Path) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            assert_no_key(&path);
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        let found = bytes
            .windows(KEY.len())
            .any(|window| window == KEY.as_bytes());
        assert!(!found, "{} has the key", path.display());
    }
}

#[test]
fn requests_retries_streams_and_transcripts() {
    let folder = project();
    let folder = folder.path();
    let echo = format!("{{\"error\": \"busy, {KEY}\"}}");
    let (port, requests) = stand_in(vec![
        Canned::Document(429, "retry-after: 0\r\n", echo),
        Canned::Document(500, "retry-after: 0\r\n", "oops".to_owned()),
        stream(&fast()),
    ]);
    let ended = evolve(folder, port, &["--rounds", "1"]);
    ended.says(0, &["Leave the passes out.: predicted better"]);
    let all: Vec<Arrived> = requests.try_iter().collect();
    assert_eq!(all.len(), 3);
    let last = &all[2];
    assert!(
        last.head.starts_with("POST /v1/chat/completions HTTP/1.1"),
        "{}",
        last.head
    );
    assert!(last.head.contains(&format!("Bearer {KEY}")));
    assert_eq!(last.body["model"], "stand-in-1");
    assert_eq!(last.body["stream"], true);
    assert_eq!(last.body["messages"][0]["role"], "system");
    assert!(
        last.body["messages"][1]["content"]
            .as_str()
            .unwrap()
            .contains("\"warp_instructions\"")
    );
    let change = &changes(folder)[0];
    assert_eq!(change["tokens"], 1200);
    assert!(
        (change["cost"].as_f64().unwrap() - 0.004).abs() < 1e-9,
        "{change}"
    );
    assert!(lineages(folder)[0]["figures"]["gain_per_1000_tokens"].is_number());
    let transcripts: Vec<_> = std::fs::read_dir(folder.join("evolve/transcripts"))
        .unwrap()
        .collect();
    assert_eq!(transcripts.len(), 1);
    assert!(!ended.stderr.contains(KEY) && !ended.stdout.contains(KEY));
    assert_no_key(folder);
    // The prompts are files, and edited ones are used.
    crate::program::write(folder, "evolve/prompts/user.md", "Be brief. {request}");
    let (port, requests) = stand_in(vec![Canned::Document(
        200,
        "",
        json!({"choices": [{"message": {"content": "no"}}]}).to_string(),
    )]);
    evolve(folder, port, &["--rounds", "1", "--timeout", "1s"]);
    let first = requests.recv().unwrap();
    assert!(
        first.body["messages"][1]["content"]
            .as_str()
            .unwrap()
            .starts_with("Be brief. {")
    );
}

#[test]
fn a_key_in_the_text_of_the_model_goes_nowhere() {
    let folder = project();
    let folder = folder.path();
    let text = format!("Use {KEY} here.\n\n```cuda\n// {KEY}\n{FAST}```\n");
    let escaped = KEY.replace('s', "\\u0073");
    let document = format!(
        "{{\"choices\":[{{\"message\":{{\"content\":\"{escaped}\"}}}}],\"error\":\"{escaped}\"}}"
    );
    let (port, _requests) = stand_in(vec![stream(&text), Canned::Document(200, "", document)]);
    let ended = evolve(folder, port, &["--rounds", "2", "-o", "better"]);
    ended.says(
        0,
        &[
            "Use [key] here.: predicted better",
            "reports an error: [key]",
        ],
    );
    assert!(!ended.stderr.contains(KEY) && !ended.stdout.contains(KEY));
    assert_no_key(folder);
}

#[test]
fn an_answer_without_text_has_its_cost() {
    let folder = project();
    let folder = folder.path();
    let empty = json!({"choices": [], "usage": {"prompt_tokens": 1000, "completion_tokens": 200}});
    let (port, requests) = stand_in(vec![
        Canned::Document(200, "", empty.to_string()),
        stream(&fast()),
    ]);
    let ended = evolve(folder, port, &["--rounds", "5", "--cost-limit", "0.003"]);
    ended.says(3, &["has no text", "the cost limit is reached"]);
    assert_eq!(requests.try_iter().count(), 1);
    assert_eq!(changes(folder)[0]["tokens"], 1200);
}

#[test]
fn a_moved_endpoint_and_a_loop_are_told_once() {
    let folder = project();
    let folder = folder.path();
    for (location, text, count) in [
        (
            "location: https://127.0.0.1/v1/x\r\n",
            "set TUNER_LLM_URL to an address at https://127.0.0.1",
            1,
        ),
        (
            "location: /v1/chat/completions\r\n",
            "redirects more than 3 times",
            4,
        ),
    ] {
        let redirects = (0..9).map(|_| Canned::Document(307, location, String::new()));
        let (port, requests) = stand_in(redirects.collect());
        evolve(folder, port, &["--rounds", "9"]).says_of(&text, 3, &["round 1/9", text]);
        assert_eq!(requests.try_iter().count(), count, "{text}");
        assert_eq!(changes(folder).len(), 1, "{text}");
    }
}

#[test]
fn each_refusal_ends_the_evolution_with_its_fix() {
    let folder = project();
    let folder = folder.path();
    let error =
        |status, headers| Canned::Document(status, headers, format!("{{\"error\": \"{KEY}\"}}"));
    let cases = [
        (error(401, ""), "set TUNER_LLM_KEY to a valid one"),
        (error(404, ""), "check TUNER_LLM_MODEL (stand-in-1)"),
        (
            error(
                302,
                "location: http://elsewhere.example/v1/chat/completions\r\n",
            ),
            "redirects from 127.0.0.1",
        ),
        (
            error(307, "location: //elsewhere.example/x\r\n"),
            "not sent to another host",
        ),
    ];
    for (canned, text) in cases {
        let (port, requests) = stand_in(vec![canned]);
        let ended = evolve(folder, port, &["--rounds", "9"]);
        ended.says_of(&text, 3, &["round 1/9", text]);
        assert_eq!(requests.try_iter().count(), 1, "{text}");
        assert_eq!(changes(folder).len(), 1, "{text}");
        assert!(
            !ended.stderr.contains(KEY) && !ended.stdout.contains(KEY),
            "{}",
            ended.stderr
        );
    }
    assert_no_key(folder);
}

#[test]
fn a_redirect_within_the_host_is_followed() {
    let folder = project();
    let folder = folder.path();
    let (port, requests) = stand_in(vec![
        Canned::Document(307, "location: /v2/chat\r\n", String::new()),
        stream(&fast()),
    ]);
    evolve(folder, port, &["--rounds", "1"]).says(0, &["predicted better"]);
    assert!(
        requests
            .try_iter()
            .nth(1)
            .unwrap()
            .head
            .starts_with("POST /v2/chat ")
    );
}

#[test]
fn time_and_cost_are_limited() {
    let folder = project();
    let folder = folder.path();
    let (port, _requests) = stand_in(vec![Canned::Silence]);
    let ended = evolve(folder, port, &["--rounds", "1", "--timeout", "1s"]);
    ended.says(3, &["no answer: the endpoint did not answer in time"]);
    // The first answer costs 0.004, so that the second is not asked for.
    let (port, requests) = stand_in(vec![stream(&fast()), stream(&fast())]);
    let ended = evolve(folder, port, &["--rounds", "5", "--cost-limit", "0.003"]);
    ended.says(0, &["the cost limit is reached: 0.0040 of 0.003"]);
    assert_eq!(requests.try_iter().count(), 1);
    assert_eq!(changes(folder).len(), 2);
}

#[test]
fn an_endpoint_must_be_named() {
    let folder = project();
    let ended = ended(
        tuner(folder.path())
            .args(["evolve", "space.yaml", "--mutator", "http", "--db", "t.db"])
            .env_remove("TUNER_LLM_URL"),
    );
    ended.says(2, &["set TUNER_LLM_URL to the base URL"]);
}
