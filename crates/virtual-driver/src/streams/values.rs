//! Words that streams write and wait for.

use cuda_shim::errors::{self, Code};
use vgpu::BufferId;

use super::{Clock, Streams, join, plain};
use crate::device::Device;

/// A word, and the value that a stream writes to it or waits for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Word {
    pub(crate) stream: u64,
    pub(crate) address: u64,
    pub(crate) value: u64,
    /// 4 or 8.
    pub(crate) bytes: u32,
}

impl Word {
    /// Reports whether the word satisfies a condition, by its number in `CUstreamWaitValue_flags`.
    fn is_met(&self, found: u64, condition: u32) -> bool {
        let (value, unused) = (self.value, 64 - 8 * self.bytes);
        // cuda.h, CUstreamWaitValue_flags: comparisons are cyclic, in the size of the word.
        let signed = |number: u64| (number << unused) as i64;
        match condition {
            0 => signed(found.wrapping_sub(value)) >= 0,
            1 => found == value,
            2 => found & value != 0,
            _ => signed(!(found | value)) != 0,
        }
    }
}

impl Streams {
    /// Records that a word was written after all earlier operations of its stream.
    fn release(&mut self, stream: u64, address: u64) {
        let clock = self.streams.get(&plain(stream));
        let clock = clock.map(|own| own.clock.clone()).unwrap_or_default();
        self.words.insert(address, clock);
    }

    /// Orders a stream after the writes of a word, by streams and by kernels.
    fn acquire(&mut self, stream: u64, address: u64) {
        let mut clock = self.words.get(&address).cloned().unwrap_or_default();
        for past in &self.past {
            if past.access.write && past.access.bytes.contains(&address) {
                let operation = &past.operation;
                let made = Clock::from([(operation.stream, operation.number)]);
                join(&mut clock, &made);
            }
        }
        if let Some(own) = self.streams.get_mut(&plain(stream)) {
            join(&mut own.clock, &clock);
        }
    }
}

impl Device {
    fn word(&self, word: &Word) -> Result<(BufferId, u64), Code> {
        self.check_stream(word.stream)?;
        let place = self.resolve(word.address, word.bytes.into())?;
        Ok((place.buffer, place.offset))
    }

    /// Writes a word after the work of a stream.
    pub(crate) fn write_value(&mut self, word: &Word) -> Result<(), Code> {
        let (buffer, offset) = self.word(word)?;
        let shared = self.is_shared(word.address);
        if shared {
            self.take_shared();
        }
        let bytes = word.value.to_le_bytes();
        let bytes = bytes.get(..word.bytes as usize).unwrap_or(&bytes);
        self.memory.write(buffer, offset, bytes);
        if shared {
            self.give_shared();
        }
        self.order(word.stream, "write of a value", 0.0, Vec::new());
        self.streams.release(word.stream, word.address);
        Ok(())
    }

    /// Orders a stream after the writes of a word, if it has the value.
    pub(crate) fn wait_value(&mut self, word: &Word, condition: u32) -> Result<bool, Code> {
        let (buffer, offset) = self.word(word)?;
        if self.is_shared(word.address) {
            self.take_shared();
        }
        let mut found = [0; 8];
        let into = found
            .get_mut(..word.bytes as usize)
            .ok_or(errors::INVALID_VALUE)?;
        self.memory.read_at(buffer, offset, into);
        let met = word.is_met(u64::from_le_bytes(found), condition);
        if met {
            self.streams.acquire(word.stream, word.address);
        }
        Ok(met)
    }
}
