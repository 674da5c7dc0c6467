//! One kernel of the suite: the `//@` header and the line marks of a `.cu` file.
//!
//! ```text
//! // What the kernel does, in a sentence.
//! //@ verdict race|deadlock            wrong kernels: any of these; right ones have none
//! //@ also uninitialized               a hazard of lower precedence that comes with it
//! //@ arch sm_90                       default sm_80
//! //@ options --use_fast_math
//! //@ allow same_value_writes
//! //@ keep variables                  a run finds the module's variables as the run before left them
//! //@ tolerance 1e-5                   relative and absolute, default 0
//! //@ launch NAME grid 2,1,1 block 64 shared 256 cluster 2
//! //@ arg x f32[256] input arange      inputs and `inout` have a fill; `output` and `scratch` none
//! //@ arg n i32 256                    a scalar
//! //@ map m x 64,32 box 64,8 swizzle 128   a tensor map of a buffer before it, innermost first
//! //@ expect y = gemm(a, b, 16, 16, 16)
//! ```
//! `#include "…"` names a file from the kernel's folder on. `// HAZARD` ends the line a hazard must name, `// CONFLICT` the line it may conflict with, and
//! `// WARNING` each line that a right kernel is warned of.

use std::collections::BTreeSet;
use std::path::Path;

use tuner_kernel::compile::{Header, included_names};

use super::data::{Fill, Type};

/// What the kernel may do with an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Input,
    Output,
    Scratch,
    Inout,
}

#[derive(Debug, Clone)]
pub(crate) enum ArgKind {
    Scalar(f64),
    Buffer {
        length: usize,
        role: Role,
        fill: Option<Fill>,
    },
    Map(MapSpec),
}

/// A tensor map of a buffer.
#[derive(Debug, Clone, Default)]
pub(crate) struct MapSpec {
    pub(crate) of: String,
    pub(crate) sizes: Vec<u64>,
    pub(crate) boxes: Vec<u32>,
    /// 0, 32, 64 or 128.
    pub(crate) swizzle: u32,
    /// Corners of an im2col map, width first.
    pub(crate) lower: Vec<i32>,
    pub(crate) upper: Vec<i32>,
}

#[derive(Debug, Clone)]
pub(crate) struct ArgSpec {
    pub(crate) name: String,
    pub(crate) element: Type,
    pub(crate) kind: ArgKind,
}

#[derive(Debug, Clone)]
pub(crate) struct LaunchSpec {
    pub(crate) entry: String,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared: u32,
    /// Registers that the launch allocates for a thread; 0: not known.
    pub(crate) registers: u32,
    /// Blocks of a cluster, where the launch names them.
    pub(crate) cluster: Option<[u32; 3]>,
}

/// `output = function(parameters)`.
#[derive(Debug, Clone)]
pub(crate) struct Expect {
    pub(crate) output: String,
    pub(crate) function: String,
    pub(crate) parameters: Vec<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) headers: Vec<Header>,
    pub(crate) summary: String,
    pub(crate) verdicts: Vec<String>,
    pub(crate) also: Vec<String>,
    pub(crate) arch: String,
    pub(crate) options: Vec<String>,
    pub(crate) same_value_writes_allowed: bool,
    pub(crate) keeps_variables: bool,
    pub(crate) tolerance: f64,
    pub(crate) launches: Vec<LaunchSpec>,
    pub(crate) args: Vec<ArgSpec>,
    pub(crate) expect: Option<Expect>,
    pub(crate) hazard_lines: BTreeSet<u32>,
    pub(crate) conflict_lines: BTreeSet<u32>,
    pub(crate) warning_lines: BTreeSet<u32>,
}

impl Case {
    pub(crate) fn read(path: &Path) -> Result<Case, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let name = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let headers = headers(path.parent().unwrap_or(path), &text)?;
        let case = Case::parse(&name, text).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Case { headers, ..case })
    }

    fn parse(name: &str, text: String) -> Result<Case, String> {
        let mut case = Case {
            name: name.to_owned(),
            summary: text
                .lines()
                .next()
                .unwrap_or_default()
                .trim_start_matches("// ")
                .to_owned(),
            verdicts: Vec::new(),
            also: Vec::new(),
            arch: "sm_80".to_owned(),
            options: Vec::new(),
            same_value_writes_allowed: false,
            keeps_variables: false,
            tolerance: 0.0,
            launches: Vec::new(),
            args: Vec::new(),
            expect: None,
            hazard_lines: marked(&text, "// HAZARD"),
            conflict_lines: marked(&text, "// CONFLICT"),
            warning_lines: marked(&text, "// WARNING"),
            text: String::new(),
            headers: Vec::new(),
        };
        for (number, line) in text.lines().enumerate() {
            if let Some(directive) = line.strip_prefix("//@ ") {
                case.directive(directive)
                    .map_err(|e| format!("line {}: {e}", number + 1))?;
            }
        }
        case.text = text;
        case.complete()
    }

    fn complete(self) -> Result<Case, String> {
        if self.launches.is_empty() {
            return Err("no `//@ launch`".to_owned());
        }
        if self.verdicts.is_empty() && !self.hazard_lines.is_empty() {
            return Err("a right kernel has no `// HAZARD`".to_owned());
        }
        Ok(self)
    }

    fn directive(&mut self, directive: &str) -> Result<(), String> {
        let (key, rest) = directive.split_once(' ').unwrap_or((directive, ""));
        let words: Vec<&str> = rest.split_whitespace().collect();
        match key {
            "verdict" => self.verdicts = rest.split('|').map(str::to_owned).collect(),
            "also" => self.also.extend(words.iter().map(|&w| w.to_owned())),
            "arch" => self.arch = rest.to_owned(),
            "options" => self.options = words.iter().map(|&w| w.to_owned()).collect(),
            "keep" if rest == "variables" => self.keeps_variables = true,
            "allow" if rest == "same_value_writes" => self.same_value_writes_allowed = true,
            "tolerance" => self.tolerance = number(rest)?,
            "launch" => self.launches.push(launch(&words)?),
            "arg" => self.args.push(argument(&words)?),
            "map" => self.args.push(map(&words)?),
            "expect" => self.expect = Some(expectation(rest)?),
            _ => return Err(format!("unknown directive `{directive}`")),
        }
        Ok(())
    }
}

