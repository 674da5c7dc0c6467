use super::*;

#[test]
fn levels_share_their_first_seed_and_none_twice() {
    let elite = Level::Final.seeds(7);
    assert_eq!((Level::Screening.seeds(7), elite.len()), (vec![7], 5));
    assert!(elite.starts_with(&Level::Timing.seeds(7)));
    let distinct: std::collections::BTreeSet<_> = elite.iter().collect();
    assert_eq!(distinct.len(), 5);
}
