//! `cudaDeviceProp` in the layouts of CUDA 12 and 13, written from the device's attributes.

use std::ffi::CStr;

use crate::connection::Device;

/// Version of the driver, 1000 × major + 10 × minor.
pub(crate) const DRIVER_VERSION: i32 = 13_000;
/// Address on the PCI bus.
pub(crate) const BUS_ID: &CStr = c"0000:01:00.0";

/// Reports whether a text is the bus address: hexadecimal numbers, `[domain:]bus:device[.function]`.
pub(crate) fn is_bus_id(text: &str) -> bool {
    let (place, function) = text.split_once('.').unwrap_or((text, "0"));
    let numbers = place
        .split(':')
        .map(|number| u32::from_str_radix(number, 16).ok());
    let place: Option<Vec<u32>> = numbers.collect();
    let is_first = u32::from_str_radix(function, 16) == Ok(0);
    is_first && matches!(place.as_deref(), Some([1, 0] | [0, 1, 0]))
}
/// `cudaUUID_t` of the device.
pub(crate) const UUID: [u8; 16] = *b"virtual-gpu-0000";

/// One field of the structure.
#[derive(Debug, Clone, Copy)]
enum Field {
    /// `char name[256]`.
    Name,
    /// `cudaUUID_t`.
    Uuid,
    /// An `int` from the attribute of that number.
    Int(u32),
    /// A `size_t` from an attribute.
    Size(u32),
    /// Total memory.
    Memory,
    /// As many zero `int`s.
    Zeros(usize),
    /// As many zero bytes.
    ZeroBytes(usize),
}

use Field::{Int, Memory, Name, Size, Uuid, ZeroBytes, Zeros};

/// Fields up to `maxGridSize`, equal in both versions.
const BEGINNING: &[Field] = &[
    Name,
    Uuid,
    ZeroBytes(8),
    Zeros(1),
    Memory,
    Size(8),
    Int(12),
    Int(10),
    Size(11),
    Int(1),
    Int(2),
    Int(3),
    Int(4),
    Int(5),
    Int(6),
    Int(7),
];

/// Limits of one-dimensional textures, by attribute: `maxTexture1D`, `maxTexture1DMipmap`.
const TEXTURES_1D: &[Field] = &[Int(21), Int(77)];

/// `maxTexture1DLinear`, which version 12 has after them.
const LINEAR_1D: &[Field] = &[Int(69)];

/// Limits of the other textures and of surfaces: `maxTexture2D` to `maxSurfaceCubemapLayered`.
const TEXTURES: &[Field] = &[
    Int(22),
    Int(23),
    Int(73),
    Int(74),
    Int(70),
    Int(71),
    Int(72),
    Int(45),
    Int(46),
    Int(24),
    Int(25),
    Int(26),
    Int(47),
    Int(48),
    Int(49),
    Int(52),
    Int(42),
    Int(43),
    Int(27),
    Int(28),
    Int(29),
    Int(53),
    Int(54),
    Int(55),
    Int(56),
    Int(57),
    Int(58),
    Int(59),
    Int(60),
    Int(61),
    Int(62),
    Int(63),
    Int(64),
    Int(65),
    Int(66),
    Int(67),
    Int(68),
];

const FIELDS_13: &[&[Field]] = &[
    BEGINNING,
    &[
        Size(9),
        Int(75),
        Int(76),
        Size(14),
        Size(51),
        Int(16),
        Int(18),
        Int(19),
    ],
    TEXTURES_1D,
    TEXTURES,
    &[
        Size(30),
        Int(31),
        Int(32),
        Int(33),
        Int(34),
        Int(50),
        Int(35),
        Int(40),
        Int(41),
        Int(37),
        Int(38),
        Int(108),
        Int(39),
        Int(78),
        Int(79),
        Int(80),
        Size(81),
        Int(82),
        Int(83),
        Int(84),
        Int(85),
        Int(86),
        Int(88),
        Int(89),
        Int(90),
        Int(91),
        Int(95),
        Size(97),
        Int(100),
        Int(101),
        Int(106),
        Int(109),
        Size(111),
        Int(99),
        Int(112),
        Int(113),
        Int(114),
        Int(115),
        Int(116),
        Int(117),
        Int(118),
        Int(119),
        Int(121),
        Int(125),
        Int(120),
        Zeros(1),
        Int(130),
        Int(131),
        Int(133),
        Int(134),
        Zeros(3),
        Zeros(56),
    ],
];

