//! Parser of one GPU's table: lines `name = figure # source`, a subset of TOML.

use std::collections::HashMap;
use std::fmt;

use super::Arch;

/// An error in a table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct TableError {
    /// The file.
    pub file: String,
    /// Line from 1; 0 for the file as a whole.
    pub line: usize,
    /// Column from 1.
    pub column: usize,
    /// The error and its fix.
    pub why: String,
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 {
            return write!(f, "{}: {}", self.file, self.why);
        }
        write!(
            f,
            "{}:{}:{}: {}",
            self.file, self.line, self.column, self.why
        )
    }
}

/// A figure as written, and its position.
struct Entry<'t> {
    text: &'t str,
    line: usize,
    column: usize,
}

/// Figures of one file.
pub(super) struct Table<'t> {
    file: &'t str,
    lines: usize,
    entries: HashMap<&'t str, Entry<'t>>,
}

impl<'t> Table<'t> {
    fn parse(file: &'t str, text: &'t str) -> Result<Table<'t>, TableError> {
        let mut table = Table {
            file,
            lines: text.lines().count(),
            entries: HashMap::new(),
        };
        for (index, line) in text.lines().enumerate() {
            let content = line.trim_start();
            if content.is_empty() || content.starts_with('#') {
                continue;
            }
            let number = index + 1;
            let bad = |column: usize, why: &str| TableError {
                file: file.to_owned(),
                line: number,
                column,
                why: why.to_owned(),
            };
            let Some((name, rest)) = line.split_once('=') else {
                return Err(bad(1, "a line is `name = figure # source`"));
            };
            let column = name.len() + 2 + (rest.len() - rest.trim_start().len());
            let Some((value, source)) = rest.split_once(" #") else {
                return Err(bad(
                    column,
                    "the figure has no source; write it behind a `#`",
                ));
            };
            if source.trim().is_empty() {
                return Err(bad(
                    column,
                    "the figure has no source; write it behind the `#`",
                ));
            }
            let entry = Entry {
                text: value.trim(),
                line: number,
                column,
            };
            if table.entries.insert(name.trim(), entry).is_some() {
                return Err(bad(1, &format!("`{}` stands twice", name.trim())));
            }
        }
        Ok(table)
    }

    fn error(&self, line: usize, column: usize, why: String) -> TableError {
        TableError {
            file: self.file.to_owned(),
            line,
            column,
            why,
        }
    }

    fn entry(&self, name: &str) -> Result<&Entry<'t>, TableError> {
        let missing = || {
            self.error(
                self.lines,
                1,
                format!("`{name}` is missing; add a line `{name} = figure # source`"),
            )
        };
        self.entries.get(name).ok_or_else(missing)
    }

    fn number(&self, name: &str) -> Result<f64, TableError> {
        let entry = self.entry(name)?;
        let at = |why: String| self.error(entry.line, entry.column, why);
        // TOML permits `_` between digits, which Rust's `parse` rejects.
        let value: f64 = entry
            .text
            .replace('_', "")
            .parse()
            .map_err(|_| at(format!("`{}` is no number", entry.text)))?;
        let known = Arch::FIGURES.iter().find(|(n, ..)| *n == name);
        if let Some((_, least, most)) = known
            && !(*least..=*most).contains(&value)
        {
            return Err(at(format!(
                "`{name}` is {value}, and no GPU has less than {least} or more than {most}"
            )));
        }
        Ok(value)
    }

    /// Returns text that lives as long as the program: tables are read once.
    pub(super) fn text(&self, name: &str) -> Result<&'static str, TableError> {
        let entry = self.entry(name)?;
        let inner = entry
            .text
            .strip_prefix('"')
            .and_then(|t| t.strip_suffix('"'));
        let inner = inner.filter(|t| !t.is_empty()).ok_or_else(|| {
            self.error(
                entry.line,
                entry.column,
                format!("`{name}` is a text in quotes"),
            )
        })?;
        Ok(Box::leak(inner.to_owned().into_boxed_str()))
    }

    /// Returns the GPU's name, in which `@` would begin a clock.
    pub(super) fn gpu_name(&self) -> Result<&'static str, TableError> {
        let name = self.text("name")?;
        if name.contains('@') {
            let entry = self.entry("name")?;
            let why = format!("`{name}`: a name has no `@`, which begins a clock");
            return Err(self.error(entry.line, entry.column, why));
        }
        Ok(name)
    }

    pub(super) fn list(&self, name: &str) -> Result<[u32; 10], TableError> {
        let entry = self.entry(name)?;
        let bad = || {
            let why = format!("`{name}` is a list of at most ten whole numbers in brackets");
            self.error(entry.line, entry.column, why)
        };
        let inner = entry
            .text
            .strip_prefix('[')
            .and_then(|t| t.strip_suffix(']'));
        let mut out = [0; 10];
        for (index, item) in inner.ok_or_else(bad)?.split(',').enumerate() {
            *out.get_mut(index).ok_or_else(bad)? = item.trim().parse().map_err(|_| bad())?;
        }
        Ok(out)
    }
}

