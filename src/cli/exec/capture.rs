//! `tuner exec --capture`: options, start, end and report of a capture.

use super::super::CliError;
use capture::{DOCUMENT, Document, Ended, Limits, Writer};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use tuner_kernel::catalog::shown;

/// Default number of stored launch shapes of a kernel.
const DEFAULT_LIMIT: u16 = 4;
/// Default of stored bytes: `1G`.
const DEFAULT_BYTES: u64 = 1 << 30;

/// Options of a capture.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Capture")]
pub(crate) struct CaptureArgs {
    /// Store launches with their arguments and buffers in this folder for tuner adopt --captured
    /// DIR: for each kernel, the first launch of each grid, block and shared memory size
    #[arg(long = "capture", value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,

    /// Stored launch shapes of each kernel
    #[arg(
        long = "capture-limit",
        value_name = "N",
        default_value_t = DEFAULT_LIMIT,
        requires = "folder",
        value_parser = clap::value_parser!(u16).range(1..)
    )]
    pub(crate) limit: u16,

    /// Stored bytes of buffers before compression, such as 256M
    #[arg(
        long = "capture-bytes",
        value_name = "SIZE",
        default_value = "1G",
        requires = "folder",
        value_parser = parse_size
    )]
    pub(crate) bytes: u64,

    /// Store in the capture that the program was built or started with this value of a macro or
    /// parameter; may be repeated
    #[arg(
        long = "capture-value",
        value_name = "NAME=VALUE",
        requires = "folder",
        value_parser = parse_value
    )]
    pub(crate) values: Vec<(String, i64)>,
}

impl CaptureArgs {
    /// Returns the default options for a folder, with named values.
    pub(super) fn with_defaults(folder: &Path, values: &[(String, i64)]) -> CaptureArgs {
        CaptureArgs {
            folder: Some(folder.to_owned()),
            limit: DEFAULT_LIMIT,
            bytes: DEFAULT_BYTES,
            values: values.to_vec(),
        }
    }
}

/// Parses a size such as `1048576`, `64K`, `256M` or `2GiB`.
fn parse_size(text: &str) -> Result<u64, String> {
    let wanted = || format!("write a size such as 64M or 2G; found `{text}`");
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| wanted())?;
    let unit = unit.trim().to_ascii_uppercase();
    let shift = match unit.trim_end_matches('B').trim_end_matches('I') {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return Err(wanted()),
    };
    number.checked_mul(1 << shift).ok_or_else(wanted)
}

/// Reads `NAME=VALUE` with a whole number.
pub(crate) fn parse_value(text: &str) -> Result<(String, i64), String> {
    let found = text
        .split_once('=')
        .and_then(|(name, value)| Some((name.trim(), value.trim().parse().ok()?)))
        .filter(|(name, _)| capture::is_value_name(name));
    match found {
        Some((name, value)) => Ok((name.to_owned(), value)),
        None => Err(format!(
            "write a name and a whole number, such as TILE=16; found `{text}`"
        )),
    }
}

/// Starts the requested capture.
///
/// # Errors
/// A folder that already holds a capture or cannot be written.
pub(super) fn begin(
    args: &CaptureArgs,
    program: Vec<String>,
    device: String,
) -> Result<Option<Arc<Writer>>, CliError> {
    let Some(folder) = &args.folder else {
        return Ok(None);
    };
    let limits = Limits {
        launches: args.limit.into(),
        bytes: args.bytes,
    };
    let document = Document {
        program,
        device,
        values: args.values.iter().cloned().collect(),
        ..Document::default()
    };
    match Writer::create(folder, limits, document) {
        Ok(writer) => Ok(Some(Arc::new(writer))),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            Err(super::super::usage(format!("--capture: {error}")))
        }
        Err(error) => Err(super::super::usage(format!(
            "--capture: {} cannot be written: {error}",
            shown(folder)
        ))),
    }
}

/// Ends a capture; reports its contents and its omissions.
pub(super) fn finish(writer: &Writer, folder: &Path, status: ExitStatus) {
    if let Some(document) = end(writer, folder, status) {
        report(folder, &document);
    }
}

/// Ends a capture; reports its omissions.
pub(super) fn end(writer: &Writer, folder: &Path, status: ExitStatus) -> Option<Document> {
    let ended = Ended {
        exit_code: status.code(),
        signal: super::program::signal(status),
    };
    match writer.finish(ended) {
        Ok(document) => {
            for text in &document.skipped {
                say!("capture: {text}");
            }
            Some(document)
        }
        Err(error) => {
            say!(
                "capture: {} cannot be written: {error}; the launches that it has are complete",
                shown(&folder.join(DOCUMENT))
            );
            None
        }
    }
}

fn report(folder: &Path, document: &Document) {
    let mut kernels: Vec<&str> = document
        .launches
        .iter()
        .map(|launch| launch.kernel.as_str())
        .collect();
    let launches = kernels.len();
    kernels.dedup();
    kernels.sort_unstable();
    kernels.dedup();
    if launches == 0 {
        say!("capture: no launch was captured");
        return;
    }
    let noun = if launches == 1 { "launch" } else { "launches" };
    say!(
        "captured {launches} {noun} of {} in {}; next: tuner adopt FILE.cu --captured {}",
        kernels.join(", "),
        shown(folder),
        shown(folder)
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse_size("10"), Ok(10));
        assert_eq!(parse_size("64K"), Ok(64 << 10));
        assert_eq!(parse_size("2GiB"), Ok(2 << 30));
        assert!(parse_size("2X").is_err() && parse_size("G").is_err());
        assert!(parse_size("99999999999T").is_err());
    }
}
