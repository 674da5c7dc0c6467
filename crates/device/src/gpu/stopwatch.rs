//! Timing on a real GPU: one graph of launches between two events, with clock stamps on both sides.
//!
//! ```text
//! spin │ stamp │ event │ graph: launch, launch, … (N sequences) │ event │ stamp
//! ```
//! While the first kernel spins the host queues the rest, so that no host time lies between the
//! events. The stamps of multiprocessor 0 (cycles and nanoseconds) yield the clock rate between
//! them.

use super::driver::{Driver, Event, Graph, GraphExec, Stream};
use super::energy::QUEUED_GRAPHS;
use super::helpers::{config, entry};
use super::launches::PreparedLaunch;
use super::nvml::EnergyCounter as _;
use super::session::{Buffer, GpuSession};
use rand::SeedableRng as _;
use rand::seq::SliceRandom as _;
use std::time::{Duration, Instant};
use tuner_core::cache_mode::CacheMode;
use tuner_core::judgement::Judgement;
use tuner_core::plan::Role;
use tuner_core::record::Verdict;
use tuner_judge::session::{Contents, Session};
use tuner_judge::stopwatch::{Draw, OutputSet, Sample, Stopwatch, Subject};

/// Maximum number of graphs kept per subject.
const MAX_GRAPHS: usize = 8;
/// Time of the host to queue a graph after the spinning kernel: a constant; more is added per node.
const SPIN_NS: u32 = 60_000;
const SPIN_NS_A_LAUNCH: u32 = 500;
/// Maximum spin, nanoseconds: a host that needs longer is overloaded.
const SPIN_NS_MAX: u32 = 16_000_000;
/// Size of the memory written before a cold sample, as a multiple of the L2 cache, so that no data of the
/// previous sample remain in it.
const FLUSH_MULTIPLE: u64 = 2;

/// A buffer of a set: its argument's index, the buffer, and the poison of its elements.
type SetBuffer = (usize, Buffer, &'static [u8]);

/// Times between two events and two stamps.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    /// Between the events, microseconds.
    pub micros: f64,
    /// Clock of the multiprocessors between the stamps.
    pub clock_mhz: Option<f64>,
    /// The host was still queueing when the span began, even with the longest spin.
    pub late: bool,
}

impl GpuSession {
    /// Times the work that `work` queues, `launches` kernels in total.
    ///
    /// # Errors
    /// A failed driver call.
    pub fn timed(
        &mut self,
        launches: u32,
        work: &mut dyn FnMut(&mut Self) -> Result<(), Judgement>,
    ) -> Result<Span, Judgement> {
        let events = self.gpu.call(|driver, _| {
            let from = driver.event_create()?;
            Ok([from, driver.event_create()?])
        })?;
        let span = self
            .stamps()
            .and_then(|stamps| self.timed_between(events, &stamps, launches, work));
        let destroyed = self.gpu.call(|driver, _| {
            driver.event_destroy(events[0])?;
            driver.event_destroy(events[1])
        });
        let span = span?;
        destroyed.map(|()| span)
    }

    fn timed_between(
        &mut self,
        events: [Event; 2],
        stamps: &Buffer,
        launches: u32,
        work: &mut dyn FnMut(&mut Self) -> Result<(), Judgement>,
    ) -> Result<Span, Judgement> {
        let [from, to] = events;
        let spin = SPIN_NS + launches.saturating_mul(SPIN_NS_A_LAUNCH);
        // First use of code or a graph loads it, so that happens outside the span.
        self.stamp(stamps, 0)?;
        self.spin(0)?;
        let start = Instant::now();
        let late = loop {
            self.gpu
                .call(|driver, stream| driver.stream_synchronize(stream))?;
            let spin = spin.saturating_mul(self.spin_factor).min(SPIN_NS_MAX);
            let began = Instant::now();
            self.spin(spin)?;
            self.stamp(stamps, 0)?;
            self.gpu
                .call(|driver, stream| driver.event_record(from, stream))?;
            work(self)?;
            self.gpu
                .call(|driver, stream| driver.event_record(to, stream))?;
            self.stamp(stamps, STAMP_BYTES)?;
            // If the span has already begun, the device may have waited for the host within it.
            let late = self.gpu.call(|driver, _| driver.event_is_over(from))?;
            self.margin
                .note(began.elapsed(), spin, late && spin >= SPIN_NS_MAX);
            if !late || spin >= SPIN_NS_MAX {
                break late;
            }
            // Later samples start with the longer spin instead of searching for it again.
            self.spin_factor = self.spin_factor.saturating_mul(2);
        };
        let milliseconds = self.gpu.call(|driver, _| {
            driver.event_synchronize(to)?;
            // Includes work that a kernel started elsewhere.
            driver.context_synchronize()?;
            driver.event_elapsed(from, to)
        })?;
        self.spent.timing += start.elapsed();
        let bytes = self.read(stamps)?;
        Ok(Span {
            micros: f64::from(milliseconds) * 1e3,
            clock_mhz: clock(&bytes),
            late,
        })
    }

