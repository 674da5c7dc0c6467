//! Calls of functions that the CUDA runtime provides: `printf`, `assert`, `malloc`, conditions of graphs, launches.

use super::operand::VariableStorage;
use super::program::{External, Op, Routine, RuntimeCall};
use super::{Fail, Lower, Lowered};
use crate::counters::Class;
use ptx::ast::Operand;

/// Returns the function of that name with the number of its parameters.
fn routine(name: &str) -> Option<(Routine, usize)> {
    Some(match name {
        "vprintf" => (Routine::Print, 2),
        "__assertfail" | "__assert_fail" => (Routine::FailAssertion, 4),
        "malloc" => (Routine::Allocate, 1),
        "__nv_aligned_device_malloc" => (Routine::AllocateAligned, 2),
        "free" => (Routine::Free, 1),
        "cudaGraphSetConditional" => (Routine::SetCondition, 2),
        _ => {
            let (call, least) = runtime_call(name.strip_prefix("__cudaCDP2")?)?;
            (Routine::Runtime(call), least)
        }
    })
}

/// Returns the function of the device runtime with the number of its parameters.
fn runtime_call(name: &str) -> Option<(RuntimeCall, usize)> {
    // The variant for programs whose default streams are those of their threads.
    Some(match name.strip_suffix("_ptsz").unwrap_or(name) {
        "GetParameterBufferV2" => (RuntimeCall::ParameterBuffer, 4),
        "LaunchDeviceV2" => (RuntimeCall::Launch, 2),
        "MemcpyAsync" => (RuntimeCall::Copy, 5),
        "MemsetAsync" => (RuntimeCall::Fill, 4),
        "GetLastError" => (RuntimeCall::LastError, 0),
        "PeekAtLastError" => (RuntimeCall::PeekError, 0),
        "GetErrorString" => (RuntimeCall::ErrorText, 1),
        "GetErrorName" => (RuntimeCall::ErrorName, 1),
        "StreamCreateWithFlags" | "EventCreateWithFlags" => (RuntimeCall::CreateHandle, 2),
        "StreamDestroy"
        | "StreamWaitEvent"
        | "EventRecord"
        | "EventRecordWithFlags"
        | "EventDestroy" => (RuntimeCall::KeepOrder, 1),
        "Malloc" => (RuntimeCall::Allocate, 2),
        "Free" => (RuntimeCall::Free, 1),
        "GetDevice" => (RuntimeCall::Device, 1),
        "GetDeviceCount" => (RuntimeCall::DeviceCount, 1),
        _ => return None,
    })
}

/// Reports whether kernels may call a function that no text defines.
#[must_use]
pub fn is_runtime_function(name: &str) -> bool {
    routine(name).is_some()
}

impl<'a> Lower<'a> {
    /// Lowers the call of a function without a body; `false` where the runtime has no such function.
    pub(super) fn external(
        &mut self,
        name: &str,
        arguments: &[Operand<'a>],
        results: &[Operand<'a>],
    ) -> Lowered<bool> {
        let Some((routine, least)) = routine(name) else {
            return Ok(false);
        };
        let arguments: Vec<(u32, u32)> = self.call_variables(arguments)?;
        if arguments.len() < least {
            return Err(Fail::Operand(format!(
                "{} arguments of `{name}`, which takes {least}",
                arguments.len()
            )));
        }
        let results = self.call_variables(results)?;
        let heap = [Routine::Allocate, Routine::AllocateAligned, Routine::Free];
        self.program.allocates |= heap.contains(&routine);
        if matches!(routine, Routine::Runtime(_)) {
            self.program.allocates = true;
            self.program.kernels = self.globals.functions.kernels();
        }
        let call = External {
            routine,
            arguments,
            result: results.first().copied(),
        };
        self.push(Op::External(Box::new(call)), Class::Control);
        Ok(true)
    }

    /// Returns the offsets and sizes of the `.param` variables of a call.
    pub(super) fn call_variables(&self, operands: &[Operand<'a>]) -> Lowered<Vec<(u32, u32)>> {
        let place = |operand: &Operand<'a>| {
            let Operand::Variable(index, 0) = operand else {
                return None;
            };
            match self.function.variables.get(*index as usize)? {
                VariableStorage::Param(at, bytes) => Some((*at, *bytes)),
                _ => None,
            }
        };
        let places = operands.iter().map(place);
        let all: Option<Vec<(u32, u32)>> = places.collect();
        all.ok_or(Fail::Unsupported(
            "an argument that is not a .param variable",
        ))
    }
}
