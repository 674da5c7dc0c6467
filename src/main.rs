//! The `tuner` program.

fn main() -> std::process::ExitCode {
    tuner_cli::main()
}
