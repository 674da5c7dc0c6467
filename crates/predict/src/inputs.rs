//! Inputs of predictions: memory laid out for a plan's arguments, and its data.

use super::forecast::{MAX_INSTRUCTIONS, refused};
use tuner_core::fill::Fill;
use tuner_core::judgement::Judgement;
use tuner_core::plan::{Code, Plan, PlanArgument, Role};
use tuner_core::record::Verdict;
use tuner_core::units::ContentHash;
use tuner_judge::gate::generate;
use vgpu::memory::MemoryError;
use vgpu::{Arch, Arg, BufferId, GlobalMemory, Launch, Module};

/// Seed of the inputs that all candidates of a problem share.
const SHARED_SEED: u64 = 0x5eed;
/// Buffers up to this size are filled anew for each code, bytes: its author cannot know their data.
const FILLED_BYTES: u64 = 1 << 20;
/// Random buffers up to this size are filled as the space specifies, bytes, and shared by the candidates of
/// a problem. Larger ones of floats stay zero and larger ones of integers repeat their beginning: they would
/// take too much memory in each thread that predicts.
const SHARED_FILLED_BYTES: u64 = 128 << 20;

/// Memory laid out for one list of arguments.
pub(super) struct ArgumentMemory {
    pub(super) arguments: Vec<PlanArgument>,
    pub(super) memory: GlobalMemory,
    buffers: Vec<Option<BufferId>>,
    /// Names of the buffers that hold data other than a run's, or data that the author of the code may know.
    pub(super) made_up: Vec<(BufferId, String)>,
    /// Code whose data the small buffers hold.
    seed: Option<u64>,
    pub(super) uses: u32,
}

/// Returns the seed of the data that only this code gets. Data that were the same for all codes could be
/// recognized, and a kernel that does less with them would seem fast.
pub(super) fn seed_of(code: &Code) -> u64 {
    let hash = ContentHash::from_parts([code.ptx.as_bytes(), &*code.cubin]);
    let seed = u64::from_str_radix(hash.as_str().get(..16).unwrap_or_default(), 16);
    seed.unwrap_or(SHARED_SEED)
}

impl ArgumentMemory {
    /// Allocates the buffers of a plan, and fills the large ones, which all codes share.
    pub(super) fn new(plan: &Plan, limit_bytes: u64, arch: &Arch) -> Result<Self, Judgement> {
        let mut memory = GlobalMemory::new(limit_bytes);
        let mut buffers = Vec::with_capacity(plan.arguments.len());
        for argument in &plan.arguments {
            let is_buffer = argument.role != Role::Scalar;
            let buffer = is_buffer.then(|| memory.alloc(argument.bytes(), &argument.name));
            let full = |error: MemoryError| Judgement::new(Verdict::OutOfMemory, error.to_string());
            buffers.push(buffer.transpose().map_err(full)?);
        }
        let mut made = Self {
            arguments: plan.arguments.clone(),
            memory,
            buffers,
            made_up: Vec::new(),
            seed: None,
            uses: 0,
        };
        made.fill_buffers(plan, arch, SHARED_SEED, |bytes| bytes > FILLED_BYTES)?;
        Ok(made)
    }

    /// Fills the small buffers for a code, unless they have its data.
    pub(super) fn fill_for(&mut self, plan: &Plan, arch: &Arch) -> Result<(), Judgement> {
        let seed = seed_of(&plan.code);
        if self.seed != Some(seed) {
            self.fill_buffers(plan, arch, seed, |bytes| bytes <= FILLED_BYTES)?;
            self.seed = Some(seed);
        }
        Ok(())
    }

    fn fill_buffers(
        &mut self,
        plan: &Plan,
        arch: &Arch,
        seed: u64,
        is_meant: impl Fn(u64) -> bool,
    ) -> Result<(), Judgement> {
        for (index, argument) in self.arguments.iter().enumerate() {
            let buffer = self.buffers.get(index).copied().flatten();
            let Some(buffer) = buffer.filter(|_| argument.role.is_filled()) else {
                continue;
            };
            if !is_meant(argument.bytes()) {
                continue;
            }
            let mut filler = Filler {
                memory: &mut self.memory,
                buffer,
                argument,
                seed,
            };
            let is_real = match (&argument.fill, &plan.generators) {
                (Fill::Kernel(entry), Some(code)) => filler.generate(entry, code, arch)?,
                _ => filler.fill(index as u64)?,
            };
            if !is_real {
                self.made_up.push((buffer, argument.name.clone()));
            }
        }
        Ok(())
    }

