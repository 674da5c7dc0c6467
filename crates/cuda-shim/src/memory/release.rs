//! Ends of allocations.

use super::{find_allocation, find_mapping, mapped_bytes};
use crate::connection::{call, flush_printed};
use crate::errors::{self, Code};
use crate::graph;
use crate::protocol::{Message, NO_POOL, Op, kind};
use crate::state::{lock, state};
use crate::system::{self, PAGE};

/// Frees memory of any kind. A null pointer is no error.
pub(crate) fn release(address: u64) -> Result<(), Code> {
    if address == 0 {
        return Ok(());
    }
    if graph::owns(address) {
        return graph::free(address);
    }
    flush_printed();
    let mut head = Message::new();
    head.put_u64(address);
    call(Op::Free, &head)?;
    forget(address);
    Ok(())
}

/// Frees memory of the device after the work of a stream, without a wait.
pub(crate) fn end_in_order(address: u64, stream: u64) -> Result<(), Code> {
    let mut head = Message::new();
    head.put_u64(address).put_u64(stream);
    call(Op::FreeInOrder, &head)?;
    forget(address);
    Ok(())
}

/// Frees page-locked memory, or memory of another kind.
pub(crate) fn release_kind(address: u64, is_page_locked: bool) -> Result<(), Code> {
    let mapping = find_mapping(address);
    let found = mapping.is_some_and(|(_, mapping)| mapping.kind == kind::PINNED);
    match address == 0 || found == is_page_locked || !is_page_locked && is_pooled(address) {
        true => release(address),
        false => Err(errors::INVALID_VALUE),
    }
}

/// Reports whether memory comes from a pool.
fn is_pooled(address: u64) -> bool {
    find_allocation(address).is_ok_and(|found| found.pool != NO_POOL)
}

/// Ends what is known of freed memory.
fn forget(address: u64) {
    crate::advice::forget(address);
    lock(&state().contexts_of).remove(&address);
    let mut mappings = lock(&state().mappings);
    if let Some(mapping) = mappings.remove(&address) {
        system::unmap(address & !(PAGE - 1), mapped_bytes(address, mapping.bytes));
    }
}
