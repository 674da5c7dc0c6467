//! Mistakes in a bare space or its command line: place, reason and fix, and exit code 2.

use crate::space_command::support::{refused, space, space_in};
use insta::assert_snapshot;

const GOOD: &str = "parameters:\n  A: { values: [1, 2, 4] }\n  B: { values: [1, 2, 4] }\n";

fn with(more: &str) -> String {
    refused(&format!("{GOOD}{more}"))
}

#[test]
fn an_unknown_key_is_shown_with_the_one_that_was_meant() {
    assert_snapshot!(with("constrains: []\n"), @r"
    s.yaml:4:1: error: unknown key `constrains`
     4 | constrains: []
       | ^^^^^^^^^^
      help: did you mean `constraints`?
    ");
    assert_snapshot!(refused("parameters:\n  A: { vaules: [1] }\n"), @r"
    s.yaml:2:8: error: unknown key `vaules`
     2 |   A: { vaules: [1] }
       |        ^^^^^^
      help: did you mean `values`?
    ");
    assert_snapshot!(with("colour: red\n"), @r"
    s.yaml:4:1: error: unknown key `colour`
     4 | colour: red
       | ^^^^^^
      help: the keys here are version, name, parameters, derived, constraints
    ");
}

#[test]
fn a_wrong_type_is_shown_with_the_right_one() {
    assert_snapshot!(refused("parameters:\n  A: { values: 3 }\n"), @r"
    s.yaml:2:16: error: expected a list, found the integer 3
     2 |   A: { values: 3 }
       |                ^
      help: write `[3]`
    ");
    assert_snapshot!(refused("parameters:\n  A: { values: [1, [2]] }\n"), @r"
    s.yaml:2:20: error: expected an integer, a float, a boolean or a string, found a list
     2 |   A: { values: [1, [2]] }
       |                    ^^^
    ");
    assert_snapshot!(refused("parameters: [1, 2]\n"), @r"
    s.yaml:1:13: error: `parameters` must be a mapping from names
     1 | parameters: [1, 2]
       |             ^^^^^^
      help: write each entry as `NAME: …`
    ");
    assert_snapshot!(refused("parameters:\n  A: [1, 2]\n"), @r"
    s.yaml:2:6: error: expected a mapping of keys, found a list
     2 |   A: [1, 2]
       |      ^^^^^^
      help: the keys here are values, range, default, doc
    ");
    assert_snapshot!(refused("version: one\nparameters:\n  A: { values: [1], doc: [a] }\n"), @r#"
    s.yaml:1:10: error: expected a whole number, found the text "one"
     1 | version: one
       |          ^^^
      help: write it without quotes and without a sign
    s.yaml:3:26: error: expected text, found a list
     3 |   A: { values: [1], doc: [a] }
       |                          ^^^
      help: put it in quotes
    "#);
    assert_snapshot!(refused("parameters:\n  A: { range: { from: 1, to: x } }\n"), @r"
    s.yaml:2:15: error: a range needs numbers
     2 |   A: { range: { from: 1, to: x } }
       |               ^^^^^^^^^^^^^^^^^^
      help: write `range: { from: 1, to: 8, step: 1 }`
    ");
    assert_snapshot!(with("constraints: A < B\n"), @r"
    s.yaml:4:14: error: `constraints` must be a list
     4 | constraints: A < B
       |              ^^^^^
      help: begin every element with `- `
    ");
    assert_snapshot!(refused("just text\n"), @r"
    s.yaml:1:1: error: expected a mapping of keys to values
     1 | just text
       | ^^^^^^^^^
      help: begin with `version: 1`
    ");
}

#[test]
fn a_key_given_twice_is_shown() {
    assert_snapshot!(refused("parameters:\n  A: { values: [1] }\n  A: { values: [2] }\n"), @r"
    s.yaml:3:3: error: the key `A` is given twice
     3 |   A: { values: [2] }
       |   ^
      help: remove one of the two
    ");
    assert_snapshot!(with("parameters: {}\n"), @r"
    s.yaml:4:1: error: the key `parameters` is given twice
     4 | parameters: {}
       | ^^^^^^^^^^
      help: remove one of the two
    ");
    let json = r#"{"params": [{"name": "A", "values": [1], "values": [2]}], "constraints": []}"#;
    assert_snapshot!(space("s.json", json, &[]).refusal(), @r#"
    s.json:1:42: error: the key `values` is given twice
     1 | {"params": [{"name": "A", "values": [1], "values": [2]}], "constraints": []}
       |                                          ^^^^^^^^
      help: remove one of the two
    "#);
}

#[test]
fn an_empty_file_is_told_what_to_hold() {
    assert_snapshot!(refused(""), @r"
    s.yaml: error: the file is empty
      help: a kernel's file has the keys version, kernel, source, problems, parameters, arguments, launches and reference
    ");
    assert_snapshot!(refused("# only a comment\n"), @r"s.yaml: error: the file is empty");
    assert_snapshot!(refused("parameters:\n"), @r"
    s.yaml:1:1: error: `parameters` is empty
     1 | parameters:
       | ^^^^^^^^^^
      help: write its value after it or below it
    ");
    assert_snapshot!(refused("parameters: {}\n"), @r"
    s.yaml:1:13: error: `parameters` is empty
     1 | parameters: {}
       |             ^^
      help: name at least one parameter
    ");
    assert_snapshot!(refused("parameters:\n  A: { values: [] }\n"), @r"
    s.yaml:2:16: error: `A` has no values
     2 |   A: { values: [] }
       |                ^^
      help: list at least one value
    ");
    assert_snapshot!(space("s.json", "{}", &[]).refusal(), @r"
    s.json:1:1: error: this JSON is not a search space
     1 | {}
       | ^
      help: known are `params` and `constraints`, T1 files with `ConfigurationSpace`, and Kernel Tuner caches with `tune_params`
    ");
}

#[test]
fn a_file_that_cannot_be_read_is_named_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    assert_snapshot!(space_in(folder.path(), &["missing.yaml"]).refusal(), @r"missing.yaml: error: no such file; check the path");
    std::fs::create_dir(folder.path().join("d.yaml")).unwrap();
    assert_snapshot!(space_in(folder.path(), &["d.yaml"]).refusal(), @r"d.yaml: error: this is a folder: name a file in it");
    assert_snapshot!(space("s.yaml", b"a: 1\nb: \xff\n", &[]).refusal(), @r"s.yaml: error: line 2 is not UTF-8 (byte 8 of the file); save the file as UTF-8");
    assert_snapshot!(space("s.json.gz", [0x1f, 0x8b, 8, 0, 0], &[]).refusal(), @r"s.json.gz: error: the gzip data is corrupt or cut short (unexpected end of file): fetch the file again");
}

#[test]
fn a_circle_of_derived_values_is_shown() {
    let text = "derived:\n  X: Y + A\n  Y: 2 * Z\n  Z: X - 1\n";
    assert_snapshot!(with(text), @r"
    s.yaml:5:6: error: derived values depend on each other in a circle: X → Y → Z → X
     5 |   X: Y + A
       |      ^^^^^
      help: write one of them without the others
    ");
    assert_snapshot!(with("derived:\n  X: X + 1\n"), @r"
    s.yaml:5:6: error: derived values depend on each other in a circle: X → X
     5 |   X: X + 1
       |      ^^^^^
      help: write one of them without the others
    ");
}

#[test]
fn an_unknown_name_has_a_caret_and_a_suggestion() {
    assert_snapshot!(with("constraints:\n  - { rule: \"A * BB <= 4\" }\n"), @r#"
    s.yaml:5:18: error: unknown name `BB`
     5 |   - { rule: "A * BB <= 4" }
       |                  ^^
      help: did you mean `B`?
    "#);
    assert_snapshot!(with("constraints:\n  - { rule: \"A <= LIMIT\" }\n"), @r#"
    s.yaml:5:19: error: unknown name `LIMIT`
     5 |   - { rule: "A <= LIMIT" }
       |                   ^^^^^
      help: the names are A, B
    "#);
    assert_snapshot!(with("derived:\n  X: mim(A, B)\n"), @r"
    s.yaml:5:6: error: unknown function `mim`
     5 |   X: mim(A, B)
       |      ^^^
      help: did you mean `min`?
    ");
}

#[test]
fn an_expression_that_is_no_python_has_a_caret_and_a_fix() {
    assert_snapshot!(with("constraints:\n  - { rule: \"A < 2 && B < 2\" }\n"), @r#"
    s.yaml:5:20: error: `&&` is not an operator here
     5 |   - { rule: "A < 2 && B < 2" }
       |                    ^^
      help: expressions are Python's: write `and`
    "#);
    assert_snapshot!(with("constraints:\n  - { rule: \"A = B\" }\n"), @r#"
    s.yaml:5:16: error: `=` is not an operator here
     5 |   - { rule: "A = B" }
       |                ^
      help: expressions are Python's: write `==`
    "#);
    assert_snapshot!(with("constraints:\n  - rule: \"A <\"\n"), @r#"
    s.yaml:5:15: error: the expression ends too early
     5 |   - rule: "A <"
       |               ^
      help: an operand or a bracket is missing at its end
    "#);
}

#[test]
fn a_value_or_default_that_cannot_be_is_shown() {
    assert_snapshot!(refused("parameters:\n  A: { values: [1, 2, 1] }\n"), @r"
    s.yaml:2:23: error: `A` has the value 1 twice
     2 |   A: { values: [1, 2, 1] }
       |                       ^
      help: list every value once
    ");
    assert_snapshot!(refused("parameters:\n  A: { values: [1, 2], default: 3 }\n"), @r"
    s.yaml:2:33: error: the default 3 is not a value of `A`
     2 |   A: { values: [1, 2], default: 3 }
       |                                 ^
      help: its values are 1, 2
    ");
    assert_snapshot!(refused("parameters:\n  A-B: { values: [1, 2] }\n"), @r"
    s.yaml:2:3: error: `A-B` cannot be a name
     2 |   A-B: { values: [1, 2] }
       |   ^^^
      help: use letters, digits and `_`, beginning with a letter: it becomes a macro
    ");
    assert_snapshot!(refused("parameters:\n  A: { range: { from: 4, to: 1 } }\n"), @r"
    s.yaml:2:15: error: the range is empty: its step leads away from `to`
     2 |   A: { range: { from: 4, to: 1 } }
       |               ^^^^^^^^^^^^^^^^^^
      help: swap `from` and `to`
    ");
    assert_snapshot!(refused("parameters:\n  A: { values: [.nan] }\n"), @r"
    s.yaml:2:17: error: `.nan` is not a finite number
     2 |   A: { values: [.nan] }
       |                 ^^^^
      help: write a number in range, or put it in quotes as text
    ");
    assert_snapshot!(refused("parameters:\n  A: { values: [99999999999999999999] }\n"), @r"
    s.yaml:2:17: error: 99999999999999999999 does not fit in 64 bits
     2 |   A: { values: [99999999999999999999] }
       |                 ^^^^^^^^^^^^^^^^^^^^
      help: write a number in range, or put it in quotes as text
    ");
}

#[test]
fn a_division_by_zero_makes_a_rule_false() {
    let file = format!("{GOOD}constraints: [{{ rule: \"4 % (A - 1) == 0\" }}]\n");
    let ran = space("s.yaml", file, &["--format", "json"]);
    // A = 1 divides by zero; 2 and 4 leave no rest but for 4 % 3.
    assert_eq!(ran.json()["valid"], "3");
    // Where it fails for every configuration, the message says why.
    let ran = space(
        "s.yaml",
        format!("{GOOD}constraints: [{{ rule: \"A / 0 > 1\" }}]\n"),
        &[],
    );
    assert_eq!(ran.code, Some(2));
    assert_snapshot!(ran.stderr, @r#"
    note: division by zero in `A / 0 > 1` for A = 1: the rule counts as false there
    s.yaml:4:23: error: `s` has no valid configuration: no configuration satisfies the constraint `A / 0 > 1`
     4 | constraints: [{ rule: "A / 0 > 1" }]
       |                       ^^^^^^^^^^^
      help: loosen this constraint, or give its parameters other values
    "#);
}

#[test]
fn a_constraint_that_nothing_satisfies_is_shown_and_the_space_is_counted() {
    let rules =
        "constraints:\n  - { rule: A <= B }\n  - { rule: A * B > 100, why: too few threads }\n";
    let ran = space(
        "s.yaml",
        format!("{GOOD}{rules}"),
        &["--format", "json", "--sample", "3"],
    );
    assert_eq!(ran.code, Some(2));
    assert_snapshot!(ran.stderr, @r"
    s.yaml:6:13: error: `s` has no valid configuration: no configuration satisfies the constraint `A * B > 100` (too few threads)
     6 |   - { rule: A * B > 100, why: too few threads }
       |             ^^^^^^^^^^^
      help: loosen this constraint, or give its parameters other values
    ");
    let json: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(json["valid"], "0");
    assert_eq!(json["samples"], serde_json::json!([]));
    let rules = "constraints:\n  - { rule: A < B }\n  - { rule: B < A }\n";
    let ran = space("s.yaml", format!("{GOOD}{rules}"), &[]);
    assert_snapshot!(ran.stderr, @r"
    s.yaml:6:13: error: `s` has no valid configuration: no configuration satisfies the constraint `B < A` together with the constraints before it
     6 |   - { rule: B < A }
       |             ^^^^^
      help: loosen this constraint, or give its parameters other values
    ");
}

#[test]
fn a_space_too_large_to_build_names_the_constraint() {
    let file = "parameters:\n  N: { range: { from: 1, to: 1000000 } }\n  M: { range: { from: 1, to: 1000000 } }\nconstraints:\n  - { rule: (N ^ M) % 7 == 3 }\n";
    assert_snapshot!(refused(file), @r"
    s.yaml:5:13: error: the space needs too much memory: the constraint `(N ^ M) % 7 == 3` couples 2 parameters with too many values (N, M): shorten their lists, or split the constraint into several over fewer parameters
     5 |   - { rule: (N ^ M) % 7 == 3 }
       |             ^^^^^^^^^^^^^^^^
    ");
    let many: String = (0..40)
        .map(|at| format!("  P{at}: {{ range: {{ from: 1, to: 1000 }} }}\n"))
        .collect();
    assert_snapshot!(refused(&format!("parameters:\n{many}")), @r"s.yaml: error: the space has more than 3.4e38 configurations: shorten some lists of values");
    assert_snapshot!(refused("parameters:\n  A: { range: { from: 1, to: 1000000000 } }\n"), @r"
    s.yaml:2:15: error: the range has more than four million values
     2 |   A: { range: { from: 1, to: 1000000000 } }
       |               ^^^^^^^^^^^^^^^^^^^^^^^^^^^
      help: widen the step
    ");
}

/// Replaces the list of virtual GPUs, which grows.
fn gpus_hidden(text: impl AsRef<str>) -> String {
    text.as_ref()
        .replace(&tuner_device::limits::names(), "[GPUS]")
}

#[test]
fn wrong_arguments_are_told_what_to_type() {
    assert_snapshot!(gpus_hidden(space("s.yaml", GOOD, &["--device", "vgpu:b300"]).refusal()), @r"error: unknown virtual GPU `b300`; choose one of: [GPUS]");
    assert_snapshot!(gpus_hidden(space("s.yaml", GOOD, &["--device", "gpu"]).refusal()), @r"error: invalid device `gpu`; use auto, cuda, cuda:N, vgpu:NAME (one of: [GPUS]) or replay:FILE");
    assert_snapshot!(space("s.yaml", GOOD, &["--problem", "x"]).refusal(), @r"error: s.yaml has no problems: leave `--problem x` out");
    for arguments in [
        &["--sample", "x"][..],
        &["--sample", "-1"],
        &["--seed", "x"],
        &["--format", "xml"],
        &["--colour"],
    ] {
        assert_eq!(
            space("s.yaml", GOOD, arguments).code,
            Some(2),
            "{arguments:?}"
        );
    }
}
