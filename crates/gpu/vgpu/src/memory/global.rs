//! Device memory: allocations in a 64-bit address space, separated by unowned gaps, so that an
//! access beyond a requested size never lands in a neighbour.

mod freed;
mod reserved;

pub(crate) use freed::Near;

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use freed::Freed;

use super::buffer_id::BufferId;
use super::heap::{Blocks, HEAP_BYTES, Heap};
use crate::exec::shadow_values::{FloatFormat, GlobalShadows};
use crate::hazard::global::GlobalShadow;
use crate::memory::init::InitMap;
use crate::texture::ImageObjects;

/// Alignment of every allocation, as `cudaMalloc` guarantees.
const ALIGNMENT_BYTES: u64 = 256;
/// Repeats of a fill pattern that are stored at once; a multiple of 4.
const FILL_REPEATS: usize = 1 << 12;
/// Unowned bytes after each allocation: enough that a stride error still lands in them.
const GAP_BYTES: u64 = 1 << 20;
/// Maximum size of one allocation: the address space below the windows of the other spaces holds
/// many of that size.
const MAX_ALLOCATION_BYTES: u64 = 1 << 40;
/// Address of the first allocation.
const FIRST_ADDRESS: u64 = 0x10_0000_0000;

/// Reason why an allocation failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// The limit given to [`GlobalMemory::new`] would be exceeded.
    #[error("out of device memory: `{name}` requests {wanted} bytes, {used} of {limit} are in use")]
    OutOfMemory {
        /// Name given to the allocation.
        name: String,
        /// Requested bytes.
        wanted: u64,
        /// Bytes in use.
        used: u64,
        /// The limit.
        limit: u64,
    },
    /// A range that is not inside its buffer.
    #[error("{bytes} bytes at byte {offset} are outside `{name}`, which has {size} bytes")]
    OutOfRange {
        /// Name of the buffer.
        name: String,
        /// First byte of the range.
        offset: u64,
        /// Size of the range, bytes.
        bytes: u64,
        /// Size of the buffer, bytes; 0 where it was freed.
        size: u64,
    },
}

/// State that an attempt at a launch may change besides words.
#[derive(Debug)]
pub(crate) struct Snapshot {
    /// Of each live allocation, whether it was overwritten.
    overwritten: Vec<bool>,
    blocks: Option<Blocks>,
}

/// One allocation: its words, written bytes, and race shadow.
#[derive(Debug)]
pub(crate) struct Allocation {
    pub(crate) base: u64,
    pub(crate) bytes: u64,
    pub(crate) name: String,
    pub(crate) words: Vec<AtomicU32>,
    pub(crate) init: InitMap,
    pub(crate) shadow: GlobalShadow,
    /// The module of which this is a variable.
    pub(crate) module: Option<u64>,
    /// A variable of a module that only the host can set.
    pub(crate) unset: bool,
}

/// Memory of one device context. Addresses are never reused: a stale pointer to a freed buffer is
/// out of bounds.
#[derive(Debug)]
pub struct GlobalMemory {
    limit: u64,
    used: u64,
    next: u64,
    /// By number. Those that were freed long ago are one that holds nothing.
    pub(crate) allocations: Vec<Arc<Allocation>>,
    /// Numbers of those that are not freed, by address: the only ones that a launch walks.
    live: Vec<usize>,
    /// Those freed last, the oldest first.
    freed: VecDeque<Freed>,
    nothing: Arc<Allocation>,
    /// Variables of modules.
    modules: HashMap<u64, Vec<BufferId>>,
    /// Texture and surface objects.
    pub(crate) objects: ImageObjects,
    heap_bytes: u64,
    pub(crate) heap: Option<Heap>,
    /// Attempts at launches so far: distinguishes their shadow cells.
    pub(crate) attempts: u32,
    /// Launches so far.
    pub(crate) launches: u32,
    /// Shadow values of the last launch, if it computed any.
    pub(crate) shadows: Option<GlobalShadows>,
}

/// Result of resolving an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lookup {
    /// Index of the allocation, as [`BufferId::index`].
    pub index: usize,
    /// Byte offset in it.
    pub offset: u64,
}

impl Lookup {
    /// Returns the allocation.
    #[must_use]
    pub fn buffer(self) -> BufferId {
        BufferId(self.index)
    }
}

