//! `tuner record`: the best measured results as files to commit.

use super::results::{Selection, block_on, store_error};
use super::{CliError, CommandResult};
use crate::{atomic, exit};
use std::collections::BTreeMap;
use std::path::PathBuf;
use tuner_core::entry::Entry;
use tuner_core::record::TimingKind;
use tuner_report::export;
use tuner_store::Board;

/// Write the best measured results to `leaderboard/<device>/<kernel>.json`, to be committed
///
/// One file a device, one result a problem, in a stable order, so that a diff shows what became
/// faster. Only what was measured on a real GPU: neither predicted nor recorded times.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tuner record gemm_f32
  tuner record gemm_f32 --device 'NVIDIA H200' && git diff leaderboard/

Exit codes: 0 done, 2 bad usage or input, 3 nothing was measured.")]
pub(crate) struct Args {
    /// The kernel
    kernel: String,

    #[command(flatten)]
    selection: Selection,

    /// Directory of the device directories
    #[arg(long, value_name = "DIR", default_value = "leaderboard")]
    dir: PathBuf,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> CommandResult {
    let boards = block_on(read(args))?;
    let (measured, others): (Vec<Board>, Vec<Board>) = boards
        .into_iter()
        .partition(|board| board.timing == TimingKind::Measured);
    if measured.is_empty() {
        let why = if others.is_empty() {
            "no candidate passed"
        } else {
            "there are only predicted or recorded times, and those are not ours to publish"
        };
        say!(
            "nothing to record for `{}`: {why}; `tuner run {} --device cuda` measures",
            args.kernel,
            args.kernel
        );
        return Ok(exit::NOTHING_PASSED);
    }
    let mut devices: BTreeMap<String, Vec<Entry>> = BTreeMap::new();
    for board in &measured {
        let entries = devices.entry(board.key.device.clone()).or_default();
        entries.extend(board.entry());
    }
    for (device, entries) in devices {
        write(args, &device, &entries)?;
    }
    Ok(exit::DONE)
}

async fn read(args: &Args) -> Result<Vec<Board>, CliError> {
    let store = args.selection.open().await?;
    let query = args.selection.query(Some(&args.kernel), Some(1));
    let boards = store.boards(&query).await.map_err(store_error)?;
    if boards.is_empty() {
        let kernel = Some(args.kernel.as_str());
        args.selection.explain_nothing(&store, kernel).await?;
    }
    store.close().await.map_err(store_error)?;
    Ok(boards)
}

fn write(args: &Args, device: &str, entries: &[Entry]) -> Result<(), CliError> {
    let failed = |error: anyhow::Error| CliError::Failed(error);
    let text = export::json(&args.kernel, entries).map_err(|error| failed(error.into()))?;
    let directory = args.dir.join(export::target_name(device));
    let path = directory.join(format!("{}.json", file_name(&args.kernel)));
    std::fs::create_dir_all(&directory)
        .and_then(|()| atomic::write(&path, text.as_bytes()))
        .map_err(|error| failed(anyhow::anyhow!("{}: {error}", path.display())))?;
    say!("wrote {}", path.display());
    Ok(())
}

/// The kernel's name, unless it could lead out of the directory.
fn file_name(kernel: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-+".contains(c);
    if kernel.chars().all(plain) {
        kernel.to_owned()
    } else {
        export::target_name(kernel)
    }
}
