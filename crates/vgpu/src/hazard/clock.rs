//! Vector clocks.
