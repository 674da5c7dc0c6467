//! The instructions of a cubin in the syntax of `nvdisasm`: `cargo run --example disassemble -- FILE.cubin`
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use sass::Cubin;

const SAMPLE: &[u8] = include_bytes!("../tests/data/calls.sm_86.cubin");

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let bytes = match std::env::args().nth(1) {
        Some(file) => std::fs::read(file)?,
        None => SAMPLE.to_vec(),
    };
    let cubin = Cubin::read(&bytes)?;
    for (name, kernel) in &cubin.kernels {
        println!("{name}:");
        for (number, instruction) in kernel.code.iter().enumerate() {
            match instruction {
                Ok(instruction) => println!("  {:#06x} {instruction}", 16 * number),
                Err(unknown) => println!("  {:#06x} unknown: {unknown:?}", 16 * number),
            }
        }
    }
    Ok(())
}
