//! Reader of shipped results: headers of `export` and records of `record`.

use serde::Deserialize;
use serde_json::{Value as Json, json};
use tuner_core::entry::Entry;
use tuner_core::escape;
use tuner_core::record::{Compared, Compilation, ConfigValues, TimingKind, config_as_object};
use tuner_space::{Diagnostic, Diagnostics};

/// One shipped configuration.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Shipped {
    /// Device name.
    pub device: String,
    /// Problem name.
    pub problem: String,
    /// The configuration.
    #[serde(with = "config_as_object")]
    pub config: ConfigValues,
    /// Its median at shipping, µs.
    #[serde(rename = "time_us_p50")]
    pub p50_us: f64,
    /// Source of that time; `None` in headers of earlier versions.
    #[serde(default)]
    pub timing: Option<TimingKind>,
    /// Comparison of its results at shipping; `None` in older files and for recorded results.
    #[serde(default)]
    pub compared: Option<Compared>,
    /// Kernel name; like the following fields `None` in headers of earlier versions.
    #[serde(default)]
    pub kernel: Option<String>,
    /// Sizes of the problem.
    #[serde(default, with = "optional_object")]
    pub sizes: ConfigValues,
    /// Compute capability of the device, such as 90.
    #[serde(default)]
    pub cc: Option<u32>,
    /// Hash of the template.
    #[serde(default)]
    pub template_hash: Option<String>,
    /// Hash of the machine code.
    #[serde(default)]
    pub cubin_hash: Option<String>,
    /// Registers per thread.
    #[serde(default)]
    pub registers: Option<u32>,
    /// Spilled bytes.
    #[serde(default)]
    pub spill_bytes: Option<u64>,
}

/// Sizes as an object that may be absent.
mod optional_object {
    use serde::{Deserialize, Deserializer};
    use tuner_core::record::{ConfigValues, config_as_object};

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<ConfigValues, D::Error> {
        #[derive(Deserialize)]
        struct Sizes(#[serde(with = "config_as_object")] ConfigValues);
        Ok(Option::<Sizes>::deserialize(from)?.map_or_else(Vec::new, |sizes| sizes.0))
    }
}

/// Difference between shipped code and a new build.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct CodeChange {
    /// Quantity: `template`, `code`, `registers` or `spill_bytes`.
    pub what: &'static str,
    /// Its value at shipping.
    pub shipped: String,
    /// Its value now.
    pub now: String,
}

impl Shipped {
    /// Compares the record with a new build for the same target; unrecorded figures are omitted.
    #[must_use]
    pub fn code_changes(&self, built: &Compilation) -> Vec<CodeChange> {
        let pairs = [
            (
                "template",
                self.template_hash.clone(),
                built.template_hash.to_string(),
            ),
            (
                "code",
                self.cubin_hash.clone(),
                built.cubin_hash.to_string(),
            ),
            (
                "registers",
                self.registers.map(|count| count.to_string()),
                built.registers.to_string(),
            ),
            (
                "spill_bytes",
                self.spill_bytes.map(|bytes| bytes.to_string()),
                built.spill_bytes.to_string(),
            ),
        ];
        let changed = |(what, shipped, now): (&'static str, Option<String>, String)| {
            let shipped = shipped.filter(|shipped| *shipped != now)?;
            Some(CodeChange { what, shipped, now })
        };
        pairs.into_iter().filter_map(changed).collect()
    }
}

impl std::fmt::Display for CodeChange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let short = |text: &str| text.get(..12).unwrap_or(text).to_owned();
        let (shipped, now) = (short(&self.shipped), short(&self.now));
        write!(f, "{} {shipped} -> {now}", self.what)
    }
}

/// Reports whether a text claims to be a header of `export` or a record.
#[must_use]
pub fn is_shipped(text: &str) -> bool {
    match text.trim_start().starts_with('{') {
        true => text.contains("\"tuner-export\""),
        false => text.lines().any(|line| line.starts_with(MARK)),
    }
}

/// Reads a header or a record, distinguished by their first character; `path` names it in messages.
///
/// # Errors
/// The error with its position.
pub fn read(text: &str, path: &str) -> Result<Vec<Shipped>, Diagnostics> {
    if text.trim_start().starts_with('{') {
        record(text, path)
    } else {
        header(text, path)
    }
}

#[expect(
    clippy::indexing_slicing,
    reason = "indexing JSON gives null where a key is missing"
)]
fn record(text: &str, path: &str) -> Result<Vec<Shipped>, Diagnostics> {
    let json: Json =
        serde_json::from_str(text).map_err(|error| Diagnostics::of_json(path, text, &error))?;
    let foreign = |message: String| {
        let item = Diagnostic::new(message, 0..1)
            .help("name a file that `tuner record` or `tuner export --to json` wrote");
        Diagnostics::new(path, text, vec![item])
    };
    let entries = json["entries"]
        .as_array()
        .filter(|_| json["format"] == "tuner-export")
        .ok_or_else(|| foreign("this JSON is not a record of results".to_owned()))?;
    entries
        .iter()
        .enumerate()
        .map(|(at, entry)| {
            Shipped::deserialize(entry).map_err(|_| {
                foreign(format!(
                    "entry {} has no device, problem, config and time_us_p50",
                    at + 1
                ))
            })
        })
        .collect()
}

