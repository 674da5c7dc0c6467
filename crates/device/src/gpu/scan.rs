//! The gate on the device: inputs, expectations and outputs stay there, and the host reads back a few
//! words.

use super::driver::{DevicePointer, LaunchConfig};
use super::helpers::{config, entry};
use super::session::{Buffer, GpuSession};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tuner_core::element::Element;
use tuner_core::judgement::Judgement;
use tuner_core::units::ContentHash;
use tuner_judge::session::{Kept, Tally, Wanted};

/// Threads of a block.
const THREADS: u32 = 256;
/// Blocks a multiprocessor of what goes over a whole buffer.
const BLOCKS: u32 = 8;
/// Words of a verdict, and what they hold before: largest error, count, first place.
const WORDS: usize = 3;
const NOTHING: [u64; WORDS] = [0, 0, u64::MAX];
/// Share of the GPU's memory for inputs that stay, and for expectations that stay: one in so many
/// each.
const MEMORY_SHARE: u64 = 8;

/// What stays on the device.
#[derive(Default)]
pub(super) struct Resident {
    inputs: Vec<(Arc<[u8]>, Buffer)>,
    wanted: Vec<(ContentHash, Expectations)>,
    kept: BTreeMap<usize, Place>,
    next: usize,
    words: Option<Buffer>,
    bytes: HashMap<Sort, u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Sort {
    Input,
    Wanted,
}

#[derive(Clone)]
struct Expectations {
    values: Buffer,
    units: Buffer,
    count: u64,
}

/// A kept buffer; one of a subject is not freed with its contents.
struct Place {
    buffer: Buffer,
    owned: bool,
}

impl Resident {
    /// Device memory that it takes.
    pub(super) fn bytes(&self) -> u64 {
        let kept = self.kept.values().filter(|place| place.owned);
        self.bytes.values().sum::<u64>() + kept.map(|place| place.buffer.bytes).sum::<u64>()
    }
}

/// Bytes as the kernel takes them.
fn parameter(word: u64) -> Vec<u8> {
    word.to_le_bytes().to_vec()
}

/// How `tuner_compare` calls an element type; `None` where the host must compare.
fn type_code(element: Element) -> Option<u32> {
    match element {
        Element::F16 => Some(0),
        Element::Bf16 => Some(1),
        Element::F32 => Some(2),
        Element::F64 => Some(3),
        _ => None,
    }
}

impl GpuSession {
    /// Keeps a buffer, which is the session's to free then.
    pub(super) fn keep_buffer(&mut self, buffer: Buffer, owned: bool) -> Kept {
        let number = self.resident.next;
        self.resident.next += 1;
        self.resident.kept.insert(number, Place { buffer, owned });
        Kept(number)
    }

    pub(super) fn kept(&self, kept: Kept) -> Result<Buffer, Judgement> {
        let place = self.resident.kept.get(&kept.0);
        place.map(|place| place.buffer.clone()).ok_or_else(|| {
            super::context::refused("what a kernel left is no longer there".to_owned())
        })
    }

    pub(super) fn release_kept(&mut self, kept: Kept) {
        if let Some(place) = self.resident.kept.remove(&kept.0)
            && place.owned
        {
            self.free(&place.buffer);
        }
    }

    pub(super) fn release_all_kept(&mut self) {
        let all: Vec<usize> = self.resident.kept.keys().copied().collect();
        all.into_iter()
            .for_each(|number| self.release_kept(Kept(number)));
    }

    /// Frees the input or expectation that has stayed longest; whether there was one.
    pub(super) fn evict(&mut self) -> bool {
        if !self.resident.wanted.is_empty() {
            let (_, old) = self.resident.wanted.remove(0);
            self.lose(Sort::Wanted, old.values.bytes + old.units.bytes);
            self.free(&old.values);
            self.free(&old.units);
            return true;
        }
        if !self.resident.inputs.is_empty() {
            let (_, old) = self.resident.inputs.remove(0);
            self.lose(Sort::Input, old.bytes);
            self.free(&old);
            return true;
        }
        false
    }

    fn lose(&mut self, sort: Sort, bytes: u64) {
        let held = self.resident.bytes.entry(sort).or_default();
        *held = held.saturating_sub(bytes);
    }

    /// Whether so many bytes more may stay.
    fn has_room(&self, sort: Sort, bytes: u64) -> bool {
        let most = self.gpu.facts().memory_bytes / MEMORY_SHARE;
        let held = self.resident.bytes.get(&sort).copied().unwrap_or(0);
        held.saturating_add(bytes) <= most
    }

