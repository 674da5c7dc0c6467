//! ELF reader for cubins. All accesses are bounds-checked, as the input is untrusted.

/// One section.
#[derive(Debug, Clone)]
pub(crate) struct Section<'a> {
    pub(crate) name: String,
    pub(crate) data: &'a [u8],
    /// Size in memory, bytes; larger than `data` for a section without bytes in the file.
    pub(crate) size: u64,
    /// Related section: for relocations, the section that they change.
    pub(crate) info: usize,
}

/// One symbol.
#[derive(Debug, Clone)]
pub(crate) struct Symbol {
    pub(crate) name: String,
    /// Index of the section; 0 without one.
    pub(crate) section: usize,
    pub(crate) value: u64,
    pub(crate) size: u64,
    /// Symbol type of the ELF standard: 1 object, 2 function, 3 section.
    pub(crate) kind: u8,
    /// True for a kernel.
    pub(crate) entry: bool,
}

/// Sections and symbols of a file.
#[derive(Debug, Clone)]
pub(crate) struct Elf<'a> {
    pub(crate) sections: Vec<Section<'a>>,
    pub(crate) symbols: Vec<Symbol>,
    /// Compute capability times ten.
    pub(crate) sm: u32,
}

/// Reads a little-endian number of `N` bytes.
pub(crate) fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let part = bytes.get(at..at.checked_add(N)?)?;
    Some(part.iter().rev().fold(0, |all, b| all << 8 | u64::from(*b)))
}

fn text(table: &[u8], at: usize) -> String {
    let rest = table.get(at..).unwrap_or_default();
    let name = rest.split(|b| *b == 0).next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}

/// Reads one entry of the symbol table.
fn symbol(entry: &[u8; 24], names: &[u8]) -> Symbol {
    let field = |at, length: usize| {
        let bytes = entry.iter().skip(at).take(length).rev();
        bytes.fold(0u64, |all, byte| all << 8 | u64::from(*byte))
    };
    Symbol {
        name: text(names, field(0, 4) as usize),
        section: field(6, 2) as usize,
        value: field(8, 8),
        size: field(16, 8),
        kind: entry[4] & 0xf,
        entry: entry[5] & 0x10 != 0,
    }
}

impl<'a> Elf<'a> {
    /// Reads a file; `None` for bytes that are not a 64-bit little-endian ELF file.
    pub(crate) fn read(bytes: &'a [u8]) -> Option<Elf<'a>> {
        if bytes.get(..6)? != b"\x7fELF\x02\x01" {
            return None;
        }
        let table = usize::try_from(number::<8>(bytes, 0x28)?).ok()?;
        let flags = number::<4>(bytes, 0x30)? as u32;
        let size = number::<2>(bytes, 0x3a)? as usize;
        let count = number::<2>(bytes, 0x3c)? as usize;
        let names_index = number::<2>(bytes, 0x3e)? as usize;
        let mut raw = Vec::new();
        for i in 0..count {
            let at = table.checked_add(i * size)?;
            let header = bytes.get(at..at.checked_add(64)?)?;
            let name = number::<4>(header, 0)? as usize;
            let kind = number::<4>(header, 4)?;
            let offset = usize::try_from(number::<8>(header, 0x18)?).ok()?;
            let length = usize::try_from(number::<8>(header, 0x20)?).ok()?;
            // A section without bits (NOBITS) has no bytes in the file.
            let data = if kind == 8 {
                &[]
            } else {
                bytes.get(offset..offset.checked_add(length)?)?
            };
            let link = number::<4>(header, 0x28)? as usize;
            let info = number::<4>(header, 0x2c)? as usize;
            raw.push((name, kind, data, length as u64, link, info));
        }
        let names = raw.get(names_index)?.2;
        let symbols = raw.iter().find(|section| section.1 == 2).map(|section| {
            let table = raw.get(section.4).map_or(&[][..], |table| table.2);
            let entries = section.2.as_chunks::<24>().0.iter();
            entries.map(|entry| symbol(entry, table)).collect()
        });
        let sections = raw
            .iter()
            .map(|(name, _, data, size, _, info)| Section {
                name: text(names, *name),
                data,
                size: *size,
                info: *info,
            })
            .collect();
        Some(Elf {
            sections,
            symbols: symbols.unwrap_or_default(),
            // The SM version is in the lowest byte of the flags, or (since CUDA 13) in the second
            // one.
            sm: if flags & 0xff >= 70 {
                flags & 0xff
            } else {
                flags >> 8 & 0xff
            },
        })
    }

    /// Returns the section of that name.
    pub(crate) fn section(&self, name: &str) -> Option<&Section<'a>> {
        self.sections.iter().find(|s| s.name == name)
    }
}
