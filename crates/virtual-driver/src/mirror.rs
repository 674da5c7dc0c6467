//! Launches of a GPU, repeated on the virtual GPU, which reports the bytes that they read and wrote and
//! their hazards.
//!
//! Captured results are those of the GPU. Addresses of its memory are replaced by those of the copies.

mod files;

use std::io;
use std::ops::Range;

use capture::{Ranges, Shape};
use cuda_shim::errors::{self, Code};
use cuda_shim::protocol::{Fields, FunctionInfo, Message};
use vgpu::BufferId;

use crate::device::{Device, Function};
use crate::fatbin::read_image;
use crate::launches::Request;
use crate::names::plain_name;
use crate::server::{read_extent, read_launch};

/// Bytes of an address.
const ADDRESS_BYTES: usize = 8;
/// Size of the largest element of an array, bytes.
const MAX_ELEMENT_BYTES: usize = 16;
/// `CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES` and `CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED`.
const MAX_DYNAMIC_SHARED: u32 = 8;
const NON_PORTABLE_CLUSTER: u32 = 14;

/// Code of the program, and the repeated launch.
#[derive(Debug, Default)]
pub(crate) struct Mirror {
    /// Number of the process.
    pub(crate) process: u32,
    /// Code that the program's driver loaded, the latest at the end.
    images: Vec<CodeImage>,
    /// The images in the files of the process were added.
    read_files: bool,
    running: Option<Running>,
}

#[derive(Debug)]
struct CodeImage {
    bytes: Vec<u8>,
    module: Option<u64>,
}

/// A launch between its copies of memory.
#[derive(Debug)]
struct Running {
    request: Request,
    number: u64,
    memory: Vec<Copied>,
    translation: Translation,
    /// Contents after the launch on the GPU, until they are taken.
    after: Option<Vec<Vec<u8>>>,
}

/// A copy of memory of the GPU.
#[derive(Debug)]
struct Copied {
    buffer: BufferId,
    is_variable: bool,
    /// Contents before the launch.
    before: Vec<u8>,
}

impl Mirror {
    /// Stores code that the driver loaded.
    pub(crate) fn offer(&mut self, bytes: &[u8]) {
        self.images.push(CodeImage {
            bytes: bytes.to_vec(),
            module: None,
        });
    }

    /// Returns the number of the repeated launch among those of the program.
    pub(crate) fn number(&self) -> Option<u64> {
        self.running.as_ref().map(|running| running.number)
    }
}

/// Addresses of the GPU and of their copies.
#[derive(Debug, Default)]
struct Translation(Vec<(Range<u64>, u64)>);

impl Translation {
    /// Adds memory of the GPU whose copy begins at an address.
    fn add(&mut self, addresses: Range<u64>, copy: u64) {
        let place = self
            .0
            .partition_point(|(known, _)| known.start < addresses.start);
        self.0.insert(place, (addresses, copy));
    }

    /// Replaces the GPU's addresses in some bytes by those of the copies.
    fn apply(&self, bytes: &mut [u8]) {
        for word in bytes.chunks_exact_mut(ADDRESS_BYTES) {
            let Ok(value) = <[u8; ADDRESS_BYTES]>::try_from(&*word) else {
                continue;
            };
            let address = u64::from_le_bytes(value);
            let after = self.0.partition_point(|(known, _)| known.start <= address);
            let found = after.checked_sub(1).and_then(|place| self.0.get(place));
            if let Some((known, copy)) = found.filter(|(known, _)| known.contains(&address)) {
                word.copy_from_slice(&(address - known.start + copy).to_le_bytes());
            }
        }
    }
}

/// Data about a selected launch, for the program.
#[derive(Debug)]
struct Wanted {
    room: u64,
    info: FunctionInfo,
    variables: Vec<String>,
}

