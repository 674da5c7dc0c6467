//! Requests about memory pools and the properties of streams.

use std::io;

use cuda_shim::protocol::{Fields, Message, Op, Shape};

use super::{Answer, Reply};
use crate::device::Device;
use crate::memory::access;
use crate::streams::Word;

/// Answers a request about memory pools.
pub(super) fn answer_pool(
    device: &mut Device,
    op: Op,
    fields: &mut Fields<'_>,
    head: &mut Message,
) -> io::Result<Answer> {
    let pools = &mut device.pools;
    Ok(match op {
        Op::CreatePool => pools.create(fields.u32()?).map(|pool| {
            head.put_u64(pool);
        }),
        Op::DestroyPool => pools.destroy(fields.u64()?),
        Op::FindPool => {
            let (kind, default) = (fields.u32()?, fields.u32()? != 0);
            pools.find(kind, default).map(|pool| {
                head.put_u64(pool);
            })
        }
        Op::SelectPool => {
            let (pool, kind) = (fields.u64()?, fields.u32()?);
            pools.select(pool, kind)
        }
        Op::DescribePool => pools.kind(fields.u64()?).map(|kind| {
            head.put_u32(kind);
        }),
        Op::GetPoolAttribute => {
            let (pool, attribute) = (fields.u64()?, fields.u32()?);
            pools.attribute(pool, attribute).map(|value| {
                head.put_u64(value);
            })
        }
        _ => {
            let (pool, attribute) = (fields.u64()?, fields.u32()?);
            pools.set_attribute(pool, attribute, fields.u64()?)
        }
    })
}

/// Answers a request about the properties of streams; the bulk data is the value of an attribute.
pub(super) fn answer_stream_properties(
    device: &mut Device,
    op: Op,
    fields: &mut Fields<'_>,
    bulk: &[u8],
    reply: &mut Reply,
) -> io::Result<Answer> {
    let streams = &mut device.streams;
    let stream = fields.u64()?;
    Ok(match op {
        Op::DescribeStream => streams.flags(stream).and_then(|flags| {
            let priority = streams.priority(stream)?;
            reply.head.put_u32(flags).put_u32(priority as u32);
            Ok(())
        }),
        Op::GetStreamAttribute => streams
            .attribute(stream, fields.u32()?)
            .map(|value| reply.bulk = value),
        Op::SetStreamAttribute => streams.set_attribute(stream, fields.u32()?, bulk),
        _ => streams.copy_attributes(stream, fields.u64()?),
    })
}

/// Answers a request about an access of the host to shared memory.
pub(super) fn answer_access(device: &mut Device, fields: &mut Fields<'_>) -> io::Result<Answer> {
    let (stream, address, writes) = (fields.u64()?, fields.u64()?, fields.u32()? != 0);
    let accessed = access(address, Shape::take(fields)?, writes);
    Ok(device.note_access(stream, fields.str()?, accessed))
}

/// Answers a request about a word that a stream writes or waits for.
pub(super) fn answer_value(
    device: &mut Device,
    op: Op,
    fields: &mut Fields<'_>,
    head: &mut Message,
) -> io::Result<Answer> {
    let word = Word {
        stream: fields.u64()?,
        address: fields.u64()?,
        value: fields.u64()?,
        bytes: fields.u32()?,
    };
    Ok(match op {
        Op::WriteValue => device.write_value(&word),
        _ => device.wait_value(&word, fields.u32()?).map(|met| {
            head.put_u32(met.into());
        }),
    })
}

/// Reports whether a request is answered after a fault of a kernel: requests that end something, and those
/// that need no context.
pub(super) fn survives_fault(op: Op) -> bool {
    matches!(
        op,
        Op::Hello
            | Op::Reset
            | Op::Report
            | Op::DestroyStream
            | Op::DestroyEvent
            | Op::DestroyArray
            | Op::DestroyObject
            | Op::DestroyPool
            | Op::UnloadModule
            | Op::OfferImage
            | Op::WantLaunch
            | Op::BeginLaunch
            | Op::EndLaunch
            | Op::SkipLaunch
    )
}
