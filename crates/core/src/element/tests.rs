use super::Element;

#[test]
fn the_mark_of_what_nobody_wrote_is_a_nan_that_no_arithmetic_gives() {
    use Element::{Bf16, F8e4m3, F8e5m2, F16, F32, F64};
    for (element, canonical) in [
        (F16, 0x7fff_u64),
        (Bf16, 0x7fff),
        (F32, 0x7fff_ffff),
        (F64, 0x7fff_ffff_ffff_ffff),
        (F64, 0xfff8_0000_0000_0000),
        (F8e4m3, 0x7f),
        (F8e5m2, 0x7f),
    ] {
        let poison = element.poison();
        assert!(element.decode(poison).is_nan(), "{element:?}");
        assert_ne!(poison, &canonical.to_le_bytes()[..element.size()]);
    }
}

#[test]
fn whole_numbers_are_stored_exactly_and_clamped() {
    use Element::{Bool, I8, I16, I32, I64, U8, U16, U32, U64};
    let large = i128::from(u64::MAX) - 1;
    for (element, value, stored) in [
        (U64, large, large),
        (U64, -1, 0),
        (I64, (1 << 53) + 1, (1 << 53) + 1),
        (U16, 70_000, 65_535),
        (I16, -40_000, -32_768),
        (U8, 300, 255),
        (I8, -1, -1),
        (U32, 7, 7),
        (I32, -7, -7),
        (Bool, 2, 1),
    ] {
        let mut bytes = Vec::new();
        element.encode_whole(value, &mut bytes);
        assert_eq!(bytes.len(), element.size(), "{element:?}");
        assert_eq!(element.whole(&bytes), Some(stored), "{element:?}");
    }
    let mut bytes = Vec::new();
    Bool.encode(0.4, &mut bytes);
    Bool.encode(3.0, &mut bytes);
    assert_eq!(bytes, [0, 1]);
}

#[test]
fn every_cpp_name_is_that_of_one_type() {
    for element in Element::ALL {
        assert!(!element.cpp_name().is_empty(), "{element}");
        for name in element.cpp_names() {
            assert_eq!(Element::from_cpp(name), Some(*element), "{name}");
        }
    }
    assert_eq!(Element::from_cpp("float4"), None);
}
