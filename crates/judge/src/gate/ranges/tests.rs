use super::*;
use proptest::prelude::*;

fn set(ranges: &[Range<u64>]) -> Vec<u64> {
    let mut all: Vec<u64> = ranges.iter().flat_map(Clone::clone).collect();
    all.sort_unstable();
    all.dedup();
    all
}

#[test]
fn changed_elements_are_found_whichever_of_their_bytes_differs() {
    let before = [0_u8; 12];
    let mut after = before;
    (after[3], after[4], after[11]) = (1, 1, 1);
    let all = std::iter::once(0..3).collect::<Vec<_>>();
    assert_eq!(changed(&before, &after, 4), all);
    assert_eq!(changed(&before, &after, 2), [1..3, 5..6]);
    assert!(changed(&before, &before, 4).is_empty());
}

proptest! {
    #[test]
    fn ranges_are_sets(parts in prop::collection::vec((0u64..60, 1u64..9, any::<bool>()), 0..12)) {
        let pick = |side: bool| -> Vec<Range<u64>> {
            let mine = parts.iter().filter(|part| part.2 == side);
            mine.map(|(start, length, _)| *start..start + length).collect()
        };
        let (one, two) = (union(&pick(false), &[]), union(&[], &pick(true)));
        prop_assert_eq!(set(&one), set(&pick(false)));
        let both: Vec<u64> = set(&one).into_iter().filter(|at| set(&two).contains(at)).collect();
        prop_assert_eq!(set(&overlap(&one, &two)), both);
        let rest: Vec<u64> = (0..80).filter(|at| !set(&one).contains(at)).collect();
        prop_assert_eq!(set(&outside(&one, 1, 80)), rest);
    }
}

#[test]
fn an_element_with_a_hole_in_it_is_left_out() {
    let hole = |start, end| std::iter::once(start..end).collect::<Vec<Range<u64>>>();
    assert_eq!(outside(&hole(5, 6), 4, 3), [0..1, 2..3]);
    assert_eq!(outside(&hole(0, 12), 4, 3), []);
}
