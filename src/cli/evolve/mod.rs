//! `tuner evolve`: changes of a kernel's code, proposed by a mutator, decided by gate and times.

mod announce;
mod checks;
mod evaluate;
mod floor;
mod http;
mod manual;
mod mutator;
mod named;
mod options;
mod reading;
mod request;
mod session;
mod show;
mod watch;
mod written;

use super::events::{stopping, watch_signals};
use super::gate::promotion::PromotionArgs;
use super::results::{db_parser, default_database};
use super::terminal::Ticker;
use super::{CliError, CommandResult, output, usage};
use crate::{atomic, exit};
use evaluate::{Evaluator, Results, Tuned};
use options::Options;
use session::{End, Session, shipped_member};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tokio::sync::watch::Receiver;
use tuner_core::escape;
use tuner_engine::job::{Jobs, ProveBudget};
use tuner_engine::threads::start_runtime;
use tuner_evolve::outcome::Outcome;
use tuner_evolve::population::Population;
use tuner_report::us;
use tuner_store as store;
use tuner_store::Store;
use watch::Files;

/// Change a kernel's code: a mutator proposes, the gate checks, the times decide
///
/// Each round sends the mutator one JSON request (source, space, times, bottlenecks, failures) and
/// reads one JSON answer (a new source, SEARCH/REPLACE blocks or a unified diff). The change is checked
/// with fresh seeds and shapes, tuned, timed, compared by the rule, and stored. On a virtual GPU it is
/// `predicted better` at most, and its gain must exceed the model's resolution. Answers are data: no
/// part of one runs on this machine. docs/mutator.md has the protocol.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tuner evolve conv2d_f32 --mutator scripted --device vgpu:h100 --rounds 10
  tuner evolve softmax --mutator ./propose.py --budget 2h
  TUNER_LLM_URL=http://localhost:8000/v1 TUNER_LLM_MODEL=qwen3 tuner evolve softmax --mutator http
  tuner evolve softmax --mutator manual --folder requests/
  tuner leaderboard softmax --lineage

Exit codes: 0 done, 2 bad usage or input, 3 no change passed the gate, 130 interrupted (all announced
changes are stored; --resume goes on).")]
pub(crate) struct Args {
    /// Kernel, by name or search space file
    #[arg(value_name = "KERNEL|FILE.yaml")]
    kernel: String,

    /// Mutator: a command, or scripted, http or manual
    #[arg(long, value_name = "COMMAND")]
    mutator: String,

    /// Number of changes to request
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rounds: u32,

    /// Stop after this time, such as 2h; the current round is finished
    #[arg(long, value_name = "TIME")]
    budget: Option<String>,

    /// Configurations to judge of each change, on each problem
    #[arg(long, value_name = "N", default_value_t = 24, value_parser = clap::value_parser!(u64).range(1..))]
    evals: u64,

    /// Configurations to judge of the shipped template before the first round, on each problem; stored
    /// results count
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = clap::value_parser!(u64).range(1..))]
    base_evals: u64,

    /// Rules of acceptance [default: --min-gain 3%:2]; on a virtual GPU the gain must exceed the model's
    /// resolution too
    #[command(flatten)]
    promotion: PromotionArgs,

    /// Device: auto, cuda, cuda:N, vgpu:NAME or vgpu:NAME@CLOCK
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    device: String,

    /// Use only this problem; may be repeated
    #[arg(long, value_name = "NAME")]
    problem: Vec<String>,

    /// Random seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Number of parallel compilations [default: number of cores]
    #[arg(long, value_name = "N")]
    jobs: Option<Jobs>,

    /// Time limit for one answer
    #[arg(long, value_name = "TIME", default_value = "10m")]
    timeout: String,

    /// End when the answers have cost this much (http)
    #[arg(long, value_name = "PRICE")]
    cost_limit: Option<f64>,

    /// Folder of requests and answers (manual), and of prompts and transcripts (http)
    #[arg(long, value_name = "DIR", default_value = "evolve")]
    folder: PathBuf,

    /// Run a new best candidate whole if that takes at most this number of lane instructions; 0: never
    /// [default: 3e10]
    #[arg(long, value_name = "N")]
    prove_budget: Option<ProveBudget>,

    /// Write source and search space of each change that is accepted or predicted better to this folder
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,

    /// Continue the last unfinished evolution of the same kernel, template, device, mutator and seed
    #[arg(long)]
    resume: bool,

    /// Database of results
    #[arg(long, value_name = "FILE", default_value = store::DEFAULT_PATH, value_parser = db_parser())]
    db: PathBuf,
}

/// Runs the command.
///
/// # Errors
/// Bad usage, or a failure of the tuner.
pub(crate) fn run(args: &Args) -> CommandResult {
    let ticker = Ticker::start();
    let options = Options::new(args)?;
    let mutator = named::select(&args.mutator, &args.folder, args.cost_limit).map_err(usage)?;
    let runtime = start_runtime("tuner", 2)?;
    let ended = runtime.block_on(async {
        let shutdown = watch_signals(stopping)?;
        let store = Store::open(&args.db).await?;
        let ended = evolve(args, &options, mutator, &store, shutdown).await;
        // Closed after an error as well; the evolution's own error is the one to report.
        let closed = store.close().await;
        let ended = ended?;
        closed?;
        Ok::<_, CliError>(ended)
    })?;
    // Threads that still compile a dropped candidate are not joined.
    runtime.shutdown_background();
    drop(ticker);
    let Some((end, text, passed)) = ended else {
        return Ok(exit::INTERRUPTED);
    };
    output::print(&text)?;
    Ok(super::run::exit_code(end == End::Interrupted, passed))
}

