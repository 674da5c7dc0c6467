//! PTX line of each SASS instruction: section `.nv_debug_line_sass`, a line number program as in
//! DWARF 2, section 6.2.

use crate::elf::{Elf, number};
use std::collections::BTreeMap;

/// PTX lines by kernel: start address and line, in order of address.
pub(crate) type Lines = BTreeMap<String, Vec<(u32, u32)>>;

/// Reads the lines of all kernels; empty if the file has none.
pub(crate) fn read(elf: &Elf<'_>) -> Lines {
    let mut lines = Lines::new();
    let Some(section) = elf.section(".nv_debug_line_sass") else {
        return lines;
    };
    let places = kernel_offsets(elf);
    let data = section.data;
    let mut at = 0;
    while let Some(next) = unit(data, at, &places, &mut lines) {
        at = next;
    }
    for rows in lines.values_mut() {
        rows.sort_by_key(|(address, _)| *address);
    }
    lines
}

/// Maps section offsets of kernel addresses to kernel names.
fn kernel_offsets(elf: &Elf<'_>) -> BTreeMap<usize, String> {
    let mut out = BTreeMap::new();
    // An entry is an `Elf64_Rel` or, with an addend behind it, an `Elf64_Rela`.
    let tables = [
        (".rel.nv_debug_line_sass", 16),
        (".rela.nv_debug_line_sass", 24),
    ];
    for (name, size) in tables {
        let Some(table) = elf.section(name) else {
            continue;
        };
        for entry in table.data.chunks_exact(size) {
            let offset = number::<8>(entry, 0).unwrap_or(0) as usize;
            // The upper half of `r_info` is the number of the symbol.
            let symbol = (number::<8>(entry, 8).unwrap_or(0) >> 32) as usize;
            let section = elf
                .symbols
                .get(symbol)
                .and_then(|s| elf.sections.get(s.section));
            if let Some(kernel) = section.and_then(|s| s.name.strip_prefix(".text.")) {
                out.insert(offset, kernel.to_owned());
            }
        }
    }
    out
}

/// State of a line number program.
struct Machine {
    kernel: Option<String>,
    address: u64,
    line: i64,
}

impl Machine {
    fn new() -> Machine {
        Machine {
            kernel: None,
            address: 0,
            line: 1,
        }
    }

    fn row(&self, lines: &mut Lines) {
        if let Some(kernel) = &self.kernel {
            let rows = lines.entry(kernel.clone()).or_default();
            rows.push((self.address as u32, self.line.max(0) as u32));
        }
    }
}

fn leb(data: &[u8], at: &mut usize, signed: bool) -> Option<i64> {
    let (mut value, mut shift) = (0i64, 0u32);
    loop {
        let byte = *data.get(*at)?;
        *at += 1;
        // An encoding may be longer than its number needs.
        if shift < 64 {
            value |= i64::from(byte & 0x7f) << shift;
        }
        shift += 7;
        if byte & 0x80 == 0 {
            if signed && byte & 0x40 != 0 && shift < 64 {
                value |= -1 << shift;
            }
            return Some(value);
        }
    }
}

/// Runs one unit and returns the offset of the next.
fn unit(
    data: &[u8],
    start: usize,
    places: &BTreeMap<usize, String>,
    lines: &mut Lines,
) -> Option<usize> {
    let length = number::<4>(data, start)? as usize;
    let end = (start + 4).checked_add(length)?;
    let program = start + 10 + number::<4>(data, start + 6)? as usize;
    let step = number::<1>(data, start + 10)?;
    let line_base = number::<1>(data, start + 12)? as u8 as i8;
    let line_range = number::<1>(data, start + 13)?.max(1);
    let opcode_base = number::<1>(data, start + 14)?;
    let body = data.get(..end)?;
    let mut at = program;
    let mut m = Machine::new();
    while at < end {
        let opcode = number::<1>(body, at)?;
        at += 1;
        if opcode >= opcode_base {
            let adjusted = opcode - opcode_base;
            m.address = m.address.wrapping_add(adjusted / line_range * step);
            let lines_on = i64::from(line_base) + (adjusted % line_range) as i64;
            m.line = m.line.wrapping_add(lines_on);
            m.row(lines);
            continue;
        }
        match opcode {
            0 => at = extended(body, at, places, lines, &mut m)?,
            1 => m.row(lines),
            2 => {
                let steps = leb(body, &mut at, false)? as u64;
                m.address = m.address.wrapping_add(steps.wrapping_mul(step));
            }
            3 => m.line = m.line.wrapping_add(leb(body, &mut at, true)?),
            // `DW_LNS_set_file` and `DW_LNS_set_column`: only lines are used.
            4 | 5 => _ = leb(body, &mut at, false)?,
            // `DW_LNS_const_add_pc` adds the advance of special opcode 255, without a row.
            8 => {
                let steps = 255_u64.saturating_sub(opcode_base) / line_range;
                m.address = m.address.wrapping_add(steps * step);
            }
            // `DW_LNS_fixed_advance_pc` is in bytes and not in instructions.
            9 => {
                m.address = m.address.wrapping_add(number::<2>(body, at)?);
                at += 2;
            }
            _ => {
                // Other operations do not matter here; the header says how many operands to skip.
                let operands = number::<1>(body, start + 14 + opcode as usize)?;
                for _ in 0..operands {
                    leb(body, &mut at, false)?;
                }
            }
        }
    }
    Some(end)
}

/// Executes an extended operation and returns the offset after it.
fn extended(
    body: &[u8],
    mut at: usize,
    places: &BTreeMap<usize, String>,
    lines: &mut Lines,
    m: &mut Machine,
) -> Option<usize> {
    let length = leb(body, &mut at, false)? as usize;
    match number::<1>(body, at)? {
        1 => {
            m.row(lines);
            *m = Machine::new();
        }
        2 => {
            // The relocation of the operand names the kernel: an address alone is only an offset in
            // it.
            m.kernel = places.get(&(at + 1)).cloned();
            m.address = number::<8>(body, at + 1)?;
        }
        _ => {}
    }
    at.checked_add(length.max(1))
}
