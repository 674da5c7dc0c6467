//! Files made to break a reader: told apart and refused, or read, in bounded time and memory.

use crate::space_command::support::{refused, space};
use insta::assert_snapshot;
use proptest::prelude::*;
use std::fmt::Write as _;
use std::path::Path;
use tuner_core::value::Value;
use tuner_space::{BareSpace, Constraint, Environment, Expr, KernelSpec, Parameter, Space};

#[test]
fn a_tab_is_shown_where_it_stands() {
    assert_snapshot!(refused("parameters:\n\tA: { values: [1, 2] }\n"), @r"
    s.yaml:2:2: error: tabs disallowed within this context (block indentation)
     2 |  A: { values: [1, 2] }
       |  ^
      help: indent with spaces, not tabs
    ");
}

#[test]
fn anchors_and_merges_mean_what_they_say_or_are_refused() {
    let file = "parameters:\n  A: &a { values: [1, 2, 4] }\n  B: *a\n";
    assert_eq!(
        space("s.yaml", file, &["--format", "json"]).json()["valid"],
        "9"
    );
    assert_snapshot!(refused("parameters:\n  A: &a { values: [1] }\n  B: { <<: *a }\n"), @r"
    s.yaml:3:8: error: unknown key `<<`
     3 |   B: { <<: *a }
       |        ^^
      help: YAML 1.2 has no merge keys: write the entries out
    ");
    assert_snapshot!(refused("parameters: &p\n  A: *p\n"), @r"
    s.yaml:2:6: error: an alias cannot stand inside what it repeats
     2 |   A: *p
       |      ^^
      help: write the value out
    ");
    assert_snapshot!(refused("parameters:\n  A: *nothing\n"), @r"
    s.yaml:2:6: error: alias references unknown anchor
     2 |   A: *nothing
       |      ^
      help: this is not valid YAML: check indentation, quotes and brackets here
    ");
}

#[test]
fn a_bomb_of_aliases_is_refused() {
    let mut file = "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n".to_owned();
    for level in 1..12 {
        let before = char::from(b'a' + level - 1);
        let name = char::from(b'a' + level);
        let items = vec![format!("*{before}"); 10].join(", ");
        writeln!(file, "{name}: &{name} [{items}]").unwrap();
    }
    assert_snapshot!(refused(&file), @r"
    s.yaml:6:12: error: aliases repeat too much of the file
     6 | f: &f [*e, *e, *e, *e, *e, *e, *e, *e, *e, *e]
       |            ^^
      help: write the values out
    ");
}

#[test]
fn deep_nesting_is_refused() {
    for (open, close) in [("[", "]"), ("{a: ", "}")] {
        let file = format!(
            "parameters: {}1{}\n",
            open.repeat(50_000),
            close.repeat(50_000)
        );
        let message = refused(&file);
        assert!(message.contains("nest less deeply"), "{message}");
    }
    let mut block = String::new();
    for depth in 0..2000 {
        writeln!(block, "{}a:", " ".repeat(depth)).unwrap();
    }
    assert!(refused(&block).contains("nest less deeply"));
    let json = format!(
        "{{\"params\": {}{}}}",
        "[".repeat(50_000),
        "]".repeat(50_000)
    );
    let message = space("s.json", json, &[]).refusal().to_owned();
    assert!(
        message.contains("recursion limit") || message.contains("deep"),
        "{message}"
    );
    let rule = format!("{}A{}", "(".repeat(5000), ")".repeat(5000));
    let file = format!("parameters:\n  A: {{ values: [1] }}\nconstraints:\n  - rule: \"{rule}\"\n");
    assert!(refused(&file).contains("nested too deeply"));
}

#[test]
fn other_documents_tags_and_marks() {
    assert_snapshot!(refused("parameters:\n  A: { values: [1] }\n---\nx: 1\n"), @r"
    s.yaml:3:1: error: a second document begins here
     3 | ---
       | ^^^
      help: keep one document a file
    ");
    assert_snapshot!(refused("parameters:\n  A: { values: !!binary [1] }\n  B: { values: [!x 1] }\n"), @r"
    s.yaml:2:25: error: this tag has no meaning here
     2 |   A: { values: !!binary [1] }
       |                         ^
      help: remove the `!…`
    ");
    let marked = "\u{feff}parameters:\n  A: { values: [1, 2] }\n";
    assert_eq!(
        space("s.yaml", marked, &["--format", "json"]).json()["valid"],
        "2"
    );
    let windows = "parameters:\r\n  A: { values: [1, 2] }\r\n";
    assert_eq!(
        space("s.yaml", windows, &["--format", "json"]).json()["valid"],
        "2"
    );
    assert!(refused("parameters:\n  A: { values: [1\0] }\n").contains("error"));
}

#[test]
fn a_section_of_too_many_entries_is_refused_before_anything_is_made_of_it() {
    let mut rules = "parameters:\n  A: { values: [1] }\nconstraints:\n".to_owned();
    for at in 0..100_000 {
        writeln!(rules, "  - rule: A < {at}").unwrap();
    }
    assert_snapshot!(refused(&rules), @r"
    s.yaml:4:3: error: `constraints` has 100000 entries
     4 |   - rule: A < 0
       |   ^
      help: this section has at most 10000
    ");
}

#[test]
fn a_name_commands_no_terminal_no_spreadsheet_and_no_page() {
    let file = "name: \"=1+1\\e[31m<b>|x\\ny\"\nparameters:\n  A: { values: [1] }\n";
    let print = |format: &str| space("s.yaml", file, &["--format", format]).stdout;
    for format in ["table", "csv", "md"] {
        let text = print(format);
        assert!(!text.contains('\u{1b}'), "{text:?}");
        assert!(text.contains("x y"), "{text:?}");
    }
    assert!(print("csv").contains("\n'=1+1"), "{:?}", print("csv"));
    assert!(print("md").contains("&lt;b&gt;\\|x"), "{:?}", print("md"));
    // JSON escapes by itself, and keeps the name as it is.
    let json = space("s.yaml", file, &["--format", "json"]).json();
    assert_eq!(json["name"], "=1+1\u{1b}[31m<b>|x\ny");
}

#[test]
fn a_million_listed_values_are_read() {
    let values: Vec<String> = (0..1_000_000).map(|value| value.to_string()).collect();
    let values = values.join(", ");
    let file = format!(
        "parameters:\n  A: {{ values: [{values}] }}\n  B: {{ values: [1, 2] }}\nconstraints:\n  - {{ rule: A % 2 == B % 2 }}\n"
    );
    let json = space("s.yaml", &file, &["--format", "json", "--sample", "1"]).json();
    assert_eq!(json["cartesian"], "2000000");
    assert_eq!(json["valid"], "1000000");
    // A value given twice among so many is still found, and shown without the whole line.
    let message = refused(&file.replacen("999999]", "999999, 77]", 1));
    assert!(
        message.len() < 1000 && message.contains("`A` has the value 77 twice"),
        "{message}"
    );
}

#[test]
fn more_combinations_than_fit_in_a_machine_word_are_counted() {
    let mut file = "parameters:\n".to_owned();
    for at in 0..50 {
        writeln!(file, "  P{at}: {{ range: {{ from: 1, to: 1000 }} }}").unwrap();
    }
    file.push_str("constraints:\n");
    for at in 0..50 {
        writeln!(file, "  - {{ rule: P{at} <= 2 }}").unwrap();
    }
    let json = space("s.yaml", &file, &["--format", "json"]).json();
    assert_eq!(json["cartesian"], format!("1{}", "0".repeat(150)));
    assert_eq!(json["valid"], (1_u64 << 50).to_string());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn damaged_files_are_refused_without_a_panic(
        cuts in prop::collection::vec((any::<prop::sample::Index>(), 0..20_usize, "[\\PC\\n\\t]{0,6}"), 1..5),
        which in 0..3_usize,
    ) {
        let mut text = [
            crate::space_command::support::KERNEL,
            "parameters:\n  A: { values: [1, 2] }\n  B: { range: { from: 1, to: 9, step: 2 } }\nconstraints:\n  - { rule: \"A ** B < min(9, abs(-A))\", why: x }\n",
            "{\"params\": [{\"name\": \"A\", \"values\": [1, 2]}], \"constraints\": [\"A // 2 == 1\"]}",
        ][which].to_owned();
        for (at, length, instead) in cuts {
            let places: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
            let start = at.index(places.len());
            let end = (start + length).min(places.len() - 1);
            text.replace_range(places[start]..places[end], &instead);
        }
        let path = Path::new("s.yaml");
        if BareSpace::recognises(&text) {
            match BareSpace::parse(&text, path) {
                Ok(space) => drop(space.space()),
                Err(error) => prop_assert!(!error.to_string().is_empty()),
            }
        } else if let Err(error) = KernelSpec::parse(&text, path) {
            prop_assert!(!error.to_string().is_empty());
        }
    }

    #[test]
    fn any_row_of_tokens_is_an_expression_or_is_refused(
        tokens in prop::collection::vec(prop::sample::select(TOKENS.to_vec()), 1..14),
        spaced in any::<bool>(),
    ) {
        let text = tokens.join(if spaced { " " } else { "" });
        if let Ok(rule) = Expr::parse(&text) {
            let _ = rule.evaluate(&[("a".to_owned(), Value::Int(i64::MIN))]);
            let parameters = vec![
                Parameter::new("a", vec![Value::Int(i64::MIN), Value::Int(0), Value::Float(0.5)]),
                Parameter::new("b", vec![Value::Bool(true), Value::Text("x".into()), Value::Int(i64::MAX)]),
            ];
            let rules = [Constraint { rule, why: None }];
            if let Ok(space) = Space::build("s", parameters, &rules, &Environment::default()) {
                prop_assert_eq!(space.empty_reason().is_some(), space.count() == 0);
            }
        }
        let listed = serde_json::json!({ "ConfigurationSpace": {
            "TuningParameters": [{ "Name": "a", "Values": text }], "Conditions": []
        }});
        if let Err(error) = BareSpace::parse(&listed.to_string(), Path::new("t1.json")) {
            prop_assert!(!error.to_string().is_empty());
        }
    }
}

/// What random expressions are made of.
const TOKENS: [&str; 56] = [
    "a",
    "b",
    "1",
    "0",
    "2.5",
    "170141183460469231731687303715884105727",
    "9223372036854775808",
    "1e308",
    "-",
    "-",
    "+",
    "*",
    "**",
    "/",
    "//",
    "%",
    "<<",
    ">>",
    "&",
    "|",
    "^",
    "~",
    "<",
    "<=",
    "==",
    "!=",
    ">",
    "and",
    "or",
    "not",
    "in",
    "if",
    "else",
    "(",
    ")",
    "(",
    ")",
    "[",
    "]",
    ",",
    "min(",
    "max(",
    "abs(",
    "int(",
    "round(",
    "ceil_div(",
    "log2(",
    "sqrt(",
    "len(",
    "pow(",
    "'x'",
    "range(",
    "for",
    "{",
    "}",
    "é",
];
