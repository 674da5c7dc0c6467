//! `tuner worker`: lends this machine to a fleet.

use super::fleet::FleetOptions;
use super::{CliError, CommandResult, usage};
use crate::exit;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use tuner_core::private;
use tuner_device::replay::Recording;
use tuner_device::{DeviceSelector, gpu};
use tuner_engine::job::WorkerResource;
use tuner_engine::threads::start_runtime;
use tuner_fleet::{WorkerSettings, work};
use tuner_kernel::compile::DiskCache;

/// Lend this machine to a fleet
///
/// A worker is stateless and may join and leave at any time. It executes candidates of runs with
/// `--fleet`, each in a separate process as on one machine. SIGTERM or Ctrl-C ends it: candidates in
/// flight are returned immediately for another worker.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tuner worker --fleet nats://hub:4222 --device cuda:0
  tuner worker --fleet nats://hub:4222 --compile-only --jobs 32
  tuner worker --fleet tls://hub:4222 --fleet-creds worker.creds --device cuda:1 --name night

Exit codes: 0 told to end, 1 the device is lost, 2 bad usage, a server that refuses, or a fleet of
another version.")]
pub(crate) struct Args {
    /// cuda:N, vgpu:NAME or replay:FILE [default: the first GPU]
    #[arg(long, value_name = "DEVICE", conflicts_with = "compile_only")]
    device: Option<String>,

    /// Compile for others and lend no device
    #[arg(long)]
    compile_only: bool,

    /// Number of parallel compilations [default: number of cores, less one with a device]; 0 leaves
    /// compiling to other workers
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(..=1024))]
    jobs: Option<u16>,

    #[command(flatten)]
    fleet: FleetOptions,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> CommandResult {
    let Some(url) = &args.fleet.fleet else {
        refuse!("a worker needs a fleet; type --fleet nats://HOST:4222");
    };
    let lent = lent(args)?;
    if matches!(lent, WorkerResource::Compiler) && args.jobs == Some(0) {
        refuse!("--compile-only with --jobs 0 does nothing; type --jobs 1 or more");
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let free = match lent {
        WorkerResource::Compiler => cores,
        _ => cores.saturating_sub(1).max(1),
    };
    let temporary;
    let cache = match DiskCache::default_folder() {
        Some(folder) => folder,
        None => {
            let private = std::fs::Permissions::from_mode(0o700);
            temporary = tempfile::Builder::new().permissions(private).tempdir()?;
            temporary.path().to_owned()
        }
    };
    // Private folder: kernels are stored and their code runs there, so that no other user may write to it.
    let folder = private::create_folder(&cache, &["fleet"])
        .map_err(|error| usage(format!("{error}; set TUNER_CACHE to a folder of your own")))?;
    let (access, names) = args.fleet.named(url)?;
    let settings = WorkerSettings {
        access,
        names,
        compilers: args.jobs.map_or(free, usize::from),
        folder,
        lent,
        say: Arc::new(|text| say!("{text}")),
    };
    let runtime = start_runtime("worker", cores)?;
    let ended = runtime.block_on(async {
        let tell = || say!("shutting down: returning in-flight work (Ctrl-C again to force)");
        let stop = super::events::watch_signals(tell)?;
        work(settings, stop).await?;
        Ok(exit::DONE)
    });
    // A returned candidate may still run in its process, which ends with this one.
    runtime.shutdown_background();
    ended
}

fn lent(args: &Args) -> Result<WorkerResource, CliError> {
    if args.compile_only {
        return Ok(WorkerResource::Compiler);
    }
    let Some(device) = &args.device else {
        return match gpu::list() {
            Ok(gpus) if !gpus.is_empty() => Ok(WorkerResource::Device("cuda:0".to_owned())),
            _ => Err(usage(
                "no GPU is here; type --compile-only to compile for others, or --device vgpu:NAME \
                 or replay:FILE",
            )),
        };
    };
    match device.parse::<DeviceSelector>()? {
        DeviceSelector::Replay(file) => {
            Ok(WorkerResource::Recording(Arc::new(Recording::load(&file)?)))
        }
        selector @ (DeviceSelector::Cuda(_) | DeviceSelector::Vgpu(_)) => {
            Ok(WorkerResource::Device(selector.to_string()))
        }
        DeviceSelector::Auto | DeviceSelector::CudaSeveral(_) => Err(usage(format!(
            "`{device}`: a worker lends one device; type cuda:0, vgpu:h100 or replay:FILE, and start \
             one worker for each"
        ))),
    }
}
