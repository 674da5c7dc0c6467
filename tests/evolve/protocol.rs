//! The protocol, and mutators that break it: counted, told back once, never fatal.

use super::{FAST, changes, evolve, project, python, with_source};
use tuner_evolve::protocol::schemas;

const PAGE: &str = "docs/mutator.md";
/// Set to write the schemas into the page instead of comparing them.
const UPDATE: &str = "TUNER_UPDATE_SCHEMA";

#[test]
fn the_page_has_the_schemas_of_the_types() {
    let mut page = std::fs::read_to_string(PAGE).unwrap();
    for (name, schema) in schemas() {
        let schema = serde_json::to_string_pretty(&schema).unwrap();
        let begin = format!("<!-- schema: {name} -->\n```json\n");
        let start = page
            .find(&begin)
            .unwrap_or_else(|| panic!("{PAGE} has no `{begin}`"))
            + begin.len();
        let end = start + page[start..].find("\n```").unwrap();
        if std::env::var_os(UPDATE).is_some() {
            page.replace_range(start..end, &schema);
            std::fs::write(PAGE, &page).unwrap();
        }
        let written = &page[start..page[start..].find("\n```").unwrap() + start];
        assert!(
            written == schema,
            "{PAGE} is not up to date: run `{UPDATE}=1 cargo test --test program evolve::protocol::`"
        );
    }
}

#[test]
fn each_mutator_without_an_answer_is_counted_and_not_fatal() {
    let folder = project();
    let folder = folder.path();
    let cases = [
        ("no-such-command-44", "127"),
        ("exit 3", "exit status: 3"),
        ("head -c 1000000000 /dev/zero", "more than 4194304 bytes"),
        ("sleep 1000", "did not answer within 1 s"),
        ("kill -9 $$", "signal: 9"),
    ];
    for (command, text) in cases {
        let ended = evolve(folder, command, &["--rounds", "1", "--timeout", "1s"]);
        ended.says_of(&command, 3, &["no answer", text]);
        let all = changes(folder);
        assert_eq!(
            (all.len(), &all[0]["outcome"]),
            (1, &"no_answer".into()),
            "{command}"
        );
    }
    // A mutator that never answers ends the evolution instead of all its rounds.
    let ended = evolve(folder, "exit 1", &["--rounds", "50"]);
    ended.says(3, &["round 5/50"]);
    assert!(
        ended.stdout.contains("the mutator answers no more"),
        "{}",
        ended.stdout
    );
    assert_eq!(changes(folder).len(), 5);
}

#[test]
fn a_wrong_answer_is_told_back_once() {
    let folder = project();
    let folder = folder.path();
    let cases = [
        ("print('hello')", "not of the protocol", "malformed"),
        (
            "print(json.dumps({'id': 'other-1', 'source': 'x'}))",
            "for request `other-1`",
            "malformed",
        ),
        (
            "print(json.dumps({'id': request['id'], 'blocks': 'x'}))",
            "expected `<<<<<<< SEARCH`",
            "malformed",
        ),
        (
            "print(json.dumps({'id': request['id'], 'diff': '@@ -1,1 +1,1 @@\\n-x\\n+y\\n'}))",
            "does not match line 1",
            "malformed",
        ),
        (
            "print(json.dumps({'id': request['id'], 'space': {'parameters': {'BLOCK': 7}}}))",
            "the search space at `7`",
            "malformed",
        ),
        (
            "print(json.dumps({'id': request['id'], 'source': '#include \"/etc/passwd\"'}))",
            "`/etc/passwd`",
            "refused",
        ),
        (
            "print(json.dumps({'id': request['id'], 'source': '#include <cublas_v2.h>'}))",
            "`cublas_v2.h`",
            "refused",
        ),
    ];
    for (body, text, outcome) in cases {
        let logged = format!("open('log', 'a').write(json.dumps(request) + '\\n')\n{body}");
        let _ = std::fs::remove_file(folder.join("log"));
        let mutator = python(folder, "wrong.py", &logged);
        let ended = evolve(folder, &mutator, &["--rounds", "1"]);
        ended.says_of(&body, 3, &[text]);
        assert_eq!(changes(folder)[0]["outcome"], outcome, "{body}");
        let log = std::fs::read_to_string(folder.join("log")).unwrap();
        let requests: Vec<serde_json::Value> = log
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(requests.len(), 2, "{body}");
        assert_eq!(requests[0]["id"], requests[1]["id"]);
        assert!(requests[0]["correction"].is_null());
        assert!(
            requests[1]["correction"].as_str().unwrap().contains(text),
            "{body}"
        );
    }
}

