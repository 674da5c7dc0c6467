//! Launch and sizes specified by the user.

use super::{AdoptError, Plan, Settings};
use crate::expr::Expr;
use crate::host::{Host, initialised};
use crate::tree::words;
use crate::unit::Unit;
use std::str::FromStr;
use tuner_core::escape::shell;
use tuner_kernel::catalog::shown;

/// A user-specified launch: expressions of sizes, in C++ notation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatedLaunch {
    /// Blocks in x, y, z.
    pub grid: Vec<String>,
    /// Threads per block in x, y, z.
    pub block: Vec<String>,
    /// Dynamic shared memory a block, bytes.
    pub shared: Option<String>,
}

impl StatedLaunch {
    fn texts(&self) -> impl Iterator<Item = &String> {
        self.grid.iter().chain(&self.block).chain(&self.shared)
    }
}

/// Parts of a stated launch.
const PARTS: [&str; 3] = ["grid", "block", "shared"];

impl FromStr for StatedLaunch {
    type Err = String;

    /// Parses `grid=(X, Y, Z) block=(X, Y, Z) shared=BYTES`, in any order, `shared` if needed.
    ///
    /// # Errors
    /// The expected syntax.
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

/// Returns the characters outside parentheses; `None` if parentheses do not match.
fn outside(text: &str) -> Option<Vec<(usize, char)>> {
    let mut depth = 0_usize;
    let mut found = Vec::new();
    for (at, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1)?,
            _ if depth == 0 => found.push((at, character)),
            _ => {}
        }
    }
    (depth == 0).then_some(found)
}

/// Splits `NAME=VALUE NAME=VALUE` into names and values, from the last to the first.
fn assignments(text: &str) -> Option<Vec<(&str, &str)>> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    // `==`, `<=`, `>=` and `!=` compare.
    let assigns = |at: usize| {
        let before = text.get(..at).unwrap_or_default();
        let after = text.get(at + 1..).unwrap_or_default();
        !before.ends_with(['=', '<', '>', '!']) && !after.starts_with('=')
    };
    let mut found = Vec::new();
    let mut rest = text.trim_end();
    // From the last one: a value may contain spaces, so only the next name ends it.
    for (at, character) in outside(text)?.into_iter().rev() {
        if character == '=' && assigns(at) {
            let (head, value) = (rest.get(..at)?.trim_end(), rest.get(at + 1..)?);
            let (before, name) = head.split_at_checked(head.trim_end_matches(is_word).len())?;
            found.push((name, value.trim()));
            rest = before.trim_end();
        }
    }
    rest.is_empty().then_some(found)
}

/// Splits `(a, b)` or `a` at the commas outside parentheses into one to three expressions.
fn elements(text: &str) -> Option<Vec<String>> {
    let inner = text
        .strip_prefix('(')
        .and_then(|text| text.strip_suffix(')'));
    let text = inner
        // `(a) * (b)` begins and ends with parentheses of different pairs.
        .filter(|inner| outside(inner).is_some())
        .unwrap_or(text);
    let commas = outside(text)?;
    let commas = commas.iter().filter(|(_, character)| *character == ',');
    let mut start = 0;
    let mut parts = Vec::new();
    for end in commas.map(|(at, _)| *at).chain([text.len()]) {
        parts.push(text.get(start..end)?.trim().to_owned());
        start = end + 1;
    }
    let whole = (1..=3).contains(&parts.len()) && parts.iter().all(|part| !part.is_empty());
    whole.then_some(parts)
}

