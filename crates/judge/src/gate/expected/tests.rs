use super::{Expectations, ExpectedValues};
use crate::gate::adversarial::Data;
use crate::gate::compare::Comparison;
use tuner_core::element::Element;
use tuner_core::plan::{Code, Plan, PlanArgument, PlanReference, Role};

/// A comparison with these expected values.
fn against(values: &[f64]) -> Comparison {
    Comparison {
        compared: values.len() as u64,
        expected: values.iter().copied().collect(),
        ..Comparison::default()
    }
}

fn plan() -> Plan {
    let output = PlanArgument::new("y", Element::F32, Role::Output, &[2]);
    Plan::new(
        vec![output],
        Vec::new(),
        Code::default(),
        PlanReference::None,
    )
}

/// Returns the report on the expected values of one output for a list of seeds.
fn told(seeds: &[&[f64]]) -> (bool, Vec<String>) {
    let mut all = Expectations::default();
    for (seed, values) in (0..).zip(seeds) {
        all.note(Data::seeded(seed), 0, &against(values));
    }
    let warnings = all.warnings(&plan()).into_iter();
    (
        all.not_finite(&plan()).is_some(),
        warnings.map(|warning| warning.detail).collect(),
    )
}

#[test]
fn a_comparison_with_nan_and_infinity_alone_proves_nothing() {
    let inf = f64::INFINITY;
    assert!(told(&[&[f64::NAN, inf], &[-inf, f64::NAN]]).0);
    assert!(!told(&[&[f64::NAN, inf], &[-inf, 1.0]]).0);
    assert!(!told(&[]).0, "nothing was compared");
    assert!(told(&[&[inf, inf], &[inf, inf]]).1.is_empty());
}

#[test]
fn one_constant_for_several_seeds_is_told_and_a_zero_of_either_sign_is_one_value() {
    assert!(told(&[&[1.0, 1.0], &[1.0, 1.0]]).1[0].contains("`y` is 1 everywhere"));
    assert!(told(&[&[0.0, -0.0], &[-0.0, 0.0]]).1[0].contains("`y` is 0 everywhere"));
    assert!(told(&[&[1.0, 1.0]]).1.is_empty(), "one seed says little");
    assert!(told(&[&[1.0, 1.0], &[2.0, 2.0]]).1.is_empty());
    assert!(told(&[&[1.0, f64::NAN], &[1.0, 1.0]]).1.is_empty());
}

#[test]
fn parts_join_to_the_summary_of_the_whole() {
    let all: ExpectedValues = [1.0, f64::NAN, 2.0].into_iter().collect();
    let mut parts: ExpectedValues = [1.0].into_iter().collect();
    parts.merge(ExpectedValues::default());
    parts.merge([f64::NAN, 2.0].into_iter().collect());
    assert_eq!(parts, all);
}
