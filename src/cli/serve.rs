//! `tuner serve`: the daemon.

use super::daemon::{TokenFile, read_token};
use super::fleet::HubOptions;
use super::results::db_parser;
use super::{CliError, CommandResult, output};
use crate::exit;
use std::net::SocketAddr;
use std::path::PathBuf;
use tuner_engine::threads::start_runtime;
use tuner_kernel::catalog::{Catalog, installed_folder};
use tuner_serve as serve;
use tuner_serve::Settings;
use tuner_store as store;

/// Run the daemon with its queue, HTTP API and dashboard
///
/// Runs are kept in the database and survive restarts; an interrupted run continues. Each device
/// works on one run at a time. `tuner run`, `submit`, `status` and `stop` with the same --db find
/// the daemon. SIGTERM ends it: candidates on their devices are finished and stored, the rest
/// continues at the next start.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tuner serve                                  then open http://127.0.0.1:7878
  tuner serve --db /var/lib/tuner/tuner.db --kernels ~/kernels/search_spaces --log json
  TUNER_TOKEN=$(cat token) tuner serve --listen 0.0.0.0:7878
  tuner serve --fleet nats://127.0.0.1:4222    candidates are judged by `tuner worker`s

Paths: / dashboard, /api/v1/… API, /openapi.json its description, /metrics Prometheus, /healthz")]
pub(crate) struct Args {
    /// Address to listen on; any but a loopback address needs a token
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7878", value_parser = address)]
    listen: SocketAddr,

    /// Database of results and of the queue
    #[arg(long, value_name = "FILE", default_value = store::DEFAULT_PATH, value_parser = db_parser())]
    db: PathBuf,

    /// Folder whose search spaces and recordings requests over HTTP may name; may be repeated
    /// [default: the project's search_spaces and the installed ones]
    #[arg(long, value_name = "DIR")]
    kernels: Vec<PathBuf>,

    /// Maximum number of devices in use [default: number of cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    engines: Option<u16>,

    #[command(flatten)]
    token: TokenFile,

    /// Log format on standard error; TUNER_LOG=debug shows more
    #[arg(long, value_enum, default_value = "text")]
    pub(super) log: LogStyle,

    #[command(flatten)]
    fleet: HubOptions,
}

/// Log format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum LogStyle {
    /// Human-readable lines.
    Text,
    /// One JSON object for each line.
    Json,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let named = text.replace("localhost", "127.0.0.1");
    named.parse().map_err(|_| {
        "type an IP address and a port, such as 127.0.0.1:7878 or 0.0.0.0:7878".to_owned()
    })
}

/// Open files that many clients need.
const WANTED_FILES: u64 = 65_536;

/// Runs the command.
pub(crate) fn run(args: &Args) -> CommandResult {
    raise_file_limit();
    let folders = if args.kernels.is_empty() {
        let here = std::env::current_dir()?;
        let own = Catalog::folder(&here);
        own.into_iter().chain(installed_folder()).collect()
    } else {
        args.kernels.clone()
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let engines = args.engines.map_or(cores, usize::from);
    let settings = Settings {
        listen: args.listen,
        db: args.db.clone(),
        token: read_token(&args.token)?,
        folders,
        engines,
        fleet: args.fleet.connect()?,
    };
    let runtime = start_runtime("serve", cores)?;
    let guarded = settings.token.is_some();
    runtime.block_on(async {
        let tell = || {
            tracing::info!("shutting down after the candidates on their devices (again to force)")
        };
        let ending = super::events::watch_signals(tell)?;
        let ready = |address: SocketAddr| {
            let with = if guarded { " (with the token)" } else { "" };
            // The daemon works even if standard output is closed.
            let _ = output::print(&format!("dashboard: http://{address}{with}"));
        };
        serve::serve(settings, ending, ready).await?;
        Ok::<_, CliError>(())
    })?;
    // Threads that still compile a dropped candidate are not joined.
    runtime.shutdown_background();
    Ok(exit::DONE)
}

/// Raises the limit on open files: shells set 1024, and a thousand clients need more.
fn raise_file_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    if let Some(files) = raised(limit.current, limit.maximum) {
        limit.current = Some(files);
        if let Err(error) = setrlimit(Resource::Nofile, limit) {
            tracing::debug!(%error, "the limit on open files stays");
        }
    }
}

/// Returns the limit to set if the current one is lower. A limit of `None` is unlimited.
fn raised(current: Option<u64>, maximum: Option<u64>) -> Option<u64> {
    let wanted = maximum.map_or(WANTED_FILES, |most| most.min(WANTED_FILES));
    current.is_some_and(|now| now < wanted).then_some(wanted)
}

#[cfg(test)]
mod tests {
    use super::raised;

    #[test]
    fn a_limit_on_open_files_is_never_lowered() {
        assert_eq!(raised(Some(1024), None), Some(65_536));
        assert_eq!(raised(Some(1024), Some(4096)), Some(4096));
        assert_eq!(raised(Some(4096), Some(4096)), None);
        assert_eq!(raised(Some(1 << 20), Some(1 << 20)), None);
        assert_eq!(raised(None, None), None);
    }
}
