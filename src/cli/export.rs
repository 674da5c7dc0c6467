//! `tuner export`: the best configurations in formats of other tools.

mod launcher;
mod torch;

use super::proof::ProofOptions;
use super::results::{
    Selection, block_on, board_name, kernel_named, note_unproven, proven_first, write_file,
};
use super::stale::{self, Present};
use super::{CliError, CommandResult, output, usage};
use crate::exit;
use clap::ValueEnum;
use std::path::{Path, PathBuf};
use tuner_core::entry::StoredTrial;
use tuner_core::record::{Measurement, TimingKind, Verdict};
use tuner_report::export;
use tuner_report::export::{ExportError, PackageFiles};
use tuner_store::{Board, Store};

/// Export the best configurations as a C/CUDA header or in another tool's format
///
/// The header compiles as C11, C++17 and CUDA and includes nothing. Times recorded by others are
/// exported and labelled so; predicted times only with --allow-predicted, and results that were compared
/// with the reference on smaller problems only with --allow-uncompared.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tuner export gemm_f32 -o gemm_f32_tuned.h
  tuner export gemm_f32 --to kernel-tuner --device 'NVIDIA H200' --problem square -o cache.json
  tuner export gemm_f16 --launcher cpp --embed cubin:sm_90,ptx -o gemm_f16_launch.h
  tuner export gemm_f16 --launcher cpp -o gemm_f16_launch/    # with a target of CMake
  tuner export attention_f16 --torch -o attention_torch
  tuner export gemm_f32 --to json | jq '.entries[].config'

Exit codes: 0 done, 2 bad usage or input, 3 there is no result to export.")]
pub(crate) struct Args {
    /// Kernel, by name or search space file
    #[arg(value_name = "KERNEL|FILE.yaml")]
    kernel: String,

    #[command(flatten)]
    selection: Selection,

    /// Export format
    #[arg(long, value_enum, default_value = "header")]
    to: Target,

    /// Write to this file, or a launcher to this folder [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Write a C++ launcher: the header with the kernel's source, the choice of a configuration and the launches
    #[arg(long, value_enum, value_name = "LANGUAGE")]
    launcher: Option<launcher::Language>,

    /// Code embedded in the launcher or the Python package in addition to the source, such as
    /// cubin:sm_89,sm_90a,ptx
    #[arg(long, value_name = "KINDS")]
    embed: Option<String>,

    /// Launch shapes of classes that the gate has checked, and nothing else
    #[arg(
        long,
        value_enum,
        default_value = "on",
        value_name = "WHEN",
        requires = "launcher"
    )]
    checked_only: launcher::Checked,

    /// Write a Python package with a custom op of PyTorch to the folder of --output
    #[arg(long, conflicts_with = "launcher", requires = "output")]
    torch: bool,

    /// Export predicted times if nothing was measured
    #[arg(long)]
    allow_predicted: bool,

    #[command(flatten)]
    proof: ProofOptions,
}

/// Formats to export to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Target {
    /// C, C++ and CUDA header
    Header,
    /// The best rows as JSON
    Json,
    /// Kernel Tuner cache file, all candidates
    KernelTuner,
    /// T4 results, all candidates
    T4,
    /// Kernel Launcher wisdom file
    Wisdom,
    /// Triton autotuner cache
    Triton,
    /// KernelBench evaluation results, all candidates of all problems
    Kernelbench,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> CommandResult {
    if args.launcher.is_some() && args.to != Target::Header {
        return Err(usage("--launcher writes a header: leave out --to"));
    }
    if args.embed.is_some() && args.launcher.is_none() && !args.torch {
        return Err(usage("--embed needs --launcher cpp or --torch"));
    }
    if args.torch && args.to != Target::Header {
        return Err(usage("--torch writes a package: leave out --to"));
    }
    let kernel = kernel_named(&args.kernel)?;
    let query = args.selection.query(Some(&kernel), Some(1));
    let leaves = |board: &Board| args.takes(board);
    // First: a proof may withdraw the row that would be exported.
    args.proof.prove(&args.selection.db, &query, leaves)?;
    let text = match block_on(render(args))? {
        None => return Ok(exit::NOTHING_PASSED),
        Some(Exported::Package(files)) => return write_package(args, &files),
        Some(Exported::Text(text)) => text,
    };
    match args
        .output
        .as_deref()
        .filter(|path| *path != Path::new("-"))
    {
        // No final newline is added: a Kernel Tuner cache must end in `}`.
        None => output::print_bytes(text.as_bytes())?,
        Some(path) => {
            write_file(path, &text)?;
            say!("wrote {}", path.display());
        }
    }
    Ok(exit::DONE)
}

/// Export before it is written.
enum Exported {
    Text(String),
    /// Files of a folder.
    Package(PackageFiles),
}

