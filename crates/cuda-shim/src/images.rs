//! Images of code in the program's memory: where they end.

use std::ffi::{CStr, c_void};

use crate::protocol::{FAT_BINARY_MAGIC, FatBinaryHead, LIST_MAGIC, list_bytes, pack_images};

/// Head of an embedded fat binary (`fatbinary_section.h`).
#[repr(C)]
struct Wrapper {
    magic: u32,
    version: u32,
    data: *const u8,
    /// In version 2: the images that the compiler linked, and null.
    linked: *const *const u8,
}

const LINKED_VERSION: u32 = 2;
const WRAPPER_MAGIC: u32 = 0x4662_43b1;
const ELF_MAGIC: u32 = u32::from_le_bytes(*b"\x7fELF");
/// Bytes of the head of an ELF file of 64 bits.
const ELF_HEAD_BYTES: usize = 64;

/// The bytes of the fat binary that a wrapper names, and of those that it was linked of: their PTX is for the device
/// to link.
///
/// # Safety
/// `wrapper` is a wrapper of the compiler, whose image lives for `'a`.
pub(crate) unsafe fn wrapped_bytes<'a>(wrapper: *const c_void) -> Option<&'a [u8]> {
    let wrapper = wrapper.cast::<Wrapper>();
    // SAFETY: the caller's promise.
    unsafe {
        match (&raw const (*wrapper).magic).read_unaligned() {
            WRAPPER_MAGIC => {}
            _ => return None,
        }
        let image = fat_binary((&raw const (*wrapper).data).read_unaligned())?;
        let version = (&raw const (*wrapper).version).read_unaligned();
        let list = (&raw const (*wrapper).linked).read_unaligned();
        if version != LINKED_VERSION || list.is_null() {
            return Some(image);
        }
        let mut images = vec![image];
        for place in 0.. {
            let data = list.add(place).read_unaligned();
            if data.is_null() {
                break;
            }
            images.push(fat_binary(data)?);
        }
        // The program's images live until its end, and so does their list.
        Some(Box::leak(pack_images(&images).into_boxed_slice()))
    }
}

/// The bytes of an image: a fat binary with or without a wrapper, a cubin or PTX text.
///
/// # Safety
/// `image` is an image that lives for `'a`; text ends in a zero byte.
pub(crate) unsafe fn image_bytes<'a>(image: *const c_void) -> Option<&'a [u8]> {
    let data = image.cast::<u8>();
    // SAFETY: the caller's promise: the shortest text has a zero byte, so each byte that is read
    // before it belongs to the image.
    unsafe {
        let text = CStr::from_ptr(data.cast());
        let magic = text.to_bytes().first_chunk::<4>()?;
        match u32::from_le_bytes(*magic) {
            WRAPPER_MAGIC => wrapped_bytes(image),
            FAT_BINARY_MAGIC => fat_binary(data),
            ELF_MAGIC => elf_file(data),
            list if list == u32::from_le_bytes(LIST_MAGIC) => {
                Some(std::slice::from_raw_parts(data, list_bytes(data)))
            }
            _ => Some(text.to_bytes_with_nul()),
        }
    }
}

/// A field of a head.
fn field<const N: usize>(head: &[u8], offset: usize) -> Option<[u8; N]> {
    head.get(offset..offset + N)?.try_into().ok()
}

/// The bytes of a fat binary: its head holds the size of all entries.
///
/// # Safety
/// `data` points to a fat binary that lives for `'a`.
unsafe fn fat_binary<'a>(data: *const u8) -> Option<&'a [u8]> {
    // SAFETY: the head is readable by the caller's promise.
    let head = unsafe { std::slice::from_raw_parts(data, FatBinaryHead::BYTES) };
    let bytes = FatBinaryHead::read(head)?.image_bytes;
    // SAFETY: the head states the size of the image.
    Some(unsafe { std::slice::from_raw_parts(data, bytes) })
}

/// The bytes of an ELF file: up to the end of its tables and sections.
///
/// # Safety
/// `data` points to an ELF file of 64 bits that lives for `'a`.
unsafe fn elf_file<'a>(data: *const u8) -> Option<&'a [u8]> {
    // SAFETY: the head is readable by the caller's promise.
    let head = unsafe { std::slice::from_raw_parts(data, ELF_HEAD_BYTES) };
    let word = |offset| Some(usize::from(u16::from_le_bytes(field(head, offset)?)));
    let long = |head: &[u8], offset| {
        let value = u64::from_le_bytes(field(head, offset)?);
        usize::try_from(value).ok()
    };
    let (programs, sections) = (long(head, 0x20)?, long(head, 0x28)?);
    let (entry, count) = (word(0x3a)?, word(0x3c)?);
    let table_end = sections.checked_add(entry.checked_mul(count)?)?;
    let mut end = table_end.max(programs.checked_add(word(0x36)?.checked_mul(word(0x38)?)?)?);
    // SAFETY: the head states where the table of sections is.
    let whole = unsafe { std::slice::from_raw_parts(data, table_end) };
    for section in 0..count {
        let header = whole.get(sections + section * entry..)?;
        const WITHOUT_BYTES: u32 = 8;
        if u32::from_le_bytes(field(header, 4)?) != WITHOUT_BYTES {
            end = end.max(long(header, 0x18)?.checked_add(long(header, 0x20)?)?);
        }
    }
    // SAFETY: the sections are parts of the file.
    Some(unsafe { std::slice::from_raw_parts(data, end) })
}
