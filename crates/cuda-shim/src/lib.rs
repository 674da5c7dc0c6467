//! The client side of the virtual CUDA device.
//!
//! A CUDA program that runs under `tuner exec` loads `libcudart.so.12`, `libcudart.so.13` or
//! `libcuda.so.1` built from these sources (by the build script of `virtual-driver`). Each function
//! translates a call into a request ([`protocol`]) to the tuner, which holds the device. The program's
//! process holds no device state but handles, graphs and mappings of memory that host and device share: in the library
//! of the driver, for both interfaces.
//!
//! ```text
//! program ── C interface (runtime, driver) ── client ── Unix socket ── virtual-driver ── vgpu
//! ```
//! A fourth library, also named `libcuda.so.1`, passes each call on to the driver of a GPU and captures its launches
//! ([`forward`]). A fifth, of separate sources (`redirect`), replaces a runtime that is linked into the program.
#![allow(
    unsafe_code,
    reason = "the C interface of CUDA: pointers of the program, checked as far as CUDA checks them"
)]
#![allow(
    non_snake_case,
    non_camel_case_types,
    reason = "names of the C interface"
)]
#![allow(
    clippy::missing_safety_doc,
    reason = "the contract of each function is CUDA's own documentation of it"
)]

pub mod errors;
pub mod protocol;

mod abi;
mod advice;
mod arrays;
mod client;
mod connection;
mod direction;
mod graph;
mod images;
mod kernels;
mod memory;
mod pools;
mod properties;
mod registered;
mod say;
mod state;
mod system;
#[path = "../../gpu/tensor-map/src/map.rs"]
pub mod tensor_map;
mod values;

pub mod both;
pub mod driver;
pub mod forward;
#[cfg(not(shim))]
pub mod redirect;
pub mod runtime;

#[cfg(shim)]
mod stubs {
    include!(env!("CUDA_SHIM_STUBS"));
}
