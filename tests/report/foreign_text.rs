//! Text from outside stays text: one nasty string as every name, value, note, device, problem, path and
//! log, in every output.

use crate::program::{Ended, ended, tuner};
use crate::store::headers::{C11, CPP17, compile};
use crate::store::support::{failed, fresh, hash, start, submitted, timed};
use std::path::Path;
use tuner_core::entry::{Entry, StoredTrial};
use tuner_core::record::{
    ConfigValues, ConstraintDefinition, DeviceKind, LaunchDefinition, ParameterDefinition,
    TimingKind, TrialRecord, Verdict,
};
use tuner_core::value::Value;
use tuner_report::export;
use tuner_store::{LeaderboardQuery, RunEnd, RunStart, Store};

/// What ends strings, comments, cells, lines and commands, and 10,000 characters.
pub(super) fn nasty() -> String {
    let head = "=cmd|' /C calc'!A0 \"'`\\ */ FORGED /* // %s%n ${x} $(x) <script>alert(1)</script> & | \
                ~~ __a__ [b](c) ]]> --> {{ \u{1b}[31m \u{7f} \u{9b}2J \u{202e} \u{2066} \u{2028} \u{feff}";
    let lines = "\r\nFORGED\n#error FORGED\n#define FORGED 1\n- FORGED\n=FORGED\n```\n??/\n\\\n";
    format!("{head}{lines}{}", "x".repeat(10_000))
}

/// The characters that no output holds, but for line breaks and tabs.
fn hidden(character: char) -> bool {
    let marks = "\u{61c}\u{200b}\u{200e}\u{200f}\u{2028}\u{2029}\u{2060}\u{feff}";
    character.is_control() && !matches!(character, '\n' | '\t')
        || marks.contains(character)
        || ('\u{202a}'..='\u{202e}').contains(&character)
        || ('\u{2066}'..='\u{2069}').contains(&character)
}

#[track_caller]
fn assert_visible(case: &str, text: &str) {
    let found = text
        .char_indices()
        .find(|(_, character)| hidden(*character));
    assert_eq!(found, None, "{case}");
}

/// Nothing is hidden, and no line is another's.
#[track_caller]
pub(super) fn assert_text(case: &str, text: &str) {
    assert_visible(case, text);
    for line in text.lines() {
        let forged = ["FORGED", "#error", "#define FORGED", "- FORGED", "=FORGED"];
        let begins = forged.iter().any(|begin| line.starts_with(begin));
        assert!(!begins, "{case}: {line:.100}");
    }
}

/// A run in which every text is nasty; parameters have names that C takes, so that a header exists.
pub(super) fn nasty_start(kind: DeviceKind) -> RunStart {
    let text = nasty();
    let mut start = start(kind);
    start.device.name = format!("device {text}");
    start.device.selector.clone_from(&text);
    start.strategy.clone_from(&text);
    start.settings = serde_json::json!({"objective": "time,registers", "note": text});
    let task = &mut start.tasks[0];
    task.kernel = format!("kernel {text}");
    task.problem = format!("problem {text}");
    task.sizes
        .push(("LAYOUT".to_owned(), Value::Text(text.as_str().into())));
    task.space_path = task.space_path.as_ref().map(|_| text.as_str().into());
    task.provenance.commit = Some(text.clone());
    task.provenance.diff_hash = Some(text.clone());
    task.provenance.host.clone_from(&text);
    task.provenance.tuner_version.clone_from(&text);
    task.provenance.driver = Some(text.clone());
    task.provenance.nvrtc_version = Some(text.clone());
    task.definition.parameters[0].doc.clone_from(&text);
    task.definition.derived.push((text.clone(), text.clone()));
    for rule in [text.as_str(), "TILE > 0"] {
        task.definition.constraints.push(ConstraintDefinition {
            rule: rule.to_owned(),
            why: text.clone(),
        });
    }
    let launch = LaunchDefinition {
        entry: text.clone(),
        when: Some(text.clone()),
        grid: [text.as_str(), "N", "1"].map(str::to_owned),
        block: ["TILE", "1", "1"].map(str::to_owned),
        shared: text.clone(),
        cluster: None,
    };
    task.definition.launches = vec![launch.clone(), launch];
    start
}

