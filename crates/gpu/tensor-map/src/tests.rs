//! Tests of the limits and the encoding of tensor maps.

use super::*;

fn map() -> TensorMap {
    TensorMap {
        element: TensorElement::F16,
        address: 1 << 20,
        sizes: vec![4096, 1 << 32, 3],
        strides: vec![8192, 1 << 39],
        boxes: vec![64, 128, 1],
        steps: vec![1, 2, 1],
        interleave: 0,
        swizzle: 3,
        promotion: 2,
        fills_nan: true,
        pixels: None,
    }
}

fn columns() -> TensorMap {
    TensorMap {
        sizes: vec![64, 9, 14, 64],
        strides: vec![128, 1152, 16128],
        boxes: vec![8, 1024],
        steps: vec![1, 2, 2, 1],
        pixels: Some(PixelBox {
            lower: vec![-1, -128],
            upper: vec![-2, 127],
        }),
        ..map()
    }
}

fn packed() -> TensorMap {
    TensorMap {
        element: TensorElement::U6Padded,
        boxes: vec![128, 128, 1],
        fills_nan: false,
        ..map()
    }
}

#[test]
fn packed_types_have_limits_of_their_own() {
    type Break = fn(&mut TensorMap);
    let cases: [(Break, &str); 6] = [
        (|m| m.address += 16, "multiple of 32"),
        (|m| m.sizes[0] = 4000, "multiple of 128"),
        (|m| m.boxes[0] = 64, "128 of the box"),
        (|m| m.swizzle = 5, "swizzle"),
        (|m| m.fills_nan = true, "NaN"),
        (
            |m| (m.element, m.sizes[0]) = (TensorElement::U4, 4097),
            "odd",
        ),
    ];
    for (broken, text) in cases {
        let mut map = packed();
        broken(&mut map);
        let error = map.check().unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
    for number in 13..16 {
        let element = TensorElement::from_number(number).unwrap();
        assert_eq!(element as u32, number);
    }
}

#[test]
fn a_map_is_decoded_as_it_was_encoded() {
    for map in [map(), columns(), packed()] {
        assert_eq!(TensorMap::decode(&map.encode()), Ok(map));
    }
    assert!(TensorMap::decode(&[0; TENSOR_MAP_BYTES]).is_err());
}

#[test]
fn every_limit_of_the_driver_is_checked() {
    type Break = fn(&mut TensorMap);
    assert_eq!(
        map().encode()[ADDRESS_OFFSET as usize..][..8],
        (1u64 << 20).to_le_bytes()
    );
    let cases: [(Break, &str); 14] = [
        (|m| m.address += 8, "multiple of 16"),
        (|m| m.sizes[0] = 0, "1 to 2^32"),
        (|m| m.sizes[1] += 1, "1 to 2^32"),
        (|m| m.strides[0] = 8200, "multiple of 16"),
        (|m| m.strides[1] = 1 << 40, "below 2^40"),
        (|m| m.boxes[1] = 257, "1 to 256"),
        (|m| m.boxes[2] = 0, "1 to 256"),
        (|m| m.steps[1] = 9, "1 to 8"),
        (|m| m.boxes[0] = 60, "not a multiple of 16"),
        (|m| m.boxes[0] = 128, "allows 128"),
        (|m| m.element = TensorElement::U16, "floating-point"),
        (|m| m.interleave = 2, "needs a swizzle of 32"),
        (|m| m.sizes = vec![1; 6], "1 to 5"),
        (|m| m.boxes.truncate(2), "needs 3 sizes"),
    ];
    map().check().unwrap();
    for (number, (change, wanted)) in cases.into_iter().enumerate() {
        let mut broken = map();
        change(&mut broken);
        let said = broken.check().unwrap_err().to_string();
        assert!(said.contains(wanted), "{number}: {said}");
    }
}

#[test]
fn every_limit_of_an_im2col_map_is_checked() {
    type Break = fn(&mut TensorMap);
    fn pixels(map: &mut TensorMap) -> &mut PixelBox {
        map.pixels.as_mut().unwrap()
    }
    let cases: [(Break, &str); 8] = [
        (|m| m.boxes[1] = 1025, "1 to 1024"),
        (|m| m.boxes[0] = 257, "1 to 256"),
        (|m| m.boxes.push(1), "needs 2 sizes"),
        (|m| m.sizes.truncate(2), "3 to 5"),
        (|m| pixels(m).lower[0] = -129, "-128 to 127"),
        (|m| pixels(m).upper[1] = 128, "-128 to 127"),
        (|m| pixels(m).upper[0] = -10, "no pixel"),
        (|m| pixels(m).lower.truncate(1), "2 coordinates"),
    ];
    columns().check().unwrap();
    for (number, (change, wanted)) in cases.into_iter().enumerate() {
        let mut broken = columns();
        change(&mut broken);
        let said = broken.check().unwrap_err().to_string();
        assert!(said.contains(wanted), "{number}: {said}");
    }
}
