use super::*;

#[test]
fn both_ways_of_a_branch_meet_where_they_first_join() {
    // 0 -> 1, 2; 1 -> 3; 2 -> 3; 3 -> end.
    let post = post_dominators(&[vec![1, 2], vec![3], vec![3], vec![4]]);
    assert_eq!(post, [Some(3), Some(3), Some(3), None]);
}

#[test]
fn a_block_that_never_reaches_the_end_joins_nothing() {
    // 1 spins.
    let post = post_dominators(&[vec![1, 2], vec![1], vec![3]]);
    assert_eq!(post, [Some(2), None, None]);
}
