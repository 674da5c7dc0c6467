//! Operations on registers with shadow values.

use super::super::regs::{AluFn, Kind, Slots};
use super::super::transfer::lanes;
use super::super::warp::Warp;
use super::{HIGH, LOW, ShadowWord, plain};
use crate::lower::program::Data;

/// Floating-point format of an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FloatFormat {
    /// IEEE single.
    Single,
    /// IEEE double.
    Double,
    /// IEEE half.
    Half,
    /// bfloat16.
    Bfloat,
}

/// An operation in double precision.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ShadowOperation {
    pub(crate) compute: fn([f64; 3]) -> f64,
    pub(crate) from: FloatFormat,
    pub(crate) to: FloatFormat,
    /// Sources and result are pairs of 16-bit numbers.
    pub(crate) packed: bool,
    /// The result is a pair of the second source (low half) and the first (high half).
    pub(crate) packs: bool,
    /// Sources that round the result to an integer where they are large: those of a sum.
    pub(crate) addends: &'static [usize],
}

/// An instruction on registers in a program with shadow values.
#[derive(Debug, Clone)]
pub(crate) struct ShadowedAlu {
    pub(crate) run: AluFn,
    pub(crate) slots: Slots,
    pub(crate) sources: &'static [Kind],
    pub(crate) dest: Kind,
    /// `None` for operations that do not compute in floating point.
    pub(crate) operation: Option<ShadowOperation>,
}

/// Offset from 1.5 · 2^23 that an addend may have which rounds a single to an integer: the last bits
/// carry it along.
const MAX_INTEGER_OFFSET: f64 = 1024.0;
/// Addends that round a single to an integer.
const INTEGER_SINGLES: [f64; 2] = [8_388_608.0, 12_582_912.0];
/// Magnitude from which adding a double rounds to an integer: 2^51.
const INTEGER_DOUBLES: f64 = 2_251_799_813_685_248.0;

/// Reports whether an addend rounds a sum to an integer on purpose.
fn rounds_to_integer(format: FloatFormat, addend: f64) -> bool {
    let addend = addend.abs();
    match format {
        FloatFormat::Single => {
            let [exact, offset] = INTEGER_SINGLES;
            addend == exact || (addend - offset).abs() <= MAX_INTEGER_OFFSET
        }
        FloatFormat::Double => addend >= INTEGER_DOUBLES,
        FloatFormat::Half | FloatFormat::Bfloat => false,
    }
}

/// Returns the register of an operand; predicates have no shadow.
fn register(kind: Kind, row: u32) -> Data {
    match kind {
        Kind::R16 | Kind::R32 => Data::R32(row),
        Kind::R64 => Data::R64(row),
        Kind::P => Data::Nothing,
    }
}

/// A source's values and shadows in the active lanes, else zero.
struct Operand {
    plain: [f64; 32],
    shadow: [f64; 32],
}

impl Operand {
    const NONE: Operand = Operand {
        plain: [0.0; 32],
        shadow: [0.0; 32],
    };

    /// Reads a source: for pairs, one of its halves.
    fn read(w: &Warp, source: Data, format: FloatFormat, high: bool, active: u32) -> Operand {
        let mut operand = Operand::NONE;
        let row = |word| w.shadows.as_ref().and_then(|all| all.row(source, word));
        let [low, upper] = [row(0), row(1)];
        for lane in lanes(active) {
            let bits = w.value(source, lane) >> if high { 16 } else { 0 };
            let plain = plain(format, bits);
            let found = low.and_then(|low| match format {
                FloatFormat::Single => low[lane].as_single(bits as u32),
                FloatFormat::Double => ShadowWord::as_double([low[lane], upper?[lane]], bits),
                FloatFormat::Half | FloatFormat::Bfloat => low[lane].half(high, bits as u16),
            });
            operand.plain[lane] = plain;
            // A value that is not finite is the ordinary one's business.
            operand.shadow[lane] = found.filter(|_| plain.is_finite()).unwrap_or(plain);
        }
        operand
    }
}

