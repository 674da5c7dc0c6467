//! Documents name only files, commands and options that exist.
//!
//! Every path in backticks, every target of a link, and every `tuner` command line of a document is
//! resolved: paths in the tree, commands and options against the help that clap derives from their
//! definitions.

use crate::program::{root, tuner};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use tuner_core::element::Element;
use tuner_core::plan::Role;
use tuner_core::record::Verdict;
use tuner_search::StrategyName;

/// Folders whose Markdown files are documents, besides the root and the crates.
const FOLDERS: [&str; 5] = [
    "docs",
    "docs/how-to",
    "docs/evidence",
    "templates",
    "leaderboard",
];

/// Top-level folders that a path in backticks begins with.
const TOPS: [&str; 12] = [
    "benches/",
    "contrib/",
    "crates/",
    "docs/",
    "leaderboard/",
    "migrations/",
    "scripts/",
    "search_spaces/",
    "src/",
    "templates/",
    "tests/",
    ".github/",
];

/// Endings of files that a path may have without a top-level folder.
const ROOT_FILES: [&str; 4] = [
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
];

/// Paths that do not exist in a clone: the program or a user of it creates them.
const CREATED: [&str; 2] = ["leaderboard/tuner.db", "leaderboard/<device>/<kernel>.json"];

/// A Markdown file of the project.
struct Document {
    /// Path relative to the root.
    name: String,
    text: String,
}

