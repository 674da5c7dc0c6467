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
struct Table<'t> {
    file: &'t str,
    lines: usize,
    entries: HashMap<&'t str, Entry<'t>>,
}

/// Names in a table, with the physical minimum and maximum.
const FIGURES: [(&str, f64, f64); 35] = [
    ("cc", 70.0, 129.0),
    ("sm_count", 1.0, 1024.0),
    (
        "boost_mhz",
        super::MIN_CLOCK_MHZ as f64,
        super::MAX_CLOCK_MHZ as f64,
    ),
    ("schedulers", 1.0, 8.0),
    ("max_threads_per_sm", 512.0, 4096.0),
    ("max_blocks_per_sm", 1.0, 64.0),
    ("registers_per_sm", 16_384.0, 262_144.0),
    ("shared_bytes_optin", 16_384.0, 1_048_576.0),
    ("shared_bytes_per_sm", 16_384.0, 1_048_576.0),
    ("fp32_lanes", 16.0, 512.0),
    ("imad_lanes", 16.0, 512.0),
    ("alu_lanes", 16.0, 512.0),
    ("fp16_lanes", 16.0, 1024.0),
    ("fp64_lanes", 1.0, 256.0),
    ("special_lanes", 4.0, 128.0),
    ("lsu_lanes", 8.0, 128.0),
    ("tensor_f16", 0.0, 65_536.0),
    ("tensor_tf32", 0.0, 65_536.0),
    ("tensor_i8", 0.0, 65_536.0),
    ("tensor_f8", 0.0, 65_536.0),
    ("tensor_f64", 0.0, 4096.0),
    ("tensor_sync_pct", 10.0, 100.0),
    ("tensor_cycles", 4.0, 200.0),
    ("shared_cycles", 10.0, 100.0),
    ("l1_cycles", 10.0, 200.0),
    ("l2_cycles", 50.0, 1000.0),
    ("dram_cycles", 100.0, 3000.0),
    ("shared_bytes_per_clock", 16.0, 1024.0),
    ("l1_bytes", 16_384.0, 2_097_152.0),
    ("l1_bytes_per_clock", 16.0, 1024.0),
    ("l2_bytes", 262_144.0, 1.1e9),
    ("l2_bytes_per_clock", 64.0, 65_536.0),
    ("dram_gb_s", 10.0, 100_000.0),
    ("memory_bytes", 1e8, 1.1e12),
    ("launch_us", 0.1, 100.0),
];

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
        let value: f64 = entry
            .text
            .replace('_', "")
            .parse()
            .map_err(|_| at(format!("`{}` is no number", entry.text)))?;
        let known = FIGURES.iter().find(|(n, ..)| *n == name);
        if let Some((_, least, most)) = known
            && !(*least..=*most).contains(&value)
        {
            return Err(at(format!(
                "`{name}` is {value}, and no GPU has less than {least} or more than {most}"
            )));
        }
        Ok(value)
    }

    fn whole(&self, name: &str) -> Result<u32, TableError> {
        let value = self.number(name)?;
        let entry = self.entry(name)?;
        if value.fract() != 0.0 || value > f64::from(u32::MAX) {
            let why = format!("`{name}` is {value}, and must be a whole number");
            return Err(self.error(entry.line, entry.column, why));
        }
        Ok(value as u32)
    }

    /// Returns text that lives as long as the program: tables are read once.
    fn text(&self, name: &str) -> Result<&'static str, TableError> {
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
    fn gpu_name(&self) -> Result<&'static str, TableError> {
        let name = self.text("name")?;
        if name.contains('@') {
            let entry = self.entry("name")?;
            let why = format!("`{name}`: a name has no `@`, which begins a clock");
            return Err(self.error(entry.line, entry.column, why));
        }
        Ok(name)
    }

    fn list(&self, name: &str) -> Result<[u32; 10], TableError> {
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

/// Reads one table.
///
/// # Errors
/// See [`super::use_folder`].
pub fn read(file: &str, text: &str) -> Result<Arch, TableError> {
    let table = Table::parse(file, text)?;
    let known = |name: &str| {
        let figures = FIGURES.iter().any(|(n, ..)| *n == name);
        figures || matches!(name, "name" | "full_name" | "shared_carveouts_kib")
    };
    if let Some((name, entry)) = table.entries.iter().find(|(name, _)| !known(name)) {
        return Err(table.error(
            entry.line,
            1,
            format!("`{name}` is no figure of a GPU's table"),
        ));
    }
    let n = |name: &str| table.whole(name);
    let arch = Arch {
        name: table.gpu_name()?,
        full_name: table.text("full_name")?,
        cc: n("cc")?,
        sm_count: n("sm_count")?,
        boost_mhz: n("boost_mhz")?,
        schedulers: n("schedulers")?,
        max_threads_per_sm: n("max_threads_per_sm")?,
        max_blocks_per_sm: n("max_blocks_per_sm")?,
        registers_per_sm: n("registers_per_sm")?,
        shared_bytes_optin: n("shared_bytes_optin")?,
        shared_bytes_per_sm: n("shared_bytes_per_sm")?,
        shared_carveouts_kib: table.list("shared_carveouts_kib")?,
        fp32_lanes: n("fp32_lanes")?,
        imad_lanes: n("imad_lanes")?,
        alu_lanes: n("alu_lanes")?,
        fp16_lanes: n("fp16_lanes")?,
        fp64_lanes: n("fp64_lanes")?,
        special_lanes: n("special_lanes")?,
        lsu_lanes: n("lsu_lanes")?,
        tensor_f16: n("tensor_f16")?,
        tensor_tf32: n("tensor_tf32")?,
        tensor_i8: n("tensor_i8")?,
        tensor_f8: n("tensor_f8")?,
        tensor_f64: n("tensor_f64")?,
        tensor_sync_pct: n("tensor_sync_pct")?,
        tensor_cycles: n("tensor_cycles")?,
        shared_cycles: n("shared_cycles")?,
        l1_cycles: n("l1_cycles")?,
        l2_cycles: n("l2_cycles")?,
        dram_cycles: n("dram_cycles")?,
        shared_bytes_per_clock: n("shared_bytes_per_clock")?,
        l1_bytes: n("l1_bytes")?,
        l1_bytes_per_clock: n("l1_bytes_per_clock")?,
        l2_bytes: table.number("l2_bytes")? as u64,
        l2_bytes_per_clock: n("l2_bytes_per_clock")?,
        dram_gb_s: table.number("dram_gb_s")?,
        memory_bytes: table.number("memory_bytes")? as u64,
        launch_us: table.number("launch_us")?,
    };
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
