//! Conversion of a plan's launches to driver launches.

use super::context::{Gpu, refused};
use super::driver::{DevicePointer, Function, FunctionAttribute, LaunchConfig};
use crate::vgpu::too_large_together;
use tuner_core::judgement::Judgement;
use tuner_core::plan::{Code, Plan, PlanLaunch, Role};
use vgpu::TensorMap;

/// A launch ready for the driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PreparedLaunch {
    pub(super) function: Function,
    pub(super) config: LaunchConfig,
}

/// Sets the variables of a plan in loaded code; `pointers` as for [`prepare_launch`].
pub(super) fn set_variables(
    gpu: &mut Gpu,
    plan: &Plan,
    seed: u64,
    pointers: &[Option<DevicePointer>],
) -> Result<(), Judgement> {
    for (index, variable) in plan.variables.iter().enumerate() {
        let bytes = variable.bytes(seed, index, |at| address(pointers, at));
        let bytes = bytes.map_err(refused)?;
        gpu.set_variable(&plan.code, &variable.holds.name, &bytes)?;
    }
    Ok(())
}

/// Returns the address of an argument's buffer, as a kernel receives it.
fn address(pointers: &[Option<DevicePointer>], argument: usize) -> Option<u64> {
    let pointer = pointers.get(argument).copied().flatten()?;
    Some(pointer.address())
}

/// Returns a tensor map of a plan in the driver's encoding.
fn tensor_map(gpu: &mut Gpu, name: &str, bytes: &[u8]) -> Result<Vec<u8>, Judgement> {
    let map = TensorMap::decode(bytes).map_err(|why| refused(format!("`{name}`: {why}")))?;
    let encoded = gpu.call(|driver, _| driver.tensor_map(&map))?;
    Ok(encoded.to_vec())
}

/// Number of blocks of the largest cluster that every GPU with clusters supports (CUDA C++ programming
/// guide, "Thread Block Clusters").
const PORTABLE_CLUSTER: u32 = 8;

/// Checks that the GPU supports clusters, and opts the kernel in to non-portable sizes.
fn allow_cluster(gpu: &mut Gpu, function: Function, cluster: [u32; 3]) -> Result<(), Judgement> {
    let (major, minor) = gpu.facts().capability;
    if major < 9 {
        return Err(refused(format!(
            "a launch with clusters of {cluster:?} blocks; a GPU of compute capability {major}.{minor} has no \
             thread block clusters"
        )));
    }
    if cluster.iter().product::<u32>() <= PORTABLE_CLUSTER {
        return Ok(());
    }
    let attribute = FunctionAttribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED;
    gpu.call(|driver, _| driver.function_set_attribute(function, attribute, 1))
}

/// Loads the kernel and lays out its parameters; `pointers` are the buffers of the plan's
/// arguments, `None` for scalars.
pub(super) fn prepare_launch(
    gpu: &mut Gpu,
    plan: &Plan,
    code: &Code,
    launch: &PlanLaunch,
    pointers: &[Option<DevicePointer>],
) -> Result<PreparedLaunch, Judgement> {
    let function = gpu.function(code, &launch.entry)?;
    gpu.opt_in(function, u64::from(launch.shared_bytes))?;
    let most = u64::from(gpu.facts().max_threads);
    if launch.threads() > most {
        return Err(refused(format!(
            "a block of {} threads; the GPU allows {most}",
            launch.threads()
        )));
    }
    if let Some(cluster) = launch.cluster {
        allow_cluster(gpu, function, cluster)?;
    }
    if launch.cooperative {
        let shared = u64::from(launch.shared_bytes);
        let facts = gpu.kernel_facts(code, &launch.entry, launch.threads(), shared)?;
        let together = u64::from(facts.blocks_per_sm) * u64::from(gpu.facts().sm_count);
        // The driver's error would not include the number of blocks that fit.
        if launch.blocks() > together {
            return Err(refused(too_large_together(launch.blocks(), together)));
        }
    }
    let parameter = |index: &usize| -> Result<Vec<u8>, Judgement> {
        let missing = || {
            refused(format!(
                "`{}` takes an argument that does not exist",
                launch.entry
            ))
        };
        let argument = plan.arguments.get(*index).ok_or_else(missing)?;
        if argument.role == Role::Scalar {
            let bytes = argument.scalar_at(|at| address(pointers, at));
            let bytes = bytes.ok_or_else(missing)?;
            return match &argument.passed {
                Some(passed) if passed.tensor_map => tensor_map(gpu, &argument.name, &bytes),
                _ => Ok(bytes),
            };
        }
        let address = address(pointers, *index).ok_or_else(missing)?;
        Ok(address.to_le_bytes().to_vec())
    };
    Ok(PreparedLaunch {
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
            cluster: launch.cluster,
            cooperative: launch.cooperative,
        },
    })
}
