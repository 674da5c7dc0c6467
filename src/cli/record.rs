//! `tuner record`: the best measured results as files for version control.

use super::proof::ProofOptions;
use super::results::{
    Selection, block_on, board_name, default_database, kernels_named, note_unproven,
};
use super::{CliError, CommandResult};
use crate::{atomic, exit};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tuner_core::entry::Entry;
use tuner_core::escape::shell as quoted;
use tuner_core::record::{LeaderboardRow, TimingKind};
use tuner_report::export;
use tuner_store::Board;

/// Record the best measured results as files to commit
///
/// Writes `leaderboard/<device>/<kernel>.json`.
///
/// One file for each kernel and device, one result for each problem, in a stable order, so that a
/// diff shows changes. Contains only times measured on a real GPU, neither predicted nor recorded
/// ones.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tuner record gemm_f32
  tuner record gemm_f32 --device 'NVIDIA H200' && git diff leaderboard/

Exit codes: 0 done, 2 bad usage or input, 3 nothing was measured.")]
pub(crate) struct Args {
    /// Kernels, by name or search space file [default: all]
    #[arg(value_name = "KERNEL|FILE.yaml")]
    kernels: Vec<String>,

    #[command(flatten)]
    selection: Selection,

    #[command(flatten)]
    proof: ProofOptions,

    /// Write to this folder [default: leaderboard, in the project]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> CommandResult {
    for kernel in kernels_named(&args.kernels)? {
        let query = args.selection.query(kernel.as_deref(), Some(1));
        // A proof changes the rows that are read below.
        args.proof.prove(&args.selection.db, &query, is_measured)?;
    }
    let (boards, entries) = block_on(read(args))?;
    if entries.is_empty() {
        let why = if boards.is_empty() {
            "no candidate passed"
        } else {
            "all times are predicted, or recorded by others; only those measured here are recorded"
        };
        let named = args.kernels.iter().map(|name| format!(" {}", quoted(name)));
        let named: String = named.collect();
        say!("nothing to record: {why}; `tuner run{named} --device cuda` measures");
        return Ok(exit::NOTHING_PASSED);
    }
    let mut files: BTreeMap<(String, String), Vec<Entry>> = BTreeMap::new();
    for entry in entries {
        let (device, kernel) = (entry.best.device.clone(), entry.best.kernel.clone());
        files.entry((device, kernel)).or_default().push(entry);
    }
    for ((device, kernel), entries) in files {
        write(args, &kernel, &device, &entries)?;
    }
    Ok(exit::DONE)
}

/// Returns the requested boards and the entries to record: those with measured times.
async fn read(args: &Args) -> Result<(Vec<Board>, Vec<Entry>), CliError> {
    let store = args.selection.open().await?;
    let boards = args
        .selection
        .boards(&store, &args.kernels, Some(1))
        .await?;
    let measured = boards
        .iter()
        .filter(|board| is_measured(board) && args.proof.admits(board));
    let (measured, unproven): (Vec<Board>, Vec<Board>) = measured
        .cloned()
        .partition(|board| board.rows.first().is_none_or(LeaderboardRow::is_proven));
    for board in unproven {
        note_unproven(1, &board_name(&board));
    }
    let entries = store.entries(&measured).await?;
    store.close().await?;
    Ok((boards, entries))
}

fn is_measured(board: &Board) -> bool {
    board.timing == TimingKind::Measured
}

fn write(args: &Args, kernel: &str, device: &str, entries: &[Entry]) -> Result<(), CliError> {
    let text = export::json(kernel, entries)?;
    let beside = || default_database().parent().map(Path::to_owned);
    let folder = args.dir.clone().or_else(beside).unwrap_or_default();
    let directory = folder.join(export::target_name(device));
    let path = directory.join(format!("{}.json", file_name(kernel)));
    std::fs::create_dir_all(&directory)
        .and_then(|()| atomic::write(&path, text.as_bytes()))
        .map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?;
    say!("wrote {}", path.display());
    Ok(())
}

/// Returns the kernel's name, unless it could lead out of the directory.
fn file_name(kernel: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-+".contains(c);
    if kernel.chars().all(plain) {
        kernel.to_owned()
    } else {
        export::target_name(kernel)
    }
}
