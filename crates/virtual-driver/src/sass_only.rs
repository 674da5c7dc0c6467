//! Modules with machine code and without PTX: an outline in PTX declares their kernels and variables to the
//! virtual GPU, and the SASS machine executes them. Results and faults are those of a GPU; races and
//! unwritten memory are not detected.

use std::fmt::Write as _;

use sass::{Cubin, Global};
use sass_machine::{Execution, Machine, MachineError};
use vgpu::{Counters, GlobalMemory, Launch, Module};

/// Returns PTX that declares the kernels and variables of a cubin, with empty bodies.
pub(crate) fn outline(cubin: &Cubin) -> String {
    let mut text = format!(".version 8.4\n.target sm_{}\n.address_size 64\n", cubin.sm);
    for global in &cubin.globals {
        let (space, initial) = match global.section.as_str() {
            ".nv.global" => ("global", None),
            ".nv.global.init" => ("global", initial_bytes(&cubin.initial, global)),
            // Bank 3 has the program's constant variables; bank 0 has parameters.
            ".nv.constant3" => {
                let mut banks = cubin
                    .kernels
                    .values()
                    .filter_map(|kernel| kernel.constants.get(&3));
                ("const", banks.find_map(|bank| initial_bytes(bank, global)))
            }
            _ => continue,
        };
        if global.size == 0 {
            continue;
        }
        let _ = write!(
            text,
            ".visible .{space} .align 16 .b8 {}[{}]",
            global.name, global.size
        );
        if let Some(bytes) = initial.filter(|bytes| bytes.iter().any(|byte| *byte != 0)) {
            let values: Vec<String> = bytes.iter().map(u8::to_string).collect();
            let _ = write!(text, " = {{{}}}", values.join(","));
        }
        text.push_str(";\n");
    }
    for (name, kernel) in cubin.kernels.iter().filter(|(_, kernel)| kernel.entry) {
        let parameters = kernel.info.parameters.iter().enumerate();
        let parameters = parameters.map(|(index, parameter)| {
            // The alignment for this offset: scalars are aligned to their size.
            let align = match parameter.size {
                size @ (1 | 2 | 4 | 8 | 16) => size.min(lowest_bit(parameter.offset)),
                _ => lowest_bit(parameter.offset).min(8),
            };
            format!(
                ".param .align {align} .b8 {name}_param_{index}[{}]",
                parameter.size
            )
        });
        let list = parameters.collect::<Vec<_>>().join(", ");
        let _ = writeln!(text, ".visible .entry {name}({list})\n{{\n ret;\n}}");
    }
    text
}

/// Returns the largest power of two that divides an offset; 16 for zero.
fn lowest_bit(offset: u32) -> u32 {
    match offset {
        0 => 16,
        offset => (1 << offset.trailing_zeros()).min(16),
    }
}

fn initial_bytes<'a>(section: &'a [u8], global: &Global) -> Option<&'a [u8]> {
    let start = usize::try_from(global.offset).ok()?;
    let end = start.checked_add(usize::try_from(global.size).ok()?)?;
    section.get(start..end)
}

/// An address in the initial value of a variable.
#[derive(Debug)]
pub(crate) struct InitialPointer {
    pub(crate) variable: String,
    /// Bytes from the start of the variable.
    pub(crate) offset: u64,
    pub(crate) target: PointerTarget,
    /// Number added to the address.
    pub(crate) addend: i64,
}

/// Target of a pointer.
#[derive(Debug)]
pub(crate) enum PointerTarget {
    /// A function, by its address in the code.
    Function(u64),
    Variable(String),
}

/// Returns the addresses in the initial values of variables.
pub(crate) fn initial_pointers(cubin: &Cubin) -> Vec<InitialPointer> {
    let functions = cubin.function_addresses();
    let pointers = cubin.pointers.iter().map(|pointer| InitialPointer {
        variable: pointer.variable.clone(),
        offset: pointer.offset,
        target: match functions.get(pointer.symbol.as_str()) {
            Some(address) => PointerTarget::Function(*address),
            None => PointerTarget::Variable(pointer.symbol.clone()),
        },
        addend: pointer.addend,
    });
    pointers.collect()
}

/// Result of a launch of machine code.
pub(crate) enum Outcome {
    /// It ran to its end, or to the limit of the launch.
    Ran(Box<Counters>),
    /// It faulted; memory is as before the launch.
    Faulted(String),
}

/// Runs a kernel of a cubin.
///
/// # Errors
/// Machine code that cannot be executed, and refused launches.
pub(crate) fn run(
    cubin: &[u8],
    module: &Module,
    memory: &mut GlobalMemory,
    launch: &Launch,
) -> Result<Outcome, MachineError> {
    let machine = Machine::load(cubin, &launch.entry)?;
    match machine.run(module, memory, launch) {
        Ok(execution) => Ok(Outcome::Ran(Box::new(counters(&execution, launch)))),
        Err(MachineError::Fault(fault)) => Ok(Outcome::Faulted(fault.to_string())),
        Err(error) => Err(error),
    }
}

fn counters(execution: &Execution, launch: &Launch) -> Counters {
    Counters {
        blocks: launch
            .grid
            .iter()
            .map(|extent| u64::from(*extent))
            .product(),
        warp_instructions: execution.warp_instructions,
        lane_instructions: execution.thread_instructions,
        ..Counters::default()
    }
}