/// A parameter of text whose only values are nasty.
fn add_text(start: &mut RunStart) {
    let text = nasty();
    start.tasks[0]
        .definition
        .parameters
        .push(ParameterDefinition {
            name: format!("name {text}"),
            values: vec![Value::Text(text.as_str().into()), Value::Text("row".into())],
            default: None,
            doc: text,
        });
}

fn config(start: &RunStart, tile: i64, text: &str) -> ConfigValues {
    let parameters = start.tasks[0].definition.parameters.iter().enumerate();
    let value = |at| match at {
        0 => Value::Int(tile),
        1 => Value::Int(0),
        _ => Value::Text(text.into()),
    };
    parameters
        .map(|(at, parameter)| (parameter.name.clone(), value(at)))
        .collect()
}

fn trials(start: &RunStart) -> Vec<TrialRecord> {
    let text = nasty();
    let mut slow = timed(start, 1, config(start, 64, "row"), 20.0);
    slow.origin.clone_from(&text);
    let mut wrong = failed(start, 2, config(start, 128, &text), Verdict::Race);
    wrong.judgement.detail.clone_from(&text);
    for hazard in &mut wrong.judgement.hazards {
        hazard.detail.clone_from(&text);
        hazard.file = Some(text.clone());
        hazard.address = Some(text.clone());
    }
    let mut best = timed(start, 0, config(start, 32, &text), 10.0);
    best.judgement.detail = text;
    vec![best, slow, wrong]
}

pub(super) async fn stored(store: &Store, start: &RunStart) {
    let run = submitted(store, start, &trials(start)).await;
    store.finish_run(&run, RunEnd::Failed).await.unwrap();
}

/// What there is to export of a store's first board.
pub(super) async fn exported(store: &Store) -> (Entry, Vec<StoredTrial>) {
    let boards = store.boards(&LeaderboardQuery::default()).await.unwrap();
    let entry = store.entries(&boards).await.unwrap().remove(0);
    (entry, store.candidates(&boards[0]).await.unwrap())
}

#[tokio::test]
async fn a_nasty_string_stays_text_in_every_format_of_others() {
    let (_directory, store) = fresh().await;
    let mut start = nasty_start(DeviceKind::Cuda);
    add_text(&mut start);
    stored(&store, &start).await;
    let (mut entry, mut judged) = exported(&store).await;
    // What a database cannot be asked for by name.
    let text = nasty() + "\u{0}";
    entry.best.device.clone_from(&text);
    judged[0].trial.judgement.detail.clone_from(&text);
    judged[0].judged_at.clone_from(&text);
    let entries = std::slice::from_ref(&entry);
    let pair = [(entry.clone(), judged.clone())];
    for (format, document) in [
        ("json", export::json(&text, entries)),
        ("kernel-tuner", export::kernel_tuner(&entry, &judged)),
        ("t4", export::t4(&entry, &judged)),
        ("triton", export::triton(&entry, &judged)),
        ("kernelbench", export::kernelbench(&pair)),
    ] {
        let document = document.unwrap();
        assert_text(format, &document);
        let json: serde_json::Value = serde_json::from_str(&document).unwrap();
        if format != "triton" {
            let whole = json.to_string();
            let quoted = serde_json::to_string(&text).unwrap();
            assert!(
                whole.contains(quoted.trim_matches('"')),
                "{format}: the device is not whole"
            );
        }
    }
    let wisdom = export::wisdom(&text, entries).unwrap();
    assert_text("wisdom", &wisdom);
    for line in wisdom.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
    let refused = export::header("k", entries).unwrap_err();
    assert!(
        matches!(refused, export::ExportError::NotAName(_)),
        "{refused}"
    );
}

