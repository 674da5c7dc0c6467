//! The gate's operations on a GPU.

use super::driver::DevicePointer;
use super::helpers::{config, entry};
use super::launches::prepare_launch;
use super::scan::{THREADS, UNIT_BYTES, parameter, type_code};
use super::session::GpuSession;
use crate::step::Step;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;
use tuner_core::element::Element;
use tuner_core::judgement::Judgement;
use tuner_core::plan::Code;
use tuner_core::units::ContentHash;
use tuner_judge::session::{
    ExpectedOutput, RetainedBuffer, Run, RunReport, Session, Slot, Tally, Work,
};

impl Session for GpuSession {
    fn reset(&mut self) {
        let taken = std::mem::take(&mut self.taken);
        for (buffer, taken) in std::mem::take(&mut self.buffers).into_iter().zip(taken) {
            if !taken {
                self.free(&buffer);
            }
        }
        self.resets += 1;
    }

    fn alloc(&mut self, name: &str, bytes: u64) -> Result<Slot, Judgement> {
        let buffer = self.guarded(name, bytes)?;
        self.buffers.push(buffer);
        self.taken.push(false);
        Ok(Slot(self.buffers.len() - 1))
    }

    fn upload(&mut self, slot: Slot, bytes: &[u8]) -> Result<(), Judgement> {
        // Slots are only created by `alloc` of this session and dropped at `reset`.
        let mut buffer = self.buffers[slot.0].clone();
        self.fill_input(&mut buffer, bytes)?;
        self.buffers[slot.0] = buffer;
        Ok(())
    }

    fn upload_input(&mut self, slot: Slot, bytes: &Arc<[u8]>) -> Result<(), Judgement> {
        let from = if self.looks {
            self.resident_input(bytes)?
        } else {
            None
        };
        let Some(from) = from else {
            return self.upload(slot, bytes);
        };
        let mut buffer = self.buffers[slot.0].clone();
        self.guard_input(&mut buffer)?;
        let (to, length) = (buffer.start(), buffer.bytes);
        self.buffers[slot.0] = buffer;
        self.gpu
            .call(|driver, stream| driver.copy_on_device(to, from, length, stream))
    }

    fn is_unchanged(&mut self, slot: Slot, bytes: &Arc<[u8]>) -> Result<bool, Judgement> {
        let buffer = self.buffers[slot.0].clone();
        if self.looks
            && let Some(master) = self.resident_input(bytes)?
        {
            return self.same_bytes(buffer.start(), master, buffer.bytes);
        }
        Ok(self.read(&buffer)?.as_slice() == bytes.as_ref())
    }

    fn keep(&mut self, slot: Slot) -> Option<RetainedBuffer> {
        if !self.looks {
            return None;
        }
        let buffer = self.buffers.get(slot.0)?.clone();
        *self.taken.get_mut(slot.0)? = true;
        Some(self.keep_buffer(buffer, true))
    }

    fn release(&mut self, kept: RetainedBuffer) {
        if let Some(place) = self.resident.kept.remove(&kept.0)
            && place.owned
        {
            self.free(&place.buffer);
        }
    }

    fn release_all(&mut self) {
        let all: Vec<usize> = self.resident.kept.keys().copied().collect();
        all.into_iter()
            .for_each(|number| self.release(RetainedBuffer(number)));
    }

    fn fetch(&mut self, kept: RetainedBuffer) -> Result<Vec<u8>, Judgement> {
        let buffer = self.kept(kept)?;
        self.read(&buffer)
    }

    fn equal(&mut self, one: RetainedBuffer, two: RetainedBuffer) -> Result<bool, Judgement> {
        let (one, two) = (self.kept(one)?, self.kept(two)?);
        Ok(one.bytes == two.bytes && self.same_bytes(one.start(), two.start(), one.bytes)?)
    }