    /// Overwrites the L2 cache. Rotating sets are not sufficient: a sample of fewer launches than sets uses
    /// the same sets as the sample before it.
    fn flush_cache(&mut self) -> Result<(), Judgement> {
        let wanted = FLUSH_MULTIPLE * self.gpu.facts().l2_bytes;
        if self.flush.is_none() {
            self.flush = Some(self.guarded("the cache's eviction", wanted.max(4))?);
        }
        let Some(buffer) = self.flush.clone() else {
            return Ok(());
        };
        self.gpu
            .call(|driver, stream| driver.fill_bytes(buffer.start(), 0, buffer.bytes, stream))
    }

    fn spin(&mut self, nanoseconds: u32) -> Result<(), Judgement> {
        let config = config(1, 1, vec![nanoseconds.to_le_bytes().to_vec()]);
        self.queue(entry::SPIN, &config)
    }

    fn stamp(&mut self, stamps: &Buffer, offset: u64) -> Result<(), Judgement> {
        self.ticket += 1;
        let at = stamps.start().plus(offset).address();
        let parameters = [at, self.ticket].map(|word| word.to_le_bytes().to_vec());
        // Enough blocks that one of them runs on multiprocessor 0.
        let config = config(self.gpu.facts().sm_count * 2, 32, parameters.to_vec());
        self.queue(entry::STAMP, &config)
    }

    /// Returns the graph of `launches` sequences over the first `sets` sets, captured if necessary.
    pub(super) fn graph(
        &mut self,
        subject: Subject,
        cache: CacheMode,
        launches: u32,
        sets: usize,
    ) -> Result<GraphExec, Judgement> {
        let order = order(launches, sets);
        let loaded = self.subjects.get_mut(subject)?;
        loaded.last = (
            order.first().copied().unwrap_or(0),
            order.last().copied().unwrap_or(0),
        );
        if let Some(exec) = loaded.graphs.get(&(cache, launches)) {
            return Ok(*exec);
        }
        let stale: Vec<GraphExec> = if loaded.graphs.len() >= MAX_GRAPHS {
            loaded.graphs.drain().map(|(_, exec)| exec).collect()
        } else {
            Vec::new()
        };
        let sequences: Vec<Vec<PreparedLaunch>> =
            loaded.sets.iter().map(|set| set.launches.clone()).collect();
        for exec in stale {
            self.gpu.call(|driver, _| driver.exec_destroy(exec))?;
        }
        let queue: Vec<&PreparedLaunch> = order.iter().flat_map(|set| &sequences[*set]).collect();
        let exec = self.capture(&queue)?;
        let loaded = self.subjects.get_mut(subject)?;
        loaded.graphs.insert((cache, launches), exec);
        Ok(exec)
    }

    /// Captures launches as a graph.
    pub(super) fn capture(&mut self, queue: &[&PreparedLaunch]) -> Result<GraphExec, Judgement> {
        self.gpu.call(|driver, stream| {
            driver.stream_synchronize(stream)?;
            driver.capture_begin(stream)?;
            let recorded = record(driver, stream, queue);
            // Ended in any case: a capturing stream rejects all other work.
            let graph = driver.capture_end(stream);
            recorded?;
            let graph: Graph = graph?;
            let exec = driver.graph_instantiate(graph);
            let destroyed = driver.graph_destroy(graph);
            let exec = exec?;
            // Otherwise the first launch, which is timed, would upload it.
            let uploaded = driver.graph_upload(exec, stream);
            destroyed.and(uploaded).map(|()| exec)
        })
    }

