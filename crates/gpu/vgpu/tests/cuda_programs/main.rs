//! What whole CUDA programs need beyond plain kernels, in PTX as nvcc writes it (`ptx/*.cu`).
#![expect(clippy::unwrap_used, reason = "helpers of tests: a failure is a panic")]

mod calls;
mod device_launches;
mod harness;
mod hazards;
mod heap;
mod limits;
mod output;
mod parameters;
mod textures;
mod unwritten;