#[tokio::test]
async fn a_nasty_string_stays_a_comment_or_a_literal_in_a_header() {
    for kind in [DeviceKind::Cuda, DeviceKind::Vgpu, DeviceKind::Replay] {
        let (directory, store) = fresh().await;
        let start = nasty_start(kind);
        stored(&store, &start).await;
        let (mut entry, _) = exported(&store).await;
        let text = nasty() + "\u{0}";
        entry.best.measured_at = format!("\n#error {text}");
        entry.best.template_hash = Some(text.clone());
        let header = export::header(&text, std::slice::from_ref(&entry)).unwrap();
        // The header refuses to be included for two entries.
        let others = || header.lines().filter(|line| !line.starts_with("#error \""));
        assert_text("header", &others().collect::<Vec<_>>().join("\n"));
        for line in others().filter_map(|line| line.trim_start().strip_prefix('#')) {
            let word = line.split([' ', '(']).next().unwrap_or_default();
            let known = ["if", "ifdef", "ifndef", "elif", "else", "endif", "define"];
            assert!(known.contains(&word), "{line:.100}");
        }
        let main = "\nint main(void) { return 0; }\n";
        for (compiler, name) in [(C11, "nasty.c"), (CPP17, "nasty.cpp")] {
            // ISO C asks for string literals of 4,095 characters only.
            let compiler = [compiler, &["-Wno-overlength-strings", "-DCMD_TUNED_MACROS"]].concat();
            let source = format!("{header}{main}");
            compile(directory.path(), &compiler, name, &source).unwrap();
        }
        export::read_shipped(&header, "header").unwrap();
    }
}

#[tokio::test]
async fn a_text_value_that_is_more_than_a_macro_is_refused_in_a_header() {
    let (_directory, store) = fresh().await;
    let start = start(DeviceKind::Replay);
    submitted(
        &store,
        &start,
        &[timed(&start, 0, crate::store::support::config(32, 0), 1.0)],
    )
    .await;
    let (mut entry, _) = exported(&store).await;
    for (value, good) in [
        ("float4", true),
        ("std::plus<float>()", true),
        ("a\nint evil = 1;", false),
        ("a\rint evil = 1;", false),
        ("a \\", false),
        ("a ??/", false),
        ("a /*", false),
        ("a //", false),
        ("\"a", false),
    ] {
        entry.best.config[1].1 = Value::Text(value.into());
        let header = export::header("k", std::slice::from_ref(&entry));
        assert_eq!(header.is_ok(), good, "{value:?}");
        if let Err(error) = header {
            assert!(error.to_string().contains("PAD"), "{error}");
        }
    }
}

/// Outside of code there is no element, and a row of a table has as many cells as its head.
fn assert_markdown(text: &str) {
    let cells = |line: &str| line.replace("\\|", "").matches('|').count();
    let (mut head, mut fence) = (None, None);
    for line in text.lines() {
        let ticks = line.len() - line.trim_start_matches('`').len();
        match fence {
            Some(open) if ticks == open && line.len() == ticks => fence = None,
            Some(_) => continue,
            None if ticks >= 3 => fence = Some(ticks),
            None => {}
        }
        let plain = line.replace("\\`", "");
        let mut outside = plain.split('`').step_by(2);
        assert!(!outside.any(|part| part.contains('<')), "{line:.200}");
        if line.starts_with('|') {
            assert_eq!(cells(line), *head.get_or_insert(cells(line)), "{line:.200}");
        } else {
            head = None;
        }
    }
    assert_eq!(fence, None, "a fence stays open");
}

/// Every `<` begins an element that the writer makes.
fn assert_markup(text: &str) {
    let known = "!doctype html head meta title style body main nav ul li a h1 h2 h3 h4 p div table thead tr th \
        tbody td pre code span strong figure figcaption dl dt dd details summary svg line polyline \
        polygon circle rect text path g";
    for (at, _) in text.match_indices('<') {
        let rest = text[at + 1..].trim_start_matches('/');
        let name: String = rest
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '!')
            .collect();
        assert!(
            known.split_whitespace().any(|word| word == name),
            "<{name}>"
        );
    }
}

fn assert_csv(text: &str) {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    for record in reader.records() {
        for cell in &record.expect("as many cells as the head has") {
            let formula = cell.starts_with(['=', '+', '-', '@']) && cell.parse::<f64>().is_err();
            assert!(!formula || cell == "-", "{cell:.100}");
        }
    }
}

fn run(folder: &Path, arguments: &[&str]) -> Ended {
    let ended = ended(tuner(folder).args(arguments));
    let case = arguments.join(" ");
    let case = format!("{case:.60}");
    assert_text(&case, &ended.stderr);
    assert_text(&case, &ended.stdout);
    ended
}

/// Runs a command that reads in every format.
fn read(folder: &Path, arguments: &[&str]) {
    for format in ["table", "json", "csv", "md"] {
        let arguments = [arguments, &["--format", format]].concat();
        let ended = run(folder, &arguments);
        ended.says_of(&arguments, 0, &[]);
        match format {
            "json" => _ = ended.json(),
            "csv" => assert_csv(&ended.stdout),
            "md" => assert_markdown(&ended.stdout),
            _ => {}
        }
    }
}

