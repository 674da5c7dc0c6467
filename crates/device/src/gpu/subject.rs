//! Launch sequences loaded for timing, each with separate buffers.

use super::context::refused;
use super::driver::{DevicePointer, GraphExec};
use super::launches::{PreparedLaunch, prepare_launch, set_variables};
use super::session::{Buffer, GpuSession};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tuner_core::cache_mode::CacheMode;
use tuner_core::fill::Fill;
use tuner_core::judgement::Judgement;
use tuner_core::plan::{Plan, PlanArgument, PlanVariable, Role};
use tuner_core::record::Verdict;
use tuner_judge::gate::generate;
use tuner_judge::stopwatch::Subject;

/// Maximum number of rotating buffer sets: a graph of 500 launches still uses each.
const MAX_SETS: u64 = 256;
/// Total size of the sets, as a multiple of the L2 cache.
const CACHE_MULTIPLE: u64 = 3;
/// Divisor of the free memory for the sets of one subject.
const MEMORY_SHARE: u64 = 4;
/// Maximum number of inputs kept on the host.
const MAX_CACHED_INPUTS: usize = 16;

/// One loaded subject.
pub(super) struct Loaded {
    pub(super) plan: Plan,
    seed: u64,
    pub(super) sets: Vec<Set>,
    /// Sets of the cold mode, once requested.
    cold: Option<Sets>,
    /// Graphs by mode and number of launches.
    pub(super) graphs: HashMap<(CacheMode, u32), GraphExec>,
    /// First and last set of the last sample.
    pub(super) last: (usize, usize),
    /// Initial contents of buffers that the launches change in place, by argument.
    initial: Vec<Option<Buffer>>,
}

/// Buffers of one copy of a problem, and the launches on them.
pub(super) struct Set {
    /// By argument; `None` for scalars.
    pub(super) buffers: Vec<Option<Buffer>>,
    pub(super) launches: Vec<PreparedLaunch>,
}

/// Use of buffer sets in a mode.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sets {
    /// Number of sets.
    pub(super) count: usize,
    /// Maximum launches in a sample: sets that would fit into the cache are used once each.
    pub(super) most_launches: u32,
}

/// All loaded subjects.
#[derive(Default)]
pub(super) struct Subjects {
    loaded: BTreeMap<usize, Loaded>,
    next: usize,
    inputs: HashMap<String, Arc<[u8]>>,
}

impl Subjects {
    /// Returns their device memory.
    pub(super) fn bytes(&self) -> u64 {
        let of = |subject: &Loaded| -> u64 {
            let sets = subject.sets.iter().flat_map(|set| &set.buffers);
            let buffers = sets.chain(&subject.initial).flatten();
            buffers.map(|buffer| buffer.bytes).sum()
        };
        self.loaded.values().map(of).sum()
    }

    pub(super) fn get(&self, subject: Subject) -> Result<&Loaded, Judgement> {
        self.loaded.get(&subject.0).ok_or_else(unknown)
    }

    pub(super) fn get_mut(&mut self, subject: Subject) -> Result<&mut Loaded, Judgement> {
        self.loaded.get_mut(&subject.0).ok_or_else(unknown)
    }

    /// Caches an input's bytes, which are equal for every candidate.
    fn keep(&mut self, key: String, bytes: &Arc<[u8]>) {
        if self.inputs.len() >= MAX_CACHED_INPUTS {
            self.inputs.clear();
        }
        self.inputs.insert(key, Arc::clone(bytes));
    }
}

/// Reports whether a variable contains the address of an argument.
fn points(variable: &PlanVariable) -> bool {
    let passed = variable.holds.passed.as_ref();
    passed.is_some_and(|passed| !passed.addresses.is_empty())
}

fn pointers(buffers: &[Option<Buffer>]) -> Vec<Option<DevicePointer>> {
    let each = buffers.iter();
    each.map(|buffer| buffer.as_ref().map(Buffer::start))
        .collect()
}

fn unknown() -> Judgement {
    Judgement::new(Verdict::LaunchFailed, "the code to be timed is not loaded")
}

impl GpuSession {
    /// Loads a plan for timing, with the inputs of that seed.
    ///
    /// # Errors
    /// The device rejects the code or a launch, or its memory is full.
    pub fn load_subject(&mut self, plan: &Plan, seed: u64) -> Result<Subject, Judgement> {
        let mut plan = plan.clone();
        self.gpu.adopt(&mut plan.code)?;
        let number = self.subjects.next;
        self.subjects.next += 1;
        // Sets are added to a subject by its number, so it must exist first.
        self.subjects.loaded.insert(
            number,
            Loaded {
                plan,
                seed,
                sets: Vec::new(),
                cold: None,
                graphs: HashMap::new(),
                last: (0, 0),
                initial: Vec::new(),
            },
        );
        let subject = Subject(number);
        match self.add_set(subject) {
            Ok(()) => Ok(subject),
            Err(fault) => {
                self.drop_subject(subject);
                Err(fault)
            }
        }
    }

