//! The expression language means what Python means.

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use std::io::Write as _;
use std::process::{Command, Stdio};
use tuner_core::value::Value;
use tuner_space::{Constraint, Environment, EvaluateError, Expr, Fault, Parameter, Space};

fn evaluate(text: &str) -> Result<Value, EvaluateError> {
    Expr::parse(text)?.evaluate(&[])
}

#[track_caller]
fn check(text: &str, expected: Value) {
    assert_eq!(evaluate(text), Ok(expected), "{text}");
}

#[test]
fn arithmetic_follows_python() {
    check("7 // 2", Value::Int(3));
    check("-7 // 2", Value::Int(-4));
    check("-7 % 3", Value::Int(2));
    check("7 % -3", Value::Int(-2));
    check("6 / 3", Value::Float(2.0));
    check("2 ** 10", Value::Int(1024));
    check("2 ** -1", Value::Float(0.5));
    check("-2 ** 2", Value::Int(-4));
    check("2 ** 3 ** 2", Value::Int(512));
    check("ceil_div(7, 2)", Value::Int(4));
    check("ceil_div(-7, 2)", Value::Int(-3));
    check("int(-3.7)", Value::Int(-3));
    check("round(2.5)", Value::Int(2));
    check("round(2.675, 2)", Value::Float(2.67));
    check("1_000 + 0x10", Value::Int(1016));
    check("min(3, 1.5, 2)", Value::Float(1.5));
    check("max([1, 4, 2])", Value::Int(4));
    check("log2(8)", Value::Float(3.0));
    check("sqrt(2)", Value::Float(2_f64.sqrt()));
    check("True + 1", Value::Int(2));
    check("5 & 3 | 8 ^ 2", Value::Int(11));
    check("1 << 4 >> 2", Value::Int(4));
    check("~5", Value::Int(-6));
}

#[test]
fn logic_follows_python() {
    check("1 and 2", Value::Int(2));
    check("0 or 'x'", Value::Text("x".into()));
    check("1 < 2 < 3", Value::Bool(true));
    check("3 > 2 == 2", Value::Bool(true));
    check("not 1 == 2", Value::Bool(true));
    check("2 in [1, 2] and 3 not in (1, 2)", Value::Bool(true));
    check("2 in {1, 2} and 3 not in {1, 2}", Value::Bool(true));
    check("'b' in 'abc'", Value::Bool(true));
    check("1 if 0 else 2", Value::Int(2));
    check("1 == 1.0 and True == 1 and 'a' != 1", Value::Bool(true));
    check("0 and 1 / 0", Value::Int(0));
    check("1 or 1 % 0", Value::Int(1));
}

#[test]
fn whole_numbers_are_exact() {
    check("9007199254740993 == 9007199254740992.0", Value::Bool(false));
    check("9007199254740993 > 9007199254740992.0", Value::Bool(true));
    check("2 ** 100 % 1000", Value::Int(376));
    check(
        "(10 ** 18 * 10 ** 18) // 10 ** 18 == 10 ** 18",
        Value::Bool(true),
    );
    let too_large = evaluate("2 ** 100 * 2 ** 100");
    assert_eq!(too_large, Err(EvaluateError::Fault(Fault::Overflow)));
}

#[test]
fn faults_are_values_not_crashes() {
    for text in [
        "1 / 0",
        "1 // 0",
        "1 % 0",
        "1.5 % 0",
        "0 ** -1",
        "ceil_div(1, 0)",
    ] {
        let fault = evaluate(text);
        assert_eq!(
            fault,
            Err(EvaluateError::Fault(Fault::DivisionByZero)),
            "{text}"
        );
    }
    assert!(matches!(
        evaluate("sqrt(-1)"),
        Err(EvaluateError::Fault(Fault::Domain(_)))
    ));
}

fn message(text: &str) -> String {
    match evaluate(text) {
        Err(error) => error.to_string(),
        Ok(value) => panic!("{text} is {value}"),
    }
}

