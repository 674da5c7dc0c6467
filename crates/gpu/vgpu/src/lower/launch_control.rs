//! Requests of a block to take over one that has not started, `clusterlaunchcontrol` (PTX ISA, 9.7.13.17).
//!
//! Every request is refused, as on a GPU whose blocks have all started: each block does its own work.

use super::program::{Area, AsyncStore, Data, Op};
use super::{Fail, Lower, Lowered, Mods};
use crate::counters::Class;
use crate::exec::regs::{Kind, alu};
use ptx::ast::{Instruction, Operand};

impl<'a> Lower<'a> {
    /// Lowers `clusterlaunchcontrol`; returns `false` for any other instruction.
    pub(super) fn launch_control(&mut self, i: &'a Instruction<'a>, m: &Mods<'_>) -> Lowered<bool> {
        if i.opcode != "clusterlaunchcontrol" {
            return Ok(false);
        }
        let [first, second, ..] = i.operands.as_slice() else {
            return Err(Fail::Operand("two operands are needed".to_owned()));
        };
        match () {
            () if m.has("try_cancel") => {
                self.program.partial_sync = true;
                // The answer has 16 bytes, whose lowest bit says that a block was taken over.
                let zero = Data::R64(self.source(&Operand::Int(0), Kind::R64)?);
                let answer = AsyncStore {
                    to: self.address(first, Area::Shared)?,
                    mbarrier: self.address(second, Area::Shared)?,
                    width: 8,
                    data: vec![zero; 2],
                    reduce: None,
                    everywhere: m.has("multicast::cluster::all"),
                };
                self.push(Op::AsyncStore(Box::new(answer)), Class::Shared);
            }
            () if m.has("is_canceled") => {
                let (d, fix) = self.dest(first, Kind::P)?;
                let answer = self.source(second, Kind::R64)?;
                self.push_alu(alu!(|a: U64| -> P a & 1 != 0).run, d, [answer, 0, 0, 0]);
                self.finish_dest(fix, d);
            }
            () if m.0.iter().any(|word| word.starts_with("get_first_ctaid")) => {
                let parts = match first {
                    Operand::Vector(parts) => parts.as_slice(),
                    single => std::slice::from_ref(single),
                };
                let answer = self.source(second, Kind::R64)?;
                for part in parts {
                    let (d, fix) = self.dest(part, Kind::R32)?;
                    self.push_alu(
                        alu!(|a: U64| -> U32 (a >> 32) as u32).run,
                        d,
                        [answer, 0, 0, 0],
                    );
                    self.finish_dest(fix, d);
                }
            }
            () => return Err(Fail::Unsupported("")),
        }
        Ok(true)
    }
}
