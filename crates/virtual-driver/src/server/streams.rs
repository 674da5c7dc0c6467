//! Requests about streams and events.

use std::io;

use cuda_shim::errors;
use cuda_shim::protocol::{Fields, Op};

use super::{Answer, Reply};
use crate::device::Device;

/// Answers a request about streams and events.
pub(super) fn answer_stream(
    device: &mut Device,
    op: Op,
    fields: &mut Fields<'_>,
    reply: &mut Reply,
) -> io::Result<Answer> {
    let known = |held: bool| {
        if held {
            Ok(())
        } else {
            Err(errors::INVALID_HANDLE)
        }
    };
    let all = cuda_shim::protocol::ALL_STREAMS;
    Ok(match op {
        Op::CreateStream => {
            let (flags, priority) = (fields.u32()?, fields.u32()? as i32);
            let handle = device.streams.create(flags, priority);
            reply.head.put_u64(handle);
            Ok(())
        }
        Op::DestroyStream => {
            known(device.streams.destroy(fields.u64()?)).and_then(|()| device.check())
        }
        Op::Synchronize | Op::HostFunction => {
            let stream = fields.u64()?;
            let valid = stream == all || device.streams.holds(stream);
            if valid && op == Op::Synchronize {
                device.streams.synchronize(stream);
            }
            known(valid)
        }
        Op::WaitEvent => {
            let (stream, event) = (fields.u64()?, fields.u64()?);
            known(device.streams.wait(stream, event))
        }
        Op::CreateEvent => {
            let event = device.streams.create_event(fields.u32()?);
            reply.head.put_u64(event);
            Ok(())
        }
        Op::DestroyEvent => known(device.streams.destroy_event(fields.u64()?)),
        Op::RecordEvent => {
            let (event, stream) = (fields.u64()?, fields.u64()?);
            known(device.streams.holds(stream) && device.streams.record(event, stream))
        }
        Op::FindEvent => known(device.streams.has_event(fields.u64()?)),
        Op::SynchronizeEvent => known(device.streams.synchronize_event(fields.u64()?)),
        _ => {
            let (start, end) = (fields.u64()?, fields.u64()?);
            device
                .streams
                .elapsed_ms(start, end)
                .ok_or(errors::INVALID_HANDLE)
                .map(|ms| {
                    reply.head.put_u64(ms.to_bits());
                })
        }
    })
}