impl GlobalMemory {
    /// Creates an empty memory with a limit of `limit_bytes`.
    pub fn new(limit_bytes: u64) -> GlobalMemory {
        GlobalMemory {
            limit: limit_bytes,
            used: 0,
            next: FIRST_ADDRESS,
            allocations: Vec::new(),
            live: Vec::new(),
            freed: VecDeque::new(),
            nothing: Arc::new(Allocation::nothing(0, String::new())),
            modules: HashMap::new(),
            objects: ImageObjects::default(),
            heap_bytes: HEAP_BYTES,
            heap: None,
            attempts: 0,
            launches: 0,
            shadows: None,
        }
    }

    /// Allocates `bytes` (zero is allowed: every access is then out of bounds), unwritten.
    pub fn alloc(&mut self, bytes: u64, name: &str) -> Result<BufferId, MemoryError> {
        let full = || self.exhausted(bytes, name);
        if bytes
            > self
                .limit
                .saturating_sub(self.used)
                .min(MAX_ALLOCATION_BYTES)
        {
            return Err(full());
        }
        // The host may have less memory than the limit. Including the shadow, about twice the bytes
        // are needed; the words are the largest part that is allocated at once.
        let words = bytes.div_ceil(4);
        let storage = bytemuck::try_zeroed_vec(words as usize).map_err(|()| full())?;
        let base = self.next;
        self.used += bytes;
        self.next = (base + bytes + GAP_BYTES).next_multiple_of(ALIGNMENT_BYTES);
        // Addresses only grow.
        self.live.push(self.allocations.len());
        self.allocations.push(Arc::new(Allocation {
            base,
            bytes,
            name: name.to_owned(),
            words: storage,
            init: InitMap::new(bytes),
            shadow: GlobalShadow::new(words as usize),
            module: None,
            unset: false,
        }));
        Ok(BufferId(self.allocations.len() - 1))
    }

    /// Allocates memory of a loaded module: its `.global` variables.
    pub(crate) fn alloc_module(
        &mut self,
        module: u64,
        bytes: u64,
        name: &str,
        unset: bool,
    ) -> Result<BufferId, MemoryError> {
        let id = self.alloc(bytes, name)?;
        // Nothing else holds an allocation that was just made.
        if let Some(allocation) = Arc::get_mut(&mut self.allocations[id.0]) {
            (allocation.module, allocation.unset) = (Some(module), unset);
        }
        self.modules.entry(module).or_default().push(id);
        Ok(id)
    }

    /// The variables of a module, in the order of their allocation.
    pub(crate) fn of_module(&self, module: u64) -> &[BufferId] {
        self.modules.get(&module).map_or(&[], Vec::as_slice)
    }

    /// Copies `data` to `offset` and marks it written.
    ///
    /// # Panics
    /// When the range is outside the buffer.
    pub fn write(&mut self, buffer: BufferId, offset: u64, data: &[u8]) {
        let allocation = &self.allocations[buffer.0];
        assert!(
            offset + data.len() as u64 <= allocation.bytes,
            "write outside the buffer"
        );
        allocation.store_bytes(offset, data);
        allocation.init.mark(offset..offset + data.len() as u64);
    }

    /// Reads the buffer's bytes.
    pub fn read(&self, buffer: BufferId) -> Vec<u8> {
        let allocation = &self.allocations[buffer.0];
        let mut bytes = vec![0; allocation.bytes as usize];
        // Whole words are a loop of vector instructions.
        let (whole, end) = bytes.as_chunks_mut::<4>();
        let (words, last) = allocation.words.split_at(whole.len());
        for (chunk, word) in whole.iter_mut().zip(words) {
            *chunk = word.load(Relaxed).to_le_bytes();
        }
        if let Some(word) = last.first() {
            end.copy_from_slice(&word.load(Relaxed).to_le_bytes()[..end.len()]);
        }
        bytes
    }

    /// Reports whether the buffer holds these bytes, and no others.
    #[must_use]
    pub fn holds(&self, buffer: BufferId, bytes: &[u8]) -> bool {
        let allocation = &self.allocations[buffer.0];
        if allocation.bytes != bytes.len() as u64 {
            return false;
        }
        let (whole, end) = bytes.as_chunks::<4>();
        let (words, last) = allocation.words.split_at(whole.len());
        let same =
            |(word, bytes): (&AtomicU32, &[u8; 4])| word.load(Relaxed).to_le_bytes() == *bytes;
        words.iter().zip(whole).all(same)
            && last
                .first()
                .is_none_or(|word| word.load(Relaxed).to_le_bytes().starts_with(end))
    }

