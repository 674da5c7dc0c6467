//! A GPU session for the gate: guarded buffers, poison, single launches.

use super::context::Gpu;
use super::driver::DevicePointer;
use super::examine::Margin;
use super::helpers::Helpers;
use super::meter::Spent;
use super::nvml::Monitor;
use super::scan::Resident;
use super::stopwatch::STAMPS_BYTES;
use super::subject::Subjects;
use crate::step::Step;
use std::time::{Duration, Instant};
use tuner_core::judgement::Judgement;
use tuner_core::record::{Hazard, Verdict};
use tuner_judge::session::Session as _;

/// Unowned bytes before and after every buffer: large enough to catch a stride error of a tile.
pub(super) const GUARD_BYTES: u64 = 64 << 10;
/// Contents of the guard regions of outputs and scratch buffers.
const GUARD: u8 = 0xa5;
/// Contents of the guard regions of inputs: NaN in every floating-point type, so that a read beyond
/// the end shows in the result.
const INPUT_GUARD: u8 = 0xff;
/// Shift of addresses between runs, which exposes results cached by address. Aligned as guaranteed by
/// `cudaMalloc`.
const SHIFT_BYTES: u64 = 512;
/// Number of waits for memory of another process before the candidate is judged.
const MEMORY_WAITS: u32 = 5;
/// Duration of one such wait.
const MEMORY_WAIT: Duration = Duration::from_secs(1);
/// Approximate memory reserved by the driver, bytes.
const MEMORY_RESERVE: u64 = 1 << 30;

/// A buffer with guard regions around it.
#[derive(Debug, Clone)]
pub(super) struct Buffer {
    pub(super) name: String,
    allocation: DevicePointer,
    /// Bytes of the allocation before the buffer.
    front: u64,
    pub(super) bytes: u64,
    total: u64,
    guard: u8,
}

impl Buffer {
    /// Returns the address of the buffer itself.
    pub(super) fn start(&self) -> DevicePointer {
        self.allocation.plus(self.front)
    }

    /// Returns the contents of its guard regions.
    pub(super) fn guard(&self) -> u8 {
        self.guard
    }

    /// Returns address and length of the guard regions, before and after the buffer.
    pub(super) fn guards(&self) -> [(DevicePointer, u64); 2] {
        let behind = self.front + self.bytes;
        [
            (self.allocation, self.front),
            (self.allocation.plus(behind), self.total - behind),
        ]
    }
}

/// A session on a real GPU.
pub struct GpuSession {
    /// The GPU.
    pub gpu: Gpu,
    pub(super) helpers: Helpers,
    /// Clocks, temperature and other processes.
    pub monitor: Monitor,
    pub(super) buffers: Vec<Buffer>,
    /// Buffers whose contents are kept: the run no longer frees them.
    pub(super) taken: Vec<bool>,
    pub(super) resident: Resident,
    /// Outputs are checked on the device, not on the host.
    pub(super) looks: bool,
    pub(super) subjects: Subjects,
    pub(super) resets: u64,
    stamps: Option<Buffer>,
    /// Buffer that is overwritten before a cold sample.
    pub(super) flush: Option<Buffer>,
    /// Factor of the time for which the device waits while the host queues work.
    pub(super) spin_factor: u32,
    /// Smallest margin by which the host queued ahead of the device.
    pub(super) margin: Margin,
    /// Time accounting.
    pub spent: Spent,
    /// Number of launches of the stamping kernel.
    pub(super) ticket: u64,
    /// Callback for the start and end of a launch.
    announce: Option<Box<dyn FnMut(Step)>>,
}

impl GpuSession {
    /// Creates a session on an open GPU, with the helper kernels compiled for it.
    #[must_use]
    pub fn new(gpu: Gpu, helpers: Helpers, monitor: Monitor) -> Self {
        Self {
            gpu,
            helpers,
            monitor,
            buffers: Vec::new(),
            taken: Vec::new(),
            resident: Resident::default(),
            looks: true,
            subjects: Subjects::default(),
            resets: 0,
            stamps: None,
            flush: None,
            spin_factor: 1,
            margin: Margin::default(),
            spent: Spent::default(),
            ticket: 0,
            announce: None,
        }
    }

