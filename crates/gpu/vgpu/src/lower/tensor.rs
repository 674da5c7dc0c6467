//! Bulk copies of boxes of a tensor: `cp.async.bulk.tensor` and its reductions (PTX ISA, 9.7.9.27).

use super::program::{Address, Area, NONE, Op, TensorCopy};
use super::{Fail, Lower, Lowered, Mods};
use crate::counters::Class;
use crate::exec::regs::Kind;
use crate::tensor_box::CopyMode;
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
        let mut rest = rest.iter();
        let mbarrier = match (loads, loads.then(|| rest.next()).flatten()) {
            (false, _) => None,
            (true, Some(at @ Operand::Address(..))) => Some(self.address(at, Area::Cluster)?),
            (true, _) => return Err(missing()),
        };
        let mode = self.tensor_mode(m, loads.then_some(&mut rest))?;
        let wanted = dimensions.map(|rank| mode.coordinates(rank));
        if wanted != Some(coordinates.len()) {
            let have = coordinates.len();
            return Err(Fail::Operand(format!("{have} coordinates")));
        }
        let multicast = match m.has("multicast::cluster") {
            false => NONE,
            true => self.source(rest.next().ok_or_else(missing)?, Kind::R32)?,
        };
        let copy = TensorCopy {
            map,
            mode,
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

    /// Returns the mode; an im2col load has its offsets among the operands that are left.
    fn tensor_mode(
        &mut self,
        m: &Mods<'_>,
        rest: Option<&mut std::slice::Iter<'a, Operand<'a>>>,
    ) -> Lowered<CopyMode> {
        let rows = match rest {
            Some(_) => "tile::gather4",
            None => "tile::scatter4",
        };
        if m.has(rows) {
            return Ok(CopyMode::Rows);
        }
        if m.0.iter().any(|word| word.starts_with("tile::")) {
            return Err(Fail::Unsupported("this mode"));
        }
        let Some(word) = m.0.iter().find(|word| word.starts_with("im2col")) else {
            return Ok(CopyMode::Tile);
        };
        let offsets = match (*word, rest) {
            ("im2col_no_offs", None) => None,
            ("im2col", Some(rest)) => Some(rest.next().ok_or(Fail::Unsupported("this mode"))?),
            _ => return Err(Fail::Unsupported("this mode")),
        };
        let offsets = match offsets {
            None => &[],
            Some(Operand::Vector(offsets)) => offsets.as_slice(),
            Some(_) => return Err(Fail::Operand("offsets are needed".to_owned())),
        };
        let offsets = offsets.iter().map(|offset| self.source(offset, Kind::R32));
        Ok(CopyMode::Im2col(offsets.collect::<Lowered<_>>()?))
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