#[tokio::test]
async fn a_nasty_string_stays_text_in_every_command() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path();
    let store = Store::open(&folder.join("t.db")).await.unwrap();
    for kind in [DeviceKind::Cuda, DeviceKind::Vgpu, DeviceKind::Replay] {
        let mut start = nasty_start(kind);
        add_text(&mut start);
        stored(&store, &start).await;
    }
    store.close().await.unwrap();
    let kernel = format!("kernel {}", nasty());
    read(folder, &["leaderboard", "--db", "t.db"]);
    read(
        folder,
        &["leaderboard", &kernel, "--pareto", "--db", "t.db"],
    );
    read(folder, &["leaderboard", "--history", "--db", "t.db"]);
    read(folder, &["status", "--db", "t.db"]);
    run(folder, &["leaderboard", &nasty(), "--db", "t.db"]).says(2, &[]);
    run(folder, &["export", &kernel, "--db", "t.db"]).says(2, &["export with --to json"]);
    for to in ["json", "wisdom", "kernelbench", "t4"] {
        let device = format!("device {}", nasty());
        let arguments = [
            "export", &kernel, "--to", to, "--device", &device, "--db", "t.db",
        ];
        run(folder, &arguments);
    }
    run(folder, &["record", "--db", "t.db", "--dir", "out"]).says(0, &[]);
    run(folder, &["report", "--db", "t.db", "-o", "out"]).says(0, &[]);
    let file = |name: &str| std::fs::read_to_string(folder.join("out").join(name)).unwrap();
    let (markdown, html) = (file("report.md"), file("report.html"));
    assert_text("report.md", &markdown);
    assert_markdown(&markdown);
    assert_visible("report.html", &html);
    assert_markup(&html);
    for plot in std::fs::read_dir(folder.join("out/plots")).unwrap() {
        let drawing = std::fs::read_to_string(plot.unwrap().path()).unwrap();
        assert_visible("plot", &drawing);
        assert_markup(&drawing);
    }
}

#[test]
fn a_recording_with_nasty_names_is_text_when_it_is_run_and_imported() {
    let text = nasty() + "\u{0}";
    let row = |tile: i64, value: &str| serde_json::json!({"TILE": tile, (text.clone()): value, "time": 0.5 + tile as f64});
    let failed = serde_json::json!({"TILE": 3, (text.clone()): text, "__error__": text});
    let cache = serde_json::json!({
        "device_name": text, "kernel_name": text, "problem_size": text,
        "tune_params_keys": ["TILE", text],
        "tune_params": {"TILE": [1, 2, 3], (text.clone()): [text, "row"]},
        "cache": {"1": row(1, &text), "2": row(2, "row"), "3": failed},
    });
    let directory = crate::program::folder(&[("f.json", &cache.to_string())]);
    let folder = directory.path();
    let line = "run --device replay:f.json --evals 3 --events e.jsonl --db r.db";
    let arguments: Vec<&str> = line.split(' ').collect();
    run(folder, &arguments).says(0, &[]);
    let events = std::fs::read_to_string(folder.join("e.jsonl")).unwrap();
    assert_text("events", &events);
    assert_eq!(events.lines().count(), 5);
    run(folder, &["import", "f.json", "--db", "i.db"]).says(0, &[]);
    read(folder, &["leaderboard", "--db", "i.db"]);
    // A search space of another tool, as YAML.
    let value = text.replace(['\'', '\\', '\n', '\r', '\0'], " ");
    let space = serde_json::json!({
        "ConfigurationSpace": {"TuningParameters": [
            {"Name": "MODE", "Type": "string", "Values": format!("['row', '{value}']")}]},
        "KernelSpecification": {"KernelName": text, "KernelFile": text},
    });
    crate::program::write(folder, "s.json", &space.to_string());
    let ended = run(folder, &["import", "s.json"]);
    ended.says(0, &[]);
    serde_yaml::from_str::<serde_json::Value>(&ended.stdout).unwrap();
}

#[test]
fn the_nasty_string_is_nasty() {
    assert!(nasty().len() > 10_000 && nasty().chars().any(hidden));
    assert_eq!(TimingKind::ALL.len(), 3);
    assert_ne!(hash(&nasty()), hash(""));
}
