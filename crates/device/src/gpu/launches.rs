//! From a plan's launch to what the driver takes.

use super::context::{Gpu, refused};
use super::driver::{DevicePointer, Function, LaunchConfig};
use tuner_core::judgement::Judgement;
use tuner_core::plan::{Code, Plan, PlanLaunch, Role};

/// A launch, ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ready {
    pub(super) function: Function,
    pub(super) config: LaunchConfig,
}

/// Loads the kernel and lays out its parameters; `pointers` are the buffers of the plan's
/// arguments, `None` for scalars.
pub(super) fn ready(
    gpu: &mut Gpu,
    plan: &Plan,
    code: &Code,
    launch: &PlanLaunch,
    pointers: &[Option<DevicePointer>],
) -> Result<Ready, Judgement> {
    let function = gpu.function(code, &launch.entry)?;
    gpu.opt_in(function, u64::from(launch.shared_bytes))?;
    let most = u64::from(gpu.facts().max_threads);
    if launch.threads() > most {
        return Err(refused(format!(
            "a block of {} threads; the GPU allows {most}",
            launch.threads()
        )));
    }
    let parameter = |index: &usize| -> Result<Vec<u8>, Judgement> {
        let missing = || {
            refused(format!(
                "`{}` takes an argument that is not there",
                launch.entry
            ))
        };
        let argument = plan.arguments.get(*index).ok_or_else(missing)?;
        if argument.role == Role::Scalar {
            return Ok(argument.scalar_bytes());
        }
        let pointer = pointers
            .get(*index)
            .copied()
            .flatten()
            .ok_or_else(missing)?;
        Ok(pointer.address().to_le_bytes().to_vec())
    };
    Ok(Ready {
        function,
        config: LaunchConfig {
            grid: launch.grid,
            block: launch.block,
            shared_bytes: launch.shared_bytes,
            parameters: launch
                .arguments
                .iter()
                .map(parameter)
                .collect::<Result<_, _>>()?,
        },
    })
}
