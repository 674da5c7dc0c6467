//! The device runtime: kernels, copies and fills that a kernel starts. They run after its grid, in the order of
//! their calls; the launch reports them, and who called it runs them.

use std::collections::BTreeMap;

use super::access::{CheckedLocation, Touch, split};
use super::cta::Cta;
use super::warp::Warp;
use crate::arch::{MAX_BLOCK, MAX_GRID, MAX_THREADS_PER_BLOCK, exceeds};
use crate::lower::program::{External, RuntimeCall};

/// `cudaSuccess`, and the errors that calls in a kernel return.
const SUCCESS: u64 = 0;
const INVALID_VALUE: u64 = 1;
const OUT_OF_MEMORY: u64 = 2;
const INVALID_CONFIGURATION: u64 = 9;
const MAX_DEPTH_EXCEEDED: u64 = 65;
const INVALID_DEVICE_FUNCTION: u64 = 98;

/// Name and text of each.
const ERRORS: [(u64, &str, &str); 6] = [
    (SUCCESS, "cudaSuccess", "no error"),
    (INVALID_VALUE, "cudaErrorInvalidValue", "invalid argument"),
    (OUT_OF_MEMORY, "cudaErrorMemoryAllocation", "out of memory"),
    (
        INVALID_CONFIGURATION,
        "cudaErrorInvalidConfiguration",
        "invalid configuration argument",
    ),
    (
        MAX_DEPTH_EXCEEDED,
        "cudaErrorLaunchMaxDepthExceeded",
        "launch would exceed maximum depth of nested launches",
    ),
    (
        INVALID_DEVICE_FUNCTION,
        "cudaErrorInvalidDeviceFunction",
        "invalid device function",
    ),
];

/// Depth of nested launches that CUDA permits.
const MAX_NESTING: u32 = 24;
/// The first handle of a stream or an event: smaller ones are streams that CUDA names.
const FIRST_HANDLE: u64 = 0x100;
/// `cudaStreamTailLaunch`.
const TAIL_STREAM: u64 = 3;

/// A kernel that a kernel launches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceLaunch {
    /// Entry name.
    pub entry: String,
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y, z.
    pub block: [u32; 3],
    /// Dynamic shared memory, bytes.
    pub shared_bytes: u32,
    /// The parameter buffer.
    pub parameters: Vec<u8>,
}

/// Work that a kernel starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceWork {
    /// A launch.
    Launch(DeviceLaunch),
    /// `cudaMemcpyAsync`.
    Copy {
        /// Address of the destination.
        to: u64,
        /// Address of the source.
        from: u64,
        /// Size.
        bytes: u64,
    },
    /// `cudaMemsetAsync`.
    Fill {
        /// Address of the first byte.
        to: u64,
        /// Value of each byte.
        value: u8,
        /// Size.
        bytes: u64,
    },
}

/// Work that a kernel starts, with the time when it may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceOperation {
    /// It runs after all others of its grid (`cudaStreamTailLaunch`).
    pub at_tail: bool,
    /// The work.
    pub work: DeviceWork,
}

/// State of the device runtime for one block.
#[derive(Debug, Default)]
pub(super) struct DeviceRuntime {
    /// Launches without parameters, by the addresses of their parameter buffers.
    buffers: BTreeMap<u64, (DeviceLaunch, u32)>,
    /// Operations that the block started, in the order of the calls.
    pub(super) operations: Vec<DeviceOperation>,
    /// The last error of a thread.
    errors: BTreeMap<usize, u64>,
    handles: u64,
    /// Addresses of texts.
    texts: BTreeMap<&'static str, u64>,
}

/// A result that a call stores through a pointer.
#[derive(Debug, Clone, Copy)]
struct Returned {
    value: u64,
    bytes: u32,
}

