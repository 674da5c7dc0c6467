//! Lowering of operands to rows: registers, constants, addresses.

use super::cluster::cluster_special;
use super::program::{
    Address, Area, Constant, Data, LOCAL_WINDOW, NONE, Op, PARAM_WINDOW, SHARED_WINDOW, Special,
};
use super::{FALSE, Fail, Lower, Lowered, Mods, TRUE};
use crate::counters::Class;
use crate::exec::regs::{Kind, Slots, alu};
use ptx::ast::{Operand, Reg, StateSpace, Type};

/// Storage of a variable of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VariableStorage {
    Shared(u32),
    Local(u32),
    /// Offset and size, bytes.
    Param(u32, u32),
    Global(u32),
    /// In the frame of a function that may be entered again: offset.
    Frame(u32),
}

fn wrong<T>(what: &str) -> Lowered<T> {
    Err(Fail::Operand(what.to_owned()))
}

impl<'a> Lower<'a> {
    pub(super) fn row32(&mut self) -> u32 {
        self.program.rows32 += 1;
        self.program.rows32 - 1
    }

    pub(super) fn row64(&mut self) -> u32 {
        self.program.rows64 += 1;
        self.program.rows64 - 1
    }

    pub(super) fn new_pred(&mut self) -> u32 {
        self.program.preds += 1;
        self.program.preds - 1
    }

    pub(super) fn new_row(&mut self, kind: Kind) -> u32 {
        match kind {
            Kind::R16 | Kind::R32 => self.row32(),
            Kind::R64 => self.row64(),
            Kind::P => self.new_pred(),
        }
    }

    /// Returns the row that holds a constant.
    pub(super) fn constant(&mut self, kind: Kind, value: Constant) -> u32 {
        if kind == Kind::P {
            // The predicates true and false have fixed rows.
            return if value == Constant::Value(0) {
                FALSE
            } else {
                TRUE
            };
        }
        let wide = kind == Kind::R64;
        if let Some(row) = self.constants.get(&(wide, value)) {
            return *row;
        }
        let row = self.new_row(kind);
        if wide {
            self.program.constants64.push((row, value));
        } else {
            self.program.constants32.push((row, value));
        }
        self.constants.insert((wide, value), row);
        row
    }

    pub(super) fn register(&self, reg: Reg) -> Lowered<(Kind, u32)> {
        match self.function.registers.get(reg.0 as usize) {
            Some(Some(place)) => Ok(*place),
            _ => Err(Fail::Unsupported("a register of this type")),
        }
    }

    pub(super) fn pred_row(&self, reg: Reg) -> Lowered<u32> {
        match self.register(reg)? {
            (Kind::P, row) => Ok(row),
            _ => wrong("a predicate is needed"),
        }
    }

    /// Returns a register as data of a memory instruction.
    pub(super) fn data(&self, operand: &Operand<'_>) -> Lowered<Data> {
        match operand {
            Operand::Sink => Ok(Data::Nothing),
            Operand::Reg(reg) => match self.register(*reg)? {
                (Kind::R64, row) => Ok(Data::R64(row)),
                (Kind::P, _) => wrong("a predicate cannot be loaded or stored"),
                (_, row) => Ok(Data::R32(row)),
            },
            _ => wrong("a register is needed"),
        }
    }

    /// Returns data to read: a register, or a constant of the given width in bytes.
    pub(super) fn data_source(&mut self, operand: &Operand<'a>, bytes: u32) -> Lowered<Data> {
        match operand {
            Operand::Reg(_) => self.data(operand),
            _ if bytes == 8 => Ok(Data::R64(self.source(operand, Kind::R64)?)),
            _ => Ok(Data::R32(self.source(operand, Kind::R32)?)),
        }
    }