impl Plan {
    /// Applies the user's launch and sizes in place of guesses. Returns the sizes that can only be fields
    /// of a struct.
    pub(crate) fn state<'s>(
        &mut self,
        unit: &Unit,
        settings: &Settings<'s>,
    ) -> Result<Vec<&'s str>, AdoptError> {
        let texts = settings.launch.into_iter().flat_map(StatedLaunch::texts);
        let in_launch: Vec<&str> = texts.flat_map(|text| words(text)).collect();
        let mut fields = Vec::new();
        for (name, value) in settings.sizes {
            match self.sizes.iter_mut().find(|(known, _)| known == name) {
                Some(size) => size.1 = Some(*value),
                None => {
                    self.sizes.push((name.clone(), Some(*value)));
                    if !in_launch.contains(&name.as_str()) {
                        fields.push(name.as_str());
                    }
                }
            }
        }
        let Some(launch) = settings.launch else {
            return Ok(fields);
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
        Ok(fields)
    }

    /// Rejects a specified size that is not a field of a struct, now that the compiler has determined the
    /// types.
    pub(crate) fn check_fields(&mut self, fields: &[&str]) -> Result<(), AdoptError> {
        let values = self.arguments.iter().flat_map(|each| &each.composed);
        let known: Vec<&str> = values.flat_map(|value| words(value)).collect();
        match fields.iter().find(|name| !known.contains(name)) {
            Some(name) => {
                let why = format!("it has no size `{name}`");
                self.sizes.retain(|(known, _)| known != name);
                Err(self.refused(why))
            }
            None => Ok(()),
        }
    }

    /// Adds notes with the commands that specify a guessed launch, or read it from a run of a program.
    pub(crate) fn ask_for_launch(&mut self, unit: &Unit, settings: &Settings<'_>) {
        if !self.guesses_launch() {
            return;
        }
        let list = |all: &[Expr]| {
            let each: Vec<String> = all.iter().map(Expr::to_string).collect();
            each.join(", ")
        };
        let launch = format!("grid=({}) block=({})", list(&self.grid), list(&self.block));
        let file = shell(&shown(settings.file));
        let own = unit.file(0);
        let is_program = own.code(&(0..own.len())).contains("int main(");
        let name = settings.file.file_name().unwrap_or_default();
        let name = shell(&name.to_string_lossy());
        let run = shell(&format!("nvcc -lineinfo {name} -o app && ./app"));
        let captured = match is_program {
            true => format!(", or read it from a run: tuner adopt {file} --force --run {run}"),
            false => String::new(),
        };
        self.notes.push(format!(
            "{} guessed: hazards are not judged; state the launch of your program: tuner adopt {} \
             --kernel {} --force --launch {}{captured}",
            match self.guessed_launch.as_slice() {
                [only] => format!("the {only} is"),
                all => format!("{} are", all.join(" and ")),
            },
            file,
            self.kernel,
            // `--launch` is in the notation of C++, where `//` starts a comment.
            shell(&launch.replace("//", "/")),
        ));
    }

    /// Reports whether the grid or the block is a guess. Guessed shared memory does not count: too little
    /// is detected, and too much is harmless.
    pub(crate) fn guesses_launch(&self) -> bool {
        self.guessed_launch.iter().any(|part| *part != "shared")
    }

    /// Translates a user-specified expression of sizes, parameters and the file's constants.
    fn stated(&self, text: &str, host: &mut Host<'_>) -> Result<Expr, AdoptError> {
        let sizes = self.sizes.iter().map(|(name, _)| name);
        let names = sizes.chain(self.parameters.iter().map(|each| &each.name));
        let mut values: Vec<(String, Expr)> = names
            .map(|name| (name.clone(), Expr::Name(name.clone())))
            .collect();
        // A size has a different name than the argument if the name is reserved.
        for argument in &self.arguments {
            if let Some(value @ Expr::Name(_)) = &argument.value {
                values.push((argument.name.clone(), value.clone()));
            }
        }
        // The parser omits text that it cannot parse.
        let is_read =
            initialised(text).is_some_and(|source| !source.tree().root_node().has_error());
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
        let product: StatedLaunch = "grid=(a+1)*(b+1) block=(n<=64?64:128)".parse().unwrap();
        assert_eq!(product.grid, ["(a+1)*(b+1)"]);
        assert_eq!(product.block, ["n<=64?64:128"]);
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
            "2 grid=(1) block=(1)",
            "grid=(1)(2) block=(1,)",
            "<<<1, 2>>>",
        ] {
            let refused = text.parse::<StatedLaunch>().unwrap_err();
            assert!(refused.contains("grid=(X, Y, Z)"), "{text}: {refused}");
        }
    }
}
