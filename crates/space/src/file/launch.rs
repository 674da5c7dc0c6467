//! Checks of arguments, launches and the reference.

use super::check::Checker;
use super::de::Spanned;
use super::origin::ArgumentPlace;
use super::schema::{ArgumentText, Formula, LaunchText, ReferenceText};
use crate::expr::suggest;
use crate::{Argument, Expr, Launch, Reference};
use std::ops::Range;
use std::path::Path;
use tuner_core::fill::Fill;
use tuner_core::plan::Role;

impl Checker<'_> {
    pub(super) fn arguments(&mut self, texts: Vec<ArgumentText>) -> Vec<Argument> {
        let mut arguments: Vec<Argument> = Vec::new();
        for text in texts {
            if arguments.iter().any(|known| known.name == text.name.value) {
                self.error(
                    format!("the argument `{}` is given twice", text.name.value),
                    text.name.at.clone(),
                    "rename one of the two",
                );
            }
            if let Some(argument) = self.argument(text) {
                arguments.push(argument);
            }
        }
        if !arguments
            .iter()
            .any(|argument| argument.role == Role::Output)
            && self.errors.is_empty()
        {
            self.error(
                "no argument has the role output",
                0..1,
                "mark what the kernel writes with `role: output`: it is what gets checked",
            );
        }
        arguments
    }

    fn argument(&mut self, text: ArgumentText) -> Option<Argument> {
        let name = text.name.value;
        let role = text.role.value;
        let scalar = role == Role::Scalar;
        let (shape, value) = (text.shape, text.value);
        match (scalar, &shape, &value) {
            (true, Some(shape), _) => {
                let message = format!("the scalar `{name}` has a shape");
                self.error(message, shape.at.clone(), "give it a `value` instead");
            }
            (true, None, None) => self.error(
                format!("the scalar `{name}` has no value"),
                text.role.at.clone(),
                "add `value: …`",
            ),
            (false, None, _) => self.error(
                format!("the buffer `{name}` has no shape"),
                text.role.at.clone(),
                "add `shape: [M, N]`",
            ),
            (false, Some(shape), _) if shape.value.is_empty() => {
                let message = format!("the shape of `{name}` is empty");
                self.error(message, shape.at.clone(), "write `[1]` for one element");
            }
            (false, _, Some(value)) => {
                let message = format!("the buffer `{name}` has a value");
                self.error(
                    message,
                    value.at.clone(),
                    "fill it with `fill: { constant: … }`",
                );
            }
            _ => {}
        }
        if let Some(fill) = &text.fill {
            self.fill(&name, role, fill);
        }
        let ty = text.ty.value;
        self.places.arguments.push(ArgumentPlace {
            ty: text.ty.at,
            role: text.role.at,
        });
        Some(Argument {
            ty,
            role,
            shape: shape
                .map(|shape| shape.value)
                .unwrap_or_default()
                .into_iter()
                .filter_map(|extent| self.formula(extent))
                .collect(),
            fill: (role == Role::Input).then(|| {
                text.fill
                    .map_or_else(|| Fill::default_for(ty), |fill| fill.value)
            }),
            value: value.and_then(|value| self.formula(value)),
            name,
        })
    }

    fn fill(&mut self, name: &str, role: Role, fill: &Spanned<Fill>) {
        let at = fill.at.clone();
        match fill.value {
            _ if role != Role::Input => self.error(
                format!("`{name}` is no input, and is not filled"),
                at,
                "remove `fill`: outputs and scratch begin as NaN, so that forgotten elements show",
            ),
            Fill::Normal { std, .. } if std < 0.0 => {
                self.error(
                    "a standard deviation cannot be negative",
                    at,
                    "write its size",
                );
            }
            Fill::Uniform { min, max } if min > max => {
                self.error("`min` is larger than `max`", at, "swap them");
            }
            _ => {}
        }
    }

    pub(super) fn launches(
        &mut self,
        texts: Vec<LaunchText>,
        arguments: &[Argument],
    ) -> Vec<Launch> {
        if texts.is_empty() {
            self.error("`launches` is empty", 0..1, "name at least one launch");
        }
        let launches = texts
            .into_iter()
            .filter_map(|text| self.launch(text, arguments));
        launches.collect()
    }

    fn launch(&mut self, text: LaunchText, arguments: &[Argument]) -> Option<Launch> {
        let args = match text.args {
            None => (0..arguments.len()).collect(),
            Some(names) => names
                .into_iter()
                .filter_map(|name| self.argument_index(name, arguments))
                .collect(),
        };
        self.entry(&text.entry);
        self.places.launches.push(text.entry.at.clone());
        let when = text.when.map(|when| self.formula(when));
        let grid = self.extents(text.grid);
        let block = self.extents(text.block);
        let shared = self.shared(text.shared);
        Some(Launch {
            entry: text.entry.value,
            when: match when {
                Some(parsed) => Some(parsed?),
                None => None,
            },
            args,
            grid: grid?,
            block: block?,
            shared: shared?,
        })
    }

    /// Entries are looked up by their plain name, so they are C identifiers.
    fn entry(&mut self, entry: &Spanned<String>) {
        let letter = |c: char| c == '_' || c == '$' || c.is_ascii_alphanumeric();
        if entry.value.is_empty()
            || !entry.value.chars().all(letter)
            || entry.value.starts_with(|c: char| c.is_ascii_digit())
        {
            self.error(
                format!("`{}` cannot be a kernel function", entry.value),
                entry.at.clone(),
                "write the name of an `extern \"C\" __global__` function",
            );
        }
    }

    fn argument_index(&mut self, name: Spanned<String>, arguments: &[Argument]) -> Option<usize> {
        let names = || arguments.iter().map(|argument| argument.name.as_str());
        let found = names().position(|known| known == name.value);
        if found.is_none() && !arguments.is_empty() {
            let help = match suggest(&name.value, names()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!(
                    "the arguments are {}",
                    names().collect::<Vec<_>>().join(", ")
                ),
            };
            self.error(format!("unknown argument `{}`", name.value), name.at, help);
        }
        found
    }

    /// One to three extents; those left out are 1.
    fn extents(&mut self, list: Spanned<Vec<Formula>>) -> Option<[Expr; 3]> {
        if list.value.is_empty() || list.value.len() > 3 {
            self.error(
                format!("expected one to three extents, found {}", list.value.len()),
                list.at,
                "write x, y and z, for example `[\"ceil_div(N, BN)\", M, 1]`",
            );
            return None;
        }
        let count = list.value.len();
        let parsed: Vec<Expr> = list
            .value
            .into_iter()
            .filter_map(|extent| self.formula(extent))
            .collect();
        if parsed.len() < count {
            return None;
        }
        let mut extents = parsed.into_iter().map(Some);
        let mut next = || extents.next().flatten().or_else(|| Expr::parse("1").ok());
        Some([next()?, next()?, next()?])
    }

    fn shared(&mut self, shared: Option<Formula>) -> Option<Expr> {
        match shared {
            Some(shared) => self.formula(shared),
            None => Expr::parse("0").ok(),
        }
    }

    pub(super) fn reference(
        &mut self,
        text: ReferenceText,
        folder: &Path,
        arguments: &[Argument],
    ) -> Option<Reference> {
        let at = |this: &ReferenceText| -> Range<usize> {
            let places = [&this.oracle, &this.source, &this.entry];
            let first = places.into_iter().flatten().next();
            first.map_or(0..1, |value| value.at.clone())
        };
        let place = at(&text);
        match (text.oracle, text.source) {
            (Some(oracle), None) => {
                if text.entry.is_some()
                    || text.grid.is_some()
                    || text.block.is_some()
                    || text.proven_by.is_some()
                {
                    self.error(
                        "an oracle takes no entry, grid, block or proven_by",
                        place,
                        "keep `oracle` alone, or give `source` instead",
                    );
                }
                Some(Reference::Oracle(oracle.value))
            }
            (None, Some(source)) => {
                let (Some(entry), Some(grid), Some(block)) = (text.entry, text.grid, text.block)
                else {
                    self.error(
                        "a reference kernel needs `entry`, `grid` and `block`",
                        place,
                        "add what is missing",
                    );
                    return None;
                };
                self.entry(&entry);
                self.places.reference = Some(entry.at.clone());
                self.places.reference_source = Some(source.at);
                let (grid, block) = (self.extents(grid), self.extents(block));
                let shared = self.shared(text.shared)?;
                Some(Reference::Kernel {
                    source: folder.join(source.value),
                    launch: Box::new(Launch {
                        entry: entry.value,
                        when: None,
                        args: (0..arguments.len()).collect(),
                        grid: grid?,
                        block: block?,
                        shared,
                    }),
                    proven_by: text.proven_by.map(|oracle| oracle.value),
                })
            }
            (Some(_), Some(source)) => {
                let message = "a reference is an oracle or a source, not both";
                self.error(message, source.at, "keep one of them");
                None
            }
            (None, None) => {
                let message = "the reference names neither `oracle` nor `source`";
                self.error(message, place, "write `reference: { oracle: gemm }`");
                None
            }
        }
    }
}
