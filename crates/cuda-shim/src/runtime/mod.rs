//! The runtime interface: the exported functions of `libcudart`.

pub mod arrays;
pub mod copies;
pub mod device;
pub mod graph_describe;
pub mod graph_edges;
pub mod graph_nodes;
pub mod graph_updates;
pub mod graphs;
pub mod launches;
pub mod libraries;
pub mod memory;
pub mod pools;
pub mod registration;
pub mod streams;
pub mod textures;

/// Major version of the library that these sources are compiled into.
pub(crate) const VERSION: u32 = if cfg!(shim = "cudart12") { 12 } else { 13 };

/// Number of [`cudaRuntimeGetVersion`](device::cudaRuntimeGetVersion).
pub(crate) const FULL_VERSION: i32 = if cfg!(shim = "cudart12") {
    12_090
} else {
    13_000
};
