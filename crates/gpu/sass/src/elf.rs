//! Sections and symbols of cubins. All accesses are bounds-checked, as the input is untrusted.

use object::Endianness;
use object::elf::{FileHeader64, SHT_SYMTAB};
use object::read::elf::{FileHeader as _, SectionHeader as _, SectionTable, Sym as _};

/// One section of a cubin.
#[derive(Debug, Clone)]
pub struct Section<'a> {
    /// Name, such as `.text.gemm`.
    pub name: String,
    /// Bytes in the file.
    pub data: &'a [u8],
    /// Size in memory, bytes; larger than `data` for a section without bytes in the file.
    pub size: u64,
    /// Section type of the ELF standard.
    pub kind: u32,
    /// Section flags of the ELF standard.
    pub flags: u64,
    /// Field of a meaning by type: of relocations the section that they change, of code the
    /// registers of a thread in its highest byte.
    pub info: u32,
}

impl<'a> Section<'a> {
    /// Reads the sections of a cubin; `None` for bytes that are not a complete 64-bit little-endian
    /// ELF file.
    pub fn read_all(bytes: &'a [u8]) -> Option<Vec<Self>> {
        let header = FileHeader64::<Endianness>::parse(bytes).ok()?;
        let endian = header.endian().ok().filter(|e| *e == Endianness::Little)?;
        Self::of_table(&header.sections(endian, bytes).ok()?, endian, bytes)
    }

    fn of_table(
        table: &SectionTable<'a, FileHeader64<Endianness>>,
        endian: Endianness,
        bytes: &'a [u8],
    ) -> Option<Vec<Self>> {
        let sections = table.iter().map(|section| {
            let name = table.section_name(endian, section).unwrap_or_default();
            Some(Self {
                name: String::from_utf8_lossy(name).into_owned(),
                data: section.data(endian, bytes).ok()?,
                size: section.sh_size(endian),
                kind: section.sh_type(endian).0,
                flags: section.sh_flags(endian).0,
                info: section.sh_info(endian),
            })
        });
        sections.collect()
    }
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

impl<'a> Elf<'a> {
    /// Reads a file; `None` for bytes that are not a 64-bit little-endian ELF file.
    pub(crate) fn read(bytes: &'a [u8]) -> Option<Elf<'a>> {
        let header = FileHeader64::<Endianness>::parse(bytes).ok()?;
        let endian = header.endian().ok().filter(|e| *e == Endianness::Little)?;
        let table = header.sections(endian, bytes).ok()?;
        let sections = Section::of_table(&table, endian, bytes)?;
        let lossy = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        let list = table.symbols(endian, bytes, SHT_SYMTAB).ok()?;
        let symbols = list.iter().map(|symbol| Symbol {
            name: lossy(list.symbol_name(endian, symbol).unwrap_or_default()),
            section: usize::from(symbol.st_shndx(endian).0),
            value: symbol.st_value(endian),
            size: symbol.st_size(endian),
            kind: symbol.st_type().0,
            // NVIDIA's tools call this bit `STO_CUDA_ENTRY`.
            entry: symbol.st_other().0 & 0x10 != 0,
        });
        let flags = header.e_flags(endian).0;
        Some(Elf {
            sections,
            symbols: symbols.collect(),
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
