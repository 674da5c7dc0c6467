//! Tensor maps: descriptions of tensors in global memory for bulk copies of boxes.

mod map;

pub use map::*;

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
