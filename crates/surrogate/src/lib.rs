//! The model of the search: a Gaussian process that grows one point at a time.
//!
//! Rasmussen and Williams, *Gaussian Processes for Machine Learning* (2006), chapters 2 and 5:
//! Matérn 5/2 covariance with a length scale a dimension, the signal's variance at its best value.
//! Questions are asked in points that remember what they were answered ([`Point`]), so a pool of
//! candidates follows a growing model at a cost linear in its size.
//!
//! Beside it, [`importance()`]: what each parameter is worth.
//!
//! A library of its own, so that it is optimised in every build profile. It knows nothing of
//! kernels, draws nothing at random, and its results depend on its input alone.
#![expect(
    clippy::indexing_slicing,
    reason = "linear algebra over lists whose lengths the callers in this crate set; the dimensions of points are checked where they enter"
)]

mod fit;
mod importance;
mod linear;
mod mean;
mod process;

pub use fit::Scales;
pub use importance::{Importance, importance};
pub use linear::{dot, squared_distance};
pub use mean::Mean;
pub use process::{Place, Point, Process, Shape};
