//! The exported lookup returns the nearest entry that obeys its rules for the sizes asked, or none.

use crate::store::headers::{C11, CPP17, entries_of, nvrtc};
use crate::store::support::start;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use tuner_core::entry::Entry;
use tuner_core::record::{
    ConfigValues, ConstraintDefinition, Definition, DeviceKind, ParameterDefinition,
};
use tuner_core::value::Value;
use tuner_report::export;
use tuner_space::Expr;

const DEVICE: &str = "a GPU";

/// One entry of a made-up kernel.
pub(crate) struct Made {
    pub(crate) sizes: ConfigValues,
    pub(crate) config: ConfigValues,
    pub(crate) derived: Vec<(String, String)>,
    pub(crate) rules: Vec<String>,
}

pub(crate) fn named(pairs: &[(&str, i64)]) -> ConfigValues {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), Value::Int(*value)))
        .collect()
}

fn environment() -> ConfigValues {
    named(&[("DEVICE_SHARED_BYTES", 40_960)])
}

/// An entry as the store gives it.
async fn stored() -> Entry {
    let entries = entries_of(&[(start(DeviceKind::Cuda), &[(32, 1.0)])]).await;
    entries[0].clone()
}

/// The entries of made-up kernels.
fn entries(stored: &Entry, made: &[Made]) -> Vec<Entry> {
    made.iter()
        .enumerate()
        .map(|(at, made)| {
            let mut entry = stored.clone();
            entry.best.device = DEVICE.to_owned();
            entry.best.problem = format!("p{at}");
            entry.best.config = made.config.clone();
            entry.times = Vec::new();
            entry.sizes = made.sizes.clone();
            entry.environment = environment();
            entry.definition = Definition {
                parameters: made
                    .config
                    .iter()
                    .map(|(name, value)| ParameterDefinition {
                        name: name.clone(),
                        values: vec![value.clone()],
                        default: None,
                        doc: String::new(),
                    })
                    .collect(),
                derived: made.derived.clone(),
                constraints: made
                    .rules
                    .iter()
                    .map(|rule| ConstraintDefinition::unexplained(rule))
                    .collect(),
                launches: Vec::new(),
            };
            entry
        })
        .collect()
}

/// A text with an expression in the place of a name.
fn written_out(text: &str, name: &str, expression: &str) -> String {
    let letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut parts = text.split_inclusive(|c| !letter(c));
    let mut result = String::new();
    for part in &mut parts {
        let word = part.trim_end_matches(|c| !letter(c));
        let rest = &part[word.len()..];
        let word = if word == name {
            format!("({expression})")
        } else {
            word.to_owned()
        };
        result = result + &word + rest;
    }
    result
}

/// Whether a rule holds: the tuner's own evaluator, derived values written out.
pub(crate) fn holds(made: &Made, sizes: &ConfigValues, rule: &str) -> bool {
    let mut text = rule.to_owned();
    for (name, expression) in made.derived.iter().rev() {
        text = written_out(&text, name, expression);
    }
    let names: ConfigValues = [&made.config, sizes, &environment()]
        .into_iter()
        .flatten()
        .cloned()
        .collect();
    let truth = Expr::parse(&format!("bool({text})"))
        .unwrap()
        .evaluate(&names);
    matches!(truth, Ok(Value::Bool(true)))
}

pub(crate) fn obeys(made: &Made, sizes: &ConfigValues) -> bool {
    made.rules.iter().all(|rule| holds(made, sizes, rule))
}

