//! Test of the translation against the language's evaluator: random rules, judged by gcc.

use super::*;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::fmt::Write as _;
use tuner_core::record::{ConstraintDefinition, ParameterDefinition};
use tuner_space::{Constraint, Environment, Parameter, Space};

fn parameter(name: &str, values: &[i64]) -> ParameterDefinition {
    ParameterDefinition {
        name: name.to_owned(),
        values: values.iter().map(|value| Value::Int(*value)).collect(),
        default: None,
        doc: String::new(),
    }
}

fn check(rule: &str, expected: Option<&str>) {
    let definition = Definition {
        parameters: vec![parameter("A", &[1, 2]), parameter("Z", &[-1, 1])],
        derived: vec![
            ("D".to_owned(), "2 * A".to_owned()),
            ("LOOP".to_owned(), "LOOP + 1".to_owned()),
        ],
        constraints: vec![ConstraintDefinition {
            rule: rule.to_owned(),
            why: String::new(),
        }],
        launches: Vec::new(),
    };
    let constants = vec![("N".to_owned(), Value::Int(7))];
    let (rules, _) = translate(&definition, &constants, "K_");
    let shortened = rules[0]
        .text
        .as_ref()
        .map(|text| text.replace("(long long)", "").replace("LL", ""));
    assert_eq!(shortened.as_deref(), expected, "{rule}");
}

#[test]
fn whole_numbers_translate_word_for_word() {
    check("A % 2 == 0", Some("(((A) % 2) == 0)"));
    check("1 <= A < N", Some("((1 <= (A)) && ((A) < (N)))"));
    check("A in [1, 2]", Some("(((A) == 1) || ((A) == 2))"));
    check("not D > 3", Some("(!((2 * (A)) > 3))"));
    check("2 ** A <= 8", Some("((1 << (A)) <= 8)"));
    check("max(A, 3) == 3", Some("(K_MAX((A), 3) == 3)"));
}

#[test]
fn what_may_be_negative_divides_as_python_does() {
    check("Z // 2 == 0", Some("(K_FLOORDIV((Z), 2) == 0)"));
    check("Z % 2 == 1", Some("(K_MOD((Z), 2) == 1)"));
}

#[test]
fn fractions_are_multiplied_out() {
    check("N / 2 <= A", Some("((N) <= ((A) * 2))"));
    check("A <= 1.5 * N", Some("(((A) * 2) <= (3 * (N)))"));
    check(
        "1 / A >= 2",
        Some("((A) != 0 && ((A) > 0 ? (1 >= (2 * (A))) : (1 <= (2 * (A)))))"),
    );
}

#[test]
fn what_c_cannot_say_exactly_is_left_alone() {
    for rule in [
        "sqrt(A) < 2",
        "log2(A) == 1",
        "A < 0.1",
        "A == 'x'",
        "LOOP > 1",
        "A or N",
    ] {
        check(rule, None);
    }
}

/// Generates a number; divisors are never 0, which is undefined in both languages.
fn number(rng: &mut ChaCha8Rng, depth: u32) -> String {
    if depth == 0 || rng.random_range(0..4) == 0 {
        let leaves = ["A", "B", "Z", "D", "-3", "0", "1", "2", "7", "0.5", "1.25"];
        return leaves[rng.random_range(0..leaves.len())].to_owned();
    }
    let left = number(rng, depth - 1);
    let right = number(rng, depth - 1);
    let divisor = ["2", "-3", "B", "(A + 1)", "(-B)", "0.5"][rng.random_range(0..6)];
    match rng.random_range(0..14) {
        0 => format!("({left} + {right})"),
        1 => format!("({left} - {right})"),
        2 => format!("({left} * {right})"),
        3 => format!("({left} / {divisor})"),
        4 => format!("({left} // {divisor})"),
        5 => format!("({left} % {divisor})"),
        6 => format!("min({left}, {right})"),
        7 => format!("max({left}, {right}, 1)"),
        8 => format!("abs({left})"),
        9 => format!("int({left})"),
        10 => format!("(-{left})"),
        11 => format!("({left} if {} else {right})", truth(rng, depth - 1)),
        12 => "ceil_div(Z * A, B)".to_owned(),
        _ => "A ** 2".to_owned(),
    }
}