    /// Reads bytes from `offset` on, as many as fit in `into`.
    ///
    /// # Panics
    /// When the range is outside the buffer.
    pub fn read_at(&self, buffer: BufferId, offset: u64, into: &mut [u8]) {
        let allocation = &self.allocations[buffer.0];
        assert!(
            offset + into.len() as u64 <= allocation.bytes,
            "read outside the buffer"
        );
        let first = offset as usize;
        let unaligned = (first.wrapping_neg() % 4).min(into.len());
        let (head, rest) = into.split_at_mut(unaligned);
        for (at, byte) in (first..).zip(head) {
            *byte = allocation.words[at / 4].load(Relaxed).to_le_bytes()[at % 4];
        }
        let words =
            &allocation.words[(first + unaligned).div_ceil(4).min(allocation.words.len())..];
        for (chunk, word) in rest.chunks_mut(4).zip(words) {
            chunk.copy_from_slice(&word.load(Relaxed).to_le_bytes()[..chunk.len()]);
        }
    }

    /// Returns the shadow value of a number that the last launch stored at `offset`, if it computed
    /// shadow values: the number in double precision, from exact inputs. `None` where the number was
    /// not computed in floating point, or its shadow ended: see [`Launch::shadow_values`].
    ///
    /// [`Launch::shadow_values`]: crate::Launch::shadow_values
    #[must_use]
    pub fn shadow_value(&self, buffer: BufferId, offset: u64, format: FloatFormat) -> Option<f64> {
        let allocation = self.allocations.get(buffer.0)?;
        let word = |at: u64| {
            let word = allocation.words.get((at / 4) as usize)?;
            Some(u64::from(word.load(Relaxed)))
        };
        let bits = match format {
            FloatFormat::Single => word(offset)?,
            FloatFormat::Double => word(offset)? | word(offset + 4)? << 32,
            FloatFormat::Half | FloatFormat::Bfloat => word(offset)? >> (8 * (offset & 2)) & 0xffff,
        };
        let shadows = self.shadows.as_ref()?;
        shadows.value(allocation.base + offset, format, bits)
    }

    /// The allocations that are not freed.
    pub(crate) fn live(&self) -> impl Iterator<Item = &Allocation> {
        self.live.iter().map(|n| &*self.allocations[*n])
    }

