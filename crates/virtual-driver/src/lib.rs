//! A virtual CUDA device for whole programs.
//!
//! ```text
//! program (libcudart, libcuda: `cuda-shim`) ── Unix socket ── server ── device ── vgpu
//!                                                                         └── summary of kernels and hazards
//! ```
//! [`libraries`] unpacks the shared libraries that a program loads; [`Server`] answers its requests with a
//! [`Device`] per process, on a virtual GPU; [`Summary`] describes the executed kernels.

mod attributes;
mod capture;
mod device;
mod device_work;
mod fatbin;
mod images;
mod launches;
pub mod libraries;
mod link;
mod linkage;
mod mappings;
mod memory;
mod mirror;
mod modules;
mod names;
mod pages;
mod pools;
mod predicted;
mod ptx_target;
mod refusals;
mod sass_only;
mod server;
mod streams;
mod summary;
mod target;
mod time;

pub use cuda_shim::forward::DRIVER_VARIABLE;
pub use cuda_shim::protocol::{CAPTURE_VARIABLE, SOCKET_VARIABLE};
pub use device::{Device, Options};
pub use fatbin::{Image, ImageError, read_image};
pub use linkage::{Linkage, read_linkage};
pub use names::shortened;
pub use predicted::Prediction;
pub use server::Server;
pub use summary::{FoldedHazard, KernelSummary, Summary, UnsupportedLaunch};
