//! Fills of buffers, as written in a file.

use super::check::Checker;
use super::de::Spanned;
use super::forms::{Forms, forms};
use super::schema::{Formula, Key};
use crate::Expr;
use serde::de::{self, Deserialize};
use std::path::{Path, PathBuf};
use tuner_core::data::DataFile;
use tuner_core::element::Element;
use tuner_core::fill::Fill;

/// A fill as written.
#[derive(Debug, Clone)]
pub(super) enum FillText {
    /// A fill without parameters from the problem.
    Plain(Fill),
    /// Ascending values within the default bounds of the element type.
    Sorted,
    /// A part of a sparse matrix.
    Csr(Box<Csr>),
    /// A file, relative to the space.
    File(String),
}

/// Names of fills.
#[derive(Debug, Clone, Copy, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    Normal,
    Uniform,
    Constant,
    Arange,
    Zeros,
    Permutation,
    Sorted,
    Sparse,
    Boxes,
    Csr,
    File,
    Kernel,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Normal {
    mean: f64,
    std: f64,
}

/// Smallest and largest value.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Bounds {
    min: f64,
    max: f64,
}

/// Share of the elements that are not zero.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Rate {
    rate: f64,
}

/// `offsets: ENTRIES`, or `rows: ROWS, columns: COLUMNS` for the indices.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Csr {
    offsets: Option<Formula>,
    rows: Option<Formula>,
    columns: Option<Formula>,
}

impl Forms for FillText {
    const EXPECTED: &'static str = "a fill such as arange, or `{ normal: { mean: 0, std: 1 } }`";

    fn word<E: de::Error>(text: &str) -> Result<Self, E> {
        let word = Word::deserialize(de::value::StrDeserializer::new(text))?;
        Ok(match word {
            Word::Arange => Self::Plain(Fill::Arange),
            Word::Zeros => Self::Plain(Fill::Zeros),
            Word::Permutation => Self::Plain(Fill::Permutation),
            Word::Sorted => Self::Sorted,
            Word::Sparse => Self::Plain(Fill::Sparse { rate: 0.1 }),
            Word::Boxes => boxes(0.0, 100.0),
            Word::Normal => return Err(bare(text, "{ mean: 0, std: 1 }")),
            Word::Uniform => return Err(bare(text, "{ min: 0, max: 1 }")),
            Word::Constant => return Err(bare(text, "1")),
            Word::Csr => return Err(bare(text, "{ offsets: NNZ }")),
            Word::File => return Err(bare(text, "data/x.npy")),
            Word::Kernel => return Err(bare(text, "make_x")),
        })
    }

    fn map<'de, A: de::MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let Some(word) = map.next_key::<Word>()? else {
            return Err(de::Error::custom("expected one key here, found 0"));
        };
        let fill = match word {
            Word::Normal => {
                let Normal { mean, std } = map.next_value()?;
                Self::Plain(Fill::Normal { mean, std })
            }
            Word::Uniform => {
                let Bounds { min, max } = map.next_value()?;
                Self::Plain(Fill::Uniform { min, max })
            }
            Word::Constant => Self::Plain(Fill::Constant(map.next_value()?)),
            Word::Arange | Word::Zeros | Word::Permutation => {
                let message = "this takes no value: write its name alone";
                return Err(de::Error::custom(message));
            }
            Word::Sorted => {
                let Bounds { min, max } = map.next_value()?;
                Self::Plain(Fill::Sorted { min, max })
            }
            Word::Sparse => {
                let Rate { rate } = map.next_value()?;
                Self::Plain(Fill::Sparse { rate })
            }
            Word::Boxes => {
                let Bounds { min, max } = map.next_value()?;
                boxes(min, max)
            }
            Word::Csr => Self::Csr(Box::new(map.next_value()?)),
            Word::File => Self::File(map.next_value()?),
            Word::Kernel => Self::Plain(Fill::Kernel(map.next_value::<String>()?.into())),
        };
        match map.next_key::<Key>()? {
            None => Ok(fill),
            Some(_) => Err(de::Error::custom("expected one key here, found more")),
        }
    }
}

forms!(FillText);

/// Reads a fill with boxes. Their number of axes is half the last extent, which depends on the
/// problem.
fn boxes(min: f64, max: f64) -> FillText {
    FillText::Plain(Fill::Boxes { min, max, axes: 0 })
}

fn bare<E: de::Error>(word: &str, example: &str) -> E {
    E::custom(format!(
        "`{word}` needs a value: write `fill: {{ {word}: {example} }}`"
    ))
}

impl Checker<'_> {
    /// Returns the path of a named file or folder, and records one with an absolute path.
    pub(super) fn file(&mut self, name: &(impl AsRef<Path> + ?Sized)) -> PathBuf {
        let name = name.as_ref();
        if name.is_absolute() {
            self.places.absolute.push(name.to_owned());
        }
        self.folder.join(name)
    }

    /// Builds a fill and the expressions that it needs from the problem; reports an invalid fill.
    pub(super) fn fill(
        &mut self,
        name: &str,
        fill: &Spanned<FillText>,
        element: Element,
    ) -> Option<(Fill, Vec<Expr>)> {
        let at = fill.at.clone();
        let plain = |fill| Some((fill, Vec::new()));
        let found = match &fill.value {
            FillText::Plain(fill) => plain(fill.clone()),
            FillText::Sorted => {
                let (min, max) = if element.is_float() {
                    (-1.0, 1.0)
                } else {
                    (0.0, 100.0)
                };
                plain(Fill::Sorted { min, max })
            }
            FillText::File(path) => {
                let path = self.file(path);
                let file = DataFile::new(&path);
                self.places.data.push((path, at.clone()));
                plain(Fill::File(file))
            }
            FillText::Csr(csr) => self.csr(name, csr, fill),
        };
        let (message, help) = match found.as_ref().map(|(fill, _)| fill) {
            Some(Fill::Normal { std, .. }) if *std < 0.0 => {
                ("a standard deviation cannot be negative", "write its size")
            }
            Some(
                Fill::Uniform { min, max }
                | Fill::Sorted { min, max }
                | Fill::Boxes { min, max, .. },
            ) if min > max => ("`min` is larger than `max`", "swap them"),
            Some(Fill::Sparse { rate }) if !(0.0..=1.0).contains(rate) => (
                "`rate` is the share of the elements that are not zero",
                "write a number from 0 to 1",
            ),
            _ => return found,
        };
        self.error(message, at, help);
        None
    }

    fn csr(
        &mut self,
        name: &str,
        csr: &Csr,
        fill: &Spanned<FillText>,
    ) -> Option<(Fill, Vec<Expr>)> {
        match (&csr.offsets, &csr.rows, &csr.columns) {
            (Some(entries), None, None) => {
                let entries = self.formula(entries.clone())?;
                // The number depends on the problem, so it is set when a configuration is bound.
                Some((Fill::CsrOffsets { entries: 0 }, vec![entries]))
            }
            (None, Some(rows), Some(columns)) => {
                let (rows, columns) = (self.formula(rows.clone()), self.formula(columns.clone()));
                let empty = Fill::CsrIndices {
                    rows: 0,
                    columns: 0,
                };
                Some((empty, vec![rows?, columns?]))
            }
            _ => {
                self.error(
                    format!("`{name}` is either the row offsets or the column indices of a graph"),
                    fill.at.clone(),
                    "write `csr: { offsets: NNZ }` for the offsets (shape [ROWS + 1]), and `csr: { \
                     rows: ROWS, columns: COLUMNS }` for the indices (shape [NNZ])",
                );
                None
            }
        }
    }
}
