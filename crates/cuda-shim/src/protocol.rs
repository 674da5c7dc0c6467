//! Requests and replies between a CUDA program and the device.
//!
//! Both are a frame: a number (the operation, or the error code of the reply), the lengths of a head
//! and of bulk data, then both. The head holds small fields, little endian; bulk data is copied
//! straight between the socket and the program's memory.

use std::io::{self, Read, Write};

use crate::errors::Code;

pub mod images;
mod fat_binary;
mod linked;
mod operation;
mod shape;

pub use fat_binary::{FAT_BINARY_MAGIC, FatBinaryHead};
pub(crate) use linked::list_bytes;
pub use linked::{LIST_MAGIC, pack_images, unpack_images};
pub use operation::Op;
pub use shape::{Run, Shape};

/// Environment variable with the path of the device's socket.
pub const SOCKET_VARIABLE: &str = "TUNER_EXEC_SOCKET";

/// The same for a capture on a GPU: the program's driver may itself be a virtual device.
pub const CAPTURE_VARIABLE: &str = "TUNER_EXEC_CAPTURE";

/// Size of the largest frame that a peer accepts, bytes: a head, and bulk data as large as device memory.
pub const MAX_HEAD_BYTES: u32 = 1 << 20;

/// Size of the pieces in which memory is mapped at reserved addresses, bytes.
pub const GRANULARITY: u64 = 2 << 20;

/// Number of [`Op::Synchronize`] that stands for every stream.
pub const ALL_STREAMS: u64 = u64::MAX;

/// Attributes of a pool beside those of `cudaMemPoolAttr`: the access of the host and of the device,
/// `CUmemAccess_flags`.
pub const HOST_ACCESS: u32 = 0x101;
/// See [`HOST_ACCESS`].
pub const DEVICE_ACCESS: u32 = 0x102;
/// Pool of an allocation that comes from none.
pub const NO_POOL: u64 = 0;
/// Pool of an allocation that comes from the selected one.
pub const CURRENT_POOL: u64 = u64::MAX;

/// Stream of a free that waits for nothing and is ordered with nothing.
pub const NO_STREAM: u64 = u64::MAX;
/// Attribute of a pool beside those: its size at most, bytes; 0 for no limit.
pub const MAX_BYTES: u32 = 0x103;

/// Priorities of streams, as of NVIDIA's GPUs since compute capability 7.0.
pub const LEAST_PRIORITY: i32 = 0;
/// The same of the streams that precede others.
pub const GREATEST_PRIORITY: i32 = -5;

/// Flag of a launch: all blocks resident at once.
pub const COOPERATIVE: u32 = 1;
/// Flag of a launch that becomes part of a graph: it is checked and does not run.
pub const CHECK_ONLY: u32 = 2;

/// Kinds of allocations.
pub mod kind {
    /// Device memory.
    pub const DEVICE: u32 = 0;
    /// Page-locked host memory that the device addresses.
    pub const PINNED: u32 = 1;
    /// Managed memory.
    pub const MANAGED: u32 = 2;
    /// A CUDA array.
    pub const ARRAY: u32 = 3;
}

/// A head under construction.
#[derive(Debug, Default)]
pub struct Message(Vec<u8>);

impl Message {
    /// An empty head.
    #[must_use]
    pub fn new() -> Message {
        Message::default()
    }

    /// Appends a word.
    pub fn put_u32(&mut self, value: u32) -> &mut Message {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// Appends a double word.
    pub fn put_u64(&mut self, value: u64) -> &mut Message {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// Appends a text with its length.
    pub fn put_str(&mut self, text: &str) -> &mut Message {
        self.put_u32(text.len() as u32);
        self.0.extend_from_slice(text.as_bytes());
        self
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The fields of a head that was received.
#[derive(Debug)]
pub struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// Reads from the beginning.
    #[must_use]
    pub fn new(head: &'a [u8]) -> Fields<'a> {
        Fields(head)
    }

    fn take(&mut self, bytes: usize) -> io::Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                "a message ends before its fields do",
            )
        })?;
        self.0 = rest;
        Ok(taken)
    }

    /// A word.
    ///
    /// # Errors
    /// A head that ends before.
    pub fn u32(&mut self) -> io::Result<u32> {
        let mut word = [0; 4];
        word.copy_from_slice(self.take(4)?);
        Ok(u32::from_le_bytes(word))
    }

    /// A double word.
    ///
    /// # Errors
    /// A head that ends before.
    pub fn u64(&mut self) -> io::Result<u64> {
        let mut word = [0; 8];
        word.copy_from_slice(self.take(8)?);
        Ok(u64::from_le_bytes(word))
    }

    /// A text.
    ///
    /// # Errors
    /// A head that ends before, or bytes that are not UTF-8.
    pub fn str(&mut self) -> io::Result<&'a str> {
        let length = self.u32()?;
        let bytes = self.take(length as usize)?;
        std::str::from_utf8(bytes)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }
}

/// What precedes head and bulk data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHeader {
    /// Operation, or error code.
    pub number: u32,
    /// Bytes of the head.
    pub head_bytes: u32,
    /// Bytes of bulk data.
    pub bulk_bytes: u64,
}