impl Device {
    /// Answers whether a launch on the GPU is to be captured.
    pub(crate) fn answer_want(
        &mut self,
        fields: &mut Fields<'_>,
        head: &mut Message,
    ) -> io::Result<()> {
        let name = fields.str()?.to_owned();
        let shape = Shape {
            grid: read_extent(fields)?,
            block: read_extent(fields)?,
            shared_bytes: fields.u32()?,
        };
        let Some(wanted) = self.want(&name, &shape) else {
            head.put_u32(0);
            return Ok(());
        };
        head.put_u32(1).put_u64(wanted.room);
        wanted.info.put(head);
        head.put_u32(wanted.variables.len() as u32);
        for variable in &wanted.variables {
            head.put_str(variable);
        }
        Ok(())
    }

    fn want(&mut self, name: &str, shape: &Shape) -> Option<Wanted> {
        let writer = self.options.capture.clone()?;
        let kernel = plain_name(name);
        if !self.is_selected(name) || !writer.wants(name, &kernel, shape) {
            return None;
        }
        let Some(number) = self.find_code(name) else {
            writer.skip(format!(
                "{kernel}: a launch was not captured, its code is not in what the program loaded; libraries of \
                 kernels are not searched"
            ));
            return None;
        };
        let info = self.get_function(number, name).ok()?;
        let module = self.module(number).ok()?;
        if module.sass_only {
            self.skip_without_ptx(&writer, &kernel);
            return None;
        }
        let variables = module.variables().map(|(name, _)| name.to_owned());
        Some(Wanted {
            variables: variables.collect(),
            room: writer.limit_bytes(),
            info,
        })
    }

    /// Returns the module of a kernel, loaded at its first use: from the most recently loaded code.
    fn find_code(&mut self, name: &str) -> Option<u64> {
        let mut index = self.mirror.images.len();
        loop {
            while let Some(next) = index.checked_sub(1) {
                index = next;
                if let Some(module) = self.load_if_holds(index, name) {
                    return Some(module);
                }
            }
            if std::mem::replace(&mut self.mirror.read_files, true) {
                return None;
            }
            let found = files::images_of_process(self.mirror.process);
            let found = found.into_iter().map(|bytes| CodeImage {
                bytes,
                module: None,
            });
            let loaded = std::mem::take(&mut self.mirror.images);
            // At the front: the search starts at the end, with the code that was loaded last.
            self.mirror.images = found.chain(loaded).collect();
            index = self.mirror.images.len();
        }
    }

    /// Returns the module of an image that has a kernel of that name.
    fn load_if_holds(&mut self, index: usize, name: &str) -> Option<u64> {
        let image = self.mirror.images.get(index)?;
        if let Some(module) = image.module {
            let holds = self.module(module).ok()?.code.entry(name).is_some();
            return holds.then_some(module);
        }
        let code = read_image(&image.bytes, self.options.arch.cc).ok()?;
        let names_it = |bytes: &[u8]| bytes.windows(name.len()).any(|it| it == name.as_bytes());
        // Searching the text is cheap; loading would parse all of it, for each image.
        let holds = match (&code.ptx, &code.cubin) {
            (Some(text), _) => text.contains(name),
            (None, cubin) => cubin.as_deref().is_some_and(names_it),
        };
        if !holds {
            return None;
        }
        let bytes = image.bytes.clone();
        let module = self.load_module(&bytes).ok()?;
        if let Some(image) = self.mirror.images.get_mut(index) {
            image.module = Some(module);
        }
        self.module(module)
            .is_ok_and(|module| module.code.entry(name).is_some())
            .then_some(module)
    }

