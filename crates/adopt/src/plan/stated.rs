//! Launch and sizes that the user states.

use super::{AdoptError, Plan, Settings};
use crate::expr::Expr;
use crate::host::Host;
use crate::tree::Source;
use crate::unit::Unit;
use std::path::Path;
use std::str::FromStr;
use tuner_kernel::catalog::shown;

/// A launch as the user states it: expressions of sizes, in C++ notation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatedLaunch {
    /// Blocks in x, y, z.
    pub grid: Vec<String>,
    /// Threads a block in x, y, z.
    pub block: Vec<String>,
    /// Dynamic shared memory a block, bytes.
    pub shared: Option<String>,
}

/// Parts of a stated launch.
const PARTS: [&str; 3] = ["grid", "block", "shared"];

impl FromStr for StatedLaunch {
    type Err = String;

    /// Reads `grid=(X, Y, Z) block=(X, Y, Z) shared=BYTES`, in any order, `shared` where needed.
    ///
    /// # Errors
    /// Returns what is expected.
    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = || {
            format!(
                "write 'grid=(X, Y, Z) block=(X, Y, Z)' with one to three expressions each, and \
                 shared=BYTES where the kernel needs it; found `{text}`"
            )
        };
        let mut parts: [Option<Vec<String>>; 3] = Default::default();
        for (name, value) in assignments(text).ok_or_else(wanted)? {
            let at = PARTS.iter().position(|part| *part == name);
            let part = at.and_then(|at| parts.get_mut(at)).ok_or_else(wanted)?;
            let values = elements(value).ok_or_else(wanted)?;
            if part.replace(values).is_some() {
                return Err(wanted());
            }
        }
        let [grid, block, shared] = parts;
        let shared = match shared.as_deref() {
            None => None,
            Some([only]) => Some(only.clone()),
            Some(_) => return Err(wanted()),
        };
        Ok(Self {
            grid: grid.ok_or_else(wanted)?,
            block: block.ok_or_else(wanted)?,
            shared,
        })
    }
}

/// Splits at the names before `=` outside parentheses.
fn assignments(text: &str) -> Option<Vec<(&str, &str)>> {
    let mut found: Vec<(&str, &str)> = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (name, value) = rest.split_once('=')?;
        let mut depth = 0_i64;
        let mut end = value.len();
        for (at, character) in value.char_indices() {
            match character {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            let next = value.get(at..).unwrap_or_default().trim_start();
            let begins = |part: &&str| {
                let behind = next.strip_prefix(*part);
                behind.is_some_and(|behind| behind.trim_start().starts_with('='))
            };
            if depth == 0 && character.is_whitespace() && PARTS.iter().any(begins) {
                end = at;
                break;
            }
        }
        let (value, behind) = value.split_at_checked(end)?;
        found.push((name.trim(), value.trim()));
        rest = behind.trim_start();
    }
    Some(found)
}

/// Splits `(a, b)` or `a` at the commas outside parentheses into one to three expressions.
fn elements(text: &str) -> Option<Vec<String>> {
    let mut depth = 0_i64;
    let mut closes_early = false;
    let mut commas = Vec::new();
    for (at, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth <= 1 => commas.push((at, depth)),
            _ => {}
        }
        closes_early |= depth == 0 && at + 1 < text.len();
        if depth < 0 {
            return None;
        }
    }
    let enclosed = text.starts_with('(') && !closes_early;
    let level = i64::from(enclosed);
    let mut starts = vec![usize::from(enclosed)];
    let mut ends: Vec<usize> = Vec::new();
    for (at, depth) in commas {
        if depth == level {
            ends.push(at);
            starts.push(at + 1);
        }
    }
    ends.push(text.len() - usize::from(enclosed));
    let parts = starts.into_iter().zip(ends);
    let parts: Option<Vec<String>> = parts
        .map(|(start, end)| Some(text.get(start..end)?.trim().to_owned()))
        .collect();
    // An assignment is a part with an unknown name.
    let is_assigned = |part: &String| {
        let compared = ["==", "<=", ">=", "!="];
        let rest = compared
            .iter()
            .fold(part.clone(), |part, each| part.replace(each, " "));
        rest.contains('=')
    };
    parts.filter(|all| {
        let is_expression = |part: &String| !part.is_empty() && !is_assigned(part);
        depth == 0 && (1..=3).contains(&all.len()) && all.iter().all(is_expression)
    })
}

