//! `tuner` for tests: the same command line, with a stand-in for the driver and faults in workers.
//! Its workers are started from this program as those of `tuner` are from `tuner`.
//!
//! `TUNER_FAKE_GPU` names the only database that may hold results of the stand-in, and
//! `TUNER_FAKE_CUDA_ERROR=CALL:CODE` a driver call whose first use in every process fails. With
//! `TUNER_FAKE_GATE=host` outputs are compared on the host, which is quicker;
//! `TUNER_FAKE_SLOWER=N` makes the GPU slower by N thousandths, and with `TUNER_FAKE_ENERGY=none` it
//! does not count its energy. What plants faults and slows a final comparison down is in
//! `tuner_testkit::faults`. `tuner` itself knows none of these variables.

use std::process::ExitCode;
use tuner_testkit::fake;

fn main() -> ExitCode {
    tuner_testkit::faults::plant();
    if let Some(database) = std::env::var_os("TUNER_FAKE_GPU").filter(|value| !value.is_empty()) {
        let failure = std::env::var("TUNER_FAKE_CUDA_ERROR").ok();
        let failure = failure.and_then(|text| {
            let (call, code) = text.split_once(':')?;
            Some((call.to_owned(), code.parse().ok()?))
        });
        let slower = std::env::var("TUNER_FAKE_SLOWER").ok();
        fake::install(fake::Settings {
            database: database.into(),
            failure,
            compares_on_host: std::env::var_os("TUNER_FAKE_GATE").is_some_and(|at| at == "host"),
            counts_no_energy: std::env::var_os("TUNER_FAKE_ENERGY").is_some_and(|at| at == "none"),
            slower: slower.and_then(|text| text.parse().ok()).unwrap_or(0),
        });
    }
    tuner_cli::main()
}