    /// Copies the memory of a launch before it runs on the GPU.
    pub(crate) fn begin_mirrored(
        &mut self,
        fields: &mut Fields<'_>,
        bulk: &[u8],
    ) -> io::Result<Result<(), Code>> {
        self.drop_mirrored();
        let mut request = read_launch(fields, &[])?;
        let (number, parameter_bytes) = (fields.u64()?, fields.u32()?);
        let mut rest = bulk;
        let mut take = |bytes: u64| {
            let split = rest.split_at_checked(usize::try_from(bytes).unwrap_or(usize::MAX));
            let (own, others) = split.ok_or(io::ErrorKind::InvalidData)?;
            rest = others;
            Ok::<_, io::Error>(own.to_vec())
        };
        request.parameters = take(parameter_bytes.into())?;
        let mut memory = Vec::new();
        let mut translation = Translation::default();
        for _ in 0..fields.u32()? {
            let (address, bytes, variable) = (fields.u64()?, fields.u64()?, fields.str()?);
            let before = take(bytes)?;
            let buffer = match self.copy_of(request.function, variable, bytes) {
                Ok(buffer) => buffer,
                Err(code) => {
                    self.free_copies(memory);
                    return Ok(Err(code));
                }
            };
            let addresses = address..address.saturating_add(bytes);
            translation.add(addresses, self.memory.address(buffer));
            memory.push(Copied {
                buffer,
                is_variable: !variable.is_empty(),
                before,
            });
        }
        translation.apply(&mut request.parameters);
        for copied in &mut memory {
            translation.apply(&mut copied.before);
            self.memory.write(copied.buffer, 0, &copied.before);
        }
        // The program has set these on the GPU.
        let shared = i32::try_from(request.shared_bytes).unwrap_or(i32::MAX);
        let _ = self.set_attribute(request.function, MAX_DYNAMIC_SHARED, shared);
        let _ = self.set_attribute(request.function, NON_PORTABLE_CLUSTER, 1);
        self.mirror.running = Some(Running {
            request,
            number,
            memory,
            translation,
            after: None,
        });
        Ok(Ok(()))
    }

    /// Returns a buffer for memory of the GPU, or that of a variable of the kernel's module.
    fn copy_of(&mut self, function: u64, variable: &str, bytes: u64) -> Result<BufferId, Code> {
        if !variable.is_empty() {
            let module = self.function(function)?.module;
            let buffer = self.module(module)?.variable(variable);
            return buffer
                .filter(|buffer| self.memory.len(*buffer) == bytes)
                .ok_or(errors::NOT_FOUND);
        }
        let name = format!("memory of {bytes} bytes");
        self.memory
            .alloc(bytes, &name)
            .map_err(|_| errors::OUT_OF_MEMORY)
    }

    /// Copies the memory after the launch, repeats it here and stores the capture.
    pub(crate) fn end_mirrored(&mut self, bulk: &[u8]) -> Result<(), Code> {
        let running = self.mirror.running.as_mut().ok_or(errors::INVALID_VALUE)?;
        let mut rest = bulk;
        let mut after = Vec::new();
        for copied in &running.memory {
            let split = rest.split_at_checked(copied.before.len());
            let (own, others) = split.ok_or(errors::INVALID_VALUE)?;
            after.push(own.to_vec());
            rest = others;
        }
        running.after = Some(after);
        let request = running.request.clone();
        let ran = self.launch(&request);
        // A fault is specific to this launch, and the limit of work may have ended it.
        let stopped = std::mem::replace(&mut self.sticky, errors::SUCCESS);
        if ran.is_err() || stopped == errors::LAUNCH_TIMEOUT {
            self.capture_compared(&request)?;
        }
        self.drop_mirrored();
        Ok(())
    }

    /// Replaces the results of the launch by those of the GPU; records their differences.
    pub(crate) fn take_results(&mut self, function: &Function) {
        let different = self.write_results();
        if different > 0 {
            self.summary.add_note(format!(
                "{}: {different} bytes of the GPU's results differ from those of the virtual GPU, as where atomic \
                 operations add floats in another order; the GPU's are captured",
                function.shown_name
            ));
        }
    }

    /// Writes the results of the GPU; returns the number of changed bytes.
    fn write_results(&mut self) -> usize {
        let Some(mut running) = self.mirror.running.take() else {
            return 0;
        };
        let mut after = running.after.take().unwrap_or_default();
        let mut different = 0;
        for (bytes, copied) in after.iter_mut().zip(&running.memory) {
            running.translation.apply(bytes);
            let own = self.memory.read(copied.buffer);
            different += own.iter().zip(&*bytes).filter(|(a, b)| a != b).count();
            self.memory.write(copied.buffer, 0, bytes);
        }
        self.mirror.running = Some(running);
        different
    }