impl FrameHeader {
    /// Reads a header; `None` at the end of the stream.
    ///
    /// # Errors
    /// Those of the stream, and a head over [`MAX_HEAD_BYTES`].
    pub fn read(from: &mut impl Read) -> io::Result<Option<FrameHeader>> {
        let mut bytes = [0; 16];
        let mut filled = 0;
        while filled < bytes.len() {
            let rest = bytes.get_mut(filled..).unwrap_or_default();
            match from.read(rest) {
                Ok(0) if filled == 0 => return Ok(None),
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let mut fields = Fields::new(&bytes);
        let header = FrameHeader {
            number: fields.u32()?,
            head_bytes: fields.u32()?,
            bulk_bytes: fields.u64()?,
        };
        if header.head_bytes > MAX_HEAD_BYTES {
            let text = "a message with an oversized head";
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        Ok(Some(header))
    }
}

/// Size of bulk data that shares a packet with its head, bytes: one system call for most requests.
pub const SMALL_BULK_BYTES: usize = 4096;

/// Sends one frame.
///
/// # Errors
/// Those of the stream.
pub fn write_frame(to: &mut impl Write, number: u32, head: &[u8], bulk: &[u8]) -> io::Result<()> {
    let mut bytes = frame_head(number, head, bulk.len() as u64);
    if bulk.len() <= SMALL_BULK_BYTES {
        bytes.extend_from_slice(bulk);
        return to.write_all(&bytes);
    }
    to.write_all(&bytes)?;
    to.write_all(bulk)
}

/// Sends the beginning of a frame whose bulk data follows.
///
/// # Errors
/// Those of the stream.
pub fn write_head(
    to: &mut impl Write,
    number: u32,
    head: &[u8],
    bulk_bytes: u64,
) -> io::Result<()> {
    to.write_all(&frame_head(number, head, bulk_bytes))
}

fn frame_head(number: u32, head: &[u8], bulk_bytes: u64) -> Vec<u8> {
    let mut message = Message::new();
    message
        .put_u32(number)
        .put_u32(head.len() as u32)
        .put_u64(bulk_bytes);
    message.0.extend_from_slice(head);
    message.0
}

/// A kernel as the device describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FunctionInfo {
    /// Number of the function.
    pub id: u64,
    /// Offset and size of each parameter in the parameter block, bytes.
    pub parameters: Vec<ParameterSpan>,
    /// Registers of a thread.
    pub registers: u32,
    /// Static shared memory, bytes.
    pub static_shared_bytes: u64,
    /// Local memory of a thread, bytes.
    pub local_bytes: u64,
    /// Most threads of a block.
    pub max_threads: u32,
    /// Compute capability of the machine code times ten.
    pub capability: u32,
    /// The same of the PTX that it was made of.
    pub ptx_version: u32,
}

/// One parameter in the parameter block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParameterSpan {
    /// Offset, bytes.
    pub offset: u32,
    /// Size, bytes.
    pub bytes: u32,
}

impl FunctionInfo {
    /// Size of the parameter block.
    #[must_use]
    pub fn parameter_bytes(&self) -> usize {
        let ends = self.parameters.iter().map(|p| p.offset + p.bytes);
        ends.max().unwrap_or(0) as usize
    }

    /// Appends the fields.
    pub fn put(&self, message: &mut Message) {
        message
            .put_u64(self.id)
            .put_u32(self.registers)
            .put_u64(self.static_shared_bytes)
            .put_u64(self.local_bytes)
            .put_u32(self.max_threads)
            .put_u32(self.capability)
            .put_u32(self.ptx_version)
            .put_u32(self.parameters.len() as u32);
        for parameter in &self.parameters {
            message.put_u32(parameter.offset).put_u32(parameter.bytes);
        }
    }

    /// Reads the fields.
    ///
    /// # Errors
    /// A head that ends before.
    pub fn take(fields: &mut Fields<'_>) -> io::Result<FunctionInfo> {
        let mut info = FunctionInfo {
            id: fields.u64()?,
            registers: fields.u32()?,
            static_shared_bytes: fields.u64()?,
            local_bytes: fields.u64()?,
            max_threads: fields.u32()?,
            capability: fields.u32()?,
            ptx_version: fields.u32()?,
            parameters: Vec::new(),
        };
        for _ in 0..fields.u32()? {
            info.parameters.push(ParameterSpan {
                offset: fields.u32()?,
                bytes: fields.u32()?,
            });
        }
        Ok(info)
    }
}

/// The code of a reply as the interfaces return it.
#[must_use]
pub fn reply_code(header: FrameHeader) -> Code {
    header.number as Code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_touch_are_one_run() {
        let runs: Vec<Run> = Shape::rows(16, 4, 16).runs().collect();
        assert_eq!(
            runs,
            [Run {
                offset: 0,
                bytes: 64
            }]
        );
        let runs: Vec<Run> = Shape::rows(16, 2, 32).runs().collect();
        assert_eq!(
            runs,
            [
                Run {
                    offset: 0,
                    bytes: 16
                },
                Run {
                    offset: 32,
                    bytes: 16
                }
            ]
        );
    }

    #[test]
    fn a_cut_head_is_an_error() {
        let mut message = Message::new();
        message.put_u64(7).put_str("kernel");
        let cut = message
            .bytes()
            .split_last()
            .map(|(_, head)| head)
            .unwrap_or_default();
        let mut fields = Fields::new(cut);
        assert_eq!(fields.u64().ok(), Some(7));
        assert!(fields.str().is_err());
    }

    #[test]
    fn frames_arrive_as_they_were_sent() {
        let mut stream = Vec::new();
        let bulk = vec![5; 10_000];
        assert!(write_frame(&mut stream, 3, b"head", &bulk).is_ok());
        let mut rest = stream.as_slice();
        let header = FrameHeader::read(&mut rest).ok().flatten();
        assert_eq!(
            header,
            Some(FrameHeader {
                number: 3,
                head_bytes: 4,
                bulk_bytes: 10_000
            })
        );
        assert_eq!(rest.len(), 4 + 10_000);
    }
}
