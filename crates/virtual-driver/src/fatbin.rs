//! Images of code: fat binaries, PTX text and cubins.
//!
//! A fat binary is a header and a list of entries, each PTX or an ELF file for one compute capability,
//! often compressed (zstd since CUDA 12.8, LZ4 before).

use std::io::Read;

use cuda_shim::protocol::{FAT_BINARY_MAGIC, FatBinaryHead, unpack_images};

use crate::link::{find_undefined, link};
use crate::target::{Features, Target};

const ELF_MAGIC: [u8; 4] = [0x7f, b'E', b'L', b'F'];
const KIND_PTX: u16 = 1;
const KIND_ELF: u16 = 2;
const COMPRESSED_LZ4: u64 = 0x2000;
const COMPRESSED_ZSTD: u64 = 0x8000;
/// Flag of targets such as `sm_90a`.
const ARCHITECTURE_SPECIFIC: u64 = 0x10_0000;
/// Flag of targets such as `sm_100f`.
const FAMILY_SPECIFIC: u64 = 0x20_0000;
/// Largest decompressed entry, bytes: a limit for the sizes in a broken file.
const MAX_ENTRY_BYTES: u64 = 1 << 30;

/// Code for one GPU.
#[derive(Debug, Clone, Default)]
pub struct Image {
    /// PTX text.
    pub ptx: Option<String>,
    /// Machine code.
    pub cubin: Option<Vec<u8>>,
}

/// Why an image was not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// Bytes of another format, or cut short.
    #[error("the image is not a fat binary, PTX or a cubin{0}")]
    Format(&'static str),
    /// Texts that contradict each other.
    #[error("the images cannot be linked: {0}")]
    Link(String),
    /// No code for this GPU.
    #[error("the image has no code for sm_{wanted}; it has {present}")]
    NoCode {
        /// Compute capability times ten.
        wanted: u32,
        /// Entries of the image.
        present: String,
    },
}

struct Entry<'a> {
    kind: u16,
    capability: u32,
    flags: u64,
    compressed_bytes: u32,
    decompressed_bytes: u64,
    data: &'a [u8],
}

impl Entry<'_> {
    fn features(&self) -> Features {
        match () {
            () if self.flags & ARCHITECTURE_SPECIFIC != 0 => Features::Architecture,
            () if self.flags & FAMILY_SPECIFIC != 0 => Features::Family,
            () => Features::Base,
        }
    }

    /// Returns the target that the code was compiled for.
    fn target(&self) -> Target {
        Target {
            capability: self.capability,
            features: self.features(),
        }
    }

    /// Reports whether a GPU of a compute capability runs the code.
    fn runs_on(&self, capability: u32) -> bool {
        match self.kind {
            KIND_PTX => self.target().translates_for(capability),
            _ => self.target().runs_on(capability),
        }
    }

    /// Returns the target's name, such as `compute_90a` of PTX.
    fn name(&self) -> String {
        let kind = if self.kind == KIND_PTX {
            "compute"
        } else {
            "sm"
        };
        format!("{kind}_{}", self.target())
    }

    fn bytes(&self) -> Result<Vec<u8>, ImageError> {
        let stored = match self.compressed_bytes {
            0 => self.data,
            bytes => self.data.get(..bytes as usize).unwrap_or(self.data),
        };
        let broken = ImageError::Format(": a compressed entry is damaged");
        if self.decompressed_bytes > MAX_ENTRY_BYTES {
            return Err(broken);
        }
        if self.flags & COMPRESSED_ZSTD != 0 {
            let decoder = ruzstd::decoding::StreamingDecoder::new(stored);
            let mut out = Vec::new();
            let mut decoder = decoder.map_err(|_| broken.clone())?.take(MAX_ENTRY_BYTES);
            decoder.read_to_end(&mut out).map_err(|_| broken)?;
            Ok(out)
        } else if self.flags & COMPRESSED_LZ4 != 0 {
            let bytes = self.decompressed_bytes as usize;
            lz4_flex::block::decompress(stored, bytes).map_err(|_| broken)
        } else {
            Ok(stored.to_vec())
        }
    }
}

/// Reads a little-endian field of a header.
fn field<const N: usize>(bytes: &[u8], offset: usize) -> Option<u64> {
    let mut wide = [0; 8];
    wide.get_mut(..N)?
        .copy_from_slice(bytes.get(offset..offset.checked_add(N)?)?);
    Some(u64::from_le_bytes(wide))
}