/// The index of the entry that should be returned of those that are valid, -1 for none.
pub(crate) fn nearest(made: &[Made], sizes: &ConfigValues, valid: impl Fn(usize) -> bool) -> i64 {
    let mut best = (-1, f64::INFINITY);
    for (at, entry) in (0..).zip(made) {
        let pairs = || entry.sizes.iter().zip(sizes);
        let flag = |name: &str| name == "FLAG";
        let number = |value: &Value| value.as_f64().unwrap();
        let matches = pairs().all(|((name, own), (_, asked))| !flag(name) || own == asked);
        let distance: f64 = pairs()
            .filter(|((name, _), _)| !flag(name))
            .map(|((_, own), (_, asked))| (number(asked), number(own)))
            .map(|(a, b)| if a > b { a / b } else { b / a })
            .product();
        if matches && distance < best.1 && valid(usize::try_from(at).unwrap()) {
            best = (at, distance);
        }
    }
    best.0
}

fn literal(value: &Value) -> String {
    match value {
        Value::Int(value) => format!("{value}LL"),
        other => other.to_string(),
    }
}

fn literals(sizes: &ConfigValues) -> String {
    let literals: Vec<String> = sizes.iter().map(|(_, value)| literal(value)).collect();
    literals.join(", ")
}

/// What the header answers for some sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The index of the entry that the lookup returns, -1 for none.
    pub(crate) index: i64,
    /// A bit for each entry: whether it is valid for the sizes.
    pub(crate) valid: u64,
}

/// Kernels with their headers and the sizes to ask for.
pub(crate) struct Program {
    stored: Entry,
    pub(crate) directory: tempfile::TempDir,
    source: String,
    body: String,
    asked: usize,
    /// For each kernel a bit for each entry that C cannot state for all sizes.
    pub(crate) limited: Vec<u64>,
}

impl Program {
    pub(crate) async fn new() -> Self {
        Self {
            stored: stored().await,
            directory: tempfile::tempdir().unwrap(),
            source: "#include <stdio.h>\n".to_owned(),
            body: String::new(),
            asked: 0,
            limited: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, made: &[Made], queries: &[ConfigValues], constants: usize) {
        let kernel = format!("k{}", self.asked);
        let entries = entries(&self.stored, made);
        let header = export::header(&kernel, &entries).unwrap();
        let notes = export::own_sizes_only(&kernel, &entries).unwrap();
        self.limited.push((0..made.len()).fold(0, |bits, at| {
            let noted = notes
                .iter()
                .any(|note| note.starts_with(&format!("p{at} on ")));
            bits | u64::from(noted) << at
        }));
        let name = format!("{kernel}_tuned.h");
        std::fs::write(self.directory.path().join(&name), header).unwrap();
        let _ = writeln!(self.source, "#include \"{name}\"");
        let call = |arguments: &str| format!("{kernel}_tuned_lookup(\"{DEVICE}\", {arguments})");
        for (at, sizes) in queries.iter().enumerate().take(constants) {
            let expected = match nearest(made, sizes, |at| obeys(&made[at], sizes)) {
                -1 => "nullptr".to_owned(),
                index => format!("&{kernel}_tuned_table[{index}]"),
            };
            let call = call(&literals(sizes));
            let _ = write!(
                self.source,
                "#ifdef __cplusplus\nstatic_assert({call} == {expected}, \"{at}\");\n#endif\n"
            );
        }
        let members: Vec<String> = (0..queries[0].len())
            .map(|at| format!("q[i].a{at}"))
            .collect();
        let types = queries[0]
            .iter()
            .enumerate()
            .map(|(at, (_, value))| match value {
                Value::Float(_) => format!("double a{at}; "),
                _ => format!("long long a{at}; "),
            });
        let types: String = types.collect();
        let rows: Vec<String> = queries
            .iter()
            .map(|sizes| format!("{{{}}}", literals(sizes)))
            .collect();
        let _ = write!(
            self.body,
            "  {{\n    static const struct {{ {types}}} q[] = {{{rows}}};\n\
             \x20   for (int i = 0; i < {count}; ++i) {{\n\
             \x20     const {kernel}_tuned_entry *e = {call};\n\
             \x20     unsigned valid = 0;\n\
             \x20     for (int j = 0; j < {upper}_TUNED_COUNT; ++j)\n\
             \x20       valid |= (unsigned)({kernel}_tuned_table[j].valid({arguments}) != 0) << j;\n\
             \x20     printf(\"%d %u\\n\", e ? (int)(e - {kernel}_tuned_table) : -1, valid);\n\
             \x20   }}\n  }}\n",
            upper = kernel.to_ascii_uppercase(),
            arguments = members.join(", "),
            rows = rows.join(", "),
            count = queries.len(),
            call = call(&members.join(", ")),
        );
        self.asked += 1;
    }

    /// The indices that the lookups answer; `None` where the compiler is missing.
    fn indices(&self, compiler: &[&str], name: &str) -> Option<Vec<i64>> {
        let answers = self.answers(compiler, name)?;
        Some(answers.iter().map(|answer| answer.index).collect())
    }

    /// The answers; `None` where the compiler is missing.
    pub(crate) fn answers(&self, compiler: &[&str], name: &str) -> Option<Vec<Answer>> {
        let file = self.directory.path().join(name);
        let text = format!(
            "{}int main(void) {{\n{}  return 0;\n}}\n",
            self.source, self.body
        );
        std::fs::write(&file, text).unwrap();
        let program = self.directory.path().join("program");
        let output = Command::new(compiler[0])
            .args(&compiler[1..])
            .args(["-Wall", "-Wextra", "-Werror", "-o"])
            .args([&program, &file])
            .output();
        let Ok(output) = output else {
            eprintln!("skipped: no {}", compiler[0]);
            return None;
        };
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{}",
            excerpt(&message, self.directory.path())
        );
        let run = Command::new(&program).output().unwrap();
        assert!(run.status.success(), "{:?}", run.status);
        let text = String::from_utf8(run.stdout).unwrap();
        let answer = |line: &str| {
            let (index, valid) = line.split_once(' ').unwrap();
            Answer {
                index: index.parse().unwrap(),
                valid: valid.parse().unwrap(),
            }
        };
        Some(text.lines().map(answer).collect())
    }
}

