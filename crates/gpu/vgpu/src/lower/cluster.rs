//! Instructions of thread block clusters (PTX ISA, 9.7.13.4, 9.7.9.12, 9.7.9.23): barriers, addresses in
//! other blocks, and stores that an `mbarrier` counts.

use super::memory::{atomic_operation, atomic_type};
use super::program::{Area, AsyncStore, Constant, Op, Special};
use super::{Fail, Lower, Lowered, Mods};
use crate::counters::Class;
use crate::exec::regs::{Kind, alu};
use ptx::ast::{Instruction, Operand};

/// Returns the special register of a cluster with this name. Without clusters, each block is a
/// cluster by itself.
pub(super) fn cluster_special(name: &str, axis: u8) -> Option<Special> {
    Some(match name {
        "cluster_ctaid" => Special::ClusterCtaid(axis),
        "cluster_nctaid" => Special::ClusterNctaid(axis),
        "cluster_ctarank" => Special::ClusterRank,
        "cluster_nctarank" => Special::ClusterSize,
        "clusterid" => Special::ClusterId(axis),
        "nclusterid" => Special::Nclusters(axis),
        "is_explicit_cluster" => Special::ExplicitCluster,
        _ => return None,
    })
}

impl<'a> Lower<'a> {
    /// Lowers `barrier.cluster.arrive` and `barrier.cluster.wait`.
    pub(super) fn cluster_barrier(&mut self, m: &Mods<'_>) -> Lowered<()> {
        self.program.partial_sync = true;
        let aligned = m.has("aligned");
        let op = match () {
            () if m.has("arrive") => Op::ClusterArrive {
                release: !m.has("relaxed"),
                aligned,
            },
            // It always acquires (PTX ISA, 9.7.13.4).
            () if m.has("wait") => Op::ClusterWait { aligned },
            () => return Err(Fail::Unsupported("")),
        };
        self.push(op, Class::Sync);
        Ok(())
    }

    /// Lowers `mapa`: the address in the own block, as a register or a variable, and a rank.
    pub(super) fn map_address(&mut self, i: &'a Instruction<'a>, m: &Mods<'_>) -> Lowered<()> {
        let ([dest, address, rank], Some(ty)) = (i.operands.as_slice(), m.ty()) else {
            return Err(Fail::Unsupported(""));
        };
        let op = Op::MapAddress {
            dest: self.data(dest)?,
            address: self.data_source(address, ty.bytes())?,
            rank: self.source(rank, Kind::R32)?,
            generic: self.area(m)? == Area::Generic,
        };
        self.push(op, Class::Int);
        Ok(())
    }

    /// Lowers `getctarank`.
    pub(super) fn block_rank(&mut self, i: &'a Instruction<'a>, m: &Mods<'_>) -> Lowered<()> {
        let ([dest, address], Some(ty)) = (i.operands.as_slice(), m.ty()) else {
            return Err(Fail::Unsupported(""));
        };
        let (dest, fix) = self.dest(dest, Kind::R32)?;
        let op = Op::BlockRank {
            dest,
            address: self.data_source(address, ty.bytes())?,
            generic: self.area(m)? == Area::Generic,
        };
        self.push(op, Class::Int);
        self.finish_dest(fix, dest);
        Ok(())
    }

    /// Lowers `st.async` and `red.async`.
    pub(super) fn async_store(&mut self, i: &'a Instruction<'a>, m: &Mods<'_>) -> Lowered<()> {
        let ty = m.types().last().ok_or(Fail::Unsupported(""))?;
        let [to, value, mbarrier] = i.operands.as_slice() else {
            return Err(Fail::Operand(
                "two addresses and a value are needed".to_owned(),
            ));
        };
        let width = ty.bytes();
        if !matches!(width, 4 | 8) {
            return Err(Fail::Unsupported("this type"));
        }
        let data = match value {
            Operand::Vector(list) => list
                .iter()
                .map(|o| self.data_source(o, width))
                .collect::<Lowered<Vec<_>>>()?,
            single => vec![self.data_source(single, width)?],
        };
        if data.len() as u32 * width > 16 {
            return Err(Fail::Unsupported("a vector of this size"));
        }
        let reduce = match i.opcode {
            "red" => {
                let op = atomic_operation(m)?;
                Some((op, atomic_type(ty, op)?))
            }
            _ => None,
        };
        self.program.partial_sync = true;
        let store = AsyncStore {
            to: self.address(to, Area::Cluster)?,
            mbarrier: self.address(mbarrier, Area::Cluster)?,
            width,
            data,
            reduce,
            everywhere: false,
        };
        self.push(Op::AsyncStore(Box::new(store)), Class::Shared);
        Ok(())
    }

    /// Returns the predicate row of `%is_explicit_cluster`.
    pub(super) fn explicit_cluster(&mut self) -> Lowered<u32> {
        let row = self.constant(Kind::R32, Constant::Special(Special::ExplicitCluster));
        let d = self.new_pred();
        self.push_alu(alu!(|a: U32| -> P a != 0).run, d, [row, 0, 0, 0]);
        Ok(d)
    }
}
