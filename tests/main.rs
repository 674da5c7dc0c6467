//! The program's integration tests: one binary, a module for each subject.
//!
//! `cargo test --test program` runs them all, `cargo test --test program golden::` those of one
//! module.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should fail"
)]

mod ablate;
mod adopt;
mod adopt_computed;
mod baseline;
mod check;
mod compile;
mod compile_targets;
mod contrib;
mod cuda;
mod declarations;
mod device_gate;
mod defects;
mod doc_examples;
mod doctor;
mod documents;
mod doubts;
mod engine;
mod errors;
mod evolve;
mod exec;
mod expectations;
mod failing;
mod faults;
mod fleet;
mod final_comparison;
mod foreign;
mod fuzz;
mod gate;
mod golden;
mod hardware;
mod hazards;
mod inputs;
mod installed;
mod interface;
mod kernel_tuner;
mod kernels;
mod licences;
mod limits;
mod mistakes;
mod planted;
mod portfolio;
mod predicted;
mod program;
mod python;
mod readme;
mod report;
mod rig;
mod run;
mod serve;
mod special_files;
mod space_command;
mod space_expressions;
mod space_published;
mod space_schema;
mod space_sets;
mod store;
mod sync;
mod tensor_maps;
mod tensor_memory;
mod test_targets;
mod timing;
mod torch;
mod user_kernels;
mod unseen;
mod virtual_run;
mod winner;
mod worker;