fn entries(bytes: &[u8]) -> Option<Vec<Entry<'_>>> {
    let head = FatBinaryHead::read(bytes)?;
    let mut rest = bytes.get(head.head_bytes..head.image_bytes.min(bytes.len()))?;
    let mut out = Vec::new();
    while rest.len() >= 64 {
        let header_bytes = field::<4>(rest, 4)? as usize;
        let data_bytes = usize::try_from(field::<8>(rest, 8)?).ok()?;
        let whole = header_bytes.checked_add(data_bytes)?;
        out.push(Entry {
            kind: field::<2>(rest, 0)? as u16,
            capability: field::<4>(rest, 28)? as u32,
            flags: field::<8>(rest, 40)?,
            compressed_bytes: field::<4>(rest, 16)? as u32,
            decompressed_bytes: field::<8>(rest, 56)?,
            data: rest.get(header_bytes..whole)?,
        });
        // An entry of size zero must not be read forever.
        rest = rest.get(whole.max(1)..)?;
    }
    Some(out)
}

/// Splits the concatenated fat binaries that a compiler embeds.
pub(crate) fn split_images(section: &[u8]) -> Vec<Vec<u8>> {
    /// Alignment of each.
    const ALIGNMENT: usize = 8;
    let mut images = Vec::new();
    let mut rest = section;
    while let Some(magic) = field::<4>(rest, 0) {
        if magic != u64::from(FAT_BINARY_MAGIC) {
            rest = rest.get(ALIGNMENT..).unwrap_or_default();
            continue;
        }
        let bytes = FatBinaryHead::read(rest).map_or(usize::MAX, |head| head.image_bytes);
        let Some(image) = rest.get(..bytes) else {
            break;
        };
        images.push(image.to_vec());
        let next = bytes.next_multiple_of(ALIGNMENT).max(ALIGNMENT);
        rest = rest.get(next..).unwrap_or_default();
    }
    images
}

/// Reads the code for a GPU of a compute capability (times ten) from an image.
///
/// # Errors
/// Bytes of another format, and an image without code for the GPU.
pub fn read_image(bytes: &[u8], capability: u32) -> Result<Image, ImageError> {
    match unpack_images(bytes) {
        Some(parts) => link_parts(&parts, capability),
        None => Ok(read_part(bytes, capability)?.image),
    }
}

/// Code of an image that does not consist of several parts.
#[derive(Debug, Default)]
struct Part {
    image: Image,
    /// Unused PTX that the GPU could run, if there is no other code.
    other_ptx: Option<String>,
}

fn read_part(bytes: &[u8], capability: u32) -> Result<Part, ImageError> {
    let plain = |ptx, cubin| Part {
        image: Image { ptx, cubin },
        other_ptx: None,
    };
    if bytes.starts_with(&ELF_MAGIC) {
        return Ok(plain(None, Some(bytes.to_vec())));
    }
    if field::<4>(bytes, 0) == Some(u64::from(FAT_BINARY_MAGIC)) {
        let entries = entries(bytes).ok_or(ImageError::Format(": it is cut short"))?;
        return choose(&entries, capability);
    }
    let end = bytes.iter().position(|byte| *byte == 0);
    let text = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
    match std::str::from_utf8(text) {
        Ok(text) if text.contains(".version") => Ok(plain(Some(text.to_owned()), None)),
        _ => Err(ImageError::Format("")),
    }
}

/// Links the PTX of all parts. Machine code is taken from the part without PTX: the compiler's own link of
/// all parts.
fn link_parts(parts: &[&[u8]], capability: u32) -> Result<Image, ImageError> {
    // The compiler's own link of PTX-only parts is a fat binary without entries: the driver links the
    // parts.
    let is_empty = |part: &&&[u8]| {
        let is_binary = field::<4>(part, 0) == Some(u64::from(FAT_BINARY_MAGIC));
        is_binary && entries(part).is_some_and(|entries| entries.is_empty())
    };
    let parts = parts.iter().filter(|part| !is_empty(part));
    let parts = parts.map(|part| read_part(part, capability));
    let parts = parts.collect::<Result<Vec<_>, _>>()?;
    let is_linked = |part: &&Part| part.image.ptx.is_none() && part.other_ptx.is_none();
    let linked = parts.iter().find(is_linked);
    let linked = linked.and_then(|part| part.image.cubin.clone());
    // PTX that the GPU would not run is not part of the program.
    if linked.is_some() && parts.iter().any(|part| part.other_ptx.is_some()) {
        return Ok(Image {
            ptx: None,
            cubin: linked,
        });
    }
    let texts = parts.into_iter();
    let texts = texts.filter_map(|part| part.image.ptx.or(part.other_ptx));
    let texts: Vec<String> = texts.collect();
    let text = link(&texts).map_err(|error| ImageError::Link(error.to_string()))?;
    // The compiler's own link has no undefined functions except those of its libraries.
    if let Some(name) = find_undefined(&text).filter(|_| linked.is_none()) {
        return Err(ImageError::Link(format!("undefined reference to `{name}`")));
    }
    Ok(Image {
        ptx: (!texts.is_empty()).then_some(text),
        cubin: linked,
    })
}

