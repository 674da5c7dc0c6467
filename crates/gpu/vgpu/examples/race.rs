//! Two threads store to the same word without a barrier: the virtual GPU names both lines.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use vgpu::{Arch, Arg, GlobalMemory, Launch, Module, launch};

const PTX: &str = "
.version 8.0
.target sm_80
.address_size 64
.visible .entry both(.param .u64 out) {
.reg .b64 %rd<2>; .reg .b32 %r<2>;
ld.param.u64 %rd1, [out];
mov.u32 %r1, %tid.x;
st.global.u32 [%rd1], %r1;
ret;
}
";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let module = Module::load(PTX)?;
    let mut memory = GlobalMemory::new(1 << 20);
    let out = memory.alloc(4, "out")?;
    let gpu = Arch::by_name("a100").ok_or("no such GPU")?;
    let grid = Launch::new("both", [1, 1, 1], [2, 1, 1], vec![Arg::Buffer(out)]);
    let report = launch(&module, &mut memory, gpu, &grid)?;
    for hazard in &report.hazards {
        println!("{:?}: {}", hazard.kind, hazard.detail);
    }
    println!(
        "{} instructions of warps",
        report.counters.warp_instructions
    );
    Ok(())
}
