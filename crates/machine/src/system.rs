//! Functions that are not part of the code: those of the system, which a kernel calls by address.

use super::program::{SYSTEM_NOTHING, SYSTEM_STOPS};
use super::registers::{Dest, Origin};
use super::warp::Warp;

/// Where a function leaves its result.
const RESULT: Dest = Dest::Row(4);

/// Calls the function at the address that stands there: printing does nothing and says that it printed
/// nothing, a failed assertion stops the launch.
pub(super) fn call(warp: &mut Warp, at: Origin, on: u32) -> Result<(), String> {
    let to = warp.registers.raw_wide(at)[on.trailing_zeros() as usize & 31];
    match to {
        SYSTEM_NOTHING => {
            warp.registers.set(RESULT, on, &[0; 32]);
            Ok(())
        }
        SYSTEM_STOPS => Err("an assertion failed".to_owned()),
        _ => Err(format!("a call of {to:#x}")),
    }
}
