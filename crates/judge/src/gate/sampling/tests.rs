use super::*;

fn budget(element: u64, total: u64) -> WorkBudget {
    WorkBudget { element, total }
}

#[test]
fn a_sample_holds_both_ends_of_the_grid_and_as_many_blocks_as_wanted() {
    for seed in 0..20 {
        let blocks = others(seed, 1000, 7);
        assert_eq!(blocks.len(), 7);
        assert_eq!((blocks[0], blocks[6]), (0, 999));
        assert!(blocks.is_sorted() && !blocks.contains(&first(1000)));
    }
    assert_eq!(others(1, 3, 64), [0, 2]);
    assert!(others(1, 1, 0).is_empty());
    assert_eq!(others(1, 5, 1), [4]);
}

#[test]
fn a_problem_too_large_to_compare_whole_is_compared_in_affordable_pieces() {
    let all: Vec<Range<u64>> = std::iter::once(0..8192 * 8192).collect();
    let pieces = affordable(&all, 8192, budget(8 * 8192, work_max(false)), 1);
    let total: u64 = pieces.iter().map(|range| range.end - range.start).sum();
    assert!((10_000..=1 << 14).contains(&total), "{total}");
    assert_eq!(
        (pieces[0].start, pieces[pieces.len() - 1].end),
        (0, 8192 * 8192)
    );
    assert!(pieces.windows(2).all(|pair| pair[0].end <= pair[1].start));
    assert_eq!(affordable(&all, 8192, budget(1, work_max(true)), 1), all);
    assert_eq!(
        pieces,
        affordable(&all, 8192, budget(8 * 8192, work_max(false)), 1)
    );
}

#[test]
fn thinning_keeps_both_ends_of_every_range() {
    let ranges: Vec<Range<u64>> = (0..4).map(|i| i << 20..(i << 20) + 100_000).collect();
    let thinned = thin(&ranges, COMPARED_MAX, 64);
    let total: u64 = thinned.iter().map(|r| r.end - r.start).sum();
    assert!(total <= COMPARED_MAX, "{total}");
    for range in &ranges {
        assert!(thinned.iter().any(|r| r.start == range.start));
        assert!(thinned.iter().any(|r| r.end == range.end));
    }
}
#[test]
fn thinning_keeps_whole_tiles_where_ends_are_shorter() {
    let ranges: Vec<Range<u64>> = (0..64).map(|i| i * 8192..i * 8192 + 4096).collect();
    let thinned = thin(&ranges, COMPARED_MAX, 1024);
    let total: u64 = thinned.iter().map(|r| r.end - r.start).sum();
    assert!(total <= COMPARED_MAX, "{total}");
    let whole = |r: &&Range<u64>| r.start.is_multiple_of(1024) && r.end - r.start >= 1024;
    assert_eq!(thinned.iter().filter(whole).count(), 8);
    for range in &ranges {
        assert!(thinned.iter().any(|r| r.start == range.start));
        assert!(thinned.iter().any(|r| r.end == range.end));
    }
    assert!(thinned.windows(2).all(|pair| pair[0].end <= pair[1].start));
}