fn truth(rng: &mut ChaCha8Rng, depth: u32) -> String {
    let signs = ["<", "<=", ">", ">=", "==", "!="];
    let left = number(rng, depth);
    let right = number(rng, depth);
    let sign = signs[rng.random_range(0..signs.len())];
    match rng.random_range(0..6) {
        0 if depth > 0 => format!("({} and {left} {sign} {right})", truth(rng, depth - 1)),
        1 if depth > 0 => format!("({} or {left} {sign} {right})", truth(rng, depth - 1)),
        2 if depth > 0 => format!("(not {})", truth(rng, depth - 1)),
        3 => format!("{left} in [1, {right}, 4]"),
        4 => format!("{left} {sign} {right} < 9"),
        _ => format!("{left} {sign} {right}"),
    }
}

/// Evaluates the rule in the space language.
fn holds(rule: &str, values: &[(&str, i64)]) -> Option<bool> {
    let parameters = values
        .iter()
        .map(|(name, value)| Parameter::new(*name, vec![Value::Int(*value)]))
        .collect();
    let rules = [Constraint {
        rule: Expr::parse(rule).ok()?,
        why: None,
    }];
    let environment = Environment {
        derived: vec![("D".to_owned(), Expr::parse("2 * A - B").ok()?)],
        constants: Vec::new(),
    };
    let space = Space::build("random", parameters, &rules, &environment).ok()?;
    Some(space.count() == 1)
}

#[test]
fn random_rules_mean_the_same_to_gcc_as_to_the_tuner() {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut source = String::new();
    let (mut translated, mut used) = (0, Helpers::new());
    for _ in 0..1500 {
        let values = [
            ("A", rng.random_range(1..9)),
            ("B", rng.random_range(1..5)),
            ("Z", rng.random_range(-6..7)),
        ];
        let rule = truth(&mut rng, 3);
        let definition = Definition {
            parameters: vec![
                parameter("A", &[1, 8]),
                parameter("B", &[1, 4]),
                parameter("Z", &[-6, 6]),
            ],
            derived: vec![("D".to_owned(), "2 * A - B".to_owned())],
            constraints: vec![ConstraintDefinition {
                rule: rule.clone(),
                why: String::new(),
            }],
            launches: Vec::new(),
        };
        let (rules, helpers) = translate(&definition, &Vec::new(), "K_");
        let (Some(text), Some(expected)) = (&rules[0].text, holds(&rule, &values)) else {
            continue;
        };
        for (name, value) in values {
            let _ = writeln!(source, "#undef {name}\n#define {name} {value}");
        }
        let condition = if expected {
            text.clone()
        } else {
            format!("!{text}")
        };
        let why = format!("{rule} is {expected} for {values:?}").replace('"', "'");
        let _ = writeln!(source, "_Static_assert({condition}, \"{why}\");");
        translated += 1;
        used.extend(helpers);
    }
    assert!(translated > 700, "{translated}");
    assert_eq!(used.len(), HELPERS.len(), "{used:?}");
    let helpers: String = HELPERS
        .iter()
        .map(|(name, body)| format!("#define K_{name}{}\n", body.replace('@', "K_")))
        .collect();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("rules.c");
    std::fs::write(&file, helpers + &source).unwrap();
    let output = std::process::Command::new("gcc")
        .args(["-std=c11", "-Wall", "-Wextra", "-fsyntax-only"])
        .arg(&file)
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    let failures: Vec<&str> = message
        .lines()
        .filter(|line| line.contains("error") || line.contains("warning"))
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