fn documents() -> Vec<Document> {
    let mut folders: Vec<PathBuf> = FOLDERS.iter().map(|name| root().join(name)).collect();
    folders.push(root().to_owned());
    for parent in ["crates", "crates/gpu", "templates"] {
        let entries = std::fs::read_dir(root().join(parent)).unwrap();
        folders.extend(
            entries
                .map(|entry| entry.unwrap().path())
                .filter(|path| path.is_dir()),
        );
    }
    let mut all = Vec::new();
    for folder in folders {
        let entries = std::fs::read_dir(&folder).unwrap();
        for path in entries.map(|entry| entry.unwrap().path()) {
            if path.extension().is_some_and(|ending| ending == "md") {
                let name = path.strip_prefix(root()).unwrap().display().to_string();
                let text = std::fs::read_to_string(&path).unwrap();
                all.push(Document { name, text });
            }
        }
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

/// The code spans of a document, outside of blocks.
fn spans(text: &str) -> Vec<String> {
    let mut prose = String::new();
    let mut inside = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            inside = !inside;
        } else if !inside {
            prose.push_str(line);
            prose.push('\n');
        }
    }
    let parts = prose.split('`').enumerate();
    parts
        .filter(|(number, _)| number % 2 == 1)
        .map(|(_, span)| span.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect()
}

/// Reports whether a path exists, where `*`, `NAME` and `<…>` stand for any name.
fn exists(path: &str) -> bool {
    let mut found = vec![root().to_owned()];
    for part in path.trim_end_matches('/').split('/') {
        let wild = ["*", "NAME", "KERNEL", "<", "{"]
            .iter()
            .any(|mark| part.contains(mark));
        let mut next = Vec::new();
        for folder in found {
            if !wild {
                next.push(folder.join(part));
            } else if let Ok(entries) = std::fs::read_dir(&folder) {
                let ending = part.rsplit_once('.').map_or("", |(_, ending)| ending);
                let paths = entries.map(|entry| entry.unwrap().path());
                next.extend(paths.filter(|path| path.to_string_lossy().ends_with(ending)));
            }
        }
        next.retain(|path| path.exists());
        found = next;
    }
    !found.is_empty()
}

/// The path of a code span, if it is one of this tree: without line numbers and arguments.
fn path_of(span: &str) -> Option<&str> {
    let word = span.split([' ', ':']).next().unwrap_or_default();
    let word = word.trim_end_matches([',', ';', '.']);
    let named = TOPS.iter().any(|top| word.starts_with(top)) || ROOT_FILES.contains(&word);
    (named && !word.contains('…') && !word.contains("..")).then_some(word)
}

#[test]
fn every_path_of_a_document_exists() {
    let mut missing = Vec::new();
    let mut count = 0;
    for document in documents() {
        for span in spans(&document.text) {
            let Some(path) = path_of(&span) else { continue };
            if CREATED.contains(&path) {
                continue;
            }
            count += 1;
            // A module path of a source file: `src/cli/output` is `src/cli/output.rs`.
            if !exists(path) && !exists(&format!("{path}.rs")) {
                missing.push(format!("{}: `{path}`", document.name));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
    assert!(count > 150, "{count}");
}

/// The targets of a document's links and images.
fn links(text: &str) -> Vec<&str> {
    let starts = text.split("](").skip(1);
    starts.filter_map(|rest| rest.split(')').next()).collect()
}

#[test]
fn every_link_of_a_document_resolves() {
    let mut missing = Vec::new();
    for document in documents() {
        let folder = Path::new(&document.name).parent().unwrap();
        for link in links(&document.text) {
            let target = link.split('#').next().unwrap_or_default();
            let is_file = !target.is_empty() && !target.contains("://");
            if is_file && !root().join(folder).join(target).exists() {
                missing.push(format!("{}: {link}", document.name));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn the_index_names_every_document() {
    let index = std::fs::read_to_string(root().join("docs/README.md")).unwrap();
    let names: BTreeSet<&str> = links(&index).into_iter().collect();
    let pages = documents().into_iter().filter_map(|document| {
        let page = document.name.strip_prefix("docs/")?.to_owned();
        (page != "README.md" && !names.contains(page.as_str())).then_some(page)
    });
    assert_eq!(pages.collect::<Vec<_>>(), Vec::<String>::new());
}

/// Command lines that begin with `tuner` in code spans and in blocks, without variables before.
fn command_lines(text: &str) -> Vec<String> {
    let mut found: Vec<String> = spans(text);
    let mut inside = false;
    let mut language = "";
    for line in text.lines() {
        if let Some(name) = line.trim_start().strip_prefix("```") {
            inside = !inside;
            language = name;
        } else if inside && matches!(language, "sh" | "text") {
            let line = line.trim_start_matches("$ ");
            let is_command = line.split(' ').find(|word| !word.contains('=')) == Some("tuner");
            found.extend(is_command.then(|| line.to_owned()));
        }
    }
    let lines = found.into_iter().filter_map(|line| {
        let line = line.split(" #").next().unwrap_or_default();
        let at = line.find("tuner ")?;
        let before = line[..at].split_whitespace();
        let mut assignments = before.map(|word| word.contains('='));
        assignments.all(|is| is).then(|| line[at..].to_owned())
    });
    lines.collect()
}

/// The commands of the program with their options, from its help.
fn definitions() -> BTreeMap<String, BTreeSet<String>> {
    let help = |arguments: &[&str]| {
        let output = tuner(root()).args(arguments).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let all = help(&["--help"]);
    let list = all.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = list
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next());
    let options = |text: &str| {
        let words = text
            .lines()
            .map(str::trim_start)
            .filter(|line| line.starts_with('-'));
        let words = words.flat_map(|line| line.split([' ', ',', '=', '[']).take(4));
        let words = words
            .filter(|word| word.starts_with('-'))
            .map(str::to_owned);
        words.collect::<BTreeSet<String>>()
    };
    let mut definitions: BTreeMap<_, _> = names
        .map(|name| (name.to_owned(), options(&help(&[name, "--help"]))))
        .collect();
    // Hidden, but documented for contributors.
    definitions.insert(
        "device-test".to_owned(),
        options(&help(&["device-test", "--help"])),
    );
    definitions
}

/// The first word of a command line that no definition has.
fn unknown(line: &str, definitions: &BTreeMap<String, BTreeSet<String>>) -> Option<String> {
    let end = line
        .find(['|', ';', '&', '>', '<', '…', '\\', '\''])
        .unwrap_or(line.len());
    let words = line[..end].split_whitespace().skip(1);
    // What follows belongs to another program.
    let words: Vec<&str> = words.take_while(|word| *word != "--").collect();
    let command = *words.first()?;
    // A message of the program begins with its name.
    if command.ends_with(':') {
        return None;
    }
    if command.starts_with("--") || !command.starts_with(|c: char| c.is_ascii_lowercase()) {
        return None;
    }
    let command = command.trim_end_matches([',', '.']);
    let Some(options) = definitions.get(command) else {
        return Some(command.to_owned());
    };
    let given = words
        .iter()
        .map(|word| word.trim_matches(['[', ']', '(', ')', ',']));
    let given = given.filter(|word| word.starts_with('-') && word.len() > 1);
    let given = given.map(|word| word.split(['=', '[']).next().unwrap_or_default());
    let known = ["--help", "-h", "--version"];
    let mut wrong = given.filter(|word| !options.contains(*word) && !known.contains(word));
    wrong.next().map(|word| format!("{command} {word}"))
}

#[test]
fn every_command_of_a_document_is_defined() {
    let definitions = definitions();
    let mut wrong = Vec::new();
    let mut count = 0;
    for document in documents() {
        for line in command_lines(&document.text) {
            count += 1;
            if let Some(word) = unknown(&line, &definitions) {
                wrong.push(format!("{}: `{line}`: {word}", document.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(count > 100, "{count}");
}

#[test]
fn commands_and_paths_are_found() {
    let text = "`tuner run --budget 1h` and `src/lib.rs:3`.\n```sh\nA=b tuner gate x --junit y # z\n```\n\
                ```yaml\ntuner no\n```\n";
    assert_eq!(
        command_lines(text),
        ["tuner run --budget 1h", "tuner gate x --junit y"]
    );
    assert_eq!(path_of("src/lib.rs:3"), Some("src/lib.rs"));
    assert_eq!(path_of("a/b"), None);
    let definitions = BTreeMap::from([("run".to_owned(), BTreeSet::from(["--budget".to_owned()]))]);
    assert_eq!(unknown("tuner run --budget=1h", &definitions), None);
    assert_eq!(unknown("tuner walk", &definitions), Some("walk".to_owned()));
    let option = unknown("tuner run --budgets 1h", &definitions);
    assert_eq!(option, Some("run --budgets".to_owned()));
}

#[test]
fn every_verdict_type_role_and_strategy_is_where_users_look_for_it() {
    let text = |path: &str| std::fs::read_to_string(root().join(path)).unwrap();
    let verdicts = text("docs/how-to/read-a-verdict.md");
    for verdict in Verdict::ALL {
        let name = format!("`{verdict}`");
        assert!(verdicts.contains(&name), "{name} in read-a-verdict.md");
    }
    let arguments = text("docs/arguments.md");
    let types = Element::ALL.iter().map(|it| it.name());
    for name in types.chain(Role::ALL.iter().map(|it| it.name())) {
        let words = arguments.split(|c: char| !c.is_ascii_alphanumeric());
        assert!(
            words.into_iter().any(|word| word == name),
            "{name} in arguments.md"
        );
    }
    let scores = text("docs/evidence/search.md");
    for strategy in StrategyName::ALL {
        let name = strategy.name();
        // It learns nothing, and so has no scores of its own.
        if *strategy != StrategyName::Exhaustive {
            assert!(scores.contains(name), "{name} in evidence/search.md");
        }
    }
}

#[test]
fn every_export_is_on_the_page_of_results() {
    let output = tuner(root()).args(["export", "k", "--to", "?"]).output();
    let error = String::from_utf8(output.unwrap().stderr).unwrap();
    let (_, list) = error.split_once("[possible values: ").expect(&error);
    let formats: Vec<&str> = list.split(']').next().unwrap().split(", ").collect();
    assert!(formats.len() > 5, "{error}");
    let page = std::fs::read_to_string(root().join("docs/results.md")).unwrap();
    for format in formats {
        assert!(page.contains(format), "{format} in results.md");
    }
}
