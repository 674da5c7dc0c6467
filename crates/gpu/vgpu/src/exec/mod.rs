//! The executor: warps in lockstep, blocks on all cores.
//!
//! A warp is a set of *paths*: lanes that share a program counter. A branch that splits a path
//! creates a *reconvergence point* at its immediate post-dominator, where the halves wait for each
//! other. A reconvergence point is broken up when the other lanes spin, because independent thread
//! scheduling guarantees progress, not convergence.
#![expect(
    clippy::indexing_slicing,
    reason = "the executor: registers, lanes and pieces are numbered when the module is lowered, which checks them once; addresses of the kernel are checked before they become places"
)]

pub mod launch;
pub mod others;
pub mod rounding;
pub(crate) mod shadow_values;
pub mod stop;
mod externals;
pub mod device_runtime;
mod listed;
mod heap;
mod format;
mod printed;
pub(crate) mod regs;
mod attempts;
mod workers;
mod block;
mod cluster;
mod cluster_barrier;
mod remote;
mod async_stores;
mod warp;
mod step;
mod stuck;
mod cta;
mod access;
mod values;
mod device;
mod order;
mod phases;
mod races;
mod transfer;
mod rows;
pub mod traffic;
pub mod trace;
mod traced;
pub mod watch;
mod partial;
mod placement;
mod proxy;
mod map_fences;
mod unchanged;
mod atomics;
mod clear;
mod copies;
mod bulk_stores;
mod definedness;
mod undefined_words;
mod unwritten;
mod matrices;
mod collective;
mod barrier;
mod calls;
mod stack;
mod mbarrier;
mod wgmma;
mod flights;
mod tensor;
mod tensor_memory;
mod tensor_core;
mod tensor_operands;
mod tensor_shift;
mod tensor_reads;
mod sampling;
pub mod fetcher;
pub mod surface_place;
mod texture;
mod surface;
mod registers;
mod misc;