    /// Returns the address of an argument's buffer.
    pub(super) fn address(&self, argument: usize) -> Option<u64> {
        Some(self.memory.address(self.buffer(argument)?))
    }

    /// Returns the buffer of an argument; `None` for a scalar.
    pub(super) fn buffer(&self, argument: usize) -> Option<BufferId> {
        self.buffers.get(argument).copied().flatten()
    }

    /// Returns the argument of a buffer; `None` for a variable of a module.
    pub(super) fn argument(&self, buffer: BufferId) -> Option<&PlanArgument> {
        let place = self.buffers.iter().position(|one| *one == Some(buffer));
        self.arguments.get(place?)
    }

    /// Reports whether a buffer is an argument that kernels only read.
    pub(super) fn is_input(&self, buffer: BufferId) -> bool {
        self.argument(buffer)
            .is_some_and(|argument| argument.role == Role::Input)
    }
}

/// One buffer that is filled.
struct Filler<'a> {
    memory: &'a mut GlobalMemory,
    buffer: BufferId,
    argument: &'a PlanArgument,
    seed: u64,
}

impl Filler<'_> {
    /// Fills the buffer; returns whether its data are as the space says, and not known beforehand.
    fn fill(&mut self, index: u64) -> Result<bool, Judgement> {
        let Self { argument, seed, .. } = *self;
        let total = self.memory.len(self.buffer);
        let (element, rule) = (argument.element, &argument.fill);
        if *rule == Fill::Zeros && total > FILLED_BYTES {
            return Ok(true);
        }
        // If an element's value depends on its position, the beginning does not represent the rest.
        let is_drawn = matches!(
            rule,
            Fill::Normal { .. } | Fill::Uniform { .. } | Fill::Constant(_) | Fill::Sparse { .. }
        );
        let is_plain = is_drawn && argument.layout.is_none();
        let is_huge = is_plain && total > SHARED_FILLED_BYTES;
        if is_huge && element.is_float() {
            return Ok(false);
        }
        let part = if is_huge {
            let count = FILLED_BYTES / element.size() as u64;
            rule.bytes(element, seed, index, count)
        } else {
            let content = argument.content(seed, index);
            content.map_err(|why| refused(format!("the data of `{}`: {why}", argument.name)))?
        };
        repeat(self.memory, self.buffer, &part);
        Ok(total <= FILLED_BYTES || !is_plain || matches!(rule, Fill::Constant(_)))
    }

    /// Fills the buffer by a generator; of a large one only the beginning, which the rest repeats.
    /// Returns whether that is all of it.
    fn generate(&mut self, entry: &str, code: &Code, arch: &Arch) -> Result<bool, Judgement> {
        let argument = self.argument;
        let failed = |why: String| refused(format!("the generator of `{}`: {why}", argument.name));
        let module = Module::load(&code.ptx).map_err(|error| failed(error.to_string()))?;
        let all = generate::elements(argument);
        let each = argument.bytes() / all.max(1);
        let count = all.min(FILLED_BYTES / each.max(1)).max(1);
        let shape = generate::launch(entry, all);
        let word = |value: u64| Arg::Bytes(value.to_le_bytes().to_vec());
        let args = vec![Arg::Buffer(self.buffer), word(all), word(self.seed)];
        let mut launch = Launch::new(entry, shape.grid, shape.block, args);
        let blocks = count.div_ceil(u64::from(shape.block[0]));
        launch.blocks = vgpu::BlockSet::List((0..blocks).collect());
        launch.instruction_budget = MAX_INSTRUCTIONS;
        let ended = vgpu::launch(&module, self.memory, arch, &launch);
        ended.map_err(|error| failed(error.to_string()))?;
        if count < all {
            let mut part = self.memory.read(self.buffer);
            part.truncate(usize::try_from(count * each).unwrap_or(usize::MAX));
            repeat(self.memory, self.buffer, &part);
        }
        Ok(count == all)
    }
}

/// Repeats the bytes until the buffer is full.
#[expect(
    clippy::indexing_slicing,
    reason = "a part is at most as long as its piece"
)]
fn repeat(memory: &mut GlobalMemory, buffer: BufferId, part: &[u8]) {
    let (total, mut at) = (memory.len(buffer), 0);
    while at < total && !part.is_empty() {
        let length = (total - at).min(part.len() as u64);
        memory.write(buffer, at, &part[..length as usize]);
        at += length;
    }
}

#[cfg(test)]
mod tests;
