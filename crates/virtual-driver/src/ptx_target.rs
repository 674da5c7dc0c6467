//! PTX that a driver does not translate for a GPU.

use cuda_shim::errors;
use vgpu::Module;

use crate::target::Target;

/// Major version of PTX (`.version`) that the drivers of these libraries cannot read.
const UNKNOWN_VERSION: u32 = 10;

/// First words of the instructions of PTX (PTX ISA 9.0, "Instruction Set"), sorted.
const OPCODES: &[&str] = &[
    "abs",
    "activemask",
    "add",
    "addc",
    "alloca",
    "and",
    "applypriority",
    "atom",
    "bar",
    "barrier",
    "bfe",
    "bfi",
    "bfind",
    "bmsk",
    "bra",
    "brev",
    "brkpt",
    "brx",
    "call",
    "clusterlaunchcontrol",
    "clz",
    "cnot",
    "copysign",
    "cos",
    "cp",
    "createpolicy",
    "cvt",
    "cvta",
    "discard",
    "div",
    "dp2a",
    "dp4a",
    "elect",
    "ex2",
    "exit",
    "fence",
    "fma",
    "fns",
    "getctarank",
    "griddepcontrol",
    "isspacep",
    "istypep",
    "ld",
    "ldmatrix",
    "ldu",
    "lg2",
    "lop3",
    "mad",
    "mad24",
    "madc",
    "mapa",
    "match",
    "max",
    "mbarrier",
    "membar",
    "min",
    "mma",
    "mov",
    "movmatrix",
    "mul",
    "mul24",
    "multimem",
    "nanosleep",
    "neg",
    "not",
    "or",
    "pmevent",
    "popc",
    "prefetch",
    "prefetchu",
    "prmt",
    "rcp",
    "red",
    "redux",
    "rem",
    "ret",
    "rsqrt",
    "sad",
    "selp",
    "set",
    "setmaxnreg",
    "setp",
    "shf",
    "shfl",
    "shl",
    "shr",
    "sin",
    "slct",
    "sqrt",
    "st",
    "stackrestore",
    "stacksave",
    "stmatrix",
    "sub",
    "subc",
    "suld",
    "suq",
    "sured",
    "sust",
    "szext",
    "tanh",
    "tcgen05",
    "tensormap",
    "testp",
    "tex",
    "tld4",
    "trap",
    "txq",
    "vabsdiff",
    "vabsdiff2",
    "vabsdiff4",
    "vadd",
    "vadd2",
    "vadd4",
    "vavrg2",
    "vavrg4",
    "vmad",
    "vmax",
    "vmax2",
    "vmax4",
    "vmin",
    "vmin2",
    "vmin4",
    "vote",
    "vset",
    "vset2",
    "vset4",
    "vshl",
    "vshr",
    "vsub",
    "vsub2",
    "vsub4",
    "wgmma",
    "wmma",
    "xor",
];

/// Reason why a module was not loaded: the error code for the program and a message for the user.
#[derive(Debug)]
pub(crate) struct LoadFailure {
    pub(crate) code: errors::Code,
    pub(crate) text: String,
}

fn failure(code: errors::Code, text: String) -> Result<(), LoadFailure> {
    Err(LoadFailure { code, text })
}

/// Fails if the text has a later version or is for another GPU than one of a compute capability (times
/// ten).
pub(crate) fn check_header(ptx: &str, capability: u32) -> Result<(), LoadFailure> {
    let directive = |name: &str| {
        let mut lines = ptx.lines().map(str::trim_start);
        lines.find_map(|line| line.strip_prefix(name).map(str::trim))
    };
    let version = directive(".version").unwrap_or_default();
    let major = version.split('.').next().and_then(|it| it.parse().ok());
    if major.is_some_and(|major: u32| major >= UNKNOWN_VERSION) {
        let text = format!("PTX of version {version} is newer than the driver");
        return failure(errors::UNSUPPORTED_PTX_VERSION, text);
    }
    let targets = directive(".target").unwrap_or_default();
    let names = targets.split(',').map(str::trim);
    let mut capabilities = names.filter_map(|name| name.strip_prefix("sm_"));
    let Some(target) = capabilities.next() else {
        return Ok(());
    };
    match Target::read(target).translates_for(capability) {
        true => Ok(()),
        false => failure(
            errors::INVALID_PTX,
            format!("PTX for sm_{target} cannot be translated for sm_{capability}"),
        ),
    }
}

/// Fails if a kernel has an instruction that PTX lacks.
pub(crate) fn check_instructions(module: &Module) -> Result<(), LoadFailure> {
    for entry in module.entries() {
        let Err(unsupported) = module.supported(&entry.name) else {
            continue;
        };
        let written = unsupported.instruction.trim_start();
        // After the guard.
        let words = written.split_whitespace();
        let opcode = words.into_iter().find(|word| !word.starts_with('@'));
        let opcode = opcode.unwrap_or_default().split(['.', ';']).next();
        let opcode = opcode.unwrap_or_default();
        let is_name = opcode.starts_with(|c: char| c.is_ascii_lowercase());
        if is_name && OPCODES.binary_search(&opcode).is_err() {
            let line = unsupported.line;
            let text = format!("PTX has no instruction `{opcode}` (line {line})");
            return failure(errors::INVALID_PTX, text);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::LoadedModule;
    use vgpu::{Arch, GlobalMemory};

    fn load(version: &str, target: &str, instruction: &str) -> Option<errors::Code> {
        let text = format!(
            ".version {version}\n.target {target}\n.address_size 64\n.visible .entry k()\n{{\n\
             \t.reg .b32 %r<4>;\n\t.reg .pred %p<2>;\n\t{instruction}\n\tret;\n}}\n"
        );
        let arch = Arch::by_name("h100")?;
        let mut memory = GlobalMemory::new(1 << 30);
        let loaded = LoadedModule::load(text.as_bytes(), arch, &mut memory);
        loaded.err().map(|failure| failure.code)
    }

    #[test]
    fn a_driver_translates_ptx_of_its_version_for_its_gpu() {
        let plain = "mov.u32 %r1, 1;";
        for target in ["sm_52", "sm_90", "sm_90a", "sm_80, texmode_independent"] {
            assert_eq!(load("8.0", target, plain), None, "{target}");
        }
        for target in ["sm_100", "sm_120a", "sm_80a", "sm_100f"] {
            let code = load("8.0", target, plain);
            assert_eq!(code, Some(errors::INVALID_PTX), "{target}");
        }
        let newer = load("99.0", "sm_80", plain);
        assert_eq!(newer, Some(errors::UNSUPPORTED_PTX_VERSION));
    }

    #[test]
    fn only_instructions_of_ptx_are_translated() {
        assert_eq!(
            load("8.0", "sm_80", "@%p1 frobnicate.u32 %r1, %r2;"),
            Some(errors::INVALID_PTX)
        );
        // An instruction that the virtual GPU lacks is an error of the launch.
        assert_eq!(
            load("8.0", "sm_80", "vset4.u32.u32.eq %r1, %r2, %r2, %r2;"),
            None
        );
        assert!(OPCODES.is_sorted());
    }
}