    /// Loads several plans; if one fails, none stays loaded.
    ///
    /// # Errors
    /// As [`load_subject`](Self::load_subject).
    pub fn load_list<'p>(
        &mut self,
        plans: impl IntoIterator<Item = &'p Plan>,
        seed: u64,
    ) -> Result<Vec<Subject>, Judgement> {
        let mut loaded = Vec::new();
        for plan in plans {
            match self.load_subject(plan, seed) {
                Ok(subject) => loaded.push(subject),
                Err(fault) => {
                    loaded
                        .into_iter()
                        .for_each(|subject| self.drop_subject(subject));
                    return Err(fault);
                }
            }
        }
        Ok(loaded)
    }

    /// Frees a subject's buffers and graphs.
    pub fn drop_subject(&mut self, subject: Subject) {
        let Some(loaded) = self.subjects.loaded.remove(&subject.0) else {
            return;
        };
        for exec in loaded.graphs.into_values() {
            // Fails only on a lost context.
            let _ = self.gpu.call(|driver, _| driver.exec_destroy(exec));
        }
        let sets = loaded.sets.iter().flat_map(|set| &set.buffers);
        for buffer in sets.chain(&loaded.initial).flatten() {
            self.free(buffer);
        }
    }

    /// Returns the sets for a mode, creating missing ones.
    pub(super) fn sets_for(
        &mut self,
        subject: Subject,
        cache: CacheMode,
    ) -> Result<Sets, Judgement> {
        let wanted = match cache {
            CacheMode::Warm => Sets {
                count: 1,
                most_launches: u32::MAX,
            },
            CacheMode::Cold => self.cold_sets(subject)?,
        };
        while self.subjects.get(subject)?.sets.len() < wanted.count {
            self.add_set(subject)?;
        }
        Ok(wanted)
    }

    fn cold_sets(&mut self, subject: Subject) -> Result<Sets, Judgement> {
        let loaded = self.subjects.get(subject)?;
        if let Some(known) = loaded.cold {
            return Ok(known);
        }
        if loaded.plan.variables.iter().any(points) {
            // A variable can point into one set only.
            return Ok(Sets {
                count: 1,
                most_launches: 1,
            });
        }
        let have = loaded.sets.len() as u64;
        let set = loaded.sets.first();
        let bytes: u64 = set.map_or(0, |set| {
            set.buffers
                .iter()
                .flatten()
                .map(|buffer| buffer.bytes)
                .sum()
        });
        let bytes = bytes.max(1);
        let wanted = (CACHE_MULTIPLE * self.gpu.facts().l2_bytes).div_ceil(bytes);
        let (free, _) = self.gpu.call(|driver, _| driver.memory_info())?;
        let room = have + free / MEMORY_SHARE / (bytes + 4 * super::session::GUARD_BYTES);
        // At least two, so that a sample does not only read data that the previous one has just read.
        let count = wanted.min(MAX_SETS).min(room).max(2);
        let sets = Sets {
            count: count as usize,
            most_launches: if count < wanted {
                count as u32
            } else {
                u32::MAX
            },
        };
        self.subjects.get_mut(subject)?.cold = Some(sets);
        Ok(sets)
    }

    fn add_set(&mut self, subject: Subject) -> Result<(), Judgement> {
        let loaded = self.subjects.get(subject)?;
        let (plan, seed) = (loaded.plan.clone(), loaded.seed);
        let mut buffers: Vec<Option<Buffer>> = Vec::new();
        let filled = self.fill_set(subject, &plan, seed, &mut buffers);
        let launches = filled.and_then(|()| {
            let pointers = pointers(&buffers);
            plan.launches
                .iter()
                .map(|launch| prepare_launch(&mut self.gpu, &plan, &plan.code, launch, &pointers))
                .collect()
        });
        match launches {
            Ok(launches) => {
                let loaded = self.subjects.get_mut(subject)?;
                loaded.sets.push(Set { buffers, launches });
                Ok(())
            }
            Err(fault) => {
                for buffer in buffers.iter().flatten() {
                    self.free(buffer);
                }
                Err(fault)
            }
        }
    }

    fn fill_set(
        &mut self,
        subject: Subject,
        plan: &Plan,
        seed: u64,
        buffers: &mut Vec<Option<Buffer>>,
    ) -> Result<(), Judgement> {
        let first: Option<Vec<Option<Buffer>>> = self
            .subjects
            .get(subject)?
            .sets
            .first()
            .map(|set| set.buffers.clone());
        for (index, argument) in plan.arguments.iter().enumerate() {
            if argument.role == Role::Scalar {
                buffers.push(None);
                continue;
            }
            let mut buffer = self.guarded(&argument.name, argument.bytes())?;
            buffers.push(Some(buffer.clone()));
            if argument.role == Role::Input && self.copy_first(first.as_deref(), index, &buffer)? {
                continue;
            }
            if argument.role.is_filled() {
                let data = self.load_input(plan, index, seed)?;
                self.fill_input(&mut buffer, &data)?;
                buffers[index] = Some(buffer);
            } else {
                self.fill_pattern(&buffer, argument.element.poison())?;
            }
        }
        Ok(())
    }

    /// Returns the bytes of an argument that is filled.
    fn load_input(&mut self, plan: &Plan, index: usize, seed: u64) -> Result<Arc<[u8]>, Judgement> {
        let argument: &PlanArgument = &plan.arguments[index];
        let key = format!(
            "{:?}|{:?}|{:?}|{:?}|{index}|{seed}",
            argument.element, argument.shape, argument.fill, argument.layout
        );
        // A generator's output is determined by its code.
        let kept = !matches!(argument.fill, Fill::Kernel(_));
        if !kept {
            let made = generate::run_generators(self, plan, seed);
            let mut made = made.map_err(|error| refused(error.to_string()))?;
            let absent = || refused(format!("`{}` was not generated", argument.name));
            return made.remove(&index).ok_or_else(absent);
        }
        if let Some(known) = self.subjects.inputs.get(&key) {
            return Ok(Arc::clone(known));
        }
        let content = argument.content(seed, index as u64);
        let bytes = content.map_err(refused)?;
        self.subjects.keep(key, &bytes);
        Ok(bytes)
    }

    /// Restores the initial contents of buffers that a subject's launches change in place, in every
    /// set, and the variables of its code. Not part of the timed span.
    pub(super) fn restore(&mut self, subject: Subject) -> Result<(), Judgement> {
        let loaded = self.subjects.get(subject)?;
        let (plan, seed) = (loaded.plan.clone(), loaded.seed);
        let changed = |argument: &PlanArgument| argument.role.is_updated();
        if plan.arguments.iter().any(changed) && loaded.initial.is_empty() {
            let mut initial = Vec::with_capacity(plan.arguments.len());
            for (index, argument) in plan.arguments.iter().enumerate() {
                initial.push(if changed(argument) {
                    let mut buffer = self.guarded(&argument.name, argument.bytes())?;
                    let data = self.load_input(&plan, index, seed)?;
                    self.fill_input(&mut buffer, &data)?;
                    Some(buffer)
                } else {
                    None
                });
            }
            self.subjects.get_mut(subject)?.initial = initial;
        }
        let loaded = self.subjects.get(subject)?;
        let mut copies = Vec::new();
        for set in &loaded.sets {
            for (to, from) in set.buffers.iter().zip(&loaded.initial) {
                copies.extend(
                    to.as_ref()
                        .zip(from.as_ref())
                        .map(|(to, from)| (to.start(), from.start(), from.bytes)),
                );
            }
        }
        if !plan.variables.is_empty() {
            let buffers = loaded.sets.first().map_or(&[][..], |set| &set.buffers);
            let pointers = pointers(buffers);
            set_variables(&mut self.gpu, &plan, seed, &pointers)?;
        }
        for (to, from, bytes) in copies {
            self.gpu
                .call(|driver, stream| driver.copy_on_device(to, from, bytes, stream))?;
        }
        Ok(())
    }

    /// Copies an input from the first set, if there is one, without a transfer from the host.
    fn copy_first(
        &mut self,
        first: Option<&[Option<Buffer>]>,
        index: usize,
        buffer: &Buffer,
    ) -> Result<bool, Judgement> {
        let from = first.and_then(|buffers| buffers.get(index)?.as_ref());
        let Some(from) = from.map(Buffer::start) else {
            return Ok(false);
        };
        let (to, bytes) = (buffer.start(), buffer.bytes);
        self.gpu
            .call(|driver, stream| driver.copy_on_device(to, from, bytes, stream))?;
        Ok(true)
    }
}