const FIELDS_12: &[&[Field]] = &[
    BEGINNING,
    &[
        Int(13),
        Size(9),
        Int(75),
        Int(76),
        Size(14),
        Size(51),
        Int(15),
        Int(16),
        Int(17),
        Int(18),
        Int(19),
        Int(20),
    ],
    TEXTURES_1D,
    LINEAR_1D,
    TEXTURES,
    &[
        Size(30),
        Int(31),
        Int(32),
        Int(33),
        Int(34),
        Int(50),
        Int(35),
        Int(40),
        Int(41),
        Int(36),
        Int(37),
        Int(38),
        Int(108),
        Int(39),
        Int(78),
        Int(79),
        Int(80),
        Size(81),
        Int(82),
        Int(83),
        Int(84),
        Int(85),
        Int(86),
        Int(87),
        Int(88),
        Int(89),
        Int(90),
        Int(91),
        Int(95),
        Zeros(1),
        Size(97),
        Int(100),
        Int(101),
        Int(106),
        Int(109),
        Size(111),
        Int(99),
        Int(112),
        Int(113),
        Int(114),
        Int(115),
        Int(116),
        Int(117),
        Int(118),
        Int(119),
        Int(121),
        Int(125),
        Int(120),
        Zeros(1),
        Zeros(63),
    ],
];

/// The structure of a major version of the runtime, as bytes.
#[must_use]
pub(crate) fn device_properties(device: &Device, version: u32) -> Vec<u8> {
    let fields = if version >= 13 { FIELDS_13 } else { FIELDS_12 };
    let mut out = Vec::new();
    for field in fields.iter().flat_map(|group| group.iter()) {
        match *field {
            Name => {
                let name = device.name.as_bytes();
                out.extend(name.iter().copied().chain(std::iter::repeat(0)).take(256));
            }
            Uuid => out.extend_from_slice(&UUID),
            Int(number) => out.extend_from_slice(&device.attribute(number).to_le_bytes()),
            Size(number) => put_size(&mut out, device.attribute(number) as u64),
            Memory => put_size(&mut out, device.memory_bytes),
            Zeros(count) => out.extend(std::iter::repeat_n(0, 4 * count)),
            ZeroBytes(count) => out.extend(std::iter::repeat_n(0, count)),
        }
    }
    // The structure ends at a multiple of its alignment.
    out.resize(out.len().next_multiple_of(8), 0);
    out
}

fn put_size(out: &mut Vec<u8>, value: u64) {
    out.resize(out.len().next_multiple_of(8), 0);
    out.extend_from_slice(&value.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device() -> Device {
        Device {
            name: "GPU".to_owned(),
            memory_bytes: 1 << 30,
            first_address: 0,
            end_address: 1,
            attributes: vec![(16, 108), (75, 8), (97, 166_912), (106, 32)],
        }
    }

    /// Positions of fields by `offsetof` of the headers of a version, on x86-64.
    struct Layout {
        version: u32,
        bytes: usize,
        sm_count: usize,
        major: usize,
        shared_optin: usize,
    }

    const LAYOUTS: [Layout; 2] = [
        Layout {
            version: 12,
            bytes: 1032,
            sm_count: 388,
            major: 360,
            shared_optin: 696,
        },
        Layout {
            version: 13,
            bytes: 1008,
            sm_count: 384,
            major: 360,
            shared_optin: 672,
        },
    ];

    #[test]
    fn a_bus_address_is_read_in_each_form() {
        for right in ["0000:01:00.0", "0:1:0", "1:0.0", "01:00"] {
            assert!(is_bus_id(right), "{right}");
        }
        for wrong in [
            "0000:02:00.0",
            "0:1:0.1",
            "1:1:0",
            "1",
            "",
            "0:x:0",
            "0:1:0:0",
        ] {
            assert!(!is_bus_id(wrong), "{wrong}");
        }
    }

    #[test]
    fn fields_are_where_the_headers_have_them() {
        for layout in LAYOUTS {
            let bytes = device_properties(&device(), layout.version);
            assert_eq!(bytes.len(), layout.bytes, "version {}", layout.version);
            for (offset, value) in [
                (layout.sm_count, 108_i32),
                (layout.major, 8),
                (layout.shared_optin, 166_912),
            ] {
                let word = bytes.get(offset..offset + 4);
                let wanted = value.to_le_bytes();
                assert_eq!(word, Some(wanted.as_slice()), "offset {offset}");
            }
        }
    }
}
