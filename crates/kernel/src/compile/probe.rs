//! Probes: compiles that query the compiler's front end about a source, without code.
//!
//! A query is text after the candidate's own, which instantiates kernels whose mangled names contain the
//! answer. It is compiled to PTX without optimisation, and only the names and positions of the kernels are
//! kept. Candidates themselves are compiled as usual.

use super::compiler::Compiler;
use super::error::CompileError;
use super::image::RawStatus;
use super::options;
use super::render::Source;
use super::resources::messages_of;

/// A kernel in the code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbedKernel {
    /// Its name in the assembler.
    pub name: String,
    /// File and line of its name in the source, if the compiler reports them.
    pub place: Option<(String, usize)>,
}

/// Answer to a query.
#[derive(Debug, Clone)]
pub enum Probe {
    /// The resulting kernels.
    Kernels(Vec<ProbedKernel>),
    /// The source or the query does not compile.
    Refused {
        /// The compiler's messages.
        log: String,
    },
    /// The compiler did not end, grew too large or crashed.
    GaveUp {
        /// The reason.
        why: String,
    },
}

impl Compiler {
    /// Compiles a source with a query appended; answers are cached like candidates.
    ///
    /// # Errors
    /// Only failures of the tuner's tools.
    pub fn probe(&self, source: &Source, question: &str) -> Result<Probe, CompileError> {
        let mut asked = source.clone();
        asked.text = format!("{}\n{question}", source.text);
        asked.options = options::front_end(&source.options, &source.arch);
        let plain = asked.options.clone();
        asked.options.push("--device-debug".to_owned());
        match self.ask(&asked)? {
            // An option that debugging excludes, or code that compiles only with optimisation.
            Probe::Refused { .. } => {
                asked.options = plain;
                self.ask(&asked)
            }
            answer => Ok(answer),
        }
    }

    fn ask(&self, asked: &Source) -> Result<Probe, CompileError> {
        let shorten = |ptx: Vec<u8>| shortened(&String::from_utf8_lossy(&ptx)).into_bytes();
        let result = match self.raw(asked, shorten)? {
            Ok(result) => result,
            Err(failed) => return Ok(Probe::GaveUp { why: failed.detail }),
        };
        match result.head.status {
            RawStatus::Compiled => Ok(Probe::Kernels(kernels(&String::from_utf8_lossy(
                &result.ptx,
            )))),
            RawStatus::Refused => Ok(Probe::Refused {
                log: messages_of(&result.head.log),
            }),
            RawStatus::OutOfMemory => Ok(Probe::GaveUp {
                why: "the compiler ran out of memory".to_owned(),
            }),
            RawStatus::Broken => Err(CompileError::new(result.head.log)),
        }
    }
}

/// Keeps the lines that name kernels and files, and the first line number of each kernel.
fn shortened(ptx: &str) -> String {
    let mut out = String::new();
    let mut wanted = false;
    for line in ptx.lines().map(str::trim) {
        let is_entry = line.contains(".entry ");
        let is_place = wanted && line.starts_with(".loc");
        if is_entry || is_place || line.starts_with(".file") {
            out.push_str(line);
            out.push('\n');
        }
        wanted = is_entry || (wanted && !is_place);
    }
    out
}

/// Parses the result of [`shortened`].
fn kernels(text: &str) -> Vec<ProbedKernel> {
    let mut files: Vec<(&str, &str)> = Vec::new();
    let mut found: Vec<(String, Option<(&str, usize)>)> = Vec::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        if let Some((_, rest)) = line.split_once(".entry ") {
            let name = rest.split(['(', ' ', '\t']).next().unwrap_or_default();
            found.push((name.to_owned(), None));
        } else if line.starts_with(".file") {
            let number = words.nth(1).unwrap_or_default();
            let path = line.split('"').nth(1).unwrap_or_default();
            files.push((number, path));
        } else if line.starts_with(".loc")
            && let (Some(number), Some(at)) = (words.nth(1), words.next())
            && let (Some(last), Ok(at)) = (found.last_mut(), at.parse())
        {
            last.1 = Some((number, at));
        }
    }
    let path = |number: &str| {
        let known = files.iter().find(|(known, _)| *known == number);
        known.map(|(_, path)| (*path).to_owned())
    };
    found
        .into_iter()
        .map(|(name, place)| ProbedKernel {
            name,
            place: place.and_then(|(number, line)| Some((path(number)?, line))),
        })
        .collect()
}

#[cfg(test)]
mod tests;
