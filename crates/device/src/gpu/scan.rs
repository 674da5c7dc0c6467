//! Gate operations on the device: inputs, expectations and outputs stay there, and the host only reads a
//! few words.

use super::driver::{DevicePointer, LaunchConfig};
use super::helpers::{config, entry};
use super::session::{Buffer, GpuSession};
use std::collections::BTreeMap;
use std::sync::Arc;
use tuner_core::element::Element;
use tuner_core::judgement::Judgement;
use tuner_core::units::ContentHash;
use tuner_judge::session::{ExpectedOutput, RetainedBuffer};

/// Threads of a block.
pub(super) const THREADS: u32 = 256;
/// Blocks per multiprocessor of kernels that process a whole buffer.
const BLOCKS: u32 = 8;
/// Words of a result, and their initial values: largest error, count, first position.
const WORDS: usize = 3;
const NOTHING: [u64; WORDS] = [0, 0, u64::MAX];
/// Bytes of a run of elements that are compared.
pub(super) const UNIT_BYTES: u64 = 32;
/// Divisor of the GPU's memory for resident inputs, and for resident expectations.
const MEMORY_SHARE: u64 = 8;

/// Data that stays on the device.
#[derive(Default)]
pub(super) struct Resident {
    inputs: LruBuffers<Arc<[u8]>>,
    /// Values and units of each expectation.
    wanted: LruBuffers<ContentHash>,
    pub(super) kept: BTreeMap<usize, KeptBuffer>,
    next: usize,
    words: Option<Buffer>,
}

/// Buffers by their contents, the most recently used last.
struct LruBuffers<K>(Vec<(K, Vec<Buffer>)>);

impl<K> Default for LruBuffers<K> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K> LruBuffers<K> {
    fn bytes(&self) -> u64 {
        let buffers = self.0.iter().flat_map(|(_, buffers)| buffers);
        buffers.map(|buffer| buffer.bytes).sum()
    }

    /// Returns the buffers of a known key.
    fn used(&mut self, is_it: impl Fn(&K) -> bool) -> Option<Vec<Buffer>> {
        let at = self.0.iter().position(|(key, _)| is_it(key))?;
        let used = self.0.remove(at);
        let buffers = used.1.clone();
        self.0.push(used);
        Some(buffers)
    }

    /// Removes the least recently used entry.
    fn oldest(&mut self) -> Option<Vec<Buffer>> {
        (!self.0.is_empty()).then(|| self.0.remove(0).1)
    }
}

/// A kept buffer; a buffer of a subject is not freed with the kept contents.
pub(super) struct KeptBuffer {
    pub(super) buffer: Buffer,
    pub(super) owned: bool,
}

impl Resident {
    /// Returns its device memory.
    pub(super) fn bytes(&self) -> u64 {
        let kept = self.kept.values().filter(|place| place.owned);
        let kept: u64 = kept.map(|place| place.buffer.bytes).sum();
        self.inputs.bytes() + self.wanted.bytes() + kept
    }
}

/// Encodes a word as a kernel parameter.
pub(super) fn parameter(word: u64) -> Vec<u8> {
    word.to_le_bytes().to_vec()
}

/// Returns the code of an element type for `tuner_compare`; `None` if the host must compare.
pub(super) fn type_code(element: Element) -> Option<u32> {
    match element {
        Element::F16 => Some(0),
        Element::Bf16 => Some(1),
        Element::F32 => Some(2),
        Element::F64 => Some(3),
        _ => None,
    }
}

impl GpuSession {
    /// Keeps a buffer; an owned one is freed by the session.
    pub(super) fn keep_buffer(&mut self, buffer: Buffer, owned: bool) -> RetainedBuffer {
        let number = self.resident.next;
        self.resident.next += 1;
        self.resident
            .kept
            .insert(number, KeptBuffer { buffer, owned });
        RetainedBuffer(number)
    }

    pub(super) fn kept(&self, kept: RetainedBuffer) -> Result<Buffer, Judgement> {
        let place = self.resident.kept.get(&kept.0);
        place
            .map(|place| place.buffer.clone())
            .ok_or_else(|| super::context::refused("what a kernel left is no longer there"))
    }

    /// Frees the least recently used expectation or input; returns whether there was one.
    pub(super) fn evict(&mut self) -> bool {
        let old = self.resident.wanted.oldest();
        let old = old.or_else(|| self.resident.inputs.oldest());
        old.iter().flatten().for_each(|buffer| self.free(buffer));
        old.is_some()
    }

    /// Returns the memory limit for inputs, and for expectations.
    fn room(&self) -> u64 {
        self.gpu.facts().memory_bytes / MEMORY_SHARE
    }