/// Returns the newest PTX and machine code that the GPU can use. The driver prefers machine code. Hazards
/// need PTX, so PTX is only omitted if it is a different program: compiled with other features of a GPU
/// than the machine code.
fn choose(entries: &[Entry<'_>], capability: u32) -> Result<Part, ImageError> {
    let newest = |kind: u16, features: Option<Features>| {
        let fitting = entries.iter().filter(|entry| entry.kind == kind);
        let fitting = fitting.filter(|entry| entry.runs_on(capability));
        let alike = |entry: &&Entry<'_>| features.is_none_or(|all| entry.features() == all);
        fitting.filter(alike).max_by_key(|entry| entry.target())
    };
    let elf = newest(KIND_ELF, None);
    let (ptx, other) = (
        newest(KIND_PTX, elf.map(Entry::features)),
        newest(KIND_PTX, None),
    );
    if other.is_none() && elf.is_none() {
        let mut present: Vec<String> = entries.iter().map(Entry::name).collect();
        if present.is_empty() {
            present.push("none".to_owned());
        }
        return Err(ImageError::NoCode {
            wanted: capability,
            present: present.join(", "),
        });
    }
    let other = other.filter(|_| ptx.is_none());
    Ok(Part {
        image: Image {
            ptx: read_ptx(ptx)?,
            cubin: elf.map(Entry::bytes).transpose()?,
        },
        other_ptx: read_ptx(other)?,
    })
}

/// Returns the text of an entry; `None` for one without kernels and variables, which is empty.
fn read_ptx(entry: Option<&Entry<'_>>) -> Result<Option<String>, ImageError> {
    let Some(mut bytes) = entry.map(Entry::bytes).transpose()? else {
        return Ok(None);
    };
    // The compiler pads a text with null bytes.
    let end = bytes.iter().position(|byte| *byte == 0);
    bytes.truncate(end.unwrap_or(bytes.len()));
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok(text.contains(".version").then_some(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuda_shim::protocol::pack_images;

    const PTX: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

    fn entry(kind: u16, capability: u32, flags: u64, data: &[u8], decompressed: u64) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend(kind.to_le_bytes());
        out.extend([1, 0]);
        out.extend(64_u32.to_le_bytes());
        out.extend((data.len() as u64).to_le_bytes());
        let packed = flags & (COMPRESSED_LZ4 | COMPRESSED_ZSTD) != 0;
        let compressed = if packed { data.len() as u32 } else { 0 };
        out.extend(compressed.to_le_bytes());
        out.extend([0; 8]);
        out.extend(capability.to_le_bytes());
        out.extend([0; 8]);
        out.extend(flags.to_le_bytes());
        out.extend([0; 8]);
        out.extend(decompressed.to_le_bytes());
        out.extend(data);
        out
    }

    fn fatbin(entries: &[Vec<u8>]) -> Vec<u8> {
        let body = entries.concat();
        let mut out = FAT_BINARY_MAGIC.to_le_bytes().to_vec();
        out.extend([1, 0, 16, 0]);
        out.extend((body.len() as u64).to_le_bytes());
        out.extend(body);
        out
    }

    #[test]
    fn the_newest_fitting_ptx_is_chosen() {
        let newer = PTX.replace("sm_80", "sm_90");
        let bytes = fatbin(&[
            entry(KIND_PTX, 80, 0, PTX.as_bytes(), 0),
            entry(KIND_PTX, 90, 0, newer.as_bytes(), 0),
        ]);
        let image = read_image(&bytes, 86).expect("an image");
        assert_eq!(image.ptx.as_deref(), Some(PTX));
        let image = read_image(&bytes, 90).expect("an image");
        assert_eq!(image.ptx.as_deref(), Some(newer.as_str()));
    }

    #[test]
    fn code_with_features_of_a_gpu_is_for_that_gpu() {
        const A: u64 = ARCHITECTURE_SPECIFIC;
        let featured = PTX.replace("sm_80", "sm_90a");
        let (plain, featured) = (PTX.as_bytes(), featured.as_bytes());
        let ptx = |capability, flags, text| entry(KIND_PTX, capability, flags, text, 0);
        let elf = |capability, flags| entry(KIND_ELF, capability, flags, b"\x7fELF", 0);
        let chosen = |parts: &[Vec<u8>], capability| {
            let image = read_image(&fatbin(parts), capability).ok()?;
            let text = image.ptx.map(|text| text.contains("sm_90a"));
            Some((text, image.cubin.is_some()))
        };
        // The order of the entries has no effect.
        let mut all = vec![ptx(90, A, featured), elf(90, A), ptx(90, 0, plain)];
        assert_eq!(chosen(&all, 90), Some((Some(true), true)));
        all.reverse();
        assert_eq!(chosen(&all, 90), Some((Some(true), true)));
        assert_eq!(chosen(&all, 100), Some((Some(false), false)));
        // The driver runs the machine code, for which there is no PTX.
        assert_eq!(chosen(&all[..2], 90), Some((None, true)));
        assert_eq!(
            chosen(&[ptx(80, 0, plain), elf(90, 0)], 90),
            Some((Some(false), true))
        );
        // Nor does it run PTX with features next to machine code without them.
        assert_eq!(
            chosen(&[ptx(90, A, featured), elf(90, 0)], 90),
            Some((None, true))
        );
        assert_eq!(chosen(&[ptx(90, A, featured)], 100), None);
        let family = [elf(100, FAMILY_SPECIFIC)];
        assert_eq!(chosen(&family, 103), Some((None, true)));
        assert_eq!(chosen(&family, 120), None);
        let error = read_image(&fatbin(&family), 90).expect_err("no code");
        assert!(error.to_string().ends_with("it has sm_100f"), "{error}");
    }

    #[test]
    fn parts_of_ptx_alone_are_linked() {
        let part = |body: &str| {
            let text = format!("{PTX}{body}");
            fatbin(&[entry(KIND_PTX, 80, 0, text.as_bytes(), 0)])
        };
        let (one, other) = (
            part(".extern .global .b32 x;\n"),
            part(".visible .global .b32 x;\n"),
        );
        let list = pack_images(&[&fatbin(&[]), &one, &other]);
        let image = read_image(&list, 80).expect("an image");
        assert!(
            image
                .ptx
                .is_some_and(|text| text.contains(".visible .global .b32 x"))
        );
        let error = read_image(&fatbin(&[]), 80).expect_err("no code");
        assert!(error.to_string().ends_with("it has none"), "{error}");
    }

    #[test]
    fn lz4_entries_are_decompressed() {
        let data = lz4_flex::block::compress(PTX.as_bytes());
        let bytes = fatbin(&[entry(KIND_PTX, 80, COMPRESSED_LZ4, &data, PTX.len() as u64)]);
        let image = read_image(&bytes, 80).expect("an image");
        assert_eq!(image.ptx.as_deref(), Some(PTX));
    }

    #[test]
    fn code_for_other_gpus_only_is_named() {
        let bytes = fatbin(&[entry(KIND_ELF, 75, 0, b"\x7fELF", 0)]);
        let error = read_image(&bytes, 80).expect_err("no code");
        assert!(error.to_string().contains("sm_75"), "{error}");
    }

    #[test]
    fn cut_images_are_errors() {
        let data = lz4_flex::block::compress(PTX.as_bytes());
        let bytes = fatbin(&[entry(KIND_PTX, 80, COMPRESSED_LZ4, &data, PTX.len() as u64)]);
        for end in 0..bytes.len() {
            let cut = bytes.get(..end).unwrap_or_default();
            assert!(read_image(cut, 80).is_err(), "cut at {end}");
        }
    }

    #[test]
    fn images_of_a_section_are_separated() {
        let (first, second) = (fatbin(&[vec![7; 13]]), fatbin(&[vec![8; 16]]));
        let mut section = first.clone();
        section.resize(section.len().next_multiple_of(8) + 16, 0);
        section.extend(&second);
        assert_eq!(split_images(&section), [first, second.clone()]);
        let cut = second.get(..20).unwrap_or_default();
        assert!(split_images(cut).is_empty());
    }
}
