//! Damage: what hands, disks and hostile people do to a file.

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

/// Numbers and marks on which readers break.
const WORDS: [&str; 24] = [
    "0",
    "-1",
    "1e999",
    "NaN",
    "9223372036854775808",
    "-9223372036854775809",
    "18446744073709551616",
    "0x7fffffff",
    "2 ** 63",
    "1 // 0",
    "\"",
    "'",
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\n",
    "\t",
    "\0",
    "\u{202e}",
    "&a",
    "*a",
];
/// Longest input, bytes.
const MAX_BYTES: usize = 1 << 20;

/// Makes inputs from a corpus.
pub(super) struct Mutator {
    corpus: Vec<Vec<u8>>,
    /// Inputs that reached new parts of the program.
    learned: Vec<Vec<u8>>,
    words: &'static [&'static str],
    rng: ChaCha8Rng,
}

impl Mutator {
    pub(super) fn new(corpus: Vec<Vec<u8>>, words: &'static [&'static str]) -> Self {
        Self {
            corpus,
            learned: Vec::new(),
            words,
            rng: ChaCha8Rng::seed_from_u64(17),
        }
    }

    /// An input with one to eight kinds of damage.
    pub(super) fn next(&mut self) -> Vec<u8> {
        let mut bytes = self.any().to_vec();
        for _ in 0..self.rng.random_range(1..=8) {
            self.damage(&mut bytes);
        }
        bytes.truncate(MAX_BYTES);
        bytes
    }

    /// Adds an input to those that are mutated.
    pub(super) fn learn(&mut self, input: Vec<u8>) {
        self.learned.push(input);
    }

    pub(super) fn learned(&self) -> usize {
        self.learned.len()
    }

    fn any(&mut self) -> &[u8] {
        // Three in four: what was learned last reaches deepest.
        let from = match self.learned.len() {
            0 => &self.corpus,
            _ if self.rng.random_range(0..4) == 0 => &self.corpus,
            _ => &self.learned,
        };
        &from[self.rng.random_range(0..from.len())]
    }

    /// A part of a text of that length, short ones preferred.
    fn part(&mut self, length: usize) -> std::ops::Range<usize> {
        let start = self.rng.random_range(0..=length);
        let most = (length - start).min(1 << self.rng.random_range(0..12));
        start..start + self.rng.random_range(0..=most)
    }

    fn damage(&mut self, bytes: &mut Vec<u8>) {
        let part = self.part(bytes.len());
        match self.rng.random_range(0..8) {
            0 => {
                if let Some(byte) = bytes.get_mut(part.start) {
                    *byte ^= 1 << self.rng.random_range(0..8);
                }
            }
            1 => drop(bytes.drain(part)),
            2 => {
                let copy = bytes[part.clone()].to_vec();
                let times = self.rng.random_range(1..20);
                bytes.splice(part.end..part.end, copy.repeat(times));
            }
            3 | 4 => {
                let known = WORDS.len() + self.words.len();
                let at = self.rng.random_range(0..known);
                let word = WORDS.iter().chain(self.words).nth(at).unwrap();
                bytes.splice(part, word.bytes());
            }
            5 => {
                let other = self.any().to_vec();
                let from = self.part(other.len());
                bytes.splice(part, other[from].iter().copied());
            }
            6 => self.number(bytes, part.start),
            _ => bytes.truncate(part.start),
        }
    }

    /// Changes a number in the text.
    fn number(&mut self, bytes: &mut Vec<u8>, from: usize) {
        let Some(start) = bytes[from..].iter().position(u8::is_ascii_digit) else {
            return;
        };
        let start = from + start;
        let length = bytes[start..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        let text = match self.rng.random_range(0..4) {
            0 => self.rng.random_range(0..100_u64).to_string(),
            1 => (1_u128 << self.rng.random_range(0..70)).to_string(),
            2 => format!("-{}", self.rng.random_range(0..1000_u64)),
            _ => format!(
                "{}.5e{}",
                self.rng.random_range(0..10),
                self.rng.random_range(0..400)
            ),
        };
        bytes.splice(start..start + length, text.bytes());
    }
}