    /// Makes the session compare everything on the host.
    #[must_use]
    pub fn comparing_on_host(self) -> Self {
        Self {
            looks: false,
            ..self
        }
    }

    /// Announces each launch of the gate before it starts ([`Step::Launch`]) and after it ends
    /// ([`Step::Gate`]), so that a hang is detected early.
    pub fn announce_launches(&mut self, announce: Box<dyn FnMut(Step)>) {
        self.announce = Some(announce);
    }

    pub(super) fn announce(&mut self, step: Step) {
        if let Some(announce) = &mut self.announce {
            announce(step);
        }
    }

    /// Returns the buffer of clock stamps, which lives as long as the session.
    pub(super) fn stamps(&mut self) -> Result<Buffer, Judgement> {
        if let Some(stamps) = &self.stamps {
            return Ok(stamps.clone());
        }
        let stamps = self.guarded("clock stamps", STAMPS_BYTES)?;
        self.stamps = Some(stamps.clone());
        Ok(stamps)
    }

    /// Drops the state of the last job except loaded subjects.
    pub fn next_job(&mut self) {
        self.reset();
        // A corrupted context is recorded by the call, and the worker is restarted.
        let _ = self.gpu.forget_unused();
    }

    /// Allocates a buffer with its guard regions, filled with their pattern throughout.
    pub(super) fn guarded(&mut self, name: &str, bytes: u64) -> Result<Buffer, Judgement> {
        let front = GUARD_BYTES + self.resets % 8 * SHIFT_BYTES;
        let total = (front + bytes + GUARD_BYTES).next_multiple_of(4);
        let allocation = self.allocate(name, total)?;
        let buffer = Buffer {
            name: name.to_owned(),
            allocation,
            front,
            bytes,
            total,
            guard: GUARD,
        };
        let filled = self
            .gpu
            .call(|driver, stream| driver.fill_bytes(allocation, GUARD, total, stream));
        match filled {
            Ok(()) => Ok(buffer),
            Err(fault) => {
                self.free(&buffer);
                Err(fault)
            }
        }
    }

    /// Allocates memory; waits for a while if another process uses it.
    fn allocate(&mut self, name: &str, total: u64) -> Result<DevicePointer, Judgement> {
        let mut waits = 0;
        loop {
            let mut fault = match self.gpu.call(|driver, _| driver.memory_alloc(total)) {
                Ok(allocation) => return Ok(allocation),
                Err(fault) if fault.verdict != Verdict::OutOfMemory => return Err(fault),
                Err(fault) => fault,
            };
            // Caches are evicted first.
            if self.evict() {
                continue;
            }
            let (free, all) = self.gpu.call(|driver, _| driver.memory_info())?;
            let ours: u64 = self.buffers.iter().map(|buffer| buffer.total).sum();
            let ours = ours + self.subjects.bytes() + self.resident.bytes();
            let held = all.saturating_sub(free + ours);
            // Waiting helps only if the buffer fits after the other processes have ended.
            let fits = ours + total + MEMORY_RESERVE < all;
            if !fits || held < MEMORY_RESERVE || waits >= MEMORY_WAITS {
                let others = if held >= MEMORY_RESERVE {
                    format!("; other processes hold {} MiB", held >> 20)
                } else {
                    String::new()
                };
                fault.detail = format!(
                    "buffer `{name}` of {total} bytes: {} of {} MiB are free{others}",
                    free >> 20,
                    all >> 20
                );
                return Err(fault);
            }
            waits += 1;
            eprintln!(
                "waiting for GPU memory: other processes hold {} of {} MiB",
                held >> 20,
                all >> 20
            );
            std::thread::sleep(MEMORY_WAIT);
        }
    }

    pub(super) fn free(&mut self, buffer: &Buffer) {
        // Fails only on a lost context, whose memory is already gone.
        let _ = self
            .gpu
            .call(|driver, _| driver.memory_free(buffer.allocation));
    }

    /// Writes the whole buffer, and sets its guard regions to those of an input.
    pub(super) fn fill_input(
        &mut self,
        buffer: &mut Buffer,
        bytes: &[u8],
    ) -> Result<(), Judgement> {
        self.guard_input(buffer)?;
        let (at, began) = (buffer.start(), Instant::now());
        let copied = self.gpu.call(|driver, stream| {
            driver.stream_synchronize(stream)?;
            driver.copy_to_device(at, bytes)
        });
        self.spent.copies += began.elapsed();
        copied
    }