/// Writes the files of a package to the folder.
fn write_package(args: &Args, files: &PackageFiles) -> CommandResult {
    let folder = args.output.clone().unwrap_or_default();
    for (name, text) in files {
        let path = folder.join(name);
        let parent = path.parent().unwrap_or(&folder);
        std::fs::create_dir_all(parent)
            .map_err(|error| usage(format!("{}: cannot be made: {error}", parent.display())))?;
        write_file(&path, text)?;
    }
    say!("wrote {}, {} files", folder.display(), files.len());
    Ok(exit::DONE)
}

impl Args {
    /// Reports whether the output is a folder: an existing one, or a name that ends with `/`.
    fn names_folder(&self) -> bool {
        self.output.as_ref().is_some_and(|path| {
            path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/")
        })
    }

    /// Reports whether times of a board's kind are exported.
    fn takes(&self, board: &Board) -> bool {
        self.allow_predicted || board.timing != TimingKind::Predicted
    }
}

/// Renders the export; `None`, after a message, if nothing can be exported.
async fn render(args: &Args) -> Result<Option<Exported>, CliError> {
    let kernel = &kernel_named(&args.kernel)?;
    let store = args.selection.open().await?;
    let query = args.selection.query(Some(kernel), Some(1));
    let mut found = proven_first(&store, &query).await?;
    Present::default().mark(&mut found);
    let (mut boards, refused): (Vec<Board>, Vec<Board>) =
        found.into_iter().partition(|board| args.takes(board));
    let passed = !boards.is_empty();
    boards.retain(|board| args.proof.admits(board));
    if boards.is_empty() {
        if passed {
            say!("nothing to export: no result of `{kernel}` was compared at its size");
        } else if refused.is_empty() {
            args.selection.explain_nothing(&store, Some(kernel)).await?;
            say!("nothing to export: no candidate of `{kernel}` passed");
        } else {
            say!(
                "nothing to export: `{kernel}` has only predicted times; measure on a GPU, or add \
                 --allow-predicted"
            );
        }
        return Ok(None);
    }
    for board in refused {
        say!(
            "left out: {} (predicted; --allow-predicted)",
            board_name(&board)
        );
    }
    stale::warn(&boards);
    let exported = match args.torch {
        true => {
            let entries = store.entries(&boards).await?;
            Exported::Package(torch::render_package(args, kernel, &boards, &entries)?)
        }
        false => {
            let text = convert(args, kernel, &store, &boards).await?;
            match args.launcher.is_some() && args.names_folder() {
                true => Exported::Package(export::launcher_folder(kernel, text)),
                false => Exported::Text(text),
            }
        }
    };
    store.close().await?;
    Ok(Some(exported))
}

async fn convert(
    args: &Args,
    kernel: &str,
    store: &Store,
    boards: &[Board],
) -> Result<String, CliError> {
    let entries = store.entries(boards).await?;
    let text = match args.to {
        Target::Header if args.launcher.is_some() => {
            return launcher::render_launcher(args, kernel, boards, &entries);
        }
        Target::Header => {
            let limited = export::own_sizes_only(kernel, &entries).map_err(usage)?;
            for line in limited {
                say!("note: {line}");
            }
            export::header(kernel, &entries)
        }
        Target::Json => export::json(kernel, &entries),
        Target::Wisdom => export::wisdom(kernel, &entries),
        Target::Kernelbench => {
            let mut problems = Vec::with_capacity(boards.len());
            for (board, entry) in boards.iter().zip(entries) {
                problems.push((entry, judged(store, board).await?));
            }
            export::kernelbench(&problems)
        }
        Target::KernelTuner | Target::T4 | Target::Triton => {
            let ([board], [entry]) = (boards, entries.as_slice()) else {
                let names = boards.iter().map(board_name).collect();
                return Err(usage(ExportError::Several(names)));
            };
            let judged = judged(store, board).await?;
            match args.to {
                Target::KernelTuner => export::kernel_tuner(entry, &judged),
                Target::T4 => export::t4(entry, &judged),
                _ => export::triton(entry, &judged),
            }
        }
    };
    text.map_err(usage)
}

/// Returns every judged candidate of a board. A candidate that passed only the gate's first checks is
/// omitted: the formats would mark it as correct.
async fn judged(store: &Store, board: &Board) -> Result<Vec<StoredTrial>, CliError> {
    let mut judged = store.candidates(board).await?;
    judged.retain(|candidate| candidate.trial.judgement.verdict != Verdict::NotJudged);
    let all = judged.len();
    judged.retain(|candidate| {
        candidate
            .trial
            .measurement
            .as_ref()
            .is_none_or(Measurement::is_proven)
    });
    note_unproven(all - judged.len(), &board_name(board));
    Ok(judged)
}
