//! Shadow values: each floating-point value of a launch with the double that exact inputs and
//! arithmetic in double precision give for it. Control flow and addresses follow the ordinary values.
//!
//! A shadow is kept with the bits that it belongs to, and counts only where the register or the
//! memory still holds these bits. An instruction that is unknown here therefore ends a shadow
//! instead of falsifying it: the next operation starts again from the ordinary value.

mod alu;
mod lanes;
mod memory;
mod products;

pub use alu::FloatFormat;
pub(super) use alu::execute;
pub(crate) use alu::{ShadowOperation, ShadowedAlu};

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::lower::program::Data;
use gpu_arithmetic::half::{Bfloat16, Fp16, Half};

/// The word holds a 16-bit number in its low half.
const LOW: u8 = 1;
/// The word holds a 16-bit number in its high half.
const HIGH: u8 = 2;
/// The word is a single.
const SINGLE: u8 = 4;
/// The word is the low half of a double.
const DOUBLE_LOW: u8 = 8;
/// The word is the high half of a double.
const DOUBLE_HIGH: u8 = 16;

/// Shadow of a 32-bit word: of a single, of two 16-bit numbers, or of one half of a double.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct ShadowWord {
    /// Content of the word to which the shadow belongs.
    bits: u32,
    /// [`LOW`] and [`HIGH`], or one of the others; 0 where there is no shadow.
    parts: u8,
    /// Shadows of the low and the high half; of wider numbers only the first counts.
    values: [f64; 2],
}

impl ShadowWord {
    fn single(bits: u32, value: f64) -> ShadowWord {
        ShadowWord {
            bits,
            parts: SINGLE,
            values: [value, 0.0],
        }
    }

    fn double(bits: u64, value: f64) -> [ShadowWord; 2] {
        [
            (bits as u32, DOUBLE_LOW),
            ((bits >> 32) as u32, DOUBLE_HIGH),
        ]
        .map(|(bits, parts)| ShadowWord {
            bits,
            parts,
            values: [value, 0.0],
        })
    }

    fn is_empty(self) -> bool {
        self.parts == 0
    }

    /// Replaces the shadow of one half; `None` removes it.
    fn set_half(&mut self, high: bool, bits: u16, value: Option<f64>) {
        if self.parts & !(LOW | HIGH) != 0 {
            // The other half was a part of a wider number.
            *self = ShadowWord::default();
        }
        let (part, shift) = if high { (HIGH, 16) } else { (LOW, 0) };
        self.bits = self.bits & !(0xffff << shift) | u32::from(bits) << shift;
        match value {
            Some(value) => {
                self.parts |= part;
                self.values[usize::from(high)] = value;
            }
            None => self.parts &= !part,
        }
    }

    /// Returns the shadow of one half that holds these bits.
    fn half(self, high: bool, bits: u16) -> Option<f64> {
        let (part, shift) = if high { (HIGH, 16) } else { (LOW, 0) };
        let valid = self.parts & part != 0 && self.bits >> shift & 0xffff == u32::from(bits);
        valid.then_some(self.values[usize::from(high)])
    }

    /// Returns the shadow of a single with these bits.
    fn as_single(self, bits: u32) -> Option<f64> {
        (self.parts == SINGLE && self.bits == bits).then_some(self.values[0])
    }

    /// Returns the shadow of the double in two words with these bits.
    fn as_double(words: [ShadowWord; 2], bits: u64) -> Option<f64> {
        let [low, high] = words;
        let whole = low.parts == DOUBLE_LOW && high.parts == DOUBLE_HIGH;
        let same = low.bits == bits as u32 && high.bits == (bits >> 32) as u32;
        (whole && same).then_some(low.values[0])
    }
}

/// Shadows of a 32-bit register in all lanes; `None` where no lane has one.
type ShadowRow = Option<Box<[ShadowWord; 32]>>;

/// Shadows of a warp's registers and of the local memory of its threads.
#[derive(Debug, Default)]
pub(super) struct WarpShadows {
    r32: Vec<ShadowRow>,
    r64: Vec<[ShadowRow; 2]>,
    /// By lane, and word address among locals (even) or call parameters (odd).
    local: HashMap<(usize, u64), ShadowWord>,
}

impl WarpShadows {
    pub(super) fn new(rows32: u32, rows64: u32) -> WarpShadows {
        WarpShadows {
            r32: vec![None; rows32 as usize],
            r64: vec![[None, None]; rows64 as usize],
            local: HashMap::new(),
        }
    }