impl ShadowOperation {
    /// Computes the shadows of a result in the active lanes; `None` where the ordinary value decides.
    fn results(&self, w: &Warp, alu: &ShadowedAlu, active: u32, high: bool) -> [Option<f64>; 32] {
        let mut operands = [Operand::NONE; 3];
        let sources = alu.sources.iter().zip(alu.slots.s);
        for (operand, (kind, row)) in operands.iter_mut().zip(sources) {
            let source = register(*kind, row);
            *operand = Operand::read(w, source, self.from, high && self.packed, active);
        }
        let mut results = [None; 32];
        for lane in lanes(active) {
            let whole =
                |source: &usize| rounds_to_integer(self.from, operands[*source].plain[lane]);
            if self.addends.iter().any(whole) {
                continue;
            }
            let mut shadow = operands.each_ref().map(|operand| operand.shadow[lane]);
            if self.packs && !high {
                shadow[0] = shadow[1];
            }
            results[lane] = Some((self.compute)(shadow));
        }
        results
    }
}

/// Executes an instruction and computes the shadow of its result from those of its sources.
pub(in crate::exec) fn execute(w: &mut Warp, alu: &ShadowedAlu, active: u32) {
    match &alu.operation {
        Some(operation) => compute(w, alu, operation, active),
        None => carry(w, alu, active),
    }
}

fn compute(w: &mut Warp, alu: &ShadowedAlu, operation: &ShadowOperation, active: u32) {
    // Before the instruction, whose destination may be one of the sources.
    let low = operation.results(w, alu, active, false);
    let high = if operation.packed || operation.packs {
        operation.results(w, alu, active, true)
    } else {
        [None; 32]
    };
    (alu.run)(&mut w.regs, &alu.slots, active);
    let dest = register(alu.dest, alu.slots.d);
    for lane in lanes(active) {
        let bits = w.value(dest, lane);
        let (low, high) = (low[lane], high[lane]);
        let Some(shadows) = &mut w.shadows else {
            return;
        };
        match operation.to {
            FloatFormat::Single => {
                let word = low.map(|value| ShadowWord::single(bits as u32, value));
                shadows.set_word(dest, 0, lane, word.unwrap_or_default());
            }
            FloatFormat::Double => {
                let words = low.map(|value| ShadowWord::double(bits, value));
                let words = words.unwrap_or_default();
                shadows.set_word(dest, 0, lane, words[0]);
                shadows.set_word(dest, 1, lane, words[1]);
            }
            FloatFormat::Half | FloatFormat::Bfloat => {
                let mut word = ShadowWord::default();
                word.set_half(false, bits as u16, low);
                word.set_half(true, (bits >> 16) as u16, high);
                shadows.set_word(dest, 0, lane, word);
            }
        }
    }
}

/// A word of a source, with its shadow.
type SourceWord = (u32, ShadowWord);

/// Executes an instruction that does not compute in floating point. A word or half of the result
/// whose bits are those of a source keeps its shadow; any other has none.
fn carry(w: &mut Warp, alu: &ShadowedAlu, active: u32) {
    let mut sources: Vec<[SourceWord; 32]> = Vec::new();
    if let Some(shadows) = &w.shadows {
        for (kind, row) in alu.sources.iter().zip(alu.slots.s) {
            let source = register(*kind, row);
            for word in 0..2 {
                if let Some(row) = shadows.row(source, word) {
                    sources.push(std::array::from_fn(|lane| {
                        ((w.value(source, lane) >> (32 * word)) as u32, row[lane])
                    }));
                }
            }
        }
    }
    (alu.run)(&mut w.regs, &alu.slots, active);
    let dest = register(alu.dest, alu.slots.d);
    for lane in lanes(active) {
        let bits = w.value(dest, lane);
        for word in 0..2 {
            let bits = (bits >> (32 * word)) as u32;
            let shadow = unchanged(&sources, lane, bits);
            if let Some(shadows) = &mut w.shadows {
                shadows.set_word(dest, word, lane, shadow);
            }
        }
    }
}

/// Returns the shadow of a word with these bits, from the sources that hold the same bits.
fn unchanged(sources: &[[SourceWord; 32]], lane: usize, bits: u32) -> ShadowWord {
    let mut halves = ShadowWord::default();
    for source in sources {
        let (old, shadow) = source[lane];
        if shadow.is_empty() {
            continue;
        }
        if old == bits {
            return shadow;
        }
        if shadow.parts & (LOW | HIGH) == 0 {
            continue;
        }
        for to_high in [false, true] {
            let wanted = (bits >> if to_high { 16 } else { 0 }) as u16;
            for from_high in [false, true] {
                let part = (old >> if from_high { 16 } else { 0 }) as u16;
                // Zeros are rather cleared bits than a number that was moved.
                if part == wanted
                    && wanted != 0
                    && let Some(value) = shadow.half(from_high, part)
                {
                    halves.set_half(to_high, wanted, Some(value));
                }
            }
        }
    }
    halves
}
