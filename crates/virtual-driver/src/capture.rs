//! Capture of launches: parameters, accesses, and buffers before and after.

use std::ops::Range;

use capture::{Buffer, BufferContents, Parameter, Pointer, Ranges, Shape, SourcePlace, Writer};
use sha2::Digest as _;
use vgpu::{BufferId, LaunchReport, Watch};

use crate::device::{Device, Function};
use crate::launches::Request;
use crate::names::{full_name, plain_name};

/// Bytes of an address.
const ADDRESS_BYTES: usize = 8;

/// A launch that is being captured: its state before execution.
pub(crate) struct Pending {
    parameters: Vec<Parameter>,
    buffers: Vec<Reached>,
}

/// Memory that the launch reaches by a pointer, or a variable of its module.
struct Reached {
    id: BufferId,
    variable: Option<String>,
    before: Vec<u8>,
    undefined: Vec<Range<u64>>,
    pointers: Vec<Pointer>,
}

impl Device {
    /// Records the state before a launch, if it is to be captured.
    pub(crate) fn begin_capture(&self, request: &Request, function: &Function) -> Option<Pending> {
        let writer = self.options.capture.as_deref()?;
        let kernel = plain_name(&function.name);
        if !self.is_selected(&function.name) {
            return None;
        }
        let shape = Shape {
            grid: request.grid,
            block: request.block,
            shared_bytes: request.shared_bytes,
        };
        // A GPU launch that is repeated here has already been selected.
        if self.mirror.number().is_none() && !writer.wants(&function.name, &kernel, &shape) {
            return None;
        }
        let module = self.module(function.module).ok()?;
        if module.sass_only {
            self.skip_without_ptx(writer, &kernel);
            return None;
        }
        let mut ids: Vec<(BufferId, Option<String>)> = Vec::new();
        let parameters = function.info.parameters.iter().map(|span| {
            let range = span.offset as usize..(span.offset + span.bytes) as usize;
            let bytes = request.parameters.get(range).unwrap_or_default();
            Parameter {
                offset: span.offset,
                bytes: span.bytes,
                value: hex::encode(bytes),
                pointers: self.pointers(bytes, &mut ids),
            }
        });
        let parameters: Vec<Parameter> = parameters.collect();
        for (name, id) in module.variables() {
            match ids.iter_mut().find(|(known, _)| *known == id) {
                Some((_, variable)) => *variable = Some(name.to_owned()),
                None => ids.push((id, Some(name.to_owned()))),
            }
        }
        let mut buffers: Vec<Reached> = Vec::new();
        // Variables may contain addresses of further buffers, which are appended.
        while let Some((id, variable)) = ids.get(buffers.len()).cloned() {
            let all: u64 = ids.iter().map(|(id, _)| self.memory.len(*id)).sum();
            if !writer.has_room(&kernel, all) {
                return None;
            }
            let before = self.memory.read(id);
            let pointers = match variable {
                Some(_) => self.pointers(&before, &mut ids),
                None => Vec::new(),
            };
            buffers.push(Reached {
                id,
                variable,
                undefined: self.memory.unwritten(id).collect(),
                before,
                pointers,
            });
        }
        Some(Pending {
            parameters,
            buffers,
        })
    }

    /// Records a launch without known accesses: only the execution of PTX records them.
    pub(crate) fn skip_without_ptx(&self, writer: &Writer, kernel: &str) {
        writer.skip(format!(
            "{kernel}: a launch was not captured, its module has no PTX; build with -arch=sm_80 or \
             another option that keeps PTX"
        ));
    }

    /// Returns the words of some bytes that are addresses; adds their buffers to `ids`.
    fn pointers(&self, bytes: &[u8], ids: &mut Vec<(BufferId, Option<String>)>) -> Vec<Pointer> {
        let words = bytes.chunks_exact(ADDRESS_BYTES).enumerate();
        let found = words.filter_map(|(index, word)| {
            let address = u64::from_le_bytes(word.try_into().ok()?);
            let lookup = self.memory.find(address)?;
            let id = lookup.buffer();
            let buffer = ids.iter().position(|(known, _)| *known == id);
            let buffer = buffer.unwrap_or_else(|| {
                ids.push((id, None));
                ids.len() - 1
            });
            Some(Pointer {
                at: (index * ADDRESS_BYTES) as u32,
                buffer,
                offset: lookup.offset,
            })
        });
        found.collect()
    }

    /// Adds the accesses and results of a launch, and stores it.
    pub(crate) fn finish_capture(
        &self,
        pending: Pending,
        request: &Request,
        function: &Function,
        report: &LaunchReport,
        watch: &Watch,
    ) {
        let Some(writer) = self.options.capture.as_deref() else {
            return;
        };
        let kernel = plain_name(&function.name);
        if report
            .hazards
            .iter()
            .any(|hazard| crate::launches::fault_code(hazard.kind).is_some())
        {
            writer.skip(format!(
                "{kernel}: a launch was not captured, it ended with a fault; correct what the summary says \
                 first"
            ));
            return;
        }
        let cut = report.accesses.iter().any(|block| block.cut);
        let known: Vec<BufferId> = pending.buffers.iter().map(|buffer| buffer.id).collect();
        let mut contents = Vec::new();
        for reached in pending.buffers {
            contents.push(self.captured(reached, report, watch, cut));
        }
        // Memory that no pointer here refers to: its existence is recorded, but not its contents.
        for id in self.memory.buffers().filter(|id| !known.contains(id)) {
            let [read, written] = ranges(report, id);
            if !read.is_empty() || !written.is_empty() {
                let buffer = Buffer {
                    name: self.memory.name(id.index()).to_owned(),
                    bytes: self.memory.len(id),
                    read,
                    written,
                    ..Buffer::default()
                };
                contents.push(BufferContents {
                    buffer,
                    ..BufferContents::default()
                });
            }
        }
        let hazards = report.hazards.len() as u64;
        let launch = self.describe_launch(pending.parameters, request, function, hazards);
        add(writer, launch, contents);
    }