    /// Sets the guard regions to those of an input.
    pub(super) fn guard_input(&mut self, buffer: &mut Buffer) -> Result<(), Judgement> {
        if buffer.guard == INPUT_GUARD {
            return Ok(());
        }
        buffer.guard = INPUT_GUARD;
        buffer.guards().into_iter().try_for_each(|(at, length)| {
            self.gpu
                .call(|driver, stream| driver.fill_bytes(at, INPUT_GUARD, length, stream))
        })
    }

    /// Fills the buffer with repeats of a pattern.
    pub(super) fn fill_pattern(
        &mut self,
        buffer: &Buffer,
        pattern: &[u8],
    ) -> Result<(), Judgement> {
        let (at, bytes) = (buffer.start(), buffer.bytes);
        if pattern.is_empty() {
            return Ok(());
        }
        if let [first, rest @ ..] = pattern
            && rest.iter().all(|byte| byte == first)
        {
            return self
                .gpu
                .call(|driver, stream| driver.fill_bytes(at, *first, bytes, stream));
        }
        let word: [u8; 4] = std::array::from_fn(|n| pattern.get(n % pattern.len()).copied())
            .map(Option::unwrap_or_default);
        if pattern.len() <= 4 && 4 % pattern.len() == 0 {
            // The front of a buffer is aligned to 512 bytes.
            let words = bytes / 4;
            self.gpu.call(|driver, stream| {
                driver.fill_words(at, u32::from_le_bytes(word), words, stream)
            })?;
            let rest = (bytes % 4) as usize;
            if rest == 0 {
                return Ok(());
            }
            let end = at.plus(bytes - bytes % 4);
            return self.gpu.call(|driver, stream| {
                driver.stream_synchronize(stream)?;
                driver.copy_to_device(end, &word[..rest])
            });
        }
        let length = usize::try_from(bytes).unwrap_or(usize::MAX);
        let all: Vec<u8> = pattern.iter().copied().cycle().take(length).collect();
        self.gpu.call(|driver, stream| {
            driver.stream_synchronize(stream)?;
            driver.copy_to_device(at, &all)
        })
    }

    pub(super) fn read(&mut self, buffer: &Buffer) -> Result<Vec<u8>, Judgement> {
        let mut bytes = vec![0; usize::try_from(buffer.bytes).unwrap_or(usize::MAX)];
        let (at, began) = (buffer.start(), Instant::now());
        self.gpu.call(|driver, stream| {
            driver.stream_synchronize(stream)?;
            driver.copy_from_device(&mut bytes, at)
        })?;
        self.spent.copies += began.elapsed();
        Ok(bytes)
    }

    /// Reports writes to the guard regions of a buffer.
    pub(super) fn check_guards(&mut self, buffer: &Buffer) -> Result<Option<Hazard>, Judgement> {
        for (number, (at, length)) in buffer.guards().into_iter().enumerate() {
            let mut guard = vec![0; length as usize];
            self.gpu
                .call(|driver, _| driver.copy_from_device(&mut guard, at))?;
            let touched = |byte: &u8| *byte != buffer.guard;
            let count = guard.iter().filter(|byte| touched(byte)).count();
            if count == 0 {
                continue;
            }
            // The nearest one is the best description of the mistake.
            let (place, address) = if number == 0 {
                let last = guard.iter().rposition(touched).unwrap_or(0) as u64;
                let distance = length - last;
                (format!("{distance} before its first byte"), at.plus(last))
            } else {
                let first = guard.iter().position(touched).unwrap_or(0) as u64;
                (format!("{first} after its end"), at.plus(first))
            };
            return Ok(Some(Hazard {
                kind: Verdict::OutOfBounds,
                detail: format!(
                    "{count} bytes around `{}` ({} bytes) were overwritten; distance of the nearest: {place}",
                    buffer.name, buffer.bytes
                ),
                file: None,
                line: None,
                block: None,
                thread: None,
                address: Some(format!("0x{:x}", address.address())),
            }));
        }
        Ok(None)
    }
}
