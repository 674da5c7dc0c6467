//! As much of ELF as a cubin needs. Everything is bounds-checked: the bytes may be anything.

/// One section.
#[derive(Debug, Clone)]
pub(super) struct Section<'a> {
    pub(super) name: String,
    pub(super) data: &'a [u8],
}

/// A file's sections and the names of what its symbols stand for.
#[derive(Debug, Clone)]
pub(super) struct Elf<'a> {
    pub(super) sections: Vec<Section<'a>>,
    /// Section index of each symbol.
    pub(super) symbols: Vec<usize>,
    /// Compute capability times ten.
    pub(super) sm: u32,
}

/// A little-endian number of `N` bytes.
pub(super) fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let part = bytes.get(at..at.checked_add(N)?)?;
    Some(part.iter().rev().fold(0, |all, b| all << 8 | u64::from(*b)))
}

fn text(table: &[u8], at: usize) -> String {
    let rest = table.get(at..).unwrap_or_default();
    let name = rest.split(|b| *b == 0).next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}

impl<'a> Elf<'a> {
    /// `None` for bytes that are no 64-bit little-endian ELF file.
    pub(super) fn read(bytes: &'a [u8]) -> Option<Elf<'a>> {
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
            raw.push((name, kind, data));
        }
        let names = raw.get(names_index)?.2;
        let symbols = raw
            .iter()
            .find(|(_, kind, _)| *kind == 2)
            .map(|(_, _, data)| {
                let entries = data.as_chunks::<24>().0.iter();
                entries
                    .map(|e| usize::from(u16::from_le_bytes([e[6], e[7]])))
                    .collect()
            });
        let sections = raw
            .iter()
            .map(|(name, _, data)| Section {
                name: text(names, *name),
                data,
            })
            .collect();
        Some(Elf {
            sections,
            symbols: symbols.unwrap_or_default(),
            // In the lowest byte of the flags, or (since CUDA 13) in the one above.
            sm: if flags & 0xff >= 70 {
                flags & 0xff
            } else {
                flags >> 8 & 0xff
            },
        })
    }

    /// The section of that name.
    pub(super) fn section(&self, name: &str) -> Option<&Section<'a>> {
        self.sections.iter().find(|s| s.name == name)
    }
}