#[test]
fn a_corrected_answer_counts() {
    let folder = project();
    let folder = folder.path();
    std::fs::write(folder.join("fast.cu"), FAST).unwrap();
    let body = "print('oops' if 'correction' not in request else json.dumps({'id': request['id'], 'source': open('fast.cu').read()}))";
    let mutator = python(folder, "second.py", body);
    evolve(folder, &mutator, &["--rounds", "1"]).says(0, &["predicted better"]);
}

#[test]
fn a_request_has_the_task_and_nothing_of_the_checks() {
    let folder = project();
    let folder = folder.path();
    let body = "open('log', 'a').write(json.dumps(request) + '\\n')\nprint('x')";
    let mutator = python(folder, "log.py", body);
    evolve(folder, &mutator, &["--rounds", "2", "--seed", "987654321"]);
    let log = std::fs::read_to_string(folder.join("log")).unwrap();
    assert!(
        !log.contains("987654321"),
        "the seed of the checks follows from it"
    );
    assert!(!log.contains("ragged") && !log.contains("drawn"), "{log}");
    let last: serde_json::Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
    assert_eq!(last["task"]["problems"]["main"]["N"], 4096);
    let best = &last["parent"]["best"][0];
    assert!(
        best["time_us"].is_number() && best["counters"]["warp_instructions"].is_number(),
        "{best}"
    );
    assert!(!best["bottlenecks"].as_array().unwrap().is_empty());
    // The failure of the first round is told in the second.
    assert_eq!(last["failures"][0]["outcome"], "malformed");
    assert_eq!(last["rules"]["resolution"], 1.14);
    // The request is what the published types read.
    let read: tuner_evolve::protocol::MutationRequest = serde_json::from_value(last).unwrap();
    assert_eq!(read.protocol, 1);
}

#[test]
fn a_mutator_that_edits_files_is_refused_and_told_once() {
    let folder = project();
    let folder = folder.path();
    std::fs::write(folder.join("fast.cu"), FAST).unwrap();
    let body = "
if request['round'] == 1: open('kernel.cu', 'a').write('// edited')
print(json.dumps({'id': request['id'], 'source': open('fast.cu').read()}))";
    let mutator = python(folder, "edits.py", body);
    let ended = evolve(folder, &mutator, &["--rounds", "2"]);
    ended.says(
        0,
        &[
            "refused: kernel.cu changed on disk",
            "round 2/2: change 2 of shipped: predicted better",
        ],
    );
    assert_eq!(
        ended.stderr.matches("changed on disk").count(),
        1,
        "{}",
        ended.stderr
    );
}

#[test]
fn bad_usage_names_the_fix() {
    let folder = project();
    let folder = folder.path();
    let mutator = with_source(folder, FAST);
    for (more, text) in [
        (
            ["--device", "replay:x.json"],
            "type --device cuda:N or vgpu:NAME",
        ),
        (["--min-gain", "faster"], "faster"),
        (["--problem", "other"], "the problem `other` is not known"),
        (["--timeout", "soon"], "--timeout"),
    ] {
        let ended = crate::program::ended(
            crate::program::tuner(folder)
                .args([
                    "evolve",
                    "space.yaml",
                    "--mutator",
                    &mutator,
                    "--db",
                    "t.db",
                ])
                .args(more),
        );
        ended.says_of(&more, 2, &[text]);
    }
    crate::program::run(folder, "leaderboard scale --lineage --db none.db").says(2, &["none.db"]);
}
