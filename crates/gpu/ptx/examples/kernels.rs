//! The kernels of a PTX file, their parameters, and the lines at which they begin.
//! `cargo run --example kernels -- FILE.ptx`
#![expect(clippy::print_stdout, reason = "an example prints its results")]

const SAMPLE: &str = "
.version 8.0
.target sm_80
.address_size 64
.visible .entry scale(.param .u64 x, .param .f32 factor) { ret; }
";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let text = match std::env::args().nth(1) {
        Some(file) => std::fs::read_to_string(file)?,
        None => SAMPLE.to_owned(),
    };
    let module = ptx::parse(&text)?;
    println!(
        "{} PTX {}.{}",
        module.target, module.version.0, module.version.1
    );
    for kernel in module.functions.iter().filter(|function| function.entry) {
        let names: Vec<&str> = kernel.params.iter().map(|one| one.name).collect();
        println!(
            "line {}: {}({})",
            kernel.line,
            kernel.name,
            names.join(", ")
        );
    }
    Ok(())
}
