//! Bulk copies of boxes of a tensor: `cp.async.bulk.tensor` and its reductions (PTX ISA, 9.7.9.27).

use super::program::{Address, Area, NONE, Op, TensorCopy};
use super::{Fail, Lower, Lowered, Mods};
use crate::counters::Class;
use crate::exec::regs::Kind;
use gpu_arithmetic::atomic::AtomOp;
use ptx::ast::{Instruction, Operand};

impl<'a> Lower<'a> {
    /// Lowers a copy of a box; `reduce` is the operation of a reducing one.
    pub(super) fn tensor_copy(
        &mut self,
        i: &'a Instruction<'a>,
        m: &Mods<'_>,
        reduce: Option<AtomOp>,
    ) -> Lowered<()> {
        if m.0.iter().any(|word| word.starts_with("im2col")) {
            return Err(Fail::Unsupported("im2col"));
        }
        if m.0.iter().any(|word| word.starts_with("tile::")) {
            return Err(Fail::Unsupported("this mode"));
        }
        let dimensions =
            m.0.iter()
                .find_map(|word| word.strip_suffix('d')?.parse::<usize>().ok());
        let to =
            m.0.iter()
                .find(|word| word.starts_with("shared") || **word == "global");
        let loads = to.is_some_and(|word| word.starts_with("shared"));
        self.program.partial_sync = true;
        let missing = || Fail::Operand("operands are missing".to_owned());
        let [first, second, rest @ ..] = i.operands.as_slice() else {
            return Err(missing());
        };
        let (shared, tensor) = if loads {
            (first, second)
        } else {
            (second, first)
        };
        let (map, coordinates) = self.tensor_operand(tensor)?;
        if dimensions != Some(coordinates.len()) {
            let have = coordinates.len();
            return Err(Fail::Operand(format!("{have} coordinates")));
        }
        let mbarrier = match (loads, rest.first()) {
            (false, _) => None,
            (true, Some(at @ Operand::Address(..))) => Some(self.address(at, Area::Cluster)?),
            (true, _) => return Err(missing()),
        };
        let multicast = match m.has("multicast::cluster") {
            false => NONE,
            true => self.source(rest.get(1).ok_or_else(missing)?, Kind::R32)?,
        };
        let copy = TensorCopy {
            map,
            coordinates,
            shared: self.address(shared, if loads { Area::Cluster } else { Area::Shared })?,
            mbarrier,
            multicast,
            pair: m.has("cta_group::2"),
            reduce,
        };
        self.push(Op::Tensor(Box::new(copy)), Class::Global);
        Ok(())
    }

    /// Returns the address of the map and the rows of the coordinates of `[map, {x, y}]`.
    fn tensor_operand(&mut self, operand: &'a Operand<'a>) -> Lowered<(Address, Vec<u32>)> {
        let Operand::List(parts) = operand else {
            return Err(Fail::Operand(
                "a tensor map with coordinates is needed".to_owned(),
            ));
        };
        let [map @ Operand::Address(..), Operand::Vector(coordinates), ..] = parts.as_slice()
        else {
            return Err(Fail::Operand(
                "a tensor map with coordinates is needed".to_owned(),
            ));
        };
        let map = self.address(map, Area::Generic)?;
        let coordinates = coordinates.iter().map(|c| self.source(c, Kind::R32));
        Ok((map, coordinates.collect::<Lowered<_>>()?))
    }
}