    /// Returns the row of a source operand of a kind, converted if the operand is wider or
    /// narrower.
    pub(super) fn source(&mut self, operand: &Operand<'a>, kind: Kind) -> Lowered<u32> {
        match operand {
            Operand::Reg(reg) => self.register_as(*reg, kind),
            Operand::Not(reg) => {
                let row = self.pred_row(*reg)?;
                let d = self.new_pred();
                self.push_alu(alu!(|p: P| -> P !p).run, d, [row, 0, 0, 0]);
                Ok(d)
            }
            Operand::Int(value) => Ok(self.number(kind, *value)),
            // PTX accepts `0f` literals for doubles, and the reverse, and converts them.
            Operand::F32(bits) if kind == Kind::R64 => {
                Ok(self.number(kind, f64::from(f32::from_bits(*bits)).to_bits()))
            }
            Operand::F32(bits) => Ok(self.number(kind, u64::from(*bits))),
            Operand::F64(bits) if kind == Kind::R64 => Ok(self.number(kind, *bits)),
            Operand::F64(bits) if kind == Kind::R16 => {
                let half = gpu_arithmetic::half::f32_to_f16(f64::from_bits(*bits) as f32);
                Ok(self.number(kind, half.into()))
            }
            Operand::F64(bits) => {
                Ok(self.number(kind, u64::from((f64::from_bits(*bits) as f32).to_bits())))
            }
            Operand::Special(name, component) => self.special(name, component, kind),
            Operand::Variable(index, offset) => {
                let place = self.function.variables.get(*index as usize).copied();
                if let Some(VariableStorage::Frame(at)) = place {
                    return self.frame_address(at, *offset, kind);
                }
                let value = self.variable_address(*index, *offset)?;
                Ok(self.constant(kind, value))
            }
            Operand::Name(name, offset) => {
                if let Some(VariableStorage::Frame(at)) = self.function.copied.get(name) {
                    return self.frame_address(*at, *offset, kind);
                }
                let value = self.name_address(name, *offset)?;
                Ok(self.constant(kind, value))
            }
            Operand::Sink => wrong("`_` cannot be read"),
            _ => wrong("a register or a number is needed"),
        }
    }

    pub(super) fn number(&mut self, kind: Kind, value: u64) -> u32 {
        let value = match kind {
            Kind::R16 => value & 0xffff,
            Kind::R32 => value & 0xffff_ffff,
            _ => value,
        };
        self.constant(kind, Constant::Value(value))
    }

    pub(super) fn push_alu(&mut self, run: crate::exec::regs::AluFn, d: u32, s: [u32; 4]) {
        self.push(Op::Alu(run, Slots { d, s, imm: 0 }), Class::Move);
    }

    fn register_as(&mut self, reg: Reg, kind: Kind) -> Lowered<u32> {
        let (have, row) = self.register(reg)?;
        match (have, kind) {
            (Kind::P, Kind::P) | (Kind::R64, Kind::R64) => Ok(row),
            (Kind::P, _) | (_, Kind::P) => wrong("predicate and register are mixed"),
            (Kind::R64, _) => {
                let d = self.row32();
                self.push_alu(alu!(|a: U64| -> U32 a as u32).run, d, [row, 0, 0, 0]);
                Ok(d)
            }
            (_, Kind::R64) => {
                let d = self.row64();
                self.push_alu(alu!(|a: U32| -> U64 u64::from(a)).run, d, [row, 0, 0, 0]);
                Ok(d)
            }
            _ => Ok(row),
        }
    }

    /// Returns the row that an instruction writes, and the conversion to push after it.
    pub(super) fn dest(
        &mut self,
        operand: &Operand<'a>,
        kind: Kind,
    ) -> Lowered<(u32, Option<(crate::exec::regs::AluFn, u32)>)> {
        let reg = match operand {
            Operand::Reg(reg) => *reg,
            // `_` still needs a row to write to, which is never read.
            Operand::Sink => return Ok((self.new_row(kind), None)),
            _ => return wrong("the destination must be a register"),
        };
        let (have, row) = self.register(reg)?;
        match (have, kind) {
            (Kind::P, Kind::P) | (Kind::R64, Kind::R64) => Ok((row, None)),
            (Kind::P, _) | (_, Kind::P) => wrong("predicate and register are mixed"),
            (Kind::R64, _) => {
                let temp = self.row32();
                Ok((temp, Some((alu!(|a: U32| -> U64 u64::from(a)).run, row))))
            }
            (_, Kind::R64) => {
                let temp = self.row64();
                Ok((temp, Some((alu!(|a: U64| -> U32 a as u32).run, row))))
            }
            // A 16-bit register keeps its upper half clear, which other instructions rely on.
            (Kind::R16, Kind::R32) => {
                let temp = self.row32();
                Ok((temp, Some((alu!(|a: U32| -> U16 a as u16).run, row))))
            }
            _ => Ok((row, None)),
        }
    }

    pub(super) fn finish_dest(&mut self, fix: Option<(crate::exec::regs::AluFn, u32)>, temp: u32) {
        if let Some((run, row)) = fix {
            self.push_alu(run, row, [temp, 0, 0, 0]);
        }
    }

