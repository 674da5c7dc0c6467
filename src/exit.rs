//! Documented exit codes.

/// The command succeeded.
pub(crate) const DONE: u8 = 0;
/// The tuner failed: disk full, corrupt database, a bug.
pub(crate) const FAILED: u8 = 1;
/// Bad usage or a bad input file; the message has the location and the fix.
pub(crate) const USAGE: u8 = 2;
/// The run finished, but no candidate passed.
pub(crate) const NOTHING_PASSED: u8 = 3;
/// `gate` found a regression or a wrong result, or a `check` verdict is not `ok`.
pub(crate) const NOT_OK: u8 = 4;
/// Interrupted by Ctrl-C; all finished work is stored.
pub(crate) const INTERRUPTED: u8 = 130;
