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

#[test]
fn a_tolerance_that_accepts_zeros_is_told() {
    let told = |atol: Option<f64>, rtol: Option<f64>, values: &[f64]| {
        let mut all = Expectations::default();
        all.note(Data::seeded(1), 0, &against(values));
        let mut plan = plan();
        (plan.gate.atol, plan.gate.rtol) = (atol, rtol);
        let warnings = all.warnings(&plan);
        assert!(
            warnings
                .iter()
                .all(|one| one.detail.contains("a kernel that writes zeros passes"))
        );
        warnings.len()
    };
    let values = [0.0, -1e-7, 5e-7, f64::NAN];
    assert_eq!(told(Some(1e-6), None, &values), 1);
    assert_eq!(told(Some(4e-7), Some(0.2), &values), 1);
    assert_eq!(told(None, Some(1.0), &[3.0, 4e9]), 1);
    assert_eq!(told(Some(4e-7), None, &values), 0);
    assert_eq!(told(Some(1e-6), Some(0.5), &[1e-6, 1.0]), 0);
    assert_eq!(told(None, None, &values), 0);
    assert_eq!(told(Some(1.0), None, &[0.0]), 0);
    // Values that were not read are not judged.
    let mut all = Expectations::default();
    let unread = Comparison {
        expected: ExpectedValues::unknown(),
        ..against(&[1.0])
    };
    all.note(Data::seeded(1), 0, &unread);
    let mut plan = plan();
    plan.gate.rtol = Some(2.0);
    assert!(all.warnings(&plan).is_empty());
}