    /// Returns the row of a special register.
    fn special(&mut self, name: &str, component: &str, kind: Kind) -> Lowered<u32> {
        let axis = match component {
            "x" => 0u8,
            "y" => 1,
            _ => 2,
        };
        let special = match name {
            "tid" => Special::Tid(axis),
            "ntid" => Special::Ntid(axis),
            "ctaid" => Special::Ctaid(axis),
            "nctaid" => Special::Nctaid(axis),
            "laneid" => Special::Lane,
            "warpid" => Special::Warp,
            "nwarpid" => Special::Nwarps,
            "smid" => Special::Sm,
            "nsmid" => Special::Nsm,
            "gridid" => Special::Grid,
            "lanemask_eq" => Special::MaskEq,
            "lanemask_lt" => Special::MaskLt,
            "lanemask_le" => Special::MaskLe,
            "lanemask_gt" => Special::MaskGt,
            "lanemask_ge" => Special::MaskGe,
            // The grid's workspace, 0 if the launch is not cooperative; the driver's other
            // registers are undocumented.
            "envreg1" => Special::WorkspaceHigh,
            "envreg2" => Special::WorkspaceLow,
            "dynamic_smem_size" => Special::DynamicShared,
            "total_smem_size" | "aggr_smem_size" => Special::TotalShared,
            "is_explicit_cluster" if kind == Kind::P => return self.explicit_cluster(),
            "clock" | "clock_hi" | "clock64" | "globaltimer" | "globaltimer_lo"
            | "globaltimer_hi" => return self.clock(name, kind),
            _ => cluster_special(name, axis)
                .ok_or_else(|| Fail::Operand(format!("special register %{name}")))?,
        };
        Ok(self.constant(kind, Constant::Special(special)))
    }

    fn clock(&mut self, name: &str, kind: Kind) -> Lowered<u32> {
        // A clock changes while a thread runs: it is an instruction, not a constant row.
        let row = self.new_row(kind);
        let dest = match kind {
            Kind::R64 => Data::R64(row),
            _ if name.ends_with("_hi") => return Ok(self.number(kind, 0)),
            _ => Data::R32(row),
        };
        self.push(Op::Clock { dest }, Class::Move);
        Ok(row)
    }

    /// Returns the address of a variable of the function: an offset in its own space.
    fn variable_address(&mut self, index: u32, offset: i64) -> Lowered<Constant> {
        let place = self.function.variables.get(index as usize).copied();
        match place {
            Some(VariableStorage::Shared(at)) => {
                Ok(Constant::Shared(u64::from(at).wrapping_add_signed(offset)))
            }
            Some(VariableStorage::Local(at)) => {
                Ok(Constant::Value(u64::from(at).wrapping_add_signed(offset)))
            }
            Some(VariableStorage::Global(g)) => Ok(Constant::Global(g, offset as u64)),
            Some(VariableStorage::Param(at, _)) => {
                Ok(Constant::Value(u64::from(at).wrapping_add_signed(offset)))
            }
            Some(VariableStorage::Frame(_)) => wrong("an address in a frame is not constant"),
            None => wrong("a variable that does not exist"),
        }
    }

    /// The row of an address in the frame of the function.
    fn frame_address(&mut self, at: u32, offset: i64, kind: Kind) -> Lowered<u32> {
        let start = i64::from(at).wrapping_add(offset) as u64;
        let start = self.constant(Kind::R64, Constant::Value(start));
        let (row, frame) = (self.row64(), self.function.frame_row);
        let sum = alu!(|a: U64, b: U64| -> U64 a.wrapping_add(b));
        self.push_alu(sum.run, row, [frame, start, 0, 0]);
        match kind {
            Kind::R64 => Ok(row),
            _ => {
                let d = self.row32();
                self.push_alu(alu!(|a: U64| -> U32 a as u32).run, d, [row, 0, 0, 0]);
                Ok(d)
            }
        }
    }

    /// Returns the address of a module-level name.
    fn name_address(&mut self, name: &str, offset: i64) -> Lowered<Constant> {
        if let Some(at) = self.shared.get(name) {
            return Ok(Constant::Shared(u64::from(*at).wrapping_add_signed(offset)));
        }
        if let Some(index) = self.globals.index.get(name) {
            return Ok(Constant::Global(*index, offset as u64));
        }
        if let Some(VariableStorage::Local(at)) = self.function.copied.get(name) {
            return Ok(Constant::Value(u64::from(*at).wrapping_add_signed(offset)));
        }
        if let Some(address) = self.globals.functions.address(name) {
            return Ok(Constant::Value(address.wrapping_add_signed(offset)));
        }
        if let Some((at, _)) = self.function.param(name) {
            // `mov.b64 %rd, kernel_param`: the address in the parameter space.
            return Ok(Constant::Value(u64::from(at).wrapping_add_signed(offset)));
        }
        wrong(&format!("`{name}` is not a variable"))
    }