impl Cta<'_> {
    /// Calls a function of the device runtime for one lane; returns its result.
    pub(super) fn call_runtime(
        &mut self,
        w: &mut Warp,
        call: &External,
        lane: usize,
        function: RuntimeCall,
    ) -> u64 {
        // In a slice the arguments are not computed.
        if self.context.skip_unless != 0 {
            return 0;
        }
        let thread = Self::thread(w, lane);
        let last_error = |cta: &Self| cta.runtime.errors.get(&thread).copied().unwrap_or(SUCCESS);
        let result = match function {
            RuntimeCall::LastError => {
                let error = last_error(self);
                self.runtime.errors.remove(&thread);
                return error;
            }
            RuntimeCall::PeekError => return last_error(self),
            RuntimeCall::ErrorText | RuntimeCall::ErrorName => {
                let error = self.argument(w, call, 0, lane);
                return self.error_text(w, error, function == RuntimeCall::ErrorName);
            }
            RuntimeCall::ParameterBuffer => self.parameter_buffer(w, call, lane),
            RuntimeCall::Launch => self.start_launch(w, call, lane).map(|()| SUCCESS),
            RuntimeCall::Copy | RuntimeCall::Fill => {
                self.start_transfer(w, call, lane, function);
                Ok(SUCCESS)
            }
            RuntimeCall::KeepOrder => Ok(SUCCESS),
            RuntimeCall::CreateHandle => {
                let handle = FIRST_HANDLE + self.runtime.handles;
                self.runtime.handles += 1;
                self.return_at_pointer(
                    w,
                    call,
                    lane,
                    Returned {
                        value: handle,
                        bytes: 8,
                    },
                );
                Ok(SUCCESS)
            }
            RuntimeCall::Allocate => {
                let bytes = self.argument(w, call, 1, lane);
                let address = self.take_block(bytes, 1);
                self.return_at_pointer(
                    w,
                    call,
                    lane,
                    Returned {
                        value: address,
                        bytes: 8,
                    },
                );
                (address != 0).then_some(SUCCESS).ok_or(OUT_OF_MEMORY)
            }
            RuntimeCall::Free => {
                self.free(w, call, lane);
                Ok(SUCCESS)
            }
            RuntimeCall::Device | RuntimeCall::DeviceCount => {
                let value = u64::from(function == RuntimeCall::DeviceCount);
                self.return_at_pointer(w, call, lane, Returned { value, bytes: 4 });
                Ok(SUCCESS)
            }
        };
        result.unwrap_or_else(|error| {
            self.runtime.errors.insert(thread, error);
            // A buffer that cannot be had is a null pointer.
            match function {
                RuntimeCall::ParameterBuffer => 0,
                _ => error,
            }
        })
    }

    /// Stores a result where the first argument points.
    fn return_at_pointer(&mut self, w: &mut Warp, call: &External, lane: usize, result: Returned) {
        let Returned { value, bytes } = result;
        let (area, at) = split(self.argument(w, call, 0, lane));
        if let Some(place) = self.touch(w, area, at, Touch::write(lane, bytes)) {
            self.put(w, place, 0, bytes, value);
        }
    }

    /// Returns the address of a buffer for the parameters of a launch.
    fn parameter_buffer(&mut self, w: &Warp, call: &External, lane: usize) -> Result<u64, u64> {
        if self.context.nesting >= MAX_NESTING {
            return Err(MAX_DEPTH_EXCEEDED);
        }
        let kernel = self.argument(w, call, 0, lane);
        let kernel = self.context.program.kernels.get(&kernel);
        let (entry, bytes) = kernel.cloned().ok_or(INVALID_DEVICE_FUNCTION)?;
        let extent = |cta: &Self, number| [0, 4, 8].map(|at| cta.word(w, call, number, at, lane));
        let (grid, block) = (extent(self, 1), extent(self, 2));
        let is_refused = |extent: [u32; 3], most| extent.contains(&0) || exceeds(extent, most);
        let threads: u64 = block.iter().map(|extent| u64::from(*extent)).product();
        if is_refused(grid, MAX_GRID)
            || is_refused(block, MAX_BLOCK)
            || threads > u64::from(MAX_THREADS_PER_BLOCK)
        {
            return Err(INVALID_CONFIGURATION);
        }
        let address = match self.take_block(bytes.max(1).into(), 16) {
            0 => return Err(OUT_OF_MEMORY),
            address => address,
        };
        let launch = DeviceLaunch {
            entry,
            grid,
            block,
            shared_bytes: self.argument(w, call, 3, lane) as u32,
            parameters: Vec::new(),
        };
        self.runtime.buffers.insert(address, (launch, bytes));
        Ok(address)
    }

    /// Adds a launch, whose parameters are in its buffer now.
    fn start_launch(&mut self, w: &Warp, call: &External, lane: usize) -> Result<(), u64> {
        let [address, stream] = [0, 1].map(|number| self.argument(w, call, number, lane));
        let taken = self.runtime.buffers.remove(&address);
        let (mut launch, bytes) = taken.ok_or(INVALID_VALUE)?;
        let found = self.context.memory.find(address).ok_or(INVALID_VALUE)?;
        let place = CheckedLocation::Global(found);
        for at in (0..bytes).step_by(4) {
            let size = 4.min(bytes - at);
            let word = self.get(w, place, at, size);
            let word = (word as u32).to_le_bytes().into_iter();
            launch.parameters.extend(word.take(size as usize));
        }
        self.give_block(w, lane, address);
        self.start(stream, DeviceWork::Launch(launch));
        Ok(())
    }

    fn start_transfer(&mut self, w: &Warp, call: &External, lane: usize, function: RuntimeCall) {
        let [to, second, bytes, fourth, fifth] =
            [0, 1, 2, 3, 4].map(|number| self.argument(w, call, number, lane));
        let (stream, work) = match function {
            RuntimeCall::Copy => {
                let from = second;
                (fifth, DeviceWork::Copy { to, from, bytes })
            }
            _ => {
                let value = second as u8;
                (fourth, DeviceWork::Fill { to, value, bytes })
            }
        };
        self.start(stream, work);
    }

    fn start(&mut self, stream: u64, work: DeviceWork) {
        let at_tail = stream == TAIL_STREAM;
        self.runtime
            .operations
            .push(DeviceOperation { at_tail, work });
    }

    /// Returns a word of an argument that is larger than one.
    fn word(&self, w: &Warp, call: &External, number: usize, at: u32, lane: usize) -> u32 {
        let Some((start, _)) = call.arguments.get(number) else {
            return 0;
        };
        self.get(w, self.call_place(w, lane, start + at), 0, 4) as u32
    }

    /// Returns the address of the name or the text of an error.
    fn error_text(&mut self, w: &mut Warp, error: u64, is_name: bool) -> u64 {
        let known = ERRORS.iter().find(|(code, ..)| *code == error);
        let text = known.map_or(
            "unrecognized error code",
            |(_, name, text)| {
                if is_name { name } else { text }
            },
        );
        if let Some(address) = self.runtime.texts.get(text) {
            return *address;
        }
        let address = self.take_block(text.len() as u64 + 1, 1);
        if let Some(found) = self.context.memory.find(address) {
            let bytes = text.bytes().chain([0]);
            for (at, byte) in (0u32..).zip(bytes) {
                let place = CheckedLocation::Global(found);
                // Without a check: every thread of the block may read it.
                self.put(w, place, at, 1, byte.into());
            }
            let allocation = &self.context.memory.allocations[found.index];
            let end = found.offset + text.len() as u64 + 1;
            allocation.init.mark(found.offset..end);
        }
        self.runtime.texts.insert(text, address);
        address
    }
}
