//! Kernel attributes in the sections `.nv.info` and `.nv.info.KERNEL`. An entry is a format byte,
//! an attribute byte, and a value or the length of the following data.

use crate::elf::number;

/// Attributes of a kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Info {
    /// Offset of the parameters in constant bank 0, bytes.
    pub parameter_base: u32,
    /// Size of all parameters, bytes.
    pub parameter_size: u32,
    /// The parameters in order.
    pub parameters: Vec<Parameter>,
    /// Registers per lane.
    pub registers: u32,
    /// Stack size of the kernel's own frame, without called functions, bytes.
    pub frame: u32,
    /// Stack size including known called functions, bytes.
    pub stack: u32,
    /// Number of block-wide barriers.
    pub barriers: u32,
    /// Addresses of the exit instructions.
    pub exits: Vec<u32>,
    /// Targets of the indirect branches.
    pub indirect: Vec<Indirect>,
}

/// One parameter of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// Bytes from the first parameter.
    pub offset: u32,
    /// Bytes.
    pub size: u32,
}

/// An indirect branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Indirect {
    /// Address of the branch.
    pub address: u32,
    /// Addresses of its possible targets.
    pub targets: Vec<u32>,
}

/// One attribute entry.
pub(crate) struct Entry<'a> {
    kind: u8,
    /// The value of a short entry.
    value: u32,
    /// Data of a long entry.
    data: &'a [u8],
}

/// Parses the entries of a section, up to a truncated one.
pub(crate) fn entries(section: &[u8]) -> Vec<Entry<'_>> {
    let mut out = Vec::new();
    let mut at = 0;
    while let Some([form, kind, low, high]) = section.get(at..).and_then(|rest| rest.first_chunk())
    {
        let value = u32::from(*low) | u32::from(*high) << 8;
        at += 4;
        let mut data = &[][..];
        match form {
            1 => {}
            2 => {}
            3 => {}
            4 => {
                let Some(bytes) = section.get(at..at + value as usize) else {
                    return out;
                };
                data = bytes;
                at += value as usize;
            }
            _ => return out,
        }
        out.push(Entry {
            kind: *kind,
            // A value of this form has one byte; the other is not part of it.
            value: if *form == 2 { value & 0xff } else { value },
            data,
        });
    }
    out
}

fn word(data: &[u8], index: usize) -> Option<u32> {
    number::<4>(data, index.checked_mul(4)?).map(|value| value as u32)
}

impl Info {
    /// Reads the attributes of a kernel: those of its section, and those of the file's section that
    /// name its symbol.
    pub(crate) fn read(own: &[u8], file: &[u8], symbol: usize) -> Info {
        let mut info = Info::default();
        for entry in entries(own) {
            info.own(&entry);
        }
        for entry in entries(file) {
            if word(entry.data, 0) != Some(symbol as u32) {
                continue;
            }
            let value = word(entry.data, 1).unwrap_or(0);
            // `cuobjdump` names these `EIATTR_REGCOUNT`, `EIATTR_FRAME_SIZE` and
            // `EIATTR_MIN_STACK_SIZE`.
            match entry.kind {
                0x2f => info.registers = value,
                0x11 => info.frame = value,
                0x12 => info.stack = value,
                _ => {}
            }
        }
        info.parameters.sort_by_key(|parameter| parameter.offset);
        info
    }

    fn own(&mut self, entry: &Entry<'_>) {
        match entry.kind {
            // `EIATTR_PARAM_CBANK` has the size above the offset.
            0x0a => {
                let place = word(entry.data, 1).unwrap_or(0);
                self.parameter_base = place & 0xffff;
                self.parameter_size = place >> 16;
            }
            // `EIATTR_KPARAM_INFO` has alignment, space and bank of a parameter below its size.
            0x17 => {
                let offset = word(entry.data, 1).unwrap_or(0) >> 16;
                let size = word(entry.data, 2).unwrap_or(0) >> 18;
                self.parameters.push(Parameter { offset, size });
            }
            // `EIATTR_NUM_BARRIERS` is a short entry.
            0x4c => self.barriers = entry.value,
            // `EIATTR_EXIT_INSTR_OFFSETS` has no count: the data end with the last address.
            0x1c => {
                let count = entry.data.len() / 4;
                self.exits = (0..count).filter_map(|i| word(entry.data, i)).collect();
            }
            // `EIATTR_INDIRECT_BRANCH_TARGETS` has one part for each branch.
            0x34 => {
                let mut at = 0;
                while let Some(indirect) = indirect(entry.data, &mut at) {
                    self.indirect.push(indirect);
                }
            }
            _ => {}
        }
    }
}

fn indirect(data: &[u8], at: &mut usize) -> Option<Indirect> {
    let address = word(data, *at)?;
    let count = word(data, *at + 2)? as usize;
    let first = *at + 3;
    // The count is from the file: a false one must not lead to a long loop.
    if count > data.len() / 4 {
        return None;
    }
    *at = first + count;
    let targets = (first..*at).map(|i| word(data, i));
    Some(Indirect {
        address,
        targets: targets.collect::<Option<_>>()?,
    })
}
