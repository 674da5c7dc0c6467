//! Words by which streams wait and that they write.

use std::ffi::{c_uint, c_void};

use crate::abi::in_context;
use crate::errors::{self, Code};
use crate::graph::{Node, submit};
use crate::memory::stream_of;
use crate::values::StreamValue;

/// Most operations of a batch (`cuStreamBatchMemOp`).
const MAX_OPERATIONS: c_uint = 256;

/// `CUstreamBatchMemOpParams`: 48 bytes.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Operation {
    kind: c_uint,
    address: u64,
    value: u64,
    flags: c_uint,
    alias: u64,
    reserved: u64,
}

impl Operation {
    /// The operation; `None` for a barrier, which has no effect on operations that run in order.
    fn value(&self) -> Result<Option<StreamValue>, Code> {
        // Only half of the field is set for a word of 32 bits.
        let word = u64::from(self.value as u32);
        let wait = Some(self.flags);
        Ok(Some(match self.kind {
            1 => StreamValue::new(self.address, word, 4, wait)?,
            2 => StreamValue::new(self.address, word, 4, None)?,
            4 => StreamValue::new(self.address, self.value, 8, wait)?,
            5 => StreamValue::new(self.address, self.value, 8, None)?,
            3 | 6 => return Ok(None),
            _ => return Err(errors::INVALID_VALUE),
        }))
    }
}

fn order(stream: *mut c_void, value: StreamValue) -> Result<(), Code> {
    submit(stream_of(stream), Node::Value(value))
}

in_context! {
    /// Lets a stream wait until a word has a value.
    fn cuStreamWaitValue32_v2(stream: *mut c_void, address: u64, value: u32, flags: c_uint) {
        order(stream, StreamValue::new(address, value.into(), 4, Some(flags))?)
    }

    /// Lets a stream wait until a double word has a value.
    fn cuStreamWaitValue64_v2(stream: *mut c_void, address: u64, value: u64, flags: c_uint) {
        order(stream, StreamValue::new(address, value, 8, Some(flags))?)
    }

    /// Writes a word after the work of a stream.
    fn cuStreamWriteValue32_v2(stream: *mut c_void, address: u64, value: u32, _flags: c_uint) {
        order(stream, StreamValue::new(address, value.into(), 4, None)?)
    }

    /// Writes a double word after the work of a stream.
    fn cuStreamWriteValue64_v2(stream: *mut c_void, address: u64, value: u64, _flags: c_uint) {
        order(stream, StreamValue::new(address, value, 8, None)?)
    }

    /// Performs such operations one after the other.
    fn cuStreamBatchMemOp_v2(stream: *mut c_void, count: c_uint, operations: *const Operation, _flags: c_uint) {
        if count > MAX_OPERATIONS || operations.is_null() {
            return Err(errors::INVALID_VALUE);
        }
        // SAFETY: the program passes as many operations as it states.
        let operations = unsafe { std::slice::from_raw_parts(operations, count as usize) };
        // All operations are checked before the first one runs.
        let values: Result<Vec<_>, Code> = operations.iter().map(Operation::value).collect();
        for value in values?.into_iter().flatten() {
            order(stream, value)?;
        }
        Ok(())
    }
}
