use super::*;
use proptest::prelude::*;

proptest! {
    #[test]
    fn few_and_many_hold_the_last_access_of_each_thread_in_their_order(
        accesses in prop::collection::vec((0u32..3, 0u16..12), 0..60)
    ) {
        let (mut few, mut tiny) = (AccessList::<64>::default(), AccessList::<1>::default());
        let mut wanted = std::collections::BTreeMap::new();
        for (place, (block, thread)) in accesses.into_iter().enumerate() {
            let stamp = Stamp { thread, ..Stamp::default() };
            let past = PastAccess { block, stamp, place: place as u32 };
            few.add(past);
            tiny.add(past);
            wanted.insert((block, thread), place as u32);
        }
        let wanted: Vec<_> = wanted.into_iter().collect();
        for parts in [few.parts(), tiny.parts()] {
            let all = parts.0.iter().chain(parts.1);
            let found: Vec<_> = all.map(|past| (past.thread(), past.place)).collect();
            prop_assert_eq!(&found, &wanted);
        }
    }
}
