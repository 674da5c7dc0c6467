//! Collected hazards.