    fn first_run(
        &mut self,
        kept: RetainedBuffer,
        pattern: &[u8],
        run: u64,
    ) -> Result<Option<u64>, Judgement> {
        let buffer = self.kept(kept)?;
        let mut word = [0; 8];
        let size = pattern.len().min(8);
        word[..size].copy_from_slice(&pattern[..size]);
        let found = self.look(|session, out| {
            let parameters = vec![
                parameter(buffer.start().address()),
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

    fn tally(
        &mut self,
        kept: RetainedBuffer,
        element: Element,
        key: &ContentHash,
        make: &mut dyn FnMut() -> ExpectedOutput,
    ) -> Result<Option<Tally>, Judgement> {
        let Some(code) = type_code(element) else {
            return Ok(None);
        };
        let Some(wanted) = self.expectations(key, make)? else {
            return Ok(None);
        };
        let (values, units) = (&wanted[0], &wanted[1]);
        let count = units.bytes / UNIT_BYTES;
        let buffer = self.kept(kept)?;
        let found = self.look(|session, out| {
            let parameters = vec![
                parameter(buffer.start().address()),
                code.to_le_bytes().to_vec(),
                parameter(values.start().address()),
                parameter(units.start().address()),
                parameter(count),
                parameter(out.address()),
            ];
            let blocks = count.div_ceil(u64::from(THREADS));
            let blocks = u32::try_from(blocks).unwrap_or(u32::MAX);
            session.queue(entry::COMPARE, &config(blocks, THREADS, parameters))
        })?;
        Ok(Some(Tally {
            max_error: f64::from_bits(found[0]),
            wrong: found[1],
            first_wrong: (found[2] != u64::MAX).then_some(found[2]),
        }))
    }

    fn poison(&mut self, slot: Slot, pattern: &[u8]) -> Result<(), Judgement> {
        let buffer = self.buffers[slot.0].clone();
        self.fill_pattern(&buffer, pattern)
    }

    fn download(&mut self, slot: Slot) -> Result<Vec<u8>, Judgement> {
        let buffer = self.buffers[slot.0].clone();
        self.read(&buffer)
    }

    fn unwritten(&self, _slot: Slot) -> Option<Vec<Range<u64>>> {
        None
    }

    fn can_sample(&self) -> bool {
        false
    }

    fn address(&self, slot: Slot) -> Option<u64> {
        Some(self.buffers.get(slot.0)?.start().address())
    }

    fn set_variable(&mut self, code: &Code, name: &str, bytes: &[u8]) -> Result<bool, Judgement> {
        self.gpu.set_variable(code, name, bytes)
    }

    fn run(&mut self, run: &Run<'_>) -> Result<RunReport, Judgement> {
        let buffers = &self.buffers;
        let pointers: Vec<Option<DevicePointer>> = run
            .slots
            .iter()
            .map(|slot| Some(buffers.get((*slot)?.0)?.start()))
            .collect();
        let ready = prepare_launch(&mut self.gpu, run.plan, run.code, run.launch, &pointers)?;
        self.announce(Step::Launch);
        let began = Instant::now();
        self.poison_shared()?;
        let launched = self.gpu.call(|driver, stream| {
            driver.launch(ready.function, stream, &ready.config)?;
            driver.stream_synchronize(stream)
        });
        self.spent.gate += began.elapsed();
        self.announce(Step::Gate);
        // The error is returned only after the announcement, so that the launch's deadline always ends.
        launched?;
        let mut hazards = Vec::new();
        let buffers = self.buffers.clone();
        // The host reads guard regions only if a kernel has found a change in them.
        if !self.looks || self.count_guard_writes(&buffers)? > 0 {
            for buffer in buffers {
                hazards.extend(self.check_guards(&buffer)?);
            }
        }
        let blocks = run.launch.blocks();
        Ok(RunReport {
            stopped: !hazards.is_empty(),
            budget_exhausted: false,
            hazards,
            warnings: Vec::new(),
            work: Work {
                blocks,
                grid_blocks: blocks,
                ..Work::default()
            },
        })
    }
}
