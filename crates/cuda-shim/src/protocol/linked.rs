//! Images that the device links: a list of them as one image.

/// First bytes of a list.
pub const LIST_MAGIC: [u8; 4] = *b"TNLK";
/// Bytes of the magic and of the number of images.
const HEAD_BYTES: usize = 8;

/// A list of images as one.
#[must_use]
pub fn pack_images(images: &[&[u8]]) -> Vec<u8> {
    let mut out = LIST_MAGIC.to_vec();
    out.extend((images.len() as u32).to_le_bytes());
    for image in images {
        out.extend((image.len() as u64).to_le_bytes());
        out.extend_from_slice(image);
    }
    out
}

/// The images of a list; `None` for other bytes.
#[must_use]
pub fn unpack_images(bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let mut rest = bytes.strip_prefix(&LIST_MAGIC)?;
    let mut take = |count: usize| {
        let (taken, after) = rest.split_at_checked(count)?;
        rest = after;
        Some(taken)
    };
    let count = u32::from_le_bytes(take(4)?.try_into().ok()?);
    let mut images = Vec::new();
    for _ in 0..count {
        let bytes = u64::from_le_bytes(take(8)?.try_into().ok()?);
        images.push(take(usize::try_from(bytes).ok()?)?);
    }
    Some(images)
}

/// Size of the list that begins at an address, bytes.
///
/// # Safety
/// A list made by [`pack_images`] is there.
pub(crate) unsafe fn list_bytes(list: *const u8) -> usize {
    // SAFETY: the caller's promise: each head is there.
    unsafe {
        let count = list.add(4).cast::<u32>().read_unaligned();
        (0..count).fold(HEAD_BYTES, |end, _| {
            let bytes = list.add(end).cast::<u64>().read_unaligned();
            end + 8 + bytes as usize
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_as_it_was_written() {
        let list = pack_images(&[b"first", b"", b"third"]);
        let images: [&[u8]; 3] = [b"first", b"", b"third"];
        assert_eq!(unpack_images(&list), Some(images.to_vec()));
        // SAFETY: the list is there.
        assert_eq!(unsafe { list_bytes(list.as_ptr()) }, list.len());
        for end in 0..list.len() {
            assert_eq!(unpack_images(list.get(..end).unwrap_or_default()), None);
        }
    }
}
