//! `tuner device-worker`: the process that owns a device. Started by the tuner itself.

use super::CommandResult;
use crate::exit;
use tuner_device::DeviceSelector;
use tuner_device::vgpu::Limits;
use tuner_device::worker::child;

/// Serves judgements on one device over the standard streams.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The device, `vgpu:NAME` or `cuda:N`.
    #[arg(long)]
    device: DeviceSelector,
}

/// Serves until the parent closes the pipe.
///
/// # Errors
/// A device without a worker, or a lost parent.
pub(crate) fn run(args: &Args) -> CommandResult {
    let served = match &args.device {
        DeviceSelector::Vgpu(name) => {
            let Some(arch) = ::vgpu::Arch::by_name(name) else {
                refuse!("no virtual GPU is called `{name}`");
            };
            child::run(arch, Limits::default())
        }
        DeviceSelector::Cuda(ordinal) => child::run_cuda(*ordinal),
        other => {
            refuse!("no worker runs on {other}");
        }
    };
    served?;
    Ok(exit::DONE)
}
