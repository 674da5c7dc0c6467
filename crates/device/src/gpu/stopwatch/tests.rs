use super::*;

#[test]
fn every_set_is_used_before_one_is_used_again() {
    for (launches, sets) in [(500, 72), (3, 9), (10, 1)] {
        let order = order(launches, sets);
        assert_eq!(order.len(), launches as usize);
        for round in order.chunks(sets) {
            let mut seen = round.to_vec();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen.len(), round.len());
        }
    }
}

#[test]
fn two_stamps_give_the_clock_and_too_close_ones_none() {
    let stamps =
        |words: [u64; 8]| -> Vec<u8> { words.iter().flat_map(|word| word.to_le_bytes()).collect() };
    let far = stamps([1000, 5_000_000, 7, 0, 1_800_000 + 1000, 6_000_000, 8, 0]);
    assert_eq!(clock(&far), Some(1800.0));
    let near = stamps([1000, 5_000_000, 7, 0, 2000, 5_000_500, 8, 0]);
    assert_eq!(clock(&near), None);
    let stale = stamps([1000, 5_000_000, 7, 0, 1_800_000 + 1000, 6_000_000, 6, 0]);
    assert_eq!(clock(&stale), None);
    assert_eq!(clock(&[0; 8]), None);
}
