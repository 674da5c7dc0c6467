//! From the tree of a file to its sections, all errors of form collected.

use super::de::{Spanned, from_node};
use super::node::{Kind, Node};
use super::schema::{Bare, Document, Ordered};
use crate::Diagnostic;
use crate::expr::suggest;
use serde::Deserialize;

/// The keys of a kernel's file, in the order of the format.
pub(super) const KEYS: [&str; 17] = [
    "version",
    "kernel",
    "summary",
    "source",
    "problems",
    "check_problems",
    "parameters",
    "derived",
    "constraints",
    "arguments",
    "launches",
    "reference",
    "gate",
    "metric",
    "seeds",
    "compile",
    "baseline",
];

const BARE_KEYS: [&str; 5] = ["version", "name", "parameters", "derived", "constraints"];

/// Reads a kernel's file.
pub(super) fn document(node: &Node, source: &str) -> Result<Document, Vec<Diagnostic>> {
    let mut sections = Sections::new(node, source, &KEYS)?;
    let version: Option<Spanned<u64>> = sections.required("version");
    let kernel = sections.required("kernel");
    let summary = sections.optional("summary");
    let file = sections.required("source");
    let problems = sections.named("problems", true);
    let check_problems = sections.named("check_problems", false);
    let parameters = sections.named("parameters", true);
    let derived = sections.named("derived", false);
    let constraints = sections.listed("constraints", false);
    let arguments = sections.listed("arguments", true);
    let launches = sections.listed("launches", true);
    let reference = sections.required("reference");
    let gate = sections.optional("gate");
    let metric = sections.optional("metric");
    let seeds = sections.listed("seeds", false);
    let compile = sections.optional("compile");
    let baseline = sections.optional("baseline");
    sections.version(version.as_ref());
    if !sections.errors.is_empty() {
        return Err(sections.errors);
    }
    let parts = (version, kernel, file, problems, parameters);
    let rest = (arguments, launches, reference);
    let ((Some(version), Some(kernel), Some(file), Some(problems), Some(parameters)), rest) =
        (parts, rest)
    else {
        return Err(sections.errors);
    };
    let (Some(arguments), Some(launches), Some(reference)) = rest else {
        return Err(sections.errors);
    };
    Ok(Document {
        version,
        kernel,
        summary,
        source: file,
        problems,
        check_problems,
        parameters,
        derived,
        constraints,
        arguments,
        launches,
        reference,
        gate,
        metric,
        seeds,
        compile,
        baseline,
    })
}

/// Reads a file of parameters and constraints only.
pub(super) fn bare(node: &Node, source: &str) -> Result<Bare, Vec<Diagnostic>> {
    let mut sections = Sections::new(node, source, &BARE_KEYS)?;
    let version: Option<Spanned<u64>> = sections.optional("version");
    let name = sections.optional("name");
    let parameters = sections.named("parameters", true);
    let derived = sections.named("derived", false);
    let constraints = sections.listed("constraints", false);
    sections.version(version.as_ref());
    match parameters {
        Some(parameters) if sections.errors.is_empty() => Ok(Bare {
            version,
            name,
            parameters,
            derived,
            constraints,
        }),
        _ => Err(sections.errors),
    }
}

/// Whether the tree is a bare space: it has parameters, and nothing of a kernel.
pub(super) fn is_bare(node: &Node) -> bool {
    has_any(node, &["parameters"]) && !is_kernel(node)
}

/// Whether the tree says anything of a kernel.
pub(super) fn is_kernel(node: &Node) -> bool {
    has_any(node, &["kernel", "source", "launches", "arguments"])
}

fn has_any(node: &Node, keys: &[&str]) -> bool {
    let Kind::Map(entries) = &node.kind else {
        return false;
    };
    let wanted = |key: &Node| keys.iter().any(|wanted| is_key(key, wanted));
    entries.iter().any(|(key, _)| wanted(key))
}

fn is_key(node: &Node, wanted: &str) -> bool {
    matches!(&node.kind, Kind::Text(text) if **text == *wanted)
}