    /// Runs one launch sequence on each of these sets, from poisoned outputs and initial contents.
    fn once(&mut self, subject: Subject, sets: [usize; 2]) -> Result<(), Judgement> {
        Stopwatch::poison(self, subject)?;
        let [first, last] = sets;
        for set in if first == last { &sets[..1] } else { &sets[..] } {
            let loaded = self.subjects.get(subject)?;
            let launches = loaded.sets.get(*set).map(|set| set.launches.clone());
            for ready in launches.unwrap_or_default() {
                self.gpu
                    .call(|driver, stream| driver.launch(ready.function, stream, &ready.config))?;
            }
        }
        self.gpu
            .call(|driver, stream| driver.stream_synchronize(stream))
    }

    /// Returns the buffers of a subject's arguments of these roles, with their poison.
    fn buffers_of(
        &self,
        subject: Subject,
        set: usize,
        wanted: impl Fn(Role) -> bool,
    ) -> Result<Vec<SetBuffer>, Judgement> {
        let loaded = self.subjects.get(subject)?;
        let arguments = loaded.plan.arguments.iter().enumerate();
        let buffers = &loaded.sets.get(set).map_or(&[][..], |set| &set.buffers);
        Ok(arguments
            .filter(|(_, argument)| wanted(argument.role))
            .filter_map(|(index, argument)| {
                let buffer = buffers.get(index)?.clone()?;
                Some((index, buffer, argument.element.poison()))
            })
            .collect())
    }
}

fn record(
    driver: &mut dyn Driver,
    stream: Stream,
    queue: &[&PreparedLaunch],
) -> super::driver::Answer<()> {
    queue
        .iter()
        .try_for_each(|ready| driver.launch(ready.function, stream, &ready.config))
}

/// Returns the set of each sequence: rounds over all sets, each in a different random order, so that an
/// early recurrence is only by chance. Deterministic.
fn order(launches: u32, sets: usize) -> Vec<usize> {
    let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(u64::from(launches));
    let mut order: Vec<usize> = (0..sets.max(1)).collect();
    order.shuffle(&mut random);
    order
        .into_iter()
        .cycle()
        .take(launches.max(1) as usize)
        .collect()
}

/// A stamp: cycles, nanoseconds, the ticket of its launch, and padding.
const STAMP_BYTES: u64 = 32;
/// Both stamps of a sample.
pub(super) const STAMPS_BYTES: u64 = 2 * STAMP_BYTES;

/// Returns the clock rate between two stamps, MHz: cycles per nanosecond × 1000.
fn clock(stamps: &[u8]) -> Option<f64> {
    let word = |index: usize| -> Option<u64> {
        let bytes = stamps.get(8 * index..8 * index + 8)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    };
    // The second stamp must be of the launch after the first one, else one of them is stale.
    if word(6)? != word(2)? + 1 {
        return None;
    }
    let cycles = word(4)?.checked_sub(word(0)?)?;
    let nanoseconds = word(5)?.checked_sub(word(1)?)?;
    // For shorter spans the timer's steps (1 µs on some GPUs) exceed one per cent.
    (nanoseconds >= 100_000 && cycles > 0).then(|| cycles as f64 / nanoseconds as f64 * 1e3)
}

impl Stopwatch for GpuSession {
    fn sample(
        &mut self,
        subject: Subject,
        cache: CacheMode,
        launches: u32,
    ) -> Result<Sample, Judgement> {
        let sets = self.sets_for(subject, cache)?;
        let launches = launches.clamp(1, sets.most_launches);
        let sets = sets.count;
        let exec = self.graph(subject, cache, launches, sets)?;
        // Values that are updated in place grow with each launch, so each sample starts from initial
        // contents.
        self.restore(subject)?;
        if cache == CacheMode::Cold {
            self.flush_cache()?;
        }
        let span = self.timed(launches, &mut |session| {
            session
                .gpu
                .call(|driver, stream| driver.graph_launch(exec, stream))
        })?;
        let micros = span.micros / f64::from(launches);
        if !(micros.is_finite() && micros > 0.0) {
            return Err(Judgement::new(
                Verdict::Implausible,
                format!("{launches} launches took {} µs", span.micros),
            ));
        }
        Ok(Sample {
            micros,
            cycles: span.clock_mhz.map(|mhz| mhz * micros),
            clock_mhz: span.clock_mhz,
            throttled: !self.monitor.slowed().is_empty(),
            late: span.late,
        })
    }

