//! The driver interface: the exported functions of `libcuda`.

pub mod arrays;
pub mod calls;
pub mod contexts;
pub mod copies;
pub mod devices;
pub mod entry_points;
pub mod fills;
pub mod functions;
pub mod graph_describe;
pub mod graph_edges;
pub mod graph_nodes;
pub mod graphs;
pub mod launches;
pub mod linker;
pub mod mappings;
pub mod memory;
pub mod module_handles;
pub mod modules;
pub mod stream_values;
pub mod streams;
pub mod tensor_maps;
pub mod textures;