    /// Lowers the address operand of a memory instruction whose modifiers name `area`.
    pub(super) fn address(&mut self, operand: &Operand<'a>, area: Area) -> Lowered<Address> {
        let Operand::Address(base, offset) = operand else {
            return wrong("an address in brackets is needed");
        };
        let none = Data::R64(NONE);
        let at = |area, offset| Address {
            area,
            base: Data::Nothing,
            offset,
        };
        match &**base {
            Operand::Reg(reg) => {
                let area = self.area_of_register(area);
                let base = match self.register(*reg)? {
                    (Kind::R64, row) => Data::R64(row),
                    (Kind::R32, row) => Data::R32(row),
                    _ => return wrong("an address register has 32 or 64 bits"),
                };
                Ok(Address {
                    area,
                    base,
                    offset: *offset,
                })
            }
            Operand::Int(value) => Ok(at(area, offset.wrapping_add(*value as i64))),
            Operand::Variable(index, _) => {
                let place = self.function.variables.get(*index as usize).copied();
                self.place_address(place, area, *offset, none)
            }
            Operand::Name(name, _) => {
                // Kernel and function parameters are named by the same space.
                if let Some((start, kernel)) = self.function.param(name)
                    && area == Area::CallParam
                {
                    let area = if kernel {
                        Area::KernelParam
                    } else {
                        Area::CallParam
                    };
                    return Ok(at(area, i64::from(start) + offset));
                }
                let value = self.name_address(name, *offset)?;
                match value {
                    // A shared variable in a generic access has its address in the window.
                    Constant::Shared(v) if area == Area::Generic => {
                        Ok(at(area, SHARED_WINDOW as i64 + v as i64))
                    }
                    Constant::Value(v) if area == Area::Generic => {
                        Ok(at(area, PARAM_WINDOW as i64 + v as i64))
                    }
                    Constant::Shared(v) => Ok(at(area, v as i64)),
                    Constant::Value(v) => Ok(at(area, v as i64)),
                    other => {
                        let row = self.constant(Kind::R64, other);
                        Ok(Address {
                            area,
                            base: Data::R64(row),
                            offset: 0,
                        })
                    }
                }
            }
            _ => wrong("an address is a register, a variable or a number, plus an offset"),
        }
    }

    /// Returns the space of an address in a register: in an entry, an address in the parameter space is
    /// one of the kernel's parameters, because the variables of calls have none; in a function it is that
    /// of a copy in local memory.
    fn area_of_register(&self, area: Area) -> Area {
        match area {
            Area::CallParam if self.function.is_entry() => Area::KernelParam,
            Area::CallParam => Area::Local,
            area => area,
        }
    }

    fn place_address(
        &mut self,
        place: Option<VariableStorage>,
        area: Area,
        offset: i64,
        none: Data,
    ) -> Lowered<Address> {
        let _ = none;
        let fixed = |own: Area, window: u64, at: u32| {
            let base = if area == Area::Generic {
                window as i64
            } else {
                0
            };
            // A generic access to a named variable uses the address in its window.
            let area = if area == Area::Generic { area } else { own };
            Address {
                area,
                base: Data::Nothing,
                offset: base + i64::from(at) + offset,
            }
        };
        match place {
            Some(VariableStorage::Shared(at)) => Ok(fixed(Area::Shared, SHARED_WINDOW, at)),
            Some(VariableStorage::Local(at)) => Ok(fixed(Area::Local, LOCAL_WINDOW, at)),
            Some(VariableStorage::Frame(at)) => Ok(Address {
                area: if area == Area::Generic {
                    area
                } else {
                    Area::Local
                },
                base: Data::R64(self.function.frame_row),
                offset: i64::from(at)
                    + offset
                    + if area == Area::Generic {
                        LOCAL_WINDOW as i64
                    } else {
                        0
                    },
            }),
            Some(VariableStorage::Param(at, _)) => Ok(fixed(Area::CallParam, PARAM_WINDOW, at)),
            Some(VariableStorage::Global(g)) => {
                let row = self.constant(Kind::R64, Constant::Global(g, offset as u64));
                Ok(Address {
                    area,
                    base: Data::R64(row),
                    offset: 0,
                })
            }
            None => wrong("a variable that does not exist"),
        }
    }

    /// Returns the address space that the modifiers name; generic if there is none.
    pub(super) fn area(&self, m: &Mods<'_>) -> Lowered<Area> {
        for word in m.0 {
            return Ok(match *word {
                // Constant memory is an ordinary allocation that kernels only read.
                "global" | "const" => Area::Global,
                "shared" | "shared::cta" => Area::Shared,
                "shared::cluster" => Area::Cluster,
                "local" => Area::Local,
                "param" | "param::entry" | "param::func" => Area::CallParam,
                _ => continue,
            });
        }
        Ok(Area::Generic)
    }
}

/// Returns the register file of a declared type; `None` for types without registers here.
pub(super) fn kind_of(ty: Type) -> Option<Kind> {
    Some(match ty {
        Type::Pred => Kind::P,
        Type::B128 => return None,
        _ => match ty.bytes() {
            1 | 2 => Kind::R16,
            8 => Kind::R64,
            _ => Kind::R32,
        },
    })
}

/// Reports whether a variable of this space is kept in device memory.
pub(super) fn in_device_memory(space: StateSpace) -> bool {
    matches!(space, StateSpace::Global | StateSpace::Const)
}