    fn pause(&mut self, how_long: Duration) {
        std::thread::sleep(how_long);
    }

    fn draw(
        &mut self,
        subject: Subject,
        launches: u32,
        least: u64,
    ) -> Result<Option<Draw>, Judgement> {
        if self.monitor.energy_mj().is_none() {
            return Ok(None);
        }
        let launches = launches.max(1);
        let exec = self.graph(subject, CacheMode::Warm, launches, 1)?;
        let roles = &self.subjects.get(subject)?.plan.arguments;
        let in_place = roles.iter().any(|argument| argument.role.is_updated());
        let began = Instant::now();
        let mut events = Vec::with_capacity(QUEUED_GRAPHS);
        let drawn = self.measure_draw(&mut events, subject, exec, in_place, launches, least);
        let ended = self.gpu.call(|driver, stream| {
            let ended = driver.stream_synchronize(stream);
            for event in events {
                driver.event_destroy(event)?;
            }
            ended
        });
        self.spent.timing += began.elapsed();
        let drawn = drawn?;
        ended.map(|()| drawn)
    }

    fn poison(&mut self, subject: Subject) -> Result<(), Judgement> {
        let written = |role: Role| !role.is_filled();
        for set in 0..self.subjects.get(subject)?.sets.len() {
            for (_, buffer, poison) in self.buffers_of(subject, set, written)? {
                self.fill_pattern(&buffer, poison)?;
            }
        }
        self.restore(subject)
    }

    fn overflowed(&mut self, subject: Subject) -> Result<bool, Judgement> {
        let (_, last) = self.subjects.get(subject)?.last;
        for (index, buffer, _) in self.buffers_of(subject, last, Role::is_updated)? {
            let element = self.subjects.get(subject)?.plan.arguments[index].element;
            let bytes = self.read(&buffer)?;
            let finite = |value: &[u8]| element.decode(value).is_finite();
            if element.is_float() && !bytes.chunks_exact(element.size()).all(finite) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn outputs(&mut self, subject: Subject) -> Result<Vec<OutputSet>, Judgement> {
        let (first, last) = self.subjects.get(subject)?.last;
        let roles = self.subjects.get(subject)?.plan.arguments.iter();
        if roles.clone().any(|argument| argument.role.is_updated()) {
            // Many launches on one buffer leave contents without a reference, so one launch runs
            // separately.
            self.once(subject, [first, last])?;
        }
        let mut sets = vec![first];
        if last != first {
            sets.push(last);
        }
        let mut found = Vec::new();
        for set in sets {
            let all = self.buffers_of(subject, set, |_| true)?;
            let buffers: Vec<Buffer> = all.iter().map(|(_, buffer, _)| buffer.clone()).collect();
            let clean = self.looks && self.count_guard_writes(&buffers)? == 0;
            for (_, buffer, _) in all.into_iter().filter(|_| !clean) {
                if let Some(hazard) = self.check_guards(&buffer)? {
                    return Err(Judgement::new(
                        hazard.kind,
                        format!("while it was timed: {}", hazard.detail),
                    ));
                }
            }
            let mut outputs = OutputSet::new();
            for (index, buffer, _) in self.buffers_of(subject, set, Role::is_compared)? {
                let contents = if self.looks {
                    Contents::Device(self.keep_buffer(buffer, false))
                } else {
                    Contents::Host(self.read(&buffer)?)
                };
                outputs.push((index, contents));
            }
            found.push(outputs);
        }
        Ok(found)
    }

    fn as_session(&mut self) -> Option<&mut dyn Session> {
        Some(self)
    }
}

#[cfg(test)]
mod tests;