impl Plan {
    /// Takes the launch and the sizes that the user states in place of guesses.
    pub(crate) fn state(&mut self, unit: &Unit, settings: &Settings<'_>) -> Result<(), AdoptError> {
        for (name, value) in settings.sizes {
            match self.sizes.iter_mut().find(|(known, _)| known == name) {
                Some(size) => size.1 = Some(*value),
                None => self.sizes.push((name.clone(), Some(*value))),
            }
        }
        let Some(launch) = settings.launch else {
            return Ok(());
        };
        let mut host = Host::new(unit);
        let all = |plan: &Self, texts: &[String], host: &mut Host<'_>| {
            let each = texts.iter().map(|text| plan.stated(text, host));
            each.collect::<Result<Vec<Expr>, AdoptError>>()
        };
        self.grid = all(self, &launch.grid, &mut host)?;
        self.block = all(self, &launch.block, &mut host)?;
        self.guessed_launch.retain(|part| *part == "shared");
        if let Some(shared) = &launch.shared {
            self.shared = Some(self.stated(shared, &mut host)?);
            self.guessed_launch.clear();
        }
        self.only_used_sizes();
        let unused = settings.sizes.iter().find(|(name, _)| {
            let is_field = self.arguments.iter().any(|argument| {
                let field = name.strip_prefix(argument.name.as_str());
                field.is_some_and(|field| field.starts_with('_'))
            });
            !is_field && self.sizes.iter().all(|(known, _)| known != name)
        });
        match unused {
            Some((name, _)) => Err(self.refused(format!("it has no size `{name}`"))),
            None => Ok(()),
        }
    }

    /// Notes the command that states a guessed launch.
    pub(crate) fn ask_for_launch(&mut self, settings: &Settings<'_>) {
        if !self.guesses_launch() {
            return;
        }
        let list = |all: &[Expr]| {
            let each: Vec<String> = all.iter().map(Expr::to_string).collect();
            each.join(", ")
        };
        self.notes.push(format!(
            "{} guessed: hazards are not judged; state the launch of your program: tuner adopt {} \
             --kernel {} --force --launch 'grid=({}) block=({})'",
            match self.guessed_launch.as_slice() {
                [only] => format!("the {only} is"),
                all => format!("{} are", all.join(" and ")),
            },
            shown(settings.file),
            self.kernel,
            list(&self.grid).replace("//", "/"),
            list(&self.block).replace("//", "/"),
        ));
    }

    /// Reports whether the grid or the block is a guess: too little shared memory is found out, and too
    /// much does no harm.
    pub(crate) fn guesses_launch(&self) -> bool {
        self.guessed_launch.iter().any(|part| *part != "shared")
    }

    /// Translates a stated expression of sizes, parameters and the file's constants.
    fn stated(&self, text: &str, host: &mut Host<'_>) -> Result<Expr, AdoptError> {
        let sizes = self.sizes.iter().map(|(name, _)| name);
        let names = sizes.chain(self.parameters.iter().map(|each| &each.name));
        let mut values: Vec<(String, Expr)> = names
            .map(|name| (name.clone(), Expr::Name(name.clone())))
            .collect();
        // A size has another name than the argument where the name is reserved.
        for argument in &self.arguments {
            if let Some(value @ Expr::Name(_)) = &argument.value {
                values.push((argument.name.clone(), value.clone()));
            }
        }
        let whole = format!("int tuner_value = {text};");
        let source = Source::parse(Path::new(""), String::new(), whole);
        // The parser leaves out what it cannot read.
        let is_read = source.is_some_and(|source| !source.tree().root_node().has_error());
        let value = is_read.then(|| host.snippet(None, text, &values, 0));
        value
            .flatten()
            .map(|value| value.floored())
            .ok_or_else(|| self.refused(format!("`{text}` of --launch cannot be read")))
    }

    fn refused(&self, why: String) -> AdoptError {
        let names: Vec<&str> = self.sizes.iter().map(|(name, _)| name.as_str()).collect();
        let known = match names.as_slice() {
            [] => "it has no sizes yet".to_owned(),
            names => format!("its sizes are {}", names.join(", ")),
        };
        AdoptError::Unsupported {
            kernel: self.kernel.clone(),
            why,
            help: format!(
                "{known}; write whole-number expressions of them, such as ceil_div(n, 256), and \
                 give every other name that --launch uses a value: --size NAME=VALUE"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::StatedLaunch;

    #[test]
    fn a_launch_is_read_in_any_order_and_with_calls_inside() {
        let read: StatedLaunch =
            "block=(32, 8) grid=(ceil_div(w, 32), (h + 7) / 8, 1) shared=(w+1)*4"
                .parse()
                .unwrap();
        assert_eq!(read.grid, ["ceil_div(w, 32)", "(h + 7) / 8", "1"]);
        assert_eq!(read.block, ["32", "8"]);
        assert_eq!(read.shared.as_deref(), Some("(w+1)*4"));
        let plain: StatedLaunch = "grid=ceil_div(n, 256) block=256".parse().unwrap();
        assert_eq!(plain.grid, ["ceil_div(n, 256)"]);
        assert_eq!(plain.block, ["256"]);
    }

    #[test]
    fn other_texts_are_refused_with_the_form() {
        for text in [
            "",
            "grid=(1)",
            "block=(1)",
            "grid=() block=(1)",
            "grid=(1,2,3,4) block=(1)",
            "grid=(1 block=(1)",
            "grid=1) block=(1)",
            "grid=(1) grid=(1) block=(1)",
            "grid=(1) block=(1) cluster=(1)",
            "grid=(1) block=(1) shared=(1, 2)",
            "<<<1, 2>>>",
        ] {
            let refused = text.parse::<StatedLaunch>().unwrap_err();
            assert!(refused.contains("grid=(X, Y, Z)"), "{text}: {refused}");
        }
    }
}