/// Start of an entry in a header's comment.
const MARK: &str = "/* tuner-entry ";

/// Formats an entry as a comment of a header. JSON can escape `*`, so its text cannot end the comment.
pub(super) fn as_comment(entry: &Entry) -> String {
    let json = json!({
        "device": entry.best.device,
        "problem": entry.best.problem,
        "config": super::object(&entry.best.config),
        "time_us_p50": entry.best.time_us_p50,
        "timing": entry.best.timing,
        "compared": entry.best.compared,
        "kernel": entry.best.kernel,
        "sizes": super::object(&entry.sizes),
        "cc": entry.cc,
        "template_hash": entry.best.template_hash,
        "cubin_hash": entry.best.cubin_hash,
        "registers": entry.best.registers,
        "spill_bytes": entry.best.spill_bytes,
    });
    let json = escape::json(&json.to_string()).replace('*', "\\u002a");
    format!("{MARK}{json} */\n")
}

fn header(text: &str, path: &str) -> Result<Vec<Shipped>, Diagnostics> {
    let wrong = |at: usize, message: &str| {
        let item = Diagnostic::new(message, at..at + 1)
            .help("name a header that `tuner export` wrote, unedited; export older ones again");
        Diagnostics::new(path, text, vec![item])
    };
    let mut entries = Vec::new();
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        if let Some(json) = line.strip_prefix(MARK) {
            let json = json.trim_end().strip_suffix("*/").unwrap_or_default();
            let entry = serde_json::from_str(json);
            entries.push(entry.map_err(|_| wrong(offset, "this entry cannot be read"))?);
        }
        offset += line.len();
    }
    if entries.is_empty() {
        return Err(wrong(0, "this is not a header of tuned configurations"));
    }
    Ok(entries)
}

/// Source embedded in a launcher or a package.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct LaunchedSource {
    /// Text of the template.
    pub text: String,
    /// Included files: the name in the directive and the text.
    pub headers: Vec<(String, String)>,
}

/// Reads the source out of a launcher or of a PyTorch package's data; `None` for other files.
///
/// # Errors
/// A launcher whose source was edited so that it cannot be read.
#[expect(
    clippy::indexing_slicing,
    reason = "indexing JSON gives null where a key is missing"
)]
pub fn launched_source(text: &str) -> Result<Option<LaunchedSource>, String> {
    if text.trim_start().starts_with('{') {
        let json: Json = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let source = json["torch"]["source"].clone();
        return match source.is_null() {
            true => Ok(None),
            false => serde_json::from_value(source)
                .map(Some)
                .map_err(|_| "the package's source cannot be read; export it again".to_owned()),
        };
    }
    let Some(source) = array(text, "source_text") else {
        return Ok(None);
    };
    let edited = || "the launcher's source cannot be read; export it again".to_owned();
    let source = source.ok_or_else(edited)?;
    // The first line names the file for diagnostics.
    let (first, source) = source.split_once('\n').ok_or_else(edited)?;
    if !first.starts_with("#line 1 ") {
        return Err(edited());
    }
    let names = text
        .split_once("static const char *const header_names[] = {")
        .and_then(|(_, rest)| rest.split_once("nullptr}"));
    let (names, _) = names.ok_or_else(edited)?;
    let names = literals(names).ok_or_else(edited)?;
    let headers = names.into_iter().enumerate().map(|(at, name)| {
        let content = array(text, &format!("header_{at}")).flatten();
        Some((name, content?))
    });
    Ok(Some(LaunchedSource {
        text: source.to_owned(),
        headers: headers.collect::<Option<_>>().ok_or_else(edited)?,
    }))
}

/// Joins the literals of an array of a launcher; `None` without the array, `Some(None)` if it cannot be
/// parsed.
fn array(text: &str, name: &str) -> Option<Option<String>> {
    let opening = format!("static const char *const {name}[] = {{\n");
    let (_, rest) = text.split_once(&opening)?;
    let end = rest.split_once("  , nullptr};\n");
    Some(
        end.and_then(|(body, _)| literals(body))
            .map(|all| all.concat()),
    )
}

/// Parses C string literals of a launcher; `None` for other escapes.
fn literals(text: &str) -> Option<Vec<String>> {
    let mut all = Vec::new();
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => {}
            b' ' | b',' | b'\n' => continue,
            _ => return None,
        }
        let mut content = Vec::new();
        loop {
            match bytes.next()? {
                b'"' => break,
                b'\\' => content.push(match bytes.next()? {
                    b'n' => b'\n',
                    plain @ (b'"' | b'\\' | b'?') => plain,
                    high @ b'0'..=b'3' => {
                        let mut digit =
                            || bytes.next().filter(|digit| (b'0'..=b'7').contains(digit));
                        let (middle, low) = (digit()?, digit()?);
                        (high - b'0') * 64 + (middle - b'0') * 8 + (low - b'0')
                    }
                    _ => return None,
                }),
                plain => content.push(plain),
            }
        }
        all.push(String::from_utf8(content).ok()?);
    }
    Some(all)
}

#[cfg(test)]
mod tests;
