//! The driver interface: the exported functions of `libcuda`.