    /// The state that an attempt at a launch may change besides words.
    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot {
            overwritten: self.live().map(|a| a.init.is_overwritten()).collect(),
            blocks: self.heap.as_ref().map(|heap| heap.blocks().clone()),
        }
    }

    /// Undoes an attempt at a launch, before which there was this.
    pub(crate) fn undo(&self, attempt: u32, before: &Snapshot) {
        for (a, overwritten) in self.live().zip(&before.overwritten) {
            a.shadow.restore(attempt, &a.words, &a.init);
            a.init.set_overwritten(*overwritten);
        }
        if let (Some(heap), Some(blocks)) = (&self.heap, &before.blocks) {
            *heap.blocks() = blocks.clone();
        }
    }

    /// Fills the buffer with repeats of `pattern` and marks every byte as unwritten.
    pub fn fill_uninitialised(&mut self, buffer: BufferId, pattern: &[u8]) {
        let allocation = &self.allocations[buffer.0];
        // In parts of whole words: a copy of the whole buffer would double its memory.
        let part = pattern.repeat(FILL_REPEATS);
        let mut offset = 0;
        while offset < allocation.bytes && !part.is_empty() {
            let left = (allocation.bytes - offset).min(part.len() as u64);
            allocation.store_bytes(offset, &part[..left as usize]);
            offset += left;
        }
        allocation.init.clear();
    }

    /// Copies `data` to the beginning and marks those of its bytes as unwritten that differ from
    /// the buffer's contents: a kernel must write them before it may read them.
    pub(crate) fn write_stale(&mut self, buffer: BufferId, data: &[u8]) {
        let loaded = self.read(buffer);
        if loaded == data {
            return;
        }
        self.write(buffer, 0, data);
        let changed = |byte: u64| loaded.get(byte as usize) != data.get(byte as usize);
        self.allocations[buffer.0].init.unmark(changed);
    }

    /// Reports whether a kernel stored to the buffer after [`write`](Self::write) had filled all of
    /// it, even if the bytes are unchanged.
    #[must_use]
    pub fn is_overwritten(&self, buffer: BufferId) -> bool {
        self.allocations[buffer.0].init.is_overwritten()
    }

    /// Returns the byte ranges that were never written.
    pub fn unwritten(&self, buffer: BufferId) -> impl Iterator<Item = Range<u64>> {
        self.allocations[buffer.0].init.unwritten().into_iter()
    }

    /// Returns the byte ranges that the last launch did not read, by whole words. Reads are known of
    /// launches that were checked for races, and of bytes that the launch did not write.
    pub fn unread(&self, buffer: BufferId) -> impl Iterator<Item = Range<u64>> {
        let allocation = &self.allocations[buffer.0];
        let bytes = allocation.bytes;
        let words = allocation.shadow.unread(self.attempts).into_iter();
        words.map(move |words| words.start as u64 * 4..(words.end as u64 * 4).min(bytes))
    }

    /// All buffers that are not freed, those of modules included, in the order of their allocation.
    pub fn buffers(&self) -> impl Iterator<Item = BufferId> + use<> {
        self.live.clone().into_iter().map(BufferId)
    }

    /// Returns the address of the first byte.
    pub fn address(&self, buffer: BufferId) -> u64 {
        self.allocations[buffer.0].base
    }

    /// Returns the requested size, bytes.
    pub fn len(&self, buffer: BufferId) -> u64 {
        self.allocations[buffer.0].bytes
    }

    /// Reports whether nothing was allocated yet.
    pub fn is_empty(&self) -> bool {
        self.allocations.is_empty()
    }

    /// Returns the allocation that contains `address`, if any.
    #[inline]
    #[must_use]
    pub fn find(&self, address: u64) -> Option<Lookup> {
        let all = &self.allocations;
        let place = self.live.partition_point(|n| all[*n].base <= address);
        let index = *self.live.get(place.checked_sub(1)?)?;
        let allocation = &all[index];
        let offset = address - allocation.base;
        (offset < allocation.bytes).then_some(Lookup { index, offset })
    }

    /// Returns the first address and the size of an allocation by its [`BufferId::index`].
    #[inline]
    #[must_use]
    pub fn extent(&self, index: usize) -> Option<(u64, u64)> {
        self.allocations.get(index).map(|a| (a.base, a.bytes))
    }

    /// Returns the words of an allocation by its [`BufferId::index`], little endian; empty if it
    /// does not exist.
    #[inline]
    #[must_use]
    pub fn words(&self, index: usize) -> &[AtomicU32] {
        self.allocations.get(index).map_or(&[], |a| &a.words)
    }

    /// Returns the total size of all allocations, bytes.
    #[must_use]
    pub fn allocated(&self) -> u64 {
        self.used
    }

    /// Returns the name of an allocation; empty if it does not exist.
    #[must_use]
    pub fn name(&self, index: usize) -> &str {
        self.allocations.get(index).map_or("", |a| &a.name)
    }
}

impl Allocation {
    /// An allocation that was freed.
    fn nothing(base: u64, name: String) -> Allocation {
        Allocation {
            base,
            bytes: 0,
            name,
            words: Vec::new(),
            init: InitMap::new(0),
            shadow: GlobalShadow::new(0),
            module: None,
            unset: false,
        }
    }

    pub(super) fn store_bytes(&self, offset: u64, data: &[u8]) {
        let mut at = offset as usize;
        let mut rest = data;
        if at.is_multiple_of(4) {
            let (whole, end) = data.as_chunks::<4>();
            for (word, bytes) in self.words[at / 4..].iter().zip(whole) {
                word.store(u32::from_le_bytes(*bytes), Relaxed);
            }
            at += 4 * whole.len();
            rest = end;
        }
        while !rest.is_empty() {
            let (word, within) = (at / 4, at % 4);
            let n = rest.len().min(4 - within);
            let mut bytes = self.words[word].load(Relaxed).to_le_bytes();
            bytes[within..within + n].copy_from_slice(&rest[..n]);
            self.words[word].store(u32::from_le_bytes(bytes), Relaxed);
            at += n;
            rest = &rest[n..];
        }
    }
}
