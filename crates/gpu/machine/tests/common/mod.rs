//! Compiled files of `machine/`, and their kernels on both levels.

use sass_machine::{Execution, Machine, Proof, prove};
use vgpu::{Arch, BufferId, GlobalMemory, Launch, Module};

/// GPU, PTX and SASS of a file.
#[derive(Clone, Copy)]
pub(crate) struct Code {
    pub(crate) gpu: &'static str,
    pub(crate) ptx: &'static str,
    pub(crate) cubin: &'static [u8],
}

/// The [`Code`] of a file in `machine/` for a GPU.
macro_rules! code {
    ($gpu:literal, $file:literal) => {
        $crate::common::Code {
            gpu: $gpu,
            ptx: include_str!(concat!("machine/", $file, ".ptx")),
            cubin: include_bytes!(concat!("machine/", $file, ".cubin")),
        }
    };
}
pub(crate) use code;

impl Code {
    /// Executes a launch on both levels. The PTX has no hazards, and all of the SASS is known.
    pub(crate) fn prove(self, memory: &mut GlobalMemory, launch: &Launch) -> Proof {
        self.prove_module(&Module::load(self.ptx).unwrap(), memory, launch)
    }

    /// The same with another translation of the PTX.
    pub(crate) fn prove_module(
        self,
        module: &Module,
        memory: &mut GlobalMemory,
        launch: &Launch,
    ) -> Proof {
        let machine = Machine::load(self.cubin, &launch.entry).unwrap();
        let what = format!("{} {}", self.gpu, launch.entry);
        assert!(machine.code().iter().all(Result::is_ok), "{what}");
        let arch = Arch::by_name(self.gpu).unwrap();
        let (report, proof) = prove(&machine, module, memory, arch, launch).unwrap();
        assert_eq!(report.hazards, [], "{what}");
        proof
    }
}

/// Allocates a kernel's input and an output of the same size.
pub(crate) fn buffers(memory: &mut GlobalMemory, input: &[u8]) -> [BufferId; 2] {
    let [from, to] = ["in", "out"].map(|name| memory.alloc(input.len() as u64, name).unwrap());
    memory.write(from, 0, input);
    [from, to]
}

/// Returns the execution of a proof that both levels leave the same memory.
pub(crate) fn same(proof: Proof, what: &str) -> Box<Execution> {
    match proof {
        Proof::Same(execution) => execution,
        other => panic!("{what}: {other:?}"),
    }
}
