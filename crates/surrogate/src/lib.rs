//! Surrogate model of the search: a Gaussian process with incremental updates.
//!
//! Rasmussen and Williams, *Gaussian Processes for Machine Learning* (2006), chapters 2 and 5:
//! Matérn 5/2 covariance with a length scale per dimension, signal variance at its best value.
//! A query point ([`Point`]) caches its solved covariances, so updating a pool of candidates to a
//! growing model costs time linear in its size.
//!
//! [`importance()`] computes the importance of each parameter.
//!
//! A separate crate, so that every build profile optimises it. It does not depend on kernels and draws no
//! random numbers: the results depend only on the input.
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
pub use process::{Input, Point, Process, Shape};