#[test]
fn mistakes_are_shown_with_a_caret_and_a_fix() {
    insta::assert_snapshot!(message("1 + && 2"), @r"
    `&&` is not an operator here
      1 + && 2
          ^^
      help: expressions are Python's: write `and`
    ");
    insta::assert_snapshot!(message("(1 + 2"), @r"
    this bracket is never closed
      (1 + 2
      ^
    ");
    insta::assert_snapshot!(message("cieldiv(1, 2)"), @r"
    unknown function `cieldiv`
      cieldiv(1, 2)
      ^^^^^^^
      help: did you mean `ceil_div`?
    ");
    insta::assert_snapshot!(message("1 = 1"), @r"
    `=` is not an operator here
      1 = 1
        ^
      help: expressions are Python's: write `==`
    ");
    insta::assert_snapshot!(message("lambda p: p['x'] > 1"), @r#"
    a lambda cannot be evaluated
      lambda p: p['x'] > 1
      ^^^^^^
      help: write the condition itself, over the parameters' names
    "#);
    insta::assert_snapshot!(message("'a' * 'b' > 1"), @r"
    `*` does not take text and text
      'a' * 'b' > 1
      ^^^^^^^^^
      help: compare text with `==`, `!=` or `in`
    ");
}

#[test]
fn no_text_exhausts_the_stack() {
    for (open, close) in [
        ("(", ")"),
        ("[", "]"),
        ("-", ""),
        ("not ", ""),
        ("2**", ""),
        ("1 if ", ""),
    ] {
        let text = format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
        assert!(Expr::parse(&text).is_err());
    }
    let long = vec!["1"; 100_000].join(" + ");
    check(&long, Value::Int(100_000));
    let long = vec!["1 == 1"; 50_000].join(" and ");
    check(&long, Value::Bool(true));
}

fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        (-20_i64..20).prop_map(|n| if n < 0 {
            format!("({n})")
        } else {
            n.to_string()
        }),
        prop::sample::select(vec![
            "0", "1", "2", "64", "0.5", "2.0", "-1.5", "True", "1e3"
        ])
        .prop_map(|text| format!("({text})")),
        prop::sample::select(vec![
            "9007199254740993",
            "9223372036854775807",
            "1267650600228229401496703205376"
        ])
        .prop_map(str::to_owned),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let operators = vec![
            "+", "-", "*", "/", "//", "%", "==", "!=", "<", "<=", ">", ">=", "and", "or",
        ];
        prop_oneof![
            6 => (inner.clone(), prop::sample::select(operators), inner.clone())
                .prop_map(|(a, op, b)| format!("({a} {op} {b})")),
            1 => (inner.clone(), 0..5_u32).prop_map(|(a, n)| format!("({a} ** {n})")),
            1 => (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(a, b, c)| format!("({a} < {b} <= {c})")),
            1 => (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(a, b, c)| format!("({a} if {b} else {c})")),
            1 => (inner.clone(), inner.clone(), inner.clone(), prop::sample::select(vec!["in", "not in"]))
                .prop_map(|(a, b, c, is)| format!("({a} {is} ({b}, {c}))")),
            1 => (0..9_u32, inner.clone(), prop::sample::select(vec!["-", "not ", "- -", "+-", "~"]))
                .prop_map(|(n, a, sign)| format!("({sign}{n} ** 2 // 3 - {a})")),
            1 => (inner.clone(), inner.clone(), inner.clone(), prop::sample::select(vec!["min", "max"]))
                .prop_map(|(a, b, c, f)| format!("{f}([{a}, {b}, {c}])")),
            1 => (prop::sample::select(vec!["abs", "int", "sqrt", "round", "floor", "ceil", "not ", "-"]), inner.clone())
                .prop_map(|(f, a)| format!("({f}({a}))")),
            1 => (prop::sample::select(vec!["min", "max", "ceil_div"]), inner.clone(), inner)
                .prop_map(|(f, a, b)| format!("{f}({a}, {b})")),
        ]
    })
}

/// A condition over `a`, `b` and `c`, whose whole numbers stay small.
fn condition() -> impl Strategy<Value = String> {
    let name = || prop::sample::select(vec!["a", "b", "c"]).prop_map(str::to_owned);
    let leaf = prop_oneof![4 => name(), 1 => (-3_i64..9).prop_map(|n| format!("({n})"))];
    let term = leaf.prop_recursive(3, 12, 2, move |inner| {
        let operators = vec!["+", "-", "*", "/", "//", "%", "and", "or", "<", "==", ">="];
        prop_oneof![
            6 => (inner.clone(), prop::sample::select(operators), inner.clone())
                .prop_map(|(a, op, b)| format!("({a} {op} {b})")),
            1 => (name(), 0..3_u32).prop_map(|(a, n)| format!("-{a} ** {n}")),
            1 => (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(a, b, c)| format!("({a} <= {b} < {c})")),
            1 => (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(a, b, c)| format!("({a} if {b} else {c})")),
            1 => (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(a, b, c)| format!("({a} not in ({b}, {c}))")),
            1 => (prop::sample::select(vec!["abs", "int", "not ", "bool"]), inner.clone())
                .prop_map(|(f, a)| format!("({f}({a}))")),
            1 => (prop::sample::select(vec!["min", "max", "ceil_div"]), inner.clone(), inner)
                .prop_map(|(f, a, b)| format!("{f}({a}, {b})")),
        ]
    });
    (
        term.clone(),
        prop::sample::select(vec!["<", "<=", "==", "!=", ">", "% 3 ==", "and", "or"]),
        term,
    )
        .prop_map(|(a, op, b)| format!("{a} {op} {b}"))
}

/// Counts with Python's evaluation how many combinations satisfy a condition; what raises an
/// exception is false.
const COUNT: &str = "
def count(text):
    code, n = compile(text, '', 'eval'), 0
    for a in DOMAINS[0]:
        for b in DOMAINS[1]:
            for c in DOMAINS[2]:
                try: n += bool(eval(code, globals(), {'a': a, 'b': b, 'c': c}))
                except Exception: pass
    return n
";

const DOMAINS: [&str; 3] = [
    "[-3, -1, 0, 2, 5]",
    "[1, 2.5, 4, 8]",
    "[False, True, -2, 6, 7]",
];

fn domain(text: &str) -> Vec<Value> {
    let inner = text.trim_matches(['[', ']']);
    inner
        .split(", ")
        .map(|each| evaluate(each).unwrap())
        .collect()
}

#[test]
fn random_conditions_leave_as_many_configurations_as_in_python() {
    let mut runner = TestRunner::deterministic();
    let strategy = condition();
    let texts: Vec<String> = (0..1500)
        .map(|_| strategy.new_tree(&mut runner).unwrap().current())
        .collect();
    let calls: Vec<String> = texts
        .iter()
        .map(|text| format!("count({text:?})"))
        .collect();
    let prelude = format!("DOMAINS = [{}]\n{COUNT}", DOMAINS.join(", "));
    let Some(answers) = python(&prelude, &calls) else {
        eprintln!("skipped: no python3 here");
        return;
    };
    assert_eq!(answers.len(), texts.len());
    for (text, answer) in texts.iter().zip(&answers) {
        let parameters = ["a", "b", "c"].iter().zip(DOMAINS);
        let parameters = parameters.map(|(name, values)| Parameter::new(*name, domain(values)));
        let constraint = Constraint {
            rule: Expr::parse(text).unwrap(),
            why: None,
        };
        let environment = Environment::default();
        match Space::build("test", parameters.collect(), &[constraint], &environment) {
            Ok(space) => assert_eq!(&format!("I {}", space.count()), answer, "{text}"),
            Err(error) => panic!("{text}: {error}"),
        }
    }
}

const PRELUDE: &str = "
import sys, struct
from math import sqrt, log2, floor, ceil
def ceil_div(a, b): return 0 - (-a // b)
for line in sys.stdin:
    try:
        v = eval(line)
        if isinstance(v, bool): print('B', int(v))
        elif isinstance(v, int): print('I', v)
        elif isinstance(v, float): print('F', struct.unpack('<Q', struct.pack('<d', v))[0])
        else: print('E')
    except Exception: print('E')
";

/// What Python says of each expression; `None` where there is no Python.
fn python(definitions: &str, expressions: &[String]) -> Option<Vec<String>> {
    let mut child = Command::new("python3")
        .args(["-W", "ignore", "-c", &format!("{definitions}{PRELUDE}")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    let mut input = child.stdin.take()?;
    let text = expressions.join("\n");
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = child.wait_with_output().ok()?;
    writer.join().ok()?.ok()?;
    let lines = String::from_utf8(output.stdout).ok()?;
    Some(lines.lines().map(str::to_owned).collect())
}

#[test]
fn thousands_of_random_expressions_agree_with_python() {
    let mut runner = TestRunner::deterministic();
    let strategy = expression();
    let expressions: Vec<String> = (0..6000)
        .map(|_| strategy.new_tree(&mut runner).unwrap().current())
        .collect();
    let Some(answers) = python("", &expressions) else {
        eprintln!("skipped: no python3 here");
        return;
    };
    assert_eq!(answers.len(), expressions.len());
    let mut compared = 0;
    for (text, answer) in expressions.iter().zip(&answers) {
        let ours = match evaluate(text) {
            Ok(Value::Bool(value)) => format!("B {}", u8::from(value)),
            Ok(Value::Int(value)) => format!("I {value}"),
            Ok(Value::Float(value)) => format!("F {}", value.to_bits()),
            // Python's whole numbers have no limit; beyond ours there is nothing to compare.
            Err(EvaluateError::NoValue | EvaluateError::Fault(Fault::Overflow)) => continue,
            _ => "E".to_owned(),
        };
        assert_eq!(&ours, answer, "{text}");
        compared += 1;
    }
    assert!(compared > 4000, "only {compared} could be compared");
}