/// Type of a figure.
pub(super) trait Figure: Sized {
    /// Reads the figure of that name.
    fn read(table: &Table<'_>, name: &str) -> Result<Self, TableError>;
}

impl Figure for f64 {
    fn read(table: &Table<'_>, name: &str) -> Result<Self, TableError> {
        table.number(name)
    }
}

impl Figure for u64 {
    fn read(table: &Table<'_>, name: &str) -> Result<Self, TableError> {
        Ok(table.number(name)? as u64)
    }
}

impl Figure for u32 {
    fn read(table: &Table<'_>, name: &str) -> Result<Self, TableError> {
        let value = table.number(name)?;
        if value.fract() != 0.0 || value > f64::from(u32::MAX) {
            let entry = table.entry(name)?;
            let why = format!("`{name}` is {value}, and must be a whole number");
            return Err(table.error(entry.line, entry.column, why));
        }
        Ok(value as u32)
    }
}

/// Reads one table.
///
/// # Errors
/// See [`super::use_folder`].
pub fn read(file: &str, text: &str) -> Result<Arch, TableError> {
    let table = Table::parse(file, text)?;
    let known = |name: &str| {
        let figures = Arch::FIGURES.iter().any(|(n, ..)| *n == name);
        figures || matches!(name, "name" | "full_name" | "shared_carveouts_kib")
    };
    if let Some((name, entry)) = table.entries.iter().find(|(name, _)| !known(name)) {
        return Err(table.error(
            entry.line,
            1,
            format!("`{name}` is no figure of a GPU's table"),
        ));
    }
    let arch = Arch::from_table(&table)?;
    consistent(&table, &arch)?;
    Ok(arch)
}

/// Checks for figures that contradict each other.
fn consistent(table: &Table<'_>, arch: &Arch) -> Result<(), TableError> {
    let refuse = |name: &str, why: String| {
        let entry = table.entry(name)?;
        Err(table.error(entry.line, entry.column, why))
    };
    if arch.shared_bytes_per_sm > arch.l1_bytes {
        let why = "shared memory is a part of `l1_bytes`, which is smaller".to_owned();
        return refuse("shared_bytes_per_sm", why);
    }
    if arch.shared_bytes_optin > arch.shared_bytes_per_sm {
        let why = "a block cannot have more shared memory than the multiprocessor".to_owned();
        return refuse("shared_bytes_optin", why);
    }
    if arch.l1_cycles > arch.l2_cycles || arch.l2_cycles > arch.dram_cycles {
        let why = "a cache nearer to the multiprocessor answers sooner".to_owned();
        return refuse("l2_cycles", why);
    }
    if !arch.max_threads_per_sm.is_multiple_of(32) {
        return refuse(
            "max_threads_per_sm",
            "threads come in warps of 32".to_owned(),
        );
    }
    Ok(())
}
