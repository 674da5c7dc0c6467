//! Data from files: NumPy arrays (`.npy`) and raw numbers.

use crate::element::Element;
use crate::files;
use crate::units::ContentHash;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// Largest data file that is read.
const MAX_DATA_BYTES: u64 = 4 << 30;

/// Placeholder of the problem's name in a path.
const PROBLEM: &str = "{problem}";

/// A file whose content fills a buffer. Two files with equal content are equal, independent of their
/// location.
#[derive(Clone, Serialize, Deserialize)]
pub struct DataFile {
    /// Path.
    pub path: Arc<str>,
    /// Hash of its content; `None` before it was read.
    pub hash: Option<ContentHash>,
}

impl fmt::Debug for DataFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.hash {
            Some(hash) => write!(f, "{hash}"),
            None => write!(f, "{:?}", self.path),
        }
    }
}

impl PartialEq for DataFile {
    fn eq(&self, other: &Self) -> bool {
        match (&self.hash, &other.hash) {
            (Some(one), Some(two)) => one == two,
            _ => self.path == other.path && self.hash == other.hash,
        }
    }
}

impl DataFile {
    /// Creates a reference to an unread file.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.to_string_lossy().into(),
            hash: None,
        }
    }

    /// Returns the file with the hash of its content.
    ///
    /// # Errors
    /// The reason why it cannot be read.
    pub fn hashed(&self) -> Result<Self, String> {
        let content = self.content()?;
        Ok(Self {
            path: Arc::clone(&self.path),
            hash: Some(ContentHash::from_parts([content.as_slice()])),
        })
    }

    /// Returns the file of one problem: `{problem}` in the path is replaced by the problem's name.
    #[must_use]
    pub fn of_problem(&self, problem: &str) -> Self {
        match self.is_of_problem() {
            true => Self {
                path: self.path.replace(PROBLEM, problem).into(),
                // The hash of the pattern covers the files of all problems.
                hash: None,
            },
            false => self.clone(),
        }
    }

    /// Reports whether each problem has a separate file.
    #[must_use]
    pub fn is_of_problem(&self) -> bool {
        self.path.contains(PROBLEM)
    }

    fn content(&self) -> Result<Vec<u8>, String> {
        files::read(Path::new(&*self.path), MAX_DATA_BYTES)
            .map_err(|error| format!("{}: {error}", self.path))
    }

    /// Reads its bytes as `count` elements of a type.
    ///
    /// # Errors
    /// It cannot be read, was changed, or has a different size or type.
    pub fn read(&self, element: Element, count: u64) -> Result<Vec<u8>, String> {
        let content = self.content()?;
        if let Some(hash) = &self.hash
            && *hash != ContentHash::from_parts([content.as_slice()])
        {
            return Err(format!("{} was changed since it was read first", self.path));
        }
        let (bytes, what) = match npy(&content) {
            None => (&content[..], "bytes of raw data".to_owned()),
            Some(Err(why)) => return Err(format!("{}: {why}", self.path)),
            Some(Ok(array)) => {
                if !array.holds(element) {
                    return Err(format!(
                        "{} holds elements of NumPy's type `{}`, and not {}: write \
                         `array.astype(…)` to it, or declare another type",
                        self.path,
                        array.descr,
                        element.name()
                    ));
                }
                (
                    array.data,
                    format!("bytes, an array of shape ({})", array.shape),
                )
            }
        };
        let wanted = count.saturating_mul(element.size() as u64);
        if bytes.len() as u64 != wanted {
            return Err(format!(
                "{} has {} {what}, and {count} elements of {} take {wanted}",
                self.path,
                bytes.len(),
                element.name()
            ));
        }
        Ok(bytes.to_vec())
    }
}

/// A NumPy array: <https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>.
struct Array<'a> {
    descr: &'a str,
    shape: &'a str,
    data: &'a [u8],
}

impl Array<'_> {
    fn holds(&self, element: Element) -> bool {
        let own = match element {
            Element::F16 => "f2",
            Element::F32 => "f4",
            Element::F64 => "f8",
            Element::Bool => "b1",
            Element::I8 => "i1",
            Element::U8 => "u1",
            Element::I16 => "i2",
            Element::U16 => "u2",
            Element::I32 => "i4",
            Element::U32 => "u4",
            Element::I64 => "i8",
            Element::U64 => "u8",
            // NumPy lacks these types: their bits are stored as integers.
            Element::Bf16 => "u2",
            Element::F8e4m3 | Element::F8e5m2 => "u1",
        };
        let one = element.size() == 1;
        let (order, name) = self.descr.split_at(1.min(self.descr.len()));
        name == own && (order == "<" || (one && order == "|"))
    }
}

/// Parses a `.npy` file; `None` if it is not one.
fn npy(content: &[u8]) -> Option<Result<Array<'_>, String>> {
    content.strip_prefix(b"\x93NUMPY").map(array)
}

/// Parses the array after the magic string.
fn array(rest: &[u8]) -> Result<Array<'_>, String> {
    const DAMAGED: &str = "a damaged .npy file";
    let (header, data) = parts(rest).ok_or(DAMAGED)?;
    let text = std::str::from_utf8(header).map_err(|_| DAMAGED)?;
    let value = |key: &str| -> Option<&str> {
        let (_, rest) = text.split_once(&format!("'{key}':"))?;
        Some(rest.trim_start())
    };
    if value("fortran_order").is_some_and(|it| it.starts_with("True")) {
        return Err("it is in Fortran order: write `numpy.ascontiguousarray(array)`".to_owned());
    }
    let quoted = value("descr").and_then(|it| it.strip_prefix('\'')?.split('\'').next());
    let shape = value("shape").and_then(|it| it.strip_prefix('(')?.split(')').next());
    let (descr, shape) = quoted
        .zip(shape)
        .ok_or("its header has no plain `descr` and `shape`: structured arrays are not read")?;
    Ok(Array { descr, shape, data })
}

/// Splits the data after the magic string into header and data.
fn parts(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let (version, rest) = rest.split_first_chunk::<2>()?;
    // Version 1 of the format has a header length of 2 bytes, later ones of 4.
    let (length, rest) = if version[0] == 1 {
        let (length, rest) = rest.split_first_chunk::<2>()?;
        (usize::from(u16::from_le_bytes(*length)), rest)
    } else {
        let (length, rest) = rest.split_first_chunk::<4>()?;
        (usize::try_from(u32::from_le_bytes(*length)).ok()?, rest)
    };
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests;
