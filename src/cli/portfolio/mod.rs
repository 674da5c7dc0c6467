//! `tuner portfolio`: a small set of configurations for a grid of shapes.

mod kernel;
mod recorded;
mod show;

use super::results::db_parser;
use super::terminal::Ticker;
use super::{CliError, CommandResult, output, report, usage};
use crate::exit;
use std::collections::BTreeMap;
use std::path::PathBuf;
use tuner_device::DeviceSelector;
use tuner_engine::grid::Grid;
use tuner_engine::job::Jobs;
use tuner_engine::parse_share;
use tuner_report::portfolio::{
    Choice, DecisionTree, Losses, PortfolioInput, SEARCH_STEPS, Table, best_of_size, loss_curve,
    percent, smallest, write_portfolio,
};
use tuner_store as store;

/// Choose the smallest set of configurations for a grid of shapes
///
/// The candidates are the best stored configurations of the kernel on the device, the default and the
/// search space's seeds; --evals or --budget first search for better ones on each shape. Pairs without
/// a stored time are measured on a GPU (checked first), and predicted on a virtual one, where the
/// chosen configurations are then checked. The loss of a configuration on a shape is against the best
/// known one of this shape. The set is the smallest whose worst loss is at most --loss; a decision tree
/// with the fewest leaves dispatches over the sizes. Sizes between two of the grid have the losses that
/// were measured around them (--at). Recorded files are shapes too: their devices and sizes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tuner portfolio attention_f16 --grid 'S=128..4096:x2,T=S,D=64,128' --variants 4 --device vgpu:a100
  tuner portfolio gemm_f16 --grid 'M=64..4096:x4,N=4096,K=4096' --evals 400 --at M=300 -o portfolio
  tuner portfolio conv2d_A100.json.gz conv2d_MI250X.json.gz conv2d_W7800.json.gz --loss 5%

A grid has values between commas, ranges with a factor (128..16384:x2) or a difference (64..512:+64), and
sizes that equal another one (T=S). Sizes that it does not name take those of --problem. At most 128 shapes.
Times on a virtual GPU are predicted and labelled so; only results of --evals and --budget are stored.

Exit codes: 0 done; 2 bad usage or input; 3 no set of --variants stays within --loss (the best one of that
size is printed), or no configuration works.")]
pub(crate) struct Args {
    /// Kernel, by name or search space file; or recorded files (.json, .json.gz)
    #[arg(value_name = "KERNEL|FILE", required = true)]
    kernel: Vec<String>,

    /// Shapes, such as 'S=128..16384:x2,T=S,D=64,128'
    #[arg(long, value_name = "GRID")]
    grid: Option<Grid>,

    /// Problem whose values the sizes outside the grid take [default: the first]
    #[arg(long, value_name = "NAME")]
    problem: Option<String>,

    /// Largest number of configurations
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=64))]
    variants: u8,

    /// Allowed loss on every shape
    #[arg(long, value_name = "SHARE", default_value = "2%", value_parser = parse_share)]
    loss: f64,

    /// Device: auto, cuda:N measures, vgpu:NAME predicts
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    device: DeviceSelector,

    /// Search for better configurations first: this number of trials over all shapes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    evals: Option<u64>,

    /// Search for better configurations first: for this time, such as 30m
    #[arg(long, value_name = "TIME")]
    budget: Option<String>,

    /// Random seed of the search
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Number of best stored configurations of each problem that are candidates
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1000))]
    top: u16,

    /// Print the variant and the losses known for these sizes, such as S=3000,D=64; may be repeated
    #[arg(long, value_name = "SIZES", value_parser = sizes)]
    at: Vec<BTreeMap<String, String>>,

    /// Database of results
    #[arg(long, value_name = "FILE", default_value = store::DEFAULT_PATH, value_parser = db_parser())]
    db: PathBuf,

    /// Number of parallel compilations [default: number of cores]
    #[arg(long, value_name = "N")]
    jobs: Option<Jobs>,

    /// Write report.html, report.md and the plot to this folder
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,

    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    format: output::Format,
}

impl Args {
    /// Returns the allowed loss with a margin for the rounding of a ratio of two times.
    fn allowed_loss(&self) -> f64 {
        self.loss + 1e-9
    }

    /// Chooses at most `--variants` configurations: the smallest set within the loss, with the proven
    /// least size of such a set, else the best set of that size. `None` if no set works on all shapes.
    fn choose_members(&self, losses: &Losses) -> Option<(Choice, Option<usize>)> {
        let most = usize::from(self.variants);
        let within = smallest(losses, self.allowed_loss(), SEARCH_STEPS);
        match within.filter(|found| found.choice.members.len() <= most) {
            Some(found) => Some((found.choice, Some(found.least))),
            None => Some((best_of_size(losses, most, SEARCH_STEPS)?, None)),
        }
    }
}

