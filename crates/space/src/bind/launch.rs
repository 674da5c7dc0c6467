//! Evaluation of launches for one configuration.

use super::{BindError, Rest, fill_in, small, taken, unusable};
use crate::Launch;
use tuner_core::plan::PlanLaunch;
use tuner_core::value::Value;

/// Builds a launch; `None` if its `when` is false, in which case its extents may lack values.
pub(super) fn launch(
    launch: &Launch,
    macros: &[(String, Value)],
    rest: Rest<'_, '_>,
) -> Result<Option<PlanLaunch>, BindError> {
    let happens = match launch.when {
        Some(_) => {
            let ((what, expr), value) = taken(rest)?;
            let truth = value.truth();
            truth.ok_or_else(|| unusable(what, expr, value, "true or false"))?
        }
        None => true,
    };
    if !happens {
        let cluster = launch.cluster.as_ref().map_or(0, |cluster| cluster.len());
        // Values are in the order of the expressions: those of an omitted launch must be consumed too.
        let unused = launch.grid.len() + launch.block.len() + cluster + 1;
        for _ in 0..unused {
            taken(rest)?;
        }
        return Ok(None);
    }
    let grid = extents(rest)?;
    let block = extents(rest)?;
    let cluster = launch.cluster.is_some().then(|| extents(rest));
    let cluster = cluster.transpose()?;
    if let Some(cluster) = cluster {
        check_cluster(&launch.entry, grid, cluster)?;
    }
    Ok(Some(PlanLaunch {
        entry: fill_in(&launch.entry, macros),
        arguments: launch.args.clone(),
        grid,
        block,
        cluster,
        shared_bytes: small(rest, 0, "a whole number from 0 to 2^31 - 1")?,
        cooperative: launch.cooperative,
    }))
}

/// Reads three extents.
fn extents(rest: Rest<'_, '_>) -> Result<[u32; 3], BindError> {
    let mut extents = [0_u32; 3];
    for each in &mut extents {
        *each = small(rest, 1, "a whole number from 1 to 2^31 - 1")?;
    }
    Ok(extents)
}

/// Checks a cluster against the limits of all devices.
fn check_cluster(entry: &str, grid: [u32; 3], cluster: [u32; 3]) -> Result<(), BindError> {
    let blocks: u64 = cluster.iter().map(|extent| u64::from(*extent)).product();
    let why = if blocks > LARGEST_CLUSTER {
        format!("it has {blocks} blocks, and a cluster at most {LARGEST_CLUSTER}")
    } else if grid.iter().zip(cluster).any(|(grid, by)| grid % by != 0) {
        format!("the grid {grid:?} is not a multiple of it")
    } else {
        return Ok(());
    };
    Err(BindError::Cluster {
        entry: entry.to_owned(),
        cluster,
        why,
    })
}

/// Number of blocks of the largest cluster that any device supports.
const LARGEST_CLUSTER: u64 = 16;