    /// The input on the device, uploaded where it is new; `None` where there is no room for it.
    pub(super) fn resident_input(
        &mut self,
        bytes: &Arc<[u8]>,
    ) -> Result<Option<DevicePointer>, Judgement> {
        let known = |(input, _): &(Arc<[u8]>, Buffer)| Arc::ptr_eq(input, bytes);
        if let Some(at) = self.resident.inputs.iter().position(known) {
            // Used last: others go first.
            let used = self.resident.inputs.remove(at);
            let place = used.1.at();
            self.resident.inputs.push(used);
            return Ok(Some(place));
        }
        let size = bytes.len() as u64;
        while !self.has_room(Sort::Input, size) {
            if self.resident.inputs.is_empty() {
                return Ok(None);
            }
            let (_, old) = self.resident.inputs.remove(0);
            self.lose(Sort::Input, old.bytes);
            self.free(&old);
        }
        let mut buffer = self.guarded("an input that stays", size)?;
        self.fill_input(&mut buffer, bytes)?;
        let place = buffer.at();
        self.resident.inputs.push((Arc::clone(bytes), buffer));
        *self.resident.bytes.entry(Sort::Input).or_default() += size;
        Ok(Some(place))
    }

    /// Queues one of the looks, and reads its words.
    fn look(
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
        let at = words.at();
        self.gpu.call(|driver, stream| {
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

    fn over(&self, parameters: Vec<Vec<u8>>) -> LaunchConfig {
        config(self.gpu.facts().sm_count * BLOCKS, THREADS, parameters)
    }

    /// Bytes in the guard regions of these buffers that are not as they were.
    pub(super) fn trespassed(&mut self, buffers: &[Buffer]) -> Result<u64, Judgement> {
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

    /// Whether two places hold the same bytes.
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

    /// The first of `run` elements in a row that hold the pattern.
    pub(super) fn first_run_of(
        &mut self,
        kept: Kept,
        pattern: &[u8],
        run: u64,
    ) -> Result<Option<u64>, Judgement> {
        let buffer = self.kept(kept)?;
        let mut word = [0; 8];
        let size = pattern.len().min(8);
        word[..size].copy_from_slice(&pattern[..size]);
        let found = self.look(|session, out| {
            let parameters = vec![
                parameter(buffer.at().address()),
                parameter(buffer.bytes / (size as u64).max(1)),
                (size as u32).to_le_bytes().to_vec(),
                word.to_vec(),
                parameter(run),
                parameter(out.plus(16).address()),
            ];
            let config = session.over(parameters);
            session.queue(entry::RUN, &config)
        })?;
        Ok((found[2] != u64::MAX).then_some(found[2]))
    }

    /// Compares kept contents with what is wanted; `None` where there is no room for that, or for a
    /// type that the host compares.
    pub(super) fn tallied(
        &mut self,
        kept: Kept,
        element: Element,
        key: &ContentHash,
        make: &mut dyn FnMut() -> Wanted,
    ) -> Result<Option<Tally>, Judgement> {
        let Some(code) = type_code(element) else {
            return Ok(None);
        };
        let Some(wanted) = self.expectations(key, make)? else {
            return Ok(None);
        };
        let buffer = self.kept(kept)?;
        let found = self.look(|session, out| {
            let parameters = vec![
                parameter(buffer.at().address()),
                code.to_le_bytes().to_vec(),
                parameter(wanted.values.at().address()),
                parameter(wanted.units.at().address()),
                parameter(wanted.count),
                parameter(out.address()),
            ];
            let blocks = wanted.count.div_ceil(u64::from(THREADS));
            let blocks = u32::try_from(blocks).unwrap_or(u32::MAX);
            session.queue(entry::COMPARE, &config(blocks, THREADS, parameters))
        })?;
        Ok(Some(Tally {
            max_error: f64::from_bits(found[0]),
            wrong: found[1],
            first_wrong: (found[2] != u64::MAX).then_some(found[2]),
        }))
    }

    fn expectations(
        &mut self,
        key: &ContentHash,
        make: &mut dyn FnMut() -> Wanted,
    ) -> Result<Option<Expectations>, Judgement> {
        let known = |(name, _): &(ContentHash, Expectations)| name == key;
        if let Some(at) = self.resident.wanted.iter().position(known) {
            let used = self.resident.wanted.remove(at);
            let found = used.1.clone();
            self.resident.wanted.push(used);
            return Ok(Some(found));
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
        while !self.has_room(Sort::Wanted, size) {
            if self.resident.wanted.is_empty() || !self.evict() {
                return Ok(None);
            }
        }
        let mut both = [
            self.guarded("expectations", values.len() as u64)?,
            self.guarded("runs of expectations", units.len() as u64)?,
        ];
        for (buffer, bytes) in both.iter_mut().zip([&values, &units]) {
            self.fill_input(buffer, bytes)?;
        }
        let [values, units] = both;
        let made = Expectations {
            values,
            units,
            count: wanted.units.len() as u64,
        };
        self.resident.wanted.push((key.clone(), made.clone()));
        *self.resident.bytes.entry(Sort::Wanted).or_default() += size;
        Ok(Some(made))
    }
}
