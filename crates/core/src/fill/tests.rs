use super::*;

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let fill = Fill::Normal {
        mean: 0.0,
        std: 1.0,
    };
    let one = fill.bytes(Element::F16, 1, 0, 1000);
    assert_eq!(one, fill.bytes(Element::F16, 1, 0, 1000));
    assert_ne!(one, fill.bytes(Element::F16, 2, 0, 1000));
    assert_ne!(one, fill.bytes(Element::F16, 1, 1, 1000));
    let long = fill.bytes(Element::F16, 1, 0, 2 * SINGLE_THREAD_ELEMENTS + 1);
    assert_eq!(
        (&long[..2000], long.len() as u64),
        (&one[..], 4 * SINGLE_THREAD_ELEMENTS + 2)
    );
    let very_long = Fill::Uniform {
        min: 0.0,
        max: 256.0,
    };
    let very_long = very_long.bytes(Element::U8, 1, 0, RANDOM_PERIOD + 1000);
    let (first, again) = (&very_long[..1000], &very_long[RANDOM_PERIOD as usize..]);
    assert_eq!(first, again);
    let value = |at| Fill::Uniform { min: 0.0, max: 1.0 }.value(1, 0, at);
    assert!(value(RANDOM_PERIOD + 7) == value(7) && value(RANDOM_PERIOD - 1) != value(7));
}

fn whole(fill: &Fill, seed: u64, count: u64) -> Vec<u64> {
    let bytes = fill.bytes(Element::U32, seed, 3, count);
    let words = bytes.chunks(4).map(|word| Element::U32.decode(word) as u64);
    words.collect()
}

#[test]
fn a_permutation_has_every_number_once_and_differs_between_seeds() {
    for count in [1, 2, 5, 64, 1000] {
        let one = whole(&Fill::Permutation, 1, count);
        let mut sorted = one.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..count).collect::<Vec<_>>());
        if count > 100 {
            assert_ne!(one, sorted);
            assert_ne!(one, whole(&Fill::Permutation, 2, count));
        }
    }
}

#[test]
fn a_graph_has_ascending_offsets_and_distinct_ascending_columns_in_each_row() {
    let (rows, entries, columns) = (200, 1500, 300);
    let offsets = whole(&Fill::CsrOffsets { entries }, 7, rows + 1);
    assert_eq!((offsets[0], offsets[rows as usize]), (0, entries));
    assert!(
        offsets.windows(2).all(|pair| pair[0] <= pair[1]),
        "{offsets:?}"
    );
    let lengths: std::collections::BTreeSet<u64> =
        offsets.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(lengths.len() > 5, "{lengths:?}");
    let indices = whole(&Fill::CsrIndices { rows, columns }, 7, entries);
    for pair in offsets.windows(2) {
        let row = &indices[pair[0] as usize..pair[1] as usize];
        assert!(row.windows(2).all(|two| two[0] < two[1]), "{row:?}");
        assert!(row.iter().all(|column| *column < columns));
    }
    // More entries than the rows have columns for still stay in range.
    let crowded = whole(
        &Fill::CsrIndices {
            rows: 3,
            columns: 4,
        },
        7,
        90,
    );
    assert!(crowded.iter().all(|column| *column < 4));
}

#[test]
fn a_graph_may_have_one_long_row_and_empty_ones() {
    let (rows, entries, columns) = (200_u64, 1500, 900);
    let long = LongRow {
        row: 17,
        entries: 750,
        has_empty: true,
    };
    let decoded = |fill: Fill, count: u64, long: LongRow| -> Vec<u64> {
        let bytes = fill.with_long_row(Element::I32, 7, count, long).unwrap();
        let values = bytes
            .chunks_exact(4)
            .map(|value| Element::I32.decode(value) as u64);
        values.collect()
    };
    let lengths = |rows: u64, long: LongRow| -> Vec<u64> {
        let offsets = decoded(Fill::CsrOffsets { entries }, rows + 1, long);
        assert_eq!((offsets[0], *offsets.last().unwrap()), (0, entries));
        let lengths = offsets.windows(2).map(|pair| pair[1] - pair[0]);
        lengths.collect()
    };
    let found = lengths(rows, long);
    assert!((750..770).contains(&found[17]), "{found:?}");
    assert!(found.iter().filter(|length| **length > 20).count() == 1);
    assert_eq!((found[0], found[2], found[199]), (0, 0, 0));
    assert!(found.windows(2).all(|pair| pair[0] + pair[1] > 0));
    let offsets = decoded(Fill::CsrOffsets { entries }, rows + 1, long);
    let indices = decoded(Fill::CsrIndices { rows, columns }, entries, long);
    for pair in offsets.windows(2) {
        let row = &indices[pair[0] as usize..pair[1] as usize];
        assert!(row.windows(2).all(|two| two[0] < two[1]), "{row:?}");
        assert!(row.iter().all(|column| *column < columns));
    }
    for rows in 2..9 {
        for row in 0..rows {
            let found = lengths(rows, LongRow { row, ..long });
            assert!(found[row as usize] >= 750, "{found:?}");
            assert!(row == 0 || found[0] == 0, "{found:?}");
            assert!(
                row + 1 == rows || found[rows as usize - 1] == 0,
                "{found:?}"
            );
        }
    }
    assert!(
        Fill::Arange
            .with_long_row(Element::I32, 7, 5, long)
            .is_none()
    );
}