    fn row(&self, register: Data, word: usize) -> Option<&[ShadowWord; 32]> {
        match register {
            Data::R32(row) if word == 0 => self.r32[row as usize].as_deref(),
            Data::R64(row) => self.r64[row as usize][word & 1].as_deref(),
            _ => None,
        }
    }

    /// Returns the shadow of word 0 or 1 of a register in a lane.
    fn word(&self, register: Data, word: usize, lane: usize) -> ShadowWord {
        self.row(register, word)
            .map_or_else(ShadowWord::default, |row| row[lane])
    }

    fn set_word(&mut self, register: Data, word: usize, lane: usize, shadow: ShadowWord) {
        let row = match register {
            Data::R32(row) if word == 0 => &mut self.r32[row as usize],
            Data::R64(row) => &mut self.r64[row as usize][word & 1],
            _ => return,
        };
        match row {
            Some(row) => row[lane] = shadow,
            // Most registers hold integers and never need a row.
            None if shadow.is_empty() => {}
            None => row.insert(Box::new([ShadowWord::default(); 32]))[lane] = shadow,
        }
    }
}

/// Words of a chunk of shadows of global memory.
const CHUNK_WORDS: u64 = 256;
/// Locks of the chunks: few enough to create for each launch, enough for all cores.
const SHARDS: u64 = 64;

type Chunks = HashMap<u64, Box<[ShadowWord; CHUNK_WORDS as usize]>>;

/// Bytes of a page, of which it is known whether any of its words may have a shadow.
const PAGE_BYTES: u64 = 1 << 14;
/// Flags of pages; pages with equal remainders share one.
const PAGES: u64 = 1 << 14;

/// Shadows of global memory: of the words that a launch has stored.
#[derive(Debug)]
pub(crate) struct GlobalShadows {
    shards: Vec<Mutex<Chunks>>,
    /// Pages with shadows: most loads are of inputs, which have none, and need no lock.
    pages: Vec<AtomicBool>,
}

impl Default for GlobalShadows {
    fn default() -> GlobalShadows {
        GlobalShadows {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            pages: (0..PAGES).map(|_| AtomicBool::default()).collect(),
        }
    }
}

impl GlobalShadows {
    fn shard(&self, chunk: u64) -> MutexGuard<'_, Chunks> {
        let shard = &self.shards[(chunk % SHARDS) as usize];
        // Words are plain data: a panic elsewhere leaves none half written.
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn page(&self, address: u64) -> &AtomicBool {
        &self.pages[(address / PAGE_BYTES % PAGES) as usize]
    }

    /// Returns the shadow of the word at an address.
    pub(crate) fn word(&self, address: u64) -> ShadowWord {
        if !self.page(address).load(Relaxed) {
            return ShadowWord::default();
        }
        let word = address / 4;
        let shard = self.shard(word / CHUNK_WORDS);
        shard
            .get(&(word / CHUNK_WORDS))
            .map_or_else(ShadowWord::default, |chunk| {
                chunk[(word % CHUNK_WORDS) as usize]
            })
    }

    /// Changes the shadow of the word at an address.
    fn change(&self, address: u64, change: impl FnOnce(&mut ShadowWord)) {
        let word = address / 4;
        let (chunk, at) = (word / CHUNK_WORDS, (word % CHUNK_WORDS) as usize);
        let mut shard = self.shard(chunk);
        if let Some(words) = shard.get_mut(&chunk) {
            return change(&mut words[at]);
        }
        let mut new = ShadowWord::default();
        change(&mut new);
        if !new.is_empty() {
            let mut words = Box::new([ShadowWord::default(); CHUNK_WORDS as usize]);
            words[at] = new;
            shard.insert(chunk, words);
            self.page(address).store(true, Relaxed);
        }
    }

    /// Returns the shadow of a number at an address whose memory holds these bits; `None` where it
    /// has none.
    pub(crate) fn value(&self, address: u64, format: FloatFormat, bits: u64) -> Option<f64> {
        let word = self.word(address);
        match format {
            FloatFormat::Single => word.as_single(bits as u32),
            FloatFormat::Double => ShadowWord::as_double([word, self.word(address + 4)], bits),
            FloatFormat::Half | FloatFormat::Bfloat => word.half(address & 2 != 0, bits as u16),
        }
    }
}

/// Returns the number with these bits.
fn plain(format: FloatFormat, bits: u64) -> f64 {
    match format {
        FloatFormat::Single => f32::from_bits(bits as u32).into(),
        FloatFormat::Double => f64::from_bits(bits),
        FloatFormat::Half => Fp16::widen(bits as u16).into(),
        FloatFormat::Bfloat => Bfloat16::widen(bits as u16).into(),
    }
}