struct Sections<'n> {
    entries: &'n [(Node, Node)],
    source: &'n str,
    errors: Vec<Diagnostic>,
}

impl<'n> Sections<'n> {
    fn new(node: &'n Node, source: &'n str, keys: &[&str]) -> Result<Self, Vec<Diagnostic>> {
        let entries = match &node.kind {
            Kind::Map(entries) => entries,
            Kind::Null => return Err(vec![Diagnostic::of_file("the file is empty")]),
            _ => {
                let error = Diagnostic::new("expected a mapping of keys to values", node.span());
                return Err(vec![error.help("begin with `version: 1`")]);
            }
        };
        let mut errors = Vec::new();
        for (key, _) in entries {
            if !keys.iter().any(|known| is_key(key, known)) {
                let name = &source[key.span()];
                let error = Diagnostic::new(format!("unknown key `{name}`"), key.span());
                errors.push(match suggest(name, keys.iter().copied()) {
                    Some(near) => error.help(format!("did you mean `{near}`?")),
                    None => error.help(format!("the keys here are {}", keys.join(", "))),
                });
            }
        }
        Ok(Self {
            entries,
            source,
            errors,
        })
    }

    /// The node of a key; an empty value counts as left out, unless the key is required.
    fn find(&mut self, key: &str, required: bool) -> Option<&'n Node> {
        let entries = self.entries;
        let found = entries.iter().find(|(known, _)| is_key(known, key));
        match found {
            Some((at, value)) if matches!(value.kind, Kind::Null) => {
                if required {
                    let error = Diagnostic::new(format!("`{key}` is empty"), at.span());
                    self.errors
                        .push(error.help("write its value behind it or below it"));
                }
                None
            }
            Some((_, value)) => Some(value),
            None => {
                if required {
                    self.errors.push(
                        Diagnostic::new(format!("the key `{key}` is missing"), 0..1)
                            .help(format!("add `{key}: …`")),
                    );
                }
                None
            }
        }
    }

    fn read<T: Deserialize<'n>>(&mut self, node: &'n Node) -> Option<T> {
        from_node(node, self.source)
            .map_err(|error| self.errors.push(error))
            .ok()
    }

    fn required<T: Deserialize<'n>>(&mut self, key: &str) -> Option<T> {
        let node = self.find(key, true)?;
        self.read(node)
    }

    fn optional<T: Deserialize<'n>>(&mut self, key: &str) -> Option<T> {
        let node = self.find(key, false)?;
        self.read(node)
    }

    /// A list, each element on its own.
    fn listed<T: Deserialize<'n>>(&mut self, key: &str, required: bool) -> Option<Vec<T>> {
        let node = self.find(key, required)?;
        match &node.kind {
            Kind::List(items) => Some(items.iter().filter_map(|item| self.read(item)).collect()),
            _ => {
                let error = Diagnostic::new(format!("`{key}` must be a list"), node.span());
                self.errors
                    .push(error.help("begin every element with `- `"));
                None
            }
        }
    }

    /// A mapping from names, each entry on its own.
    fn named<T: Deserialize<'n>>(&mut self, key: &str, required: bool) -> Option<Ordered<T>> {
        let node = self.find(key, required)?;
        let Kind::Map(entries) = &node.kind else {
            let error =
                Diagnostic::new(format!("`{key}` must be a mapping from names"), node.span());
            self.errors
                .push(error.help("write each entry as `NAME: …`"));
            return None;
        };
        let mut pairs = Vec::new();
        for (name, value) in entries {
            let name = Spanned {
                value: match &name.kind {
                    Kind::Text(text) => text.to_string(),
                    _ => self.source[name.span()].to_owned(),
                },
                at: name.span(),
            };
            if let Some(value) = self.read(value) {
                pairs.push((name, value));
            }
        }
        Some(Ordered(pairs))
    }

    fn version(&mut self, version: Option<&Spanned<u64>>) {
        if let Some(version) = version.filter(|version| version.value != 1) {
            self.errors.push(
                Diagnostic::new(
                    format!("version {} is not known to this program", version.value),
                    version.at.clone(),
                )
                .help("write `version: 1`"),
            );
        }
    }
}
