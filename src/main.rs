//! The `tuner` binary: arguments in, exit code out.

fn main() -> std::process::ExitCode {
    tuner::cli::main()
}