/// Reads `S=3000,D=64`.
fn sizes(text: &str) -> Result<BTreeMap<String, String>, String> {
    let pair = |item: &str| {
        let (name, value) = item
            .split_once('=')
            .ok_or_else(|| format!("`{item}` is not NAME=VALUE; type S=3000,D=64"))?;
        Ok((name.trim().to_owned(), value.trim().to_owned()))
    };
    text.split(',').map(pair).collect()
}

/// Times of a kernel or of recorded files.
struct Source {
    kernel: String,
    device: String,
    table: Table,
}

/// Portfolio that is printed.
struct Portfolio<'a> {
    args: &'a Args,
    source: &'a Source,
    losses: Losses,
    choice: Choice,
    /// Proven minimum: no smaller set stays within the loss; `None`: no set of up to `--variants` does.
    least: Option<usize>,
    curve: Vec<(usize, Choice)>,
    tree: DecisionTree,
}

/// Runs the command.
///
/// # Errors
/// Bad arguments or files, or a device that does not work.
pub(crate) fn run(args: &Args) -> CommandResult {
    let ticker = Ticker::start();
    let recordings = recorded::is_recorded(&args.kernel);
    let mut source = match recordings {
        true => recorded::read(args)?,
        false => kernel::Candidates::read(args)?.into_source(args)?,
    };
    drop_unserved(&mut source)?;
    let portfolio = choose(args, &mut source)?;
    drop(ticker);
    let Some(portfolio) = portfolio else {
        say!(
            "no set of {} configurations works on all shapes; allow more with --variants",
            args.variants
        );
        return Ok(exit::NOTHING_PASSED);
    };
    let lookups = show::lookups(&portfolio)?;
    if let Some(folder) = &args.output {
        report::write(folder, &write_portfolio(&portfolio.input()))?;
    }
    output::print(&show::text(&portfolio, &lookups)?)?;
    if portfolio.least.is_none() {
        say!(
            "no set of {} stays within {}: the best loses {} on its worst shape",
            args.variants,
            percent(args.loss),
            percent(portfolio.choice.worst)
        );
        return Ok(exit::NOTHING_PASSED);
    }
    Ok(exit::DONE)
}

/// Drops shapes for which no configuration has a time.
fn drop_unserved(source: &mut Source) -> Result<(), CliError> {
    // A loss is relative to the best time of its shape, which an unserved shape does not have.
    let best = source.table.best_times();
    let table = &mut source.table;
    let served: Vec<bool> = best.iter().map(Option::is_some).collect();
    for (shape, _) in table
        .shapes
        .iter()
        .zip(&served)
        .filter(|(_, served)| !**served)
    {
        say!("left out: {}: no configuration works there", shape.name);
    }
    let mut kept = served.iter();
    table
        .shapes
        .retain(|_| kept.next().is_some_and(|kept| *kept));
    for times in &mut table.times {
        let mut kept = served.iter();
        times.retain(|_| kept.next().is_some_and(|kept| *kept));
    }
    match table.shapes.is_empty() {
        true => Err(usage("no configuration has a time on any of the shapes")),
        false => Ok(()),
    }
}

/// Chooses the set and its tree; `None` when no set of that size works on all shapes.
fn choose<'a>(args: &'a Args, source: &'a mut Source) -> Result<Option<Portfolio<'a>>, CliError> {
    let losses = source.table.losses();
    let Some((choice, least)) = args.choose_members(&losses) else {
        return Ok(None);
    };
    source.table.group_names(&losses, &choice.members);
    // The best set of this size may exceed the allowed loss, and no tree loses less than its set.
    let loss = args.allowed_loss().max(choice.worst);
    let tree = DecisionTree::new(&source.table, &losses, &choice.members, loss)
        .ok_or_else(|| anyhow::anyhow!("the portfolio serves a shape that its tree does not"))?;
    let curve = loss_curve(&losses, choice.members.len(), SEARCH_STEPS);
    Ok(Some(Portfolio {
        args,
        source,
        losses,
        choice,
        least,
        curve,
        tree,
    }))
}

impl Portfolio<'_> {
    /// Returns the input of the report.
    fn input(&self) -> PortfolioInput<'_> {
        PortfolioInput {
            kernel: &self.source.kernel,
            device: &self.source.device,
            loss: self.args.loss,
            table: &self.source.table,
            losses: &self.losses,
            choice: &self.choice,
            curve: &self.curve,
            tree: &self.tree,
        }
    }
}
