use super::{Archive, Entry, Input};
use crate::Observation;
use tuner_core::record::Verdict;
use tuner_core::units::Micros;
use tuner_space::Config;

#[test]
fn a_source_is_worth_its_order_and_equal_values_share_a_rank() {
    let mut archive = Archive::default();
    for at in 0..12 {
        let input = Input {
            features: vec![f64::from(at), -f64::from(at), 7.0],
            ..Input::default()
        };
        let index = archive.push(Config::new(vec![at as u32]), input, false);
        let time = Micros::new(10.0 + f64::from(at * at)).unwrap();
        archive.learn(index, Observation::exactly(time), 4);
    }
    let correlations = archive.source_correlations(3);
    assert!((correlations[0] - 1.0).abs() < 1e-12 && (correlations[1] + 1.0).abs() < 1e-12);
    assert_eq!(correlations[2], 0.0);
    assert_eq!(super::ranks(&[2.0, 1.0, 2.0]), [1.5, 0.0, 1.5]);
}

#[test]
fn what_came_of_knowledge_is_left_out_until_something_faster_is_found_without_it() {
    let mut archive = Archive::default();
    let mut measure = |time: f64, from_prior| {
        let config = Config::new(vec![archive.entries.len() as u32]);
        let index = archive.push(config, Input::default(), from_prior);
        let observation = Observation::exactly(Micros::new(time).unwrap());
        let rank = archive.learn(index, observation, 4);
        (
            rank,
            archive.excludes_knowledge(),
            archive.elites(),
            archive.idle,
        )
    };
    assert_eq!(measure(10.0, true), (None, true, 0, [0, 0]));
    assert_eq!(measure(12.0, true), (None, true, 0, [0, 1]));
    assert_eq!(measure(20.0, false), (Some(0), true, 1, [1, 1]));
    assert_eq!(measure(9.95, true), (None, true, 1, [1, 2]), "no gain");
    assert_eq!(measure(9.0, false), (Some(0), false, 4, [0, 2]));
    archive.rank((0..5).map(|at| (at as f64, at)).collect(), 4);
    assert!(archive.excludes_knowledge() && archive.elites() == 2);
    archive.uninformed = true;
    assert!(!archive.excludes_knowledge() && archive.elites() == 4);
}

#[test]
fn what_was_not_judged_is_neither_good_nor_bad() {
    let mut archive = Archive::default();
    archive.entries.push(Entry {
        config: Config::new(vec![0]),
        input: Input::default(),
        result: None,
        from_prior: false,
        other: None,
    });
    assert_eq!(archive.learn(0, Observation::Unknown, 4), None);
    assert_eq!((archive.health(0), archive.log(0)), (None, None));
    assert_eq!((archive.result_count, archive.any_failed), (0, false));
    archive.learn(0, Observation::Failed(Verdict::Crashed), 4);
    assert_eq!((archive.health(0), archive.result_count), (Some(-1.0), 1));
}
