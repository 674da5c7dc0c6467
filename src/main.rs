//! `tuner`, as users run it.

fn main() -> std::process::ExitCode {
    tuner_cli::main()
}
