use super::*;

fn times(reference_us: f64, incumbent: Option<(u32, f64)>) -> SiblingTimes {
    let range = |us: f64| TimeRange {
        us,
        ci95: [0.998 * us, 1.002 * us],
    };
    SiblingTimes {
        task: 0,
        reference: ContentHash::from_parts([b"reference".as_slice()]),
        reference_us,
        incumbent: incumbent.map(|(choice, us)| (vec![choice], range(us))),
    }
}

fn apart(siblings: &mut Siblings, worker: &str, times: SiblingTimes) -> Option<String> {
    siblings.compare(worker, times).apart.clone()
}

#[test]
fn a_gpu_that_differs_by_more_than_two_per_cent_is_in_a_group_of_its_own() {
    let mut all = Siblings::default();
    assert_eq!(apart(&mut all, "first", times(10.0, None)), None);
    assert_eq!(apart(&mut all, "near", times(10.15, None)), None);
    let why = apart(&mut all, "slow", times(10.3, None)).unwrap();
    assert!(
        why.contains("10.30 µs") && why.contains("first (+3.0 %)"),
        "{why}"
    );
    assert!(apart(&mut all, "fast", times(9.7, None)).is_some());
    // Once stated it stays, independent of later comparisons.
    assert!(apart(&mut all, "slow", times(10.0, None)).is_some());
}

#[test]
fn equal_on_the_reference_and_unequal_on_the_best_is_apart_beyond_chance() {
    let mut all = Siblings::default();
    apart(&mut all, "first", times(10.0, None));
    let best = TimeRange {
        us: 5.0,
        ci95: [4.99, 5.01],
    };
    all.best(0, vec![7], best);
    assert_eq!(apart(&mut all, "equal", times(10.0, Some((7, 5.08)))), None);
    assert_eq!(
        apart(&mut all, "another best", times(10.0, Some((8, 9.0)))),
        None
    );
    for (worker, us) in [("slow", 5.2), ("fast", 4.8)] {
        let why = apart(&mut all, worker, times(10.0, Some((7, us)))).unwrap();
        assert!(why.contains("the best candidate"), "{why}");
    }
    assert_eq!(all.record().incumbents[&0], [7]);
    assert_eq!(all.record().placed.len(), 5);
}

#[test]
fn the_name_of_a_group_says_whose_it_is_and_of_which_kind() {
    let name = name_apart("NVIDIA H200", "node7", "cuda:1");
    assert_eq!(name, "NVIDIA H200 (apart: node7 cuda:1)");
    assert_eq!(kind_of(&name), "NVIDIA H200");
    assert_eq!(name_apart(&name, "node7", "cuda:1"), name);
}
