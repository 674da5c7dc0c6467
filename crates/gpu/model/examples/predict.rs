//! Predicts the time of a kernel from its SASS on several GPUs.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use gpu_model::{Sampled, Shape, estimate, trace};
use sass_machine::Machine;
use vgpu::{Arch, Arg, GlobalMemory, Launch, Module};

const PTX: &str = include_str!("../tests/model/unrolled.ptx");
const CUBIN: &[u8] = include_bytes!("../tests/model/unrolled.cubin");

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (blocks, steps) = (432, 64_i32);
    let module = Module::load(PTX)?;
    let machine = Machine::load(CUBIN, "unrolled")?;
    for name in ["a100", "l4", "rtx3090"] {
        let gpu = Arch::by_name(name).ok_or("no such GPU")?;
        let mut memory = GlobalMemory::new(1 << 30);
        let a = memory.alloc(u64::from(blocks) * 1024 + steps as u64 * 4096, "a")?;
        let b = memory.alloc(4096, "b")?;
        let arguments = vec![
            Arg::Buffer(a),
            Arg::Buffer(b),
            Arg::Bytes(steps.to_le_bytes().to_vec()),
        ];
        let grid = Launch::new("unrolled", [blocks, 1, 1], [256, 1, 1], arguments);
        let shape = Shape {
            grid: grid.grid,
            threads: 256,
            registers: 27,
            shared_bytes: 1024,
        };
        match trace(&machine, &module, &mut memory, gpu, &grid, 1)? {
            Sampled::Traced(traces) => match estimate(gpu, &machine, *traces, &shape) {
                Some(found) => println!("{name}: {:.2} us, limited by {}", found.us, found.bound),
                None => println!("{name}: the block does not fit"),
            },
            Sampled::Withheld(reason) => println!("{name}: {reason}"),
        }
    }
    Ok(())
}
