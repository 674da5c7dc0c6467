use super::*;

fn rows(start: u64, length: u64, stride: u64, count: u64) -> StridedRange {
    StridedRange {
        first: SlotRange {
            slot: Slot(0),
            bytes: start..start + length,
        },
        stride,
        count,
    }
}

fn listed(rows: &StridedRange) -> Vec<Range<u64>> {
    let Range { start, end } = rows.first.bytes;
    let shift = |index: u64| start + index * rows.stride..end + index * rows.stride;
    (0..rows.count).map(shift).collect()
}

#[test]
fn strided_ranges_answer_as_the_list_of_them() {
    let samples = [
        rows(0, 4, 0, 1),
        rows(8, 4, 16, 5),
        rows(3, 1, 2, 9),
        rows(40, 7, 8, 3),
    ];
    for sample in &samples {
        let list = listed(sample);
        for at in 0..100 {
            let expected = list.iter().find(|range| range.end > at).cloned();
            assert_eq!(sample.ending_after(at), expected, "{sample:?} after {at}");
        }
    }
}

#[test]
fn strided_ranges_overlap_as_the_list_of_them() {
    let sample = rows(8, 4, 16, 5);
    let list = listed(&sample);
    for start in 0..90 {
        for length in 1..12 {
            for gap in [3, 17] {
                let sorted = [
                    start..start + length,
                    start + length + gap..start + 2 * length + gap,
                ];
                let expected = sorted.iter().any(|range| {
                    let meets = |own: &Range<u64>| own.start < range.end && range.start < own.end;
                    list.iter().any(meets)
                });
                assert_eq!(sample.overlaps(&sorted), expected, "{sorted:?}");
            }
        }
    }
    assert!(!sample.overlaps(&[]));
}