    /// Returns the input on the device, uploaded if it is new; `None` if there is no room.
    pub(super) fn resident_input(
        &mut self,
        bytes: &Arc<[u8]>,
    ) -> Result<Option<DevicePointer>, Judgement> {
        // Inputs are shared, so their addresses identify them without a comparison of contents.
        let known = |input: &Arc<[u8]>| Arc::ptr_eq(input, bytes);
        if let Some(known) = self.resident.inputs.used(known) {
            return Ok(known.first().map(Buffer::start));
        }
        let size = bytes.len() as u64;
        while self.resident.inputs.bytes().saturating_add(size) > self.room() {
            let Some(old) = self.resident.inputs.oldest() else {
                return Ok(None);
            };
            old.iter().for_each(|buffer| self.free(buffer));
        }
        let mut buffer = self.guarded("an input that stays", size)?;
        self.fill_input(&mut buffer, bytes)?;
        let place = buffer.start();
        let entry = (Arc::clone(bytes), vec![buffer]);
        self.resident.inputs.0.push(entry);
        Ok(Some(place))
    }

    /// Queues one of the checks, and reads its result words.
    pub(super) fn look(
        &mut self,
        work: impl FnOnce(&mut Self, DevicePointer) -> Result<(), Judgement>,
    ) -> Result<[u64; WORDS], Judgement> {
        let words = match &self.resident.words {
            Some(words) => words.clone(),
            None => {
                let words = self.guarded("verdicts", 8 * WORDS as u64)?;
                self.resident.words = Some(words.clone());
                words
            }
        };
        let bytes: Vec<u8> = NOTHING.iter().flat_map(|word| word.to_le_bytes()).collect();
        let at = words.start();
        self.gpu.call(|driver, stream| {
            // Fills are queued like kernels, whereas a copy from the host would block.
            driver.fill_words(at, 0, 2 * (WORDS as u64 - 1), stream)?;
            let last = at.plus(8 * (WORDS as u64 - 1));
            driver.fill_bytes(last, bytes[bytes.len() - 1], 8, stream)
        })?;
        work(self, at)?;
        let read = self.read(&words)?;
        let mut found = NOTHING;
        for (word, bytes) in found.iter_mut().zip(read.chunks_exact(8)) {
            *word = bytes.try_into().map_or(0, u64::from_le_bytes);
        }
        Ok(found)
    }

    pub(super) fn over(&self, parameters: Vec<Vec<u8>>) -> LaunchConfig {
        config(self.gpu.facts().sm_count * BLOCKS, THREADS, parameters)
    }

    /// Counts the changed bytes in the guard regions of these buffers.
    pub(super) fn count_guard_writes(&mut self, buffers: &[Buffer]) -> Result<u64, Judgement> {
        let found = self.look(|session, out| {
            for buffer in buffers {
                for (at, length) in buffer.guards() {
                    let parameters = vec![
                        parameter(at.address()),
                        parameter(length),
                        u32::from(buffer.guard()).to_le_bytes().to_vec(),
                        parameter(out.plus(8).address()),
                    ];
                    let blocks = u32::try_from(length.div_ceil(4096)).unwrap_or(u32::MAX);
                    let config = config(blocks, THREADS, parameters);
                    session.queue(entry::GUARD, &config)?;
                }
            }
            Ok(())
        })?;
        Ok(found[1])
    }

    /// Reports whether two addresses hold the same bytes.
    pub(super) fn same_bytes(
        &mut self,
        one: DevicePointer,
        two: DevicePointer,
        bytes: u64,
    ) -> Result<bool, Judgement> {
        let found = self.look(|session, out| {
            let words = [one.address(), two.address(), bytes, out.plus(8).address()];
            let config = session.over(words.map(parameter).to_vec());
            session.queue(entry::DIFFER, &config)
        })?;
        Ok(found[1] == 0)
    }

    /// Returns values and units of an expectation, uploaded if they are new; `None` if there is no
    /// room.
    pub(super) fn expectations(
        &mut self,
        key: &ContentHash,
        make: &mut dyn FnMut() -> ExpectedOutput,
    ) -> Result<Option<Vec<Buffer>>, Judgement> {
        if let Some(known) = self.resident.wanted.used(|name| name == key) {
            return Ok(Some(known));
        }
        let wanted = make();
        let values: Vec<u8> = wanted
            .values
            .iter()
            .flatten()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        let word = |unit: &tuner_judge::session::Unit| {
            [unit.start, unit.at, unit.count, unit.bound.to_bits()]
        };
        let words = wanted.units.iter().flat_map(word);
        let units: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        let size = (values.len() + units.len()) as u64;
        while self.resident.wanted.bytes().saturating_add(size) > self.room() {
            let Some(old) = self.resident.wanted.oldest() else {
                return Ok(None);
            };
            old.iter().for_each(|buffer| self.free(buffer));
        }
        let mut both = vec![
            self.guarded("expectations", values.len() as u64)?,
            self.guarded("runs of expectations", units.len() as u64)?,
        ];
        for (buffer, bytes) in both.iter_mut().zip([&values, &units]) {
            self.fill_input(buffer, bytes)?;
        }
        self.resident.wanted.0.push((key.clone(), both.clone()));
        Ok(Some(both))
    }
}