    /// Stores a launch whose accesses are known only from its memory: `changed` has the bytes that it
    /// wrote.
    pub(crate) fn finish_compared(
        &self,
        pending: Pending,
        request: &Request,
        function: &Function,
        changed: &[(BufferId, Ranges)],
    ) {
        let Some(writer) = self.options.capture.as_deref() else {
            return;
        };
        let contents = pending.buffers.into_iter().map(|reached| {
            let mut own = changed.iter().filter(|(id, _)| *id == reached.id);
            let written = own.next().map(|(_, ranges)| ranges.clone());
            let whole = 0..reached.before.len() as u64;
            let read = Ranges::merge(std::iter::once(whole).collect());
            self.contents(reached, [read, written.unwrap_or_default()])
        });
        let contents = contents.collect();
        let launch = self.describe_launch(pending.parameters, request, function, 0);
        add(writer, launch, contents);
    }

    fn describe_launch(
        &self,
        parameters: Vec<Parameter>,
        request: &Request,
        function: &Function,
        hazards: u64,
    ) -> capture::Launch {
        let source = self.module(function.module).ok();
        let source = source.and_then(|module| module.source(&function.name));
        // The summary counts this launch later.
        let next = self.summary.launches + 1;
        capture::Launch {
            signature: full_name(&function.name),
            kernel: plain_name(&function.name),
            symbol: function.name.clone(),
            number: self.mirror.number().unwrap_or(next),
            grid: request.grid,
            block: request.block,
            shared_bytes: request.shared_bytes,
            cooperative: request.flags & cuda_shim::protocol::COOPERATIVE != 0,
            cluster: request.cluster(),
            source: source.map(|(file, line)| SourcePlace {
                sha256: hash_file(file),
                file: file.to_owned(),
                line,
            }),
            parameters,
            buffers: Vec::new(),
            hazards,
        }
    }

    fn captured(
        &self,
        reached: Reached,
        report: &LaunchReport,
        watch: &Watch,
        cut: bool,
    ) -> BufferContents {
        let [mut read, mut written] = ranges(report, reached.id);
        // The device keeps a bounded number of ranges per block, but always whether there were any.
        if cut {
            let whole = [0, reached.before.len() as u64];
            for (ranges, touched) in [
                (&mut read, watch.was_read(reached.id)),
                (&mut written, watch.was_written(reached.id)),
            ] {
                if touched {
                    (ranges.cut, ranges.bounds) = (true, whole);
                }
            }
        }
        self.contents(reached, [read, written])
    }

    /// Returns a buffer with its contents, and the bytes of it that were read and written.
    fn contents(&self, reached: Reached, [read, written]: [Ranges; 2]) -> BufferContents {
        let after = (!written.is_empty()).then(|| self.memory.read(reached.id));
        BufferContents {
            buffer: Buffer {
                name: self.memory.name(reached.id.index()).to_owned(),
                variable: reached.variable.as_deref().map(vgpu::plain_name),
                bytes: reached.before.len() as u64,
                before: None,
                after: None,
                read,
                written,
                undefined: Ranges::merge(reached.undefined),
                pointers: reached.pointers,
            },
            before: Some(reached.before),
            after,
        }
    }
}

/// Stores a launch, without the variables that it did not use.
fn add(writer: &Writer, mut launch: capture::Launch, contents: Vec<BufferContents>) {
    let used = |index: usize, item: &BufferContents| {
        let touched = !item.buffer.read.is_empty() || !item.buffer.written.is_empty();
        let named = launch
            .parameters
            .iter()
            .flat_map(|parameter| &parameter.pointers)
            .any(|pointer| pointer.buffer == index);
        item.buffer.variable.is_none() || touched || named
    };
    let keep: Vec<bool> = contents
        .iter()
        .enumerate()
        .map(|(index, item)| used(index, item))
        .collect();
    // Pointers refer to buffers by index, and indices change when variables are omitted.
    let moved = |index: usize| keep.iter().take(index).filter(|kept| **kept).count();
    let mut kept: Vec<BufferContents> = Vec::new();
    for (item, _) in contents.into_iter().zip(&keep).filter(|(_, kept)| **kept) {
        kept.push(item);
    }
    let of_variables = kept.iter_mut().flat_map(|item| &mut item.buffer.pointers);
    let of_parameters = launch.parameters.iter_mut();
    let of_parameters = of_parameters.flat_map(|parameter| &mut parameter.pointers);
    for pointer in of_parameters.chain(of_variables) {
        pointer.buffer = moved(pointer.buffer);
    }
    writer.add(launch, kept);
}

/// Returns the bytes of a buffer that a launch read and wrote.
fn ranges(report: &LaunchReport, id: BufferId) -> [Ranges; 2] {
    let of = |write: bool| {
        let lists = report.accesses.iter();
        let lists = lists.flat_map(|block| block.ranges(write));
        let own = lists.filter(|range| range.buffer == id);
        Ranges::merge(own.map(|range| range.bytes).collect())
    };
    [of(false), of(true)]
}

/// Returns the SHA-256 of a file if it can be read.
fn hash_file(path: &str) -> Option<String> {
    let bytes = std::fs::read(path).ok()?;
    Some(hex::encode(sha2::Sha256::digest(bytes)))
}
