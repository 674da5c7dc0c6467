//! Launch sequences that are loaded to be timed, each with buffers of its own.

use super::driver::{DevicePointer, GraphExec};
use super::launches::{Ready, ready};
use super::session::{Buffer, GpuSession};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tuner_core::cache_mode::CacheMode;
use tuner_core::judgement::Judgement;
use tuner_core::plan::{Plan, PlanArgument, Role};
use tuner_core::record::Verdict;
use tuner_judge::stopwatch::Subject;

/// Most sets of buffers that rotate: a graph of 500 launches still uses each.
const SETS_MAX: u64 = 256;
/// The sets together are this many times the L2 cache.
const CACHE_MULTIPLE: u64 = 3;
/// Share of the free memory that the sets of one subject may take: one in so many.
const MEMORY_SHARE: u64 = 4;
/// Inputs kept on the host.
const INPUTS_KEPT: usize = 16;

/// One loaded subject.
pub(super) struct Loaded {
    pub(super) plan: Plan,
    seed: u64,
    pub(super) sets: Vec<Set>,
    /// Sets of the cold mode, once it was asked for.
    cold: Option<Sets>,
    /// Graphs by mode and number of launches.
    pub(super) graphs: HashMap<(CacheMode, u32), GraphExec>,
    /// First and last set that the last sample used.
    pub(super) last: (usize, usize),
}

/// Buffers of one copy of a problem, and the launches on them.
pub(super) struct Set {
    /// By argument; `None` for scalars.
    pub(super) buffers: Vec<Option<Buffer>>,
    pub(super) launches: Vec<Ready>,
}

/// How a mode uses sets of buffers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sets {
    /// How many.
    pub(super) count: usize,
    /// Launches of a sample at most: sets that the cache could hold are used once each.
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
    /// Device memory that they take.
    pub(super) fn bytes(&self) -> u64 {
        let sets = self.loaded.values().flat_map(|subject| &subject.sets);
        let buffers = sets.flat_map(|set| set.buffers.iter().flatten());
        buffers.map(|buffer| buffer.bytes).sum()
    }

    pub(super) fn get(&self, subject: Subject) -> Result<&Loaded, Judgement> {
        self.loaded.get(&subject.0).ok_or_else(unknown)
    }

    pub(super) fn get_mut(&mut self, subject: Subject) -> Result<&mut Loaded, Judgement> {
        self.loaded.get_mut(&subject.0).ok_or_else(unknown)
    }

    /// The input's bytes, which are the same for every candidate.
    fn input(&mut self, argument: &PlanArgument, index: usize, seed: u64) -> Arc<[u8]> {
        let key = format!(
            "{:?}|{:?}|{:?}|{index}|{seed}",
            argument.element, argument.shape, argument.fill
        );
        if let Some(bytes) = self.inputs.get(&key) {
            return Arc::clone(bytes);
        }
        let (fill, count) = (argument.fill, argument.count());
        let bytes: Arc<[u8]> = fill
            .bytes(argument.element, seed, index as u64, count)
            .into();
        if self.inputs.len() >= INPUTS_KEPT {
            self.inputs.clear();
        }
        self.inputs.insert(key, Arc::clone(&bytes));
        bytes
    }
}

fn unknown() -> Judgement {
    Judgement::new(
        Verdict::LaunchFailed,
        "what is to be timed is not loaded".to_owned(),
    )
}

impl GpuSession {
    /// Loads a plan to be timed, with the inputs of that seed.
    ///
    /// # Errors
    /// The device refuses the code or a launch, or its memory is full.
    pub fn load_subject(&mut self, plan: &Plan, seed: u64) -> Result<Subject, Judgement> {
        let mut plan = plan.clone();
        self.gpu.adopt(&mut plan.code)?;
        let number = self.subjects.next;
        self.subjects.next += 1;
        self.subjects.loaded.insert(
            number,
            Loaded {
                plan,
                seed,
                sets: Vec::new(),
                cold: None,
                graphs: HashMap::new(),
                last: (0, 0),
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

    /// Frees a subject's buffers and graphs.
    pub fn drop_subject(&mut self, subject: Subject) {
        let Some(loaded) = self.subjects.loaded.remove(&subject.0) else {
            return;
        };
        for exec in loaded.graphs.into_values() {
            // Fails only on a context that is lost.
            let _ = self.gpu.call(|driver, _| driver.exec_destroy(exec));
        }
        for buffer in loaded
            .sets
            .iter()
            .flat_map(|set| set.buffers.iter().flatten())
        {
            self.free(buffer);
        }
    }

    /// The sets that a mode needs, made where they are missing.
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
        // Two at least, so that what is timed is never only what was just read.
        let count = wanted.min(SETS_MAX).min(room).max(2);
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
        let filled = self.fill_set(subject, (&plan, seed), &mut buffers);
        let launches = filled.and_then(|()| {
            let pointers: Vec<Option<DevicePointer>> = buffers
                .iter()
                .map(|buffer| buffer.as_ref().map(Buffer::at))
                .collect();
            plan.launches
                .iter()
                .map(|launch| ready(&mut self.gpu, &plan, &plan.code, launch, &pointers))
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
        (plan, seed): (&Plan, u64),
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
            if argument.role == Role::Input {
                let data = self.subjects.input(argument, index, seed);
                self.fill_input(&mut buffer, &data)?;
                buffers[index] = Some(buffer);
            } else {
                self.fill_pattern(&buffer, argument.element.poison())?;
            }
        }
        Ok(())
    }

    /// Copies an input of the first set, where there is one, without a way over the host.
    fn copy_first(
        &mut self,
        first: Option<&[Option<Buffer>]>,
        index: usize,
        buffer: &Buffer,
    ) -> Result<bool, Judgement> {
        let from = first.and_then(|buffers| buffers.get(index)?.as_ref());
        let Some(from) = from.map(Buffer::at) else {
            return Ok(false);
        };
        let (to, bytes) = (buffer.at(), buffer.bytes);
        self.gpu
            .call(|driver, stream| driver.copy_on_device(to, from, bytes, stream))?;
        Ok(true)
    }
}
