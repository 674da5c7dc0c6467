//! Functions that the CUDA runtime provides to kernels: `printf`, `assert`, conditions of graphs; see `heap` for
//! `malloc`.

use super::access::{CheckedLocation, Touch, split};
use super::cta::Cta;
use super::format::{Arguments, format};
use super::stop::{Assertion, Halt, Stop};
use super::transfer::lanes;
use super::warp::Warp;
use crate::hazard::HazardKind;
use crate::hazard::report::Location;
use crate::lower::program::{Area, External, NONE, Routine};

/// Longest text that is read: longer ones do not end.
const TEXT_MAX: u64 = 1 << 20;

impl Cta<'_> {
    /// Calls such a function for the lanes of a mask, one after the other.
    pub(super) fn call_external(&mut self, w: &mut Warp, call: &External, mask: u32) {
        for lane in lanes(mask) {
            let result = match call.routine {
                Routine::Print => self.print(w, call, lane),
                Routine::FailAssertion => {
                    self.fail_assertion(w, call, lane);
                    0
                }
                Routine::Allocate => self.allocate(w, call, lane, 1),
                Routine::AllocateAligned => {
                    let align = self.argument(w, call, 1, lane);
                    self.allocate(w, call, lane, align)
                }
                Routine::Free => {
                    self.free(w, call, lane);
                    0
                }
                Routine::SetCondition => {
                    self.set_condition(w, call, lane);
                    0
                }
                Routine::Runtime(function) => self.call_runtime(w, call, lane, function),
            };
            if let Some((at, bytes)) = call.result {
                let place = self.call_place(w, lane, at);
                self.put(w, place, 0, bytes.min(8), result);
            }
        }
        if call.routine == Routine::FailAssertion {
            self.halted = Some(Halt(Stop::Assertion, "an assertion failed"));
        }
    }

    /// The place of a call parameter.
    pub(super) fn call_place(&self, w: &Warp, lane: usize, at: u32) -> CheckedLocation {
        let base = self.context.program.local_bytes as usize;
        CheckedLocation::Local(lane * w.stride + base + at as usize)
    }

    pub(super) fn argument(&self, w: &Warp, call: &External, number: usize, lane: usize) -> u64 {
        let Some((at, bytes)) = call.arguments.get(number) else {
            return 0;
        };
        self.get(w, self.call_place(w, lane, *at), 0, (*bytes).min(8))
    }

    /// `vprintf`: the number of arguments, or -1 without a format.
    fn print(&mut self, w: &mut Warp, call: &External, lane: usize) -> u64 {
        // In a slice the arguments are not computed.
        if self.context.skip_unless != 0 {
            return 0;
        }
        let [text, at] = [0, 1].map(|number| self.argument(w, call, number, lane));
        if text == 0 {
            return u64::MAX;
        }
        let Some(text) = self.text(w, lane, text) else {
            return u64::MAX;
        };
        let mut packed = Packed {
            cta: self,
            w,
            lane,
            at,
        };
        let Some((text, taken)) = format(&text, &mut packed) else {
            return u64::MAX;
        };
        self.printed.add(&text);
        taken as u64
    }

    /// Stores the value of a condition of a graph, which must not race (CUDA Runtime API,
    /// `cudaGraphSetConditional`).
    fn set_condition(&mut self, w: &mut Warp, call: &External, lane: usize) {
        // In a slice the arguments are not computed.
        if self.context.skip_unless != 0 {
            return;
        }
        let [handle, value] = [0, 1].map(|number| self.argument(w, call, number, lane));
        let (area, at) = split(handle);
        if let Some(place) = self.touch(w, area, at, Touch::write(lane, 4)) {
            self.put(w, place, 0, 4, value);
        }
    }

    /// Reads the text that ends with a NUL; a byte that cannot be read is a hazard, and `None`.
    fn text(&mut self, w: &mut Warp, lane: usize, address: u64) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        for at in address..address.saturating_add(TEXT_MAX) {
            let place = self.touch(w, Area::Generic, at, Touch::read(lane, 1))?;
            match self.get(w, place, 0, 1) as u8 {
                0 => break,
                byte => text.push(byte),
            }
        }
        Some(text)
    }

    fn fail_assertion(&mut self, w: &mut Warp, call: &External, lane: usize) {
        let thread = Self::thread(w, lane);
        let mut text = |cta: &mut Self, number: usize| {
            let known = match cta.context.skip_unless {
                0 => {
                    let address = cta.argument(w, call, number, lane);
                    cta.text(w, lane, address)
                }
                // In a slice the arguments are not computed.
                _ => None,
            };
            known.map_or_else(|| "?".to_owned(), |t| String::from_utf8_lossy(&t).into())
        };
        let (message, file) = (text(self, 0), text(self, 1));
        let function = text(self, 3);
        let rank = self.context.cluster.rank(thread);
        let failed = Assertion {
            block: self
                .context
                .ctaid(self.context.block_of(self.block, rank).into()),
            thread: self.context.tid(thread),
            message,
            file,
            line: self.argument(w, call, 2, lane) as u32,
            function,
        };
        let nowhere = Location::NONE;
        self.hazard(HazardKind::Crashed, thread, nowhere, NONE, || {
            format!("an assertion failed: {failed}")
        });
        self.assertions.push(failed);
    }
}

/// The arguments of `vprintf` in memory.
struct Packed<'p, 'a> {
    cta: &'p mut Cta<'a>,
    w: &'p mut Warp,
    lane: usize,
    at: u64,
}

impl Arguments for Packed<'_, '_> {
    fn next(&mut self, bytes: u64) -> Option<u64> {
        // The compiler passes the arguments of `vprintf` as a struct with the natural alignment of
        // each.
        let at = self.at.next_multiple_of(bytes);
        self.at = at + bytes;
        let touch = Touch::read(self.lane, bytes as u32);
        let (area, offset) = split(at);
        let place = self.cta.touch(self.w, area, offset, touch)?;
        Some(self.cta.get(self.w, place, 0, bytes as u32))
    }

    fn text(&mut self, address: u64) -> Option<Vec<u8>> {
        self.cta.text(self.w, self.lane, address)
    }
}
