//! `tuner report`: results as a document.

mod gather;

use super::lineage::family_trees;
use super::results::{Selection, block_on};
use super::terminal::Ticker;
use super::{CliError, CommandResult, usage};
use crate::{atomic, exit};
use std::path::{Path, PathBuf};
use tuner_core::units::counted;
use tuner_report as report;
use tuner_report::{Files, Input};

/// Write a report of the results as Markdown and self-contained HTML
///
/// For each problem the best against its baseline with the interval, convergence, roofline, effects
/// of the parameters, ablation, hazards met, the three main bottlenecks with the parameter that
/// addresses each, the winner against the default, costs, provenance and how to reproduce. The same
/// database gives the same files. Predicted, recorded and measured times are labelled everywhere.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tuner report -o report                     everything in leaderboard/tuner.db
  tuner report gemm_f32 --device vgpu:l4 --gpu-price 0.75
  tuner report attention_f16 --problem mission --ablate

Writes DIR/report.html, DIR/report.md and DIR/plots/*.svg, which the Markdown refers to.
Counters of a winner come from `tuner profile`, from the run itself (virtual GPU), or are taken on
the virtual GPU now, where the kernel is at hand and its template was not edited since.

Exit codes: 0 done, 2 bad usage or input, 3 there is no result to report.")]
pub(crate) struct Args {
    /// Kernels, by name or search space file [default: all]
    #[arg(value_name = "KERNEL|FILE.yaml")]
    kernels: Vec<String>,

    #[command(flatten)]
    selection: Selection,

    /// Write the files to this folder
    #[arg(short, long, value_name = "DIR", default_value = "report")]
    output: PathBuf,

    /// Price of one GPU hour, such as 0.75
    #[arg(long, value_name = "PRICE", value_parser = price)]
    gpu_price: Option<f64>,

    /// Number of best configurations to list
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    top: u32,

    /// Predict every change of one parameter of the winner that was not run
    #[arg(long)]
    ablate: bool,

    /// Do not collect counters for winners without stored ones
    #[arg(long)]
    no_profile: bool,
}

fn price(text: &str) -> Result<f64, String> {
    let price: f64 = text
        .parse()
        .map_err(|_| format!("`{text}` is not a number; type 0.75"))?;
    if price.is_finite() && price >= 0.0 {
        Ok(price)
    } else {
        Err(format!(
            "`{text}` is not a price; type a number such as 0.75"
        ))
    }
}

/// Runs the command.
///
/// # Errors
/// Bad arguments, an unreadable database, or files that cannot be written.
pub(crate) fn run(args: &Args) -> CommandResult {
    let ticker = Ticker::start();
    let Some(input) = block_on(read(args))? else {
        return Ok(exit::NOTHING_PASSED);
    };
    drop(ticker);
    write(&args.output, &report::write(&input))?;
    Ok(exit::DONE)
}

/// Reads the report's input; `None`, after a message, if no candidate passed.
async fn read(args: &Args) -> Result<Option<Input>, CliError> {
    let store = args.selection.open().await?;
    let top = Some(args.top as usize);
    let boards = args.selection.boards(&store, &args.kernels, top).await?;
    if boards.is_empty() {
        say!("nothing to report: no candidate passed");
        return Ok(None);
    }
    let subjects = gather::subjects(&store, boards, args).await?;
    let families = family_trees(&store, &args.kernels, &args.selection).await?;
    store.close().await?;
    Ok(Some(Input {
        database: args.selection.db.display().to_string(),
        gpu_price: args.gpu_price,
        subjects,
        families,
    }))
}

/// Writes the files of a report to a folder.
pub(super) fn write(directory: &Path, files: &Files) -> Result<(), CliError> {
    let put = |name: &str, text: &str| {
        let path = directory.join(name);
        let parent = path.parent().unwrap_or(directory);
        std::fs::create_dir_all(parent)
            .and_then(|()| atomic::write(&path, text.as_bytes()))
            .map_err(|error| usage(format!("{}: cannot be written: {error}", path.display())))
    };
    for (name, svg) in &files.plots {
        put(&format!("plots/{name}.svg"), svg)?;
    }
    // Pages come last, so that the plots that they show exist.
    put("report.md", &files.markdown)?;
    put("report.html", &files.html)?;
    say!(
        "wrote {} and report.md, {}",
        directory.join("report.html").display(),
        counted(files.plots.len(), "plot")
    );
    Ok(())
}
