//! The head of a fat binary: a list of PTX texts and cubins as a compiler embeds it.

/// First four bytes.
pub const FAT_BINARY_MAGIC: u32 = 0xba55_ed50;

/// Sizes that the head states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FatBinaryHead {
    /// Offset of the first entry, bytes.
    pub head_bytes: usize,
    /// Size of the whole image, bytes.
    pub image_bytes: usize,
}

impl FatBinaryHead {
    /// Size of the part that is read, bytes.
    pub const BYTES: usize = 16;

    /// Reads the head; `None` for other bytes.
    #[must_use]
    pub fn read(image: &[u8]) -> Option<Self> {
        // Magic number, version, size of the head, size of all entries.
        let head = image.first_chunk::<{ Self::BYTES }>()?;
        let rest = head.strip_prefix(&FAT_BINARY_MAGIC.to_le_bytes())?;
        let (_version, sizes) = rest.split_first_chunk::<2>()?;
        let (head_bytes, entries) = sizes.split_first_chunk::<2>()?;
        let head_bytes = usize::from(u16::from_le_bytes(*head_bytes));
        let entries = u64::from_le_bytes(entries.try_into().ok()?);
        let image_bytes = head_bytes.checked_add(usize::try_from(entries).ok()?)?;
        Some(Self {
            head_bytes,
            image_bytes,
        })
    }
}
