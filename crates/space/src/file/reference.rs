//! Checks of the reference.

use super::check::Checker;
use super::de::Spanned;
use super::launch::taken_by_reference;
use super::schema::{Ordered, ReferenceText};
use crate::{Argument, Launch, Reference};
use tuner_core::data::DataFile;
use tuner_core::fill::Fill;

impl Checker<'_> {
    pub(super) fn reference(
        &mut self,
        text: ReferenceText,
        arguments: &[Argument],
        variables: &[Argument],
    ) -> Option<Reference> {
        let places = [&text.oracle, &text.source, &text.entry];
        let first = places.into_iter().flatten().next();
        let place = first.map_or(0..1, |value| value.at.clone());
        if let Some(values) = text.values {
            let files = self.value_files(values, first, arguments, variables);
            return Some(Reference::Values {
                files,
                accepted_as: text.accepted_as,
            });
        }
        if text.accepted_as.is_some() {
            self.error(
                "`accepted_as` is for values that were accepted elsewhere",
                place.clone(),
                "remove it, or give the `values`",
            );
        }
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
                    source: self.file(&source.value),
                    launch: Box::new(Launch {
                        entry: entry.value,
                        when: None,
                        args: taken_by_reference(arguments, variables),
                        grid: grid?,
                        block: block?,
                        shared,
                        cluster: None,
                        cooperative: text.cooperative.unwrap_or_default(),
                        guessed: false,
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
                let message = "the reference names neither `oracle` nor `source` nor `values`";
                self.error(message, place, "write `reference: { oracle: gemm }`");
                None
            }
        }
    }

    /// Checks a reference by values: a file for each compared argument, and data equal for every seed.
    fn value_files(
        &mut self,
        values: Ordered<String>,
        other: Option<&Spanned<String>>,
        arguments: &[Argument],
        variables: &[Argument],
    ) -> Vec<Fill> {
        if let Some(other) = other {
            let message = "a reference is values, an oracle or a source, one of the three";
            self.error(message, other.at.clone(), "keep one of them");
        }
        let place = values.0.first().map_or(0..1, |(name, _)| name.at.clone());
        let compared = || arguments.iter().filter(|it| it.role.is_compared());
        for (name, _) in &values.0 {
            if !compared().any(|argument| argument.name == name.value) {
                self.error(
                    format!("`{}` is not an output, so it has no values", name.value),
                    name.at.clone(),
                    "remove it, or give the argument `role: output` or `inout`",
                );
            }
        }
        let mut found = Vec::new();
        for argument in compared() {
            let file = values
                .0
                .iter()
                .find(|(name, _)| name.value == argument.name);
            match file {
                Some((name, path)) => {
                    let path = self.file(path);
                    found.push(Fill::File(DataFile::new(&path)));
                    self.places.data.push((path, name.at.clone()));
                }
                None => self.error(
                    format!("the output `{}` has no values", argument.name),
                    place.clone(),
                    "name the file of its right contents: `values: { NAME: FILE }`",
                ),
            }
        }
        let varies = |argument: &&Argument| {
            let fixed = matches!(
                argument.fill,
                Some(Fill::File(_) | Fill::Zeros | Fill::Constant(_) | Fill::Arange) | None
            );
            !fixed && argument.role.is_filled()
        };
        if let Some(argument) = arguments.iter().chain(variables).find(varies) {
            self.error(
                format!(
                    "`{}` differs from seed to seed, and the reference is values of one run",
                    argument.name
                ),
                place,
                "fill it with the data of that run: `fill: { file: PATH }`, or zeros, constant or arange",
            );
        }
        found
    }
}
