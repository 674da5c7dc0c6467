//! System functions outside the code, which a kernel calls by address.

use super::program::{SYSTEM_NOTHING, SYSTEM_STOPS};
use super::registers::{Dest, Origin};
use super::warp::Warp;

/// Result register of a function.
const RESULT_REGISTER: Dest = Dest::Row(4);

/// Calls the function at that address; `false` if it is none of the system. Printing does nothing and returns 0;
/// a failed assertion stops the launch.
pub(super) fn call(warp: &mut Warp, at: Origin, on: u32) -> Result<bool, String> {
    let to = warp.registers.raw_wide(at)[on.trailing_zeros() as usize & 31];
    match to {
        SYSTEM_NOTHING => {
            warp.registers.set(RESULT_REGISTER, on, &[0; 32]);
            Ok(true)
        }
        SYSTEM_STOPS => Err("an assertion failed".to_owned()),
        _ => Ok(false),
    }
}
