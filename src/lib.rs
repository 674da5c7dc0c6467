//! `tuner`: an auto-tuner for CUDA C++ kernel templates.
pub mod cli;
