use super::*;

/// `struct { double a; char b[3]; }`: 16 bytes, five of them padding.
fn layout() -> Layout {
    let field = |name: &str, element, count, offset| Field {
        name: name.to_owned(),
        element,
        count,
        offset,
        fill: Fill::Arange,
    };
    Layout {
        size: 16,
        fields: vec![
            field("a", Element::F64, 1, 0),
            field("b", Element::I8, 3, 8),
        ],
    }
}

#[test]
fn columns_are_what_the_fields_were_filled_with() {
    let layout = layout();
    let bytes = layout.content(1, 0, 5);
    assert_eq!(bytes.len(), 80);
    let a = layout.column(&layout.fields[0], &bytes);
    let a: Vec<f64> = a.chunks(8).map(|b| Element::F64.decode(b)).collect();
    assert_eq!(a, [0.0, 1.0, 2.0, 3.0, 4.0]);
    let b = layout.column(&layout.fields[1], &bytes);
    assert_eq!(b, (0..15).collect::<Vec<u8>>());
    assert!((11..16).all(|at| layout.is_padding(at) && bytes[at as usize] == 0));
    assert!(!layout.is_padding(16 + 10));
}

#[test]
fn what_is_known_of_a_field_follows_from_the_bytes() {
    let layout = layout();
    let [a, b] = [&layout.fields[0], &layout.fields[1]];
    let range = |start, end| std::iter::once(start..end).collect::<Vec<_>>();
    assert_eq!(layout.known(a, &range(0, 80)), range(0, 5));
    assert_eq!(layout.known(b, &range(0, 80)), range(0, 15));
    assert_eq!(layout.known(a, &range(1, 24)), range(1, 2));
    assert_eq!(layout.known(b, &range(9, 26)), []);
    assert_eq!(layout.known(b, &[0..11, 16..27, 48..59]), [0..6, 9..12]);
    assert_eq!(layout.without_padding(&range(9, 20)), [9..11, 16..20]);
    assert!(layout.without_padding(&range(11, 16)).is_empty());
}
