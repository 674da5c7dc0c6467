//! A virtual GPU: executes PTX on the CPU and reports every memory and synchronisation hazard.
//!
//! ```text
//! PTX text ──ptx──► syntax tree ──lower──► flat program ──exec──► results + hazards + counters
//!                                                          │
//!                            memory (bytes, who wrote, guard gaps) and hazard (happens-before)
//! ```
//! [`Module::load`] reads PTX once; [`launch`] runs one entry of it over a [`GlobalMemory`].
//!
#![doc = include_str!("../README.md")]
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

pub mod arch;
mod lower;
pub mod memory;
pub mod hazard;
pub mod counters;
pub mod exec;
mod module;
pub mod table;
mod texture;
pub mod tensor_core;
pub mod tensor_box;
pub mod warpgroup;

pub use arch::Arch;
pub use counters::Counters;
pub use exec::device_runtime::{DeviceLaunch, DeviceOperation, DeviceWork};
pub use exec::launch::{
    Arg, BlockOrder, BlockSet, Checks, Depth, End, Launch, LaunchError, LaunchReport, Schedule,
    launch,
};
pub use exec::rounding::Rounding;
pub use exec::shadow_values::FloatFormat;
pub use exec::stop::{Assertion, Stop};
pub use exec::watch::{BlockAccesses, BufferRange, StridedRange, Watch};
pub use gpu_tensor_map::{
    MAX_RANK, PixelBox, TENSOR_MAP_BYTES, TensorElement, TensorMap, TensorMapError,
};
pub use hazard::{
    CodeLine, Hazard, HazardAccess, HazardAllocation, HazardConflict, HazardKey, HazardKind,
    SourceLine, Space,
};
pub use lower::is_runtime_function;
pub use memory::{BufferId, GlobalMemory, MemoryError};
pub use module::{ControlDependence, Entry, LoadError, Module, Parameter, Unsupported, plain_name};
pub use ptx::stores::Roots;
pub use texture::{
    AddressMode, Boundary, ChannelKind, Image, ImageObject, ImageShape, Sampler, TexelFormat,
    Texture,
};