fn excerpt(message: &str, directory: &Path) -> String {
    let text: String = message.chars().take(3000).collect();
    text + &directory.display().to_string()
}

/// The compilers, with traps for all that C leaves undefined.
pub(crate) const CHECKED: &[&str] = &[
    "gcc",
    "-std=c11",
    "-pedantic",
    "-fsanitize=undefined,float-cast-overflow,float-divide-by-zero",
    "-fsanitize-undefined-trap-on-error",
];

/// An attention kernel whose tile is chosen for `D` of 64 and would take 65,536 bytes at 128.
fn attention() -> Vec<Made> {
    let made = |d: i64, tile: i64| Made {
        sizes: named(&[("S", 1024), ("D", d)]),
        config: named(&[("TILE", tile)]),
        derived: vec![("SHARED_BYTES".to_owned(), "4 * TILE * D".to_owned())],
        rules: vec!["SHARED_BYTES <= DEVICE_SHARED_BYTES".to_owned()],
    };
    vec![made(64, 128), made(32, 64)]
}

#[tokio::test]
async fn an_entry_that_breaks_a_rule_for_the_sizes_asked_is_not_returned() {
    let made = attention();
    let queries = [
        named(&[("S", 1024), ("D", 64)]),
        // 65,536 bytes with the nearest entry; 32,768 with the other.
        named(&[("S", 1024), ("D", 128)]),
        // More than there is with both.
        named(&[("S", 1024), ("D", 1024)]),
    ];
    let mut program = Program::new().await;
    program.add(&made, &queries, queries.len());
    for (compiler, name) in [(C11, "use.c"), (CPP17, "use.cpp"), (CHECKED, "checked.c")] {
        if let Some(answers) = program.indices(compiler, name) {
            assert_eq!(answers, [0, 1, -1]);
        }
    }
}

