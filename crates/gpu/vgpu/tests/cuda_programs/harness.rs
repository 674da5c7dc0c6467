//! A loaded module with a memory, and launches in it.

use vgpu::{Arch, Arg, BufferId, GlobalMemory, Launch, LaunchReport, Module, launch};

pub(crate) struct Program {
    pub(crate) module: Module,
    pub(crate) memory: GlobalMemory,
}

pub(crate) fn h100() -> &'static Arch {
    Arch::by_name("h100").unwrap()
}

impl Program {
    pub(crate) fn new(ptx: &str) -> Program {
        Program {
            module: Module::load(ptx).unwrap(),
            memory: GlobalMemory::new(1 << 30),
        }
    }

    /// The kernel whose mangled name holds this one.
    pub(crate) fn entry(&self, name: &str) -> String {
        let part = format!("{}{name}", name.len());
        let found = self.module.entries().find(|e| e.name.contains(&part));
        found.unwrap().name.clone()
    }

    pub(crate) fn ints(&mut self, values: &[i32]) -> BufferId {
        let buffer = self.unwritten(values.len() as u64);
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        self.memory.write(buffer, 0, &bytes);
        buffer
    }

    pub(crate) fn unwritten(&mut self, ints: u64) -> BufferId {
        self.memory.alloc(4 * ints, "buffer").unwrap()
    }

    pub(crate) fn read(&self, buffer: BufferId) -> Vec<i32> {
        let bytes = self.memory.read(buffer);
        let words = bytes.as_chunks::<4>().0.iter();
        words.map(|w| i32::from_le_bytes(*w)).collect()
    }

    pub(crate) fn launch(&self, name: &str, grid: u32, block: u32, args: Vec<Arg>) -> Launch {
        self.launch_named(&self.entry(name), grid, block, args)
    }

    /// The same with the name of an entry that is not mangled.
    pub(crate) fn launch_named(
        &self,
        entry: &str,
        grid: u32,
        block: u32,
        args: Vec<Arg>,
    ) -> Launch {
        let mut launch = Launch::new(entry, [grid, 1, 1], [block, 1, 1], args);
        launch.instruction_budget = 1 << 22;
        launch
    }

    pub(crate) fn started(&mut self, wanted: &Launch) -> LaunchReport {
        launch(&self.module, &mut self.memory, h100(), wanted).unwrap()
    }

    pub(crate) fn run(
        &mut self,
        name: &str,
        grid: u32,
        block: u32,
        args: Vec<Arg>,
    ) -> LaunchReport {
        let wanted = self.launch(name, grid, block, args);
        self.started(&wanted)
    }
}

pub(crate) fn int(value: i32) -> Arg {
    Arg::Bytes(value.to_le_bytes().to_vec())
}