    /// Stores a launch that the virtual GPU cannot run to its end: changed bytes were written, all bytes
    /// may have been read.
    fn capture_compared(&mut self, request: &Request) -> Result<(), Code> {
        let function = self.function(request.function)?.clone();
        let Some(running) = self.mirror.running.as_ref() else {
            return Ok(());
        };
        // `begin_capture` reads the contents before the launch.
        for copied in &running.memory {
            self.memory.write(copied.buffer, 0, &copied.before);
        }
        let Some(pending) = self.begin_capture(request, &function) else {
            return Ok(());
        };
        self.write_results();
        self.summary.add_note(format!(
            "{}: the virtual GPU did not run a launch to its end; its memory before and after tells what it wrote, and \
             all of it counts as read",
            function.shown_name
        ));
        let running = self.mirror.running.as_ref();
        let changed = running.map(|running| {
            let ranges = running.memory.iter().map(|copied| {
                let after = self.memory.read(copied.buffer);
                (copied.buffer, changed(&copied.before, &after))
            });
            ranges.collect::<Vec<_>>()
        });
        self.finish_compared(pending, request, &function, &changed.unwrap_or_default());
        Ok(())
    }

    /// Records a launch that the program could not copy.
    pub(crate) fn skip_mirrored(&mut self, fields: &mut Fields<'_>) -> io::Result<()> {
        let (name, bytes, reason) = (fields.str()?, fields.u64()?, fields.str()?);
        if let Some(writer) = self.options.capture.as_deref() {
            let kernel = plain_name(name);
            match reason.is_empty() {
                true => drop(writer.has_room(&kernel, bytes)),
                false => writer.skip(format!("{kernel}: a launch was not captured, {reason}")),
            }
        }
        self.drop_mirrored();
        Ok(())
    }

    /// Frees the copies.
    fn drop_mirrored(&mut self) {
        if let Some(running) = self.mirror.running.take() {
            self.free_copies(running.memory);
        }
    }

    fn free_copies(&mut self, copies: Vec<Copied>) {
        for copied in copies {
            if !copied.is_variable {
                self.memory.free(copied.buffer);
            }
        }
    }
}

/// Returns the range from the first to the last changed byte, in whole elements: an element of a result may
/// contain old bytes.
fn changed(before: &[u8], after: &[u8]) -> Ranges {
    let differs = |(a, b): (&u8, &u8)| a != b;
    let first = before.iter().zip(after).position(differs);
    let last = before.iter().zip(after).rposition(differs);
    let range = first.zip(last).map(|(first, last)| {
        let end = (last + 1).next_multiple_of(MAX_ELEMENT_BYTES);
        let start = first - first % MAX_ELEMENT_BYTES;
        start as u64..end.min(after.len()) as u64
    });
    Ranges::merge(range.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Options;

    #[test]
    fn changed_bytes_reach_from_the_first_to_the_last() {
        let mut after = [0; 40];
        assert!(changed(&[0; 40], &after).is_empty());
        (after[19], after[37]) = (1, 1);
        assert_eq!(changed(&[0; 40], &after).list, [[16, 40]]);
    }

    #[test]
    fn a_launch_that_cannot_be_copied_leaves_no_memory() {
        let arch = vgpu::Arch::by_name("a100").expect("a GPU");
        let mut device = Device::new(Options {
            arch,
            hazards: true,
            kernels: Vec::new(),
            lane_budget: None,
            threads: 1,
            folder: std::path::PathBuf::new(),
            progress: None,
            prediction: crate::predicted::Prediction::Bound,
            capture: None,
        });
        let mut head = Message::new();
        // Stream, function, grid, block, shared memory, flags, cluster, then number, parameters and two memories.
        head.put_u64(0).put_u64(1);
        for _ in 0..11 {
            head.put_u32(1);
        }
        head.put_u64(1).put_u32(0).put_u32(2);
        head.put_u64(0x1000).put_u64(64).put_str("");
        head.put_u64(0x2000).put_u64(4).put_str("no_such_variable");
        let begun = device.begin_mirrored(&mut Fields::new(head.bytes()), &[0; 68]);
        assert_eq!(begun.ok(), Some(Err(errors::INVALID_HANDLE)));
        assert_eq!(device.memory.allocated(), 0);
    }
}
