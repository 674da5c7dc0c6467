//! `tuner exec`: CUDA programs on the virtual GPU.

mod capture;
