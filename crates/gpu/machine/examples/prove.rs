//! Executes a kernel as PTX and as SASS, and compares the memory that both leave.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use sass_machine::{Machine, Proof, prove};
use vgpu::{Arch, Arg, GlobalMemory, Launch, Module};

const PTX: &str = include_str!("../tests/machine/contracted.89.ptx");
const CUBIN: &[u8] = include_bytes!("../tests/machine/contracted.89.cubin");

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let module = Module::load(PTX)?;
    let machine = Machine::load(CUBIN, "weights")?;
    let mut memory = GlobalMemory::new(1 << 20);
    let gpu = Arch::by_name("l4").ok_or("no such GPU")?;
    let words: Vec<u8> = (0..2048_u32)
        .flat_map(|word| (word * 977).to_le_bytes())
        .collect();
    let input = memory.alloc(8192, "in")?;
    memory.write(input, 0, &words);
    let output = memory.alloc(8192, "out")?;
    let arguments = vec![
        Arg::Buffer(input),
        Arg::Buffer(output),
        Arg::Bytes(1024_i32.to_le_bytes().to_vec()),
    ];
    let grid = Launch::new("weights", [4, 1, 1], [256, 1, 1], arguments);
    let (report, proof) = prove(&machine, &module, &mut memory, gpu, &grid)?;
    println!(
        "PTX: {} instructions of warps",
        report.counters.warp_instructions
    );
    match proof {
        Proof::Same(run) => println!("SASS leaves the same memory: {:?}", run.by_opcode),
        other => println!("SASS: {other:?}"),
    }
    Ok(())
}