/// The files that a kernel includes by their names.
fn headers(folder: &Path, text: &str) -> Result<Vec<Header>, String> {
    let names = included_names(text).into_iter();
    let own = names.filter_map(|(name, quoted)| quoted.then_some(name));
    let header = |name: String| {
        let path = folder.join(&name);
        let text = std::fs::read_to_string(&path);
        Ok(Header {
            spelled: name,
            path: path.display().to_string(),
            text: text.map_err(|e| format!("{}: {e}", path.display()))?,
        })
    };
    own.map(header).collect()
}

fn marked(text: &str, mark: &str) -> BTreeSet<u32> {
    (1..)
        .zip(text.lines())
        .filter(|(_, line)| line.ends_with(mark))
        .map(|(number, _)| number)
        .collect()
}

fn number(word: &str) -> Result<f64, String> {
    word.parse()
        .map_err(|_| format!("`{word}` is not a number"))
}

fn dimensions(word: &str) -> Result<[u32; 3], String> {
    let mut dims = [1; 3];
    for (dim, part) in dims.iter_mut().zip(word.split(',')) {
        *dim = part
            .parse()
            .map_err(|_| format!("`{word}` is no list of dimensions"))?;
    }
    Ok(dims)
}

fn launch(words: &[&str]) -> Result<LaunchSpec, String> {
    let [entry, pairs @ ..] = words else {
        return Err("`launch` needs an entry".to_owned());
    };
    let mut spec = LaunchSpec {
        entry: (*entry).to_owned(),
        grid: [1; 3],
        block: [1; 3],
        shared: 0,
        registers: 0,
        cluster: None,
    };
    for pair in pairs.chunks(2) {
        match pair {
            ["grid", value] => spec.grid = dimensions(value)?,
            ["block", value] => spec.block = dimensions(value)?,
            ["shared", value] => spec.shared = dimensions(value)?[0],
            ["cluster", value] => spec.cluster = Some(dimensions(value)?),
            ["registers", value] => spec.registers = dimensions(value)?[0],
            _ => return Err(format!("`launch` does not know {pair:?}")),
        }
    }
    Ok(spec)
}

fn argument(words: &[&str]) -> Result<ArgSpec, String> {
    let [name, shape, rest @ ..] = words else {
        return Err("`arg` needs a name and a type".to_owned());
    };
    let (element, length) = match shape.split_once('[') {
        Some((element, length)) => (element, Some(length.trim_end_matches(']'))),
        None => (*shape, None),
    };
    let element = Type::named(element)?;
    let kind = match (length, rest) {
        (None, [value]) => ArgKind::Scalar(number(value)?),
        (Some(length), [role, fill @ ..]) => {
            let length = length
                .parse()
                .map_err(|_| format!("`{length}` is not a length"))?;
            let role = match *role {
                "input" => Role::Input,
                "output" => Role::Output,
                "scratch" => Role::Scratch,
                "inout" => Role::Inout,
                other => return Err(format!("unknown role `{other}`")),
            };
            let fill = match role {
                Role::Input | Role::Inout => Some(Fill::parse(fill)?),
                Role::Output | Role::Scratch => None,
            };
            ArgKind::Buffer { length, role, fill }
        }
        _ => return Err(format!("`arg {}` is incomplete", words.join(" "))),
    };
    Ok(ArgSpec {
        name: (*name).to_owned(),
        element,
        kind,
    })
}

fn map(words: &[&str]) -> Result<ArgSpec, String> {
    let [name, of, sizes, pairs @ ..] = words else {
        return Err("`map` needs a name, a buffer and sizes".to_owned());
    };
    let mut spec = MapSpec {
        of: (*of).to_owned(),
        sizes: list(sizes)?,
        ..MapSpec::default()
    };
    for pair in pairs.chunks(2) {
        match pair {
            ["box", value] => spec.boxes = list(value)?,
            ["swizzle", value] => spec.swizzle = number(value)? as u32,
            ["lower", value] => spec.lower = list(value)?,
            ["upper", value] => spec.upper = list(value)?,
            _ => return Err(format!("`map` does not know {pair:?}")),
        }
    }
    Ok(ArgSpec {
        name: (*name).to_owned(),
        element: Type::U8,
        kind: ArgKind::Map(spec),
    })
}

fn list<T: std::str::FromStr>(word: &str) -> Result<Vec<T>, String> {
    let parts = word.split(',').map(str::parse);
    let numbers: Result<Vec<T>, _> = parts.collect();
    numbers.map_err(|_| format!("`{word}` is no list of numbers"))
}

fn expectation(text: &str) -> Result<Expect, String> {
    let wrong = || format!("`{text}` is not `output = function(parameters)`");
    let (output, call) = text.split_once(" = ").ok_or_else(wrong)?;
    let (function, parameters) = call
        .strip_suffix(')')
        .and_then(|call| call.split_once('('))
        .ok_or_else(wrong)?;
    Ok(Expect {
        output: output.to_owned(),
        function: function.to_owned(),
        parameters: parameters
            .split(',')
            .map(|p| p.trim().to_owned())
            .filter(|p| !p.is_empty())
            .collect(),
    })
}
