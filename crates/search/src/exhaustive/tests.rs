use super::*;
use proptest::prelude::*;

proptest! {
    #[test]
    fn the_permutation_is_a_bijection_and_knows_its_inverse(len in 1_u128..3000, seed: u64) {
        let order = Permutation::new(len, Seed(seed));
        let mut hit = vec![false; len as usize];
        for position in 0..len {
            let index = order.index_at(position);
            prop_assert!(index < len && !hit[index as usize]);
            hit[index as usize] = true;
            prop_assert_eq!(order.position_of(index), position);
        }
    }

    #[test]
    fn huge_spaces_have_an_inverse_too(len in (1_u128 << 90)..(1_u128 << 120), seed: u64) {
        let order = Permutation::new(len, Seed(seed));
        for position in [0, 1, len / 2, len - 1] {
            prop_assert_eq!(order.position_of(order.index_at(position)), position);
        }
    }
}