/// Runs the evolution; `None`: interrupted before its first round.
async fn evolve(
    args: &Args,
    options: &Options,
    mutator: Box<dyn mutator::Mutator>,
    store: &Store,
    shutdown: Receiver<bool>,
) -> Result<Option<(End, String, bool)>, CliError> {
    let evaluator = Evaluator {
        options,
        store,
        shutdown: shutdown.clone(),
    };
    let Some(shipped) = shipped(options, &evaluator).await? else {
        return Ok(None);
    };
    let mut population = Population::default();
    population.add(shipped_member(&shipped));
    let start = options.start(args.mutator.clone());
    let mut session = Session {
        options,
        store,
        evaluator,
        mutator,
        mutator_name: args.mutator.clone(),
        name: String::new(),
        shipped,
        population,
        changes: Vec::new(),
        results: BTreeMap::new(),
        files: Files::new(&options.parsed),
        exhausted: false,
    };
    let unfinished = match args.resume {
        true => store.unfinished_evolution(&start).await?,
        false => None,
    };
    match unfinished {
        Some(lineage) => {
            session.take_over(lineage)?;
            store.set_evolution_state(&session.name, "running").await?;
        }
        None => {
            if args.resume {
                say!(
                    "note: no unfinished evolution of the same kernel, device, mutator and seed: a new one begins"
                );
            }
            session.name = store.begin_evolution(start).await?;
        }
    }
    say!(
        "evolution {}: {} rounds by {}",
        session.name,
        options.rounds,
        escape::line(&args.mutator)
    );
    let end = session.run(shutdown).await?;
    let state = match end {
        End::Interrupted => "interrupted",
        _ => "finished",
    };
    store.set_evolution_state(&session.name, state).await?;
    if let Some(folder) = &args.output {
        write_better(&session, folder)?;
    }
    // The first member is the shipped template.
    let passed = session.population.members().len() > 1;
    let text = show::summary(&session, end, &db_argument(args));
    Ok(Some((end, text, passed)))
}

/// Returns the argument that selects the database in the next command; empty for the default.
fn db_argument(args: &Args) -> String {
    match args.db == default_database() {
        true => String::new(),
        false => format!(" --db {}", escape::shell(&args.db.to_string_lossy())),
    }
}

/// Tunes the shipped template on each problem; `None`: interrupted.
async fn shipped(
    options: &Options,
    evaluator: &Evaluator<'_>,
) -> Result<Option<Results>, CliError> {
    let mut found = BTreeMap::new();
    for problem in &options.problems {
        let best = match evaluator.tune(None, problem, options.base_evals).await? {
            None => return Ok(None),
            Some(Ok(best)) => best,
            Some(Err(verdict)) => {
                refuse!(
                    "no configuration of the shipped template passed on {problem} ({verdict}); `tuner check \
                     {}` tells why",
                    options.kernel
                );
            }
        };
        let best = evaluator.stored_best(problem, best).await?;
        say!(
            "shipped: {problem} {} us {} after {} configurations",
            us(best.time_us),
            options.timing(),
            options.base_evals
        );
        found.insert(problem.clone(), best);
    }
    let configs = found
        .iter()
        .map(|(problem, best)| (problem.clone(), best.config.clone()));
    let mut facts = evaluator.facts(None, &configs.collect())?;
    let results = found.into_iter().map(|(problem, best)| {
        let facts = facts.remove(&problem).unwrap_or_default();
        (
            problem,
            Tuned::new(best.config, best.time_us, best.ci95_us, facts),
        )
    });
    Ok(Some(results.collect()))
}

/// Writes the code of changes that are accepted or predicted better.
fn write_better(session: &Session<'_>, folder: &Path) -> Result<(), CliError> {
    let kernel = &session.options.parsed.spec.kernel;
    for change in &session.changes {
        let outcome: Option<Outcome> = change.outcome.parse().ok();
        let (Some(source), Some(space)) = (&change.source, &change.space) else {
            continue;
        };
        if !outcome.is_some_and(Outcome::is_incumbent) {
            continue;
        }
        std::fs::create_dir_all(folder)?;
        let name = format!("{kernel}-{}", change.id);
        let space = written::space(&session.options.parsed, space, &format!("{name}.cu"))?;
        for (ending, text) in [("cu", source), ("json", &space), ("diff", &change.diff)] {
            let path = folder.join(format!("{name}.{ending}"));
            atomic::write(&path, text.as_bytes()).map_err(|error| {
                usage(format!("{}: cannot be written: {error}", path.display()))
            })?;
        }
        say!(
            "wrote {}",
            folder.join(format!("{kernel}-{}.cu", change.id)).display()
        );
    }
    Ok(())
}