#[test]
fn sorted_sparse_and_boxes_are_what_they_are_called() {
    let floats = |fill: Fill, count| -> Vec<f64> {
        let bytes = fill.bytes(Element::F64, 5, 1, count);
        bytes.chunks(8).map(|b| Element::F64.decode(b)).collect()
    };
    let sorted = floats(
        Fill::Sorted {
            min: -2.0,
            max: 3.0,
        },
        500,
    );
    assert!(sorted.is_sorted() && sorted[0] >= -2.0 && sorted[499] <= 3.0);
    let sparse = floats(Fill::Sparse { rate: 0.1 }, 20_000);
    let rate = sparse.iter().filter(|value| **value != 0.0).count() as f64 / 20_000.0;
    assert!((rate - 0.1).abs() < 0.01, "{rate}");
    let squares: f64 = sparse.iter().map(|value| value * value).sum();
    assert!(
        (squares / 20_000.0 - 0.1).abs() < 0.02,
        "unit variance where not zero"
    );
    let boxes = floats(
        Fill::Boxes {
            min: 0.0,
            max: 10.0,
            axes: 2,
        },
        400,
    );
    for one in boxes.chunks(4) {
        assert!(one[0] < one[2] && one[1] < one[3], "{one:?}");
        assert!(one.iter().all(|value| (0.0..=10.0).contains(value)));
    }
    let whole = Fill::Sparse { rate: 1.0 }.bytes(Element::U8, 5, 1, 100);
    assert!(whole.iter().all(|value| (1..=100).contains(value)));
}

#[test]
fn normal_values_have_their_mean_and_deviation() {
    let fill = Fill::Normal {
        mean: 3.0,
        std: 2.0,
    };
    let n = 100_000u64;
    let values: Vec<f64> = (0..n).map(|i| fill.value(7, 3, i)).collect();
    let mean = values.iter().sum::<f64>() / n as f64;
    let var = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n as f64;
    assert!((mean - 3.0).abs() < 0.03, "{mean}");
    assert!((var.sqrt() - 2.0).abs() < 0.03, "{var}");
}

#[test]
fn uniform_values_stay_inside_their_bounds_and_fill_them() {
    let fill = Fill::Uniform {
        min: -1.0,
        max: 1.0,
    };
    let values: Vec<f64> = (0..10_000).map(|i| fill.value(9, 0, i)).collect();
    assert!(values.iter().all(|v| (-1.0..=1.0).contains(v)));
    assert!(values.iter().any(|v| *v < -0.99) && values.iter().any(|v| *v > 0.99));
}

#[test]
fn a_boolean_input_holds_both_values_in_like_shares() {
    let bytes = Fill::default_for(Element::Bool).bytes(Element::Bool, 1, 0, 4000);
    let set = bytes.iter().filter(|byte| **byte == 1).count();
    assert!((1800..2200).contains(&set), "{set} of 4000 are true");
    assert!(bytes.iter().all(|byte| *byte < 2));
}

#[test]
fn a_kept_buffer_has_the_bytes_of_a_new_one() {
    let fill = Fill::Normal {
        mean: 0.5,
        std: 2.0,
    };
    for (seed, count) in [(7, 5000), (7, 20_000), (7, 4100), (8, 4100), (7, 20_000)] {
        for element in [Element::F16, Element::F32] {
            let mut expected = Vec::new();
            for index in 0..count {
                element.encode(fill.value(seed, 3, index), &mut expected);
            }
            assert_eq!(
                *fill.bytes(element, seed, 3, count),
                *expected,
                "{seed} {count}"
            );
        }
    }
    let uniform = Fill::Uniform { min: 0.5, max: 2.0 };
    assert_ne!(
        uniform.bytes(Element::F32, 7, 3, 5000),
        fill.bytes(Element::F32, 7, 3, 5000)
    );
}