#[tokio::test]
async fn a_header_with_rules_for_sizes_is_read_back() {
    let header = export::header("attention", &entries(&stored().await, &attention())).unwrap();
    let shipped = export::read_shipped(&header, "attention_tuned.h").unwrap();
    let read: Vec<_> = shipped
        .iter()
        .map(|s| (s.problem.as_str(), &s.config))
        .collect();
    let (first, second) = (named(&[("TILE", 128)]), named(&[("TILE", 64)]));
    assert_eq!(read, [("p0", &first), ("p1", &second)], "{header}");
}

#[tokio::test]
async fn nvrtc_evaluates_the_rules_too() {
    let header = export::header("attention", &entries(&stored().await, &attention())).unwrap();
    let kernel = format!(
        "static_assert(attention_tuned_lookup(\"{DEVICE}\", 1024, 128)->config.tile == 64, \"\");\n\
         static_assert(attention_tuned_lookup(\"{DEVICE}\", 1024, 1024) == nullptr, \"\");\n\
         extern \"C\" __global__ void copy(int *o, int d) {{\n\
         \x20 o[0] = attention_tuned_lookup(\"{DEVICE}\", 1024, d) != nullptr;\n\
         }}\n"
    );
    match nvrtc(&header, &kernel, "-DUNUSED") {
        None => eprintln!("skipped: no NVRTC"),
        Some(outcome) => assert!(outcome.is_ok(), "{outcome:?}"),
    }
}

#[tokio::test]
async fn a_rule_that_c_cannot_state_is_kept_by_the_entrys_own_sizes_only() {
    let made = [Made {
        sizes: named(&[("S", 1024), ("D", 64)]),
        config: named(&[("TILE", 64)]),
        derived: Vec::new(),
        rules: vec!["D ** 0.5 <= TILE".to_owned(), "S >= TILE".to_owned()],
    }];
    let entries = entries(&stored().await, &made);
    let told = export::own_sizes_only("k0", &entries).unwrap();
    assert_eq!(
        told,
        [
            "p0 on a GPU: returned for its own sizes only, because C cannot state \
             `D ** 0.5 <= TILE` (only whole numbers can be raised to a power, to the fourth at most)"
        ]
    );
    let header = export::header("k0", &entries).unwrap();
    assert!(header.contains("For the tuned sizes only"), "{header}");
    let queries = [
        named(&[("S", 2048), ("D", 64)]),
        named(&[("S", 2048), ("D", 65)]),
        named(&[("S", 32), ("D", 64)]),
    ];
    let mut program = Program::new().await;
    program.add(&made, &queries, 0);
    for (compiler, name) in [(CHECKED, "own.c"), (CPP17, "own.cpp")] {
        if let Some(answers) = program.indices(compiler, name) {
            assert_eq!(answers, [0, -1, -1]);
        }
    }
}

#[tokio::test]
async fn sizes_with_the_names_of_the_headers_variables_are_told_apart() {
    let made = [Made {
        sizes: named(&[("I", 16), ("V0", 8), ("V", 4), ("ENTRY", 2), ("DEVICE", 3)]),
        config: named(&[("v1", 2)]),
        derived: vec![("TWICE".to_owned(), "I * V0 + V".to_owned())],
        rules: vec!["TWICE % 1000 + TWICE + ENTRY * DEVICE < 400 and v1 < V".to_owned()],
    }];
    let queries = [
        made[0].sizes.clone(),
        named(&[("I", 20), ("V0", 8), ("V", 4), ("ENTRY", 2), ("DEVICE", 3)]),
        named(&[("I", 40), ("V0", 8), ("V", 4), ("ENTRY", 2), ("DEVICE", 3)]),
        named(&[("I", 16), ("V0", 8), ("V", 2), ("ENTRY", 2), ("DEVICE", 3)]),
    ];
    let mut program = Program::new().await;
    program.add(&made, &queries, queries.len());
    for (compiler, name) in [(CHECKED, "names.c"), (CPP17, "names.cpp")] {
        if let Some(answers) = program.indices(compiler, name) {
            assert_eq!(answers, [0, 0, -1, -1]);
        }
    }
}
