use super::{GAIN_LEVELS, Outlook};
use crate::{Observation, Settings, evolve_with};
use tuner_core::record::Verdict;
use tuner_core::units::{Micros, Seed};
use tuner_core::value::Value;
use tuner_space::{Environment, Parameter, Space};

#[test]
fn both_the_model_and_the_results_have_to_agree() {
    let sure = Outlook {
        improvement: None,
        expected: Some([0.0; GAIN_LEVELS.len()]),
    };
    assert_eq!(sure.remaining_gain(39), None);
    assert_eq!(
        (sure.remaining_gain(40), sure.remaining_gain(149)),
        (Some(0.2), Some(0.02))
    );
    assert_eq!(sure.remaining_gain(150), Some(0.01));
    let hopeful = Outlook {
        improvement: None,
        expected: Some([40.0, 10.0, 2.9, 1.0, 0.0]),
    };
    assert_eq!(hopeful.remaining_gain(1000), Some(0.05));
    assert_eq!(Outlook::default().remaining_gain(1000), None);
}

#[test]
fn nothing_is_said_while_nothing_passed_and_a_solved_space_converges() {
    let sizes: Vec<Value> = (0..16).map(Value::Int).collect();
    let named = ["a", "b", "c"].map(|name| Parameter::new(name, sizes.clone()));
    let space = Space::build("test", named.into(), &[], &Environment::default()).unwrap();
    let mut failing = evolve_with(&space, Seed(1), &[], Settings::default());
    let mut smooth = evolve_with(&space, Seed(1), &[], Settings::default());
    let mut said = Vec::new();
    for _ in 0..220 {
        let proposal = failing.ask().unwrap();
        failing.tell(proposal.id, Observation::Failed(Verdict::Crashed));
        assert_eq!(failing.remaining_gain(), None);
        let proposal = smooth.ask().unwrap();
        let far = proposal.config.choices().iter().map(|at| at.abs_diff(5));
        let time = Micros::new(10.0 + f64::from(far.sum::<u32>())).unwrap();
        smooth.tell(proposal.id, Observation::exactly(time));
        said.extend(smooth.remaining_gain());
    }
    assert_eq!((said.first(), said.last()), (Some(&0.2), Some(&0.01)));
}
