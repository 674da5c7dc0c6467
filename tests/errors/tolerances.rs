//! What an output is compared under beside a reference kernel, and how that is told.

use crate::errors::judging::{By, Case, nearest, plan};
use crate::errors::kernels::{How, Operation, Order, Problem};
use tuner_core::element::Element;
use tuner_core::element::Element::{F16, F32, F64, I8, I32};
use tuner_core::fill::Fill;
use tuner_core::plan::{Plan, PlanReference};
use tuner_judge::gate::spread::FurtherRuns;
use tuner_judge::gate::tolerance::{Tolerance, describe};

const MILLION: u64 = 1_000_000;

fn gemm(types: [Element; 2]) -> Plan {
    plan(&Problem::new(Operation::Gemm { k: 512 }, types, 1))
}

/// The verdict on float32 values beside others.
fn passes(plan: &Plan, got: &[f32], want: &[f32]) -> bool {
    let bytes = |values: &[f32]| {
        values
            .iter()
            .flat_map(|v| v.to_le_bytes())
            .collect::<Vec<_>>()
    };
    let output = plan.arguments.last().expect("an output");
    let all = std::iter::once(0..want.len() as u64).collect::<Vec<_>>();
    Tolerance::for_argument(plan, output)
        .compare(&bytes(got), &bytes(want), &all, &FurtherRuns::default())
        .passed()
}

#[test]
fn sums_of_a_million_f16_elements_pass_in_float32_and_not_in_f16() {
    for (output, by) in [
        (F16, By::Kernel),
        (F32, By::Kernel),
        (F16, By::Oracle),
        (F32, By::Oracle),
    ] {
        let rows: &[u64] = if by == By::Kernel { &[1, 3] } else { &[1] };
        for rows in rows.iter().copied() {
            let operation = Operation::ReduceSum {
                rows,
                length: MILLION,
            };
            let case = Case::new(operation, [F16, output], by, 7);
            for order in [Order::Sequential, Order::Split] {
                let honest = case.problem.run(&How::honest(order, output));
                let result = case.judge(&nearest(output, &honest));
                assert!(result.passed(), "{rows} of {output:?}, {by:?}: {result:?}");
                let narrow = How {
                    sum: F16,
                    ..How::honest(order, output)
                };
                let narrow = case.problem.run(&narrow);
                assert!(case.caught(&narrow), "{rows} of {output:?}, {by:?}");
            }
        }
    }
}

#[test]
fn whole_numbers_must_be_equal_unless_the_space_says_otherwise() {
    let problem = Problem::new(Operation::Gemm { k: 8192 }, [I8, I32], 1);
    let mut plan = plan(&problem);
    let right = problem.run(&How::honest(Order::Split, I32));
    let all = std::iter::once(0..problem.output.count()).collect::<Vec<_>>();
    let judge = |plan: &Plan, by: f64| {
        let tolerance = Tolerance::for_argument(plan, plan.arguments.last().expect("an output"));
        let wrong: Vec<f64> = right.iter().map(|value| value + by).collect();
        tolerance.compare(
            &nearest(I32, &wrong),
            &nearest(I32, &right),
            &all,
            &FurtherRuns::default(),
        )
    };
    assert!(judge(&plan, 0.0).passed());
    for by in [1.0, -1.0, 300.0] {
        let wrong = judge(&plan, by);
        assert_eq!((wrong.wrong, wrong.compared), (2048, 2048), "{by}");
    }
    assert!(
        describe(&plan).contains("i32, exact"),
        "{}",
        describe(&plan)
    );
    plan.gate.atol = Some(1.0);
    assert!(judge(&plan, 1.0).passed() && !judge(&plan, 2.0).passed());
    assert!(
        describe(&plan).contains("atol 1e0 from the space"),
        "{}",
        describe(&plan)
    );
}

#[test]
fn what_the_space_gives_replaces_its_part_of_the_model() {
    let mut plan = gemm([F32, F32]);
    let (small, large): (Vec<f32>, Vec<f32>) = (vec![1e-7; 2048], vec![1000.0; 2048]);
    let off = |values: &[f32], by: f32| values.iter().map(|v| v + by).collect::<Vec<_>>();
    assert!(
        !passes(&plan, &off(&small, 1e-8), &small),
        "small values have a small tolerance"
    );
    assert!(!passes(&plan, &off(&large, 0.1), &large));
    plan.gate.atol = Some(1e-7);
    assert!(passes(&plan, &off(&small, 1e-8), &small));
    assert!(
        passes(&plan, &off(&large, 2e-3), &large),
        "the model still allows for rounding"
    );
    plan.gate = tuner_core::plan::PlanGate {
        atol: None,
        rtol: Some(1e-3),
        ..plan.gate
    };
    assert!(passes(&plan, &off(&large, 0.9), &large));
    assert!(describe(&plan).contains("rtol 1e-3 from the space; for the rest f32"));
}

#[test]
fn a_reduction_that_the_metric_does_not_show_is_given_as_terms() {
    let mut plan = gemm([F32, F32]);
    assert!(
        describe(&plan).contains("sums of 512 terms (metric: flops) in f32"),
        "{}",
        describe(&plan)
    );
    let right = vec![1.0f32; 2048];
    let off = vec![1.0f32 + 3e-5; 2048];
    assert!(!passes(&plan, &off, &right));
    plan.gate.terms = Some(65536.0);
    assert!(passes(&plan, &off, &right));
    assert!(
        describe(&plan).contains("65536 terms (gate: terms)"),
        "{}",
        describe(&plan)
    );
}

#[test]
fn one_row_of_large_values_does_not_hide_an_error_among_small_ones() {
    let plan = gemm([F32, F32]);
    let mut right = vec![1.0f32; 2048];
    right[..64].fill(1e6);
    let mut wrong = right.clone();
    wrong[1000] += 1e-4;
    assert!(!passes(&plan, &wrong, &right));
}

#[test]
fn a_result_that_cancelled_may_carry_the_error_of_its_terms() {
    let plan = gemm([F32, F32]);
    let mut right: Vec<f32> = (0..2048)
        .map(|i| ((i % 7) as f32 - 3.0) * 10.0 + 1.0)
        .collect();
    right[1000] = 1e-6;
    let mut other = right.clone();
    other[1000] = 3e-5;
    assert!(passes(&plan, &other, &right));
    other[1000] = 3e-2;
    assert!(!passes(&plan, &other, &right));
}

#[test]
fn float64_is_held_to_float64() {
    let plan = gemm([F64, F64]);
    let tolerance = Tolerance::for_argument(&plan, plan.arguments.last().expect("an output"));
    let all = std::iter::once(0..2048u64).collect::<Vec<_>>();
    let judge = |by: f64| {
        let right = nearest(F64, &[1.0; 2048]);
        tolerance
            .compare(
                &nearest(F64, &[1.0 + by; 2048]),
                &right,
                &all,
                &FurtherRuns::default(),
            )
            .passed()
    };
    assert!(judge(1e-15) && !judge(1e-12));
}

#[test]
fn sums_whose_roundings_may_all_go_one_way_have_a_linear_bound() {
    let mut plan = gemm([F32, F32]);
    let right = vec![1.0f32; 2048];
    let off = vec![1.0f32 + 3e-5; 2048];
    assert!(!passes(&plan, &off, &right));
    for argument in &mut plan.arguments {
        argument.fill = Fill::Constant(0.1);
    }
    assert!(passes(&plan, &off, &right));
}

#[test]
fn a_float64_reference_is_named_with_its_error_model() {
    let mut plan = gemm([F16, F16]);
    plan.reference = PlanReference::Oracle("gemm".into());
    let text = describe(&plan);
    assert!(
        text.contains("f16 against float64, error model of `gemm`"),
        "{text}"
    );
    assert!(text.contains("512 terms"), "{text}");
}

/// Judges 2048 elements of a long sum that should be 1, which the reference has as `1 + own`.
fn beside_a_shadow(own: f64, got: f64) -> bool {
    let mut plan = gemm([F32, F32]);
    plan.gate.terms = Some(512.0);
    let tolerance = Tolerance::for_argument(&plan, plan.arguments.last().expect("an output"));
    let all = std::iter::once(0..2048u64).collect::<Vec<_>>();
    let ones = |by: f64| nearest(F32, &[1.0 + by; 2048]);
    let reference = ones(own);
    let rounded = [ones(-0.1 * own), ones(-0.11 * own)];
    let errors = nearest(F32, &[-own; 2048]);
    let runs = FurtherRuns {
        rounded: rounded.iter().map(Vec::as_slice).collect(),
        shadow_errors: Some(&errors),
    };
    let result = tolerance.compare(&ones(got), &reference, &all, &runs);
    result.passed()
}

#[test]
fn a_reference_that_errs_neither_refuses_nor_hides() {
    let own = 4e-5;
    assert!(beside_a_shadow(own, 0.0), "the right result");
    assert!(beside_a_shadow(own, own), "what the reference returns");
    assert!(beside_a_shadow(own, -own), "as inaccurate as the reference");
    assert!(!beside_a_shadow(own, 2.0 * own));
    assert!(!beside_a_shadow(own, -2.0 * own));
}

#[test]
fn a_shadow_far_from_the_value_is_another_branch() {
    // More than 2^10 units of 2^-24 away: the reference's values decide.
    let own = 2e-4;
    assert!(beside_a_shadow(own, own));
    assert!(!beside_a_shadow(own, 0.0));
}

/// A root of a difference is NaN under some roundings: that allows no number whatever.
#[test]
fn a_run_that_is_not_finite_gives_no_tolerance() {
    let plan = gemm([F32, F32]);
    let tolerance = Tolerance::for_argument(&plan, plan.arguments.last().expect("an output"));
    let all = std::iter::once(0..2048u64).collect::<Vec<_>>();
    let values = |value: f64| nearest(F32, &[value; 2048]);
    for run in [f64::NAN, f64::INFINITY] {
        let rounded = [values(run), values(2e-4), values(2.5e-4)];
        let errors = values(3e-5 - 2.4e-4);
        let runs = FurtherRuns {
            rounded: rounded.iter().map(Vec::as_slice).collect(),
            shadow_errors: Some(&errors),
        };
        let judged = |got: f64| tolerance.compare(&values(got), &values(2.4e-4), &all, &runs);
        assert!(judged(2.4e-4).passed(), "{run}");
        assert!(!judged(1e30).passed(), "{run}");
        assert!(!judged(1.0).passed(), "{run}");
    }
}

#[test]
fn a_metric_in_another_unit_allows_no_more_than_a_sum_of_all_inputs() {
    let honest = gemm([F32, F32]);
    let with_flops = |flops: f64| Plan {
        flops: Some(flops),
        ..honest.clone()
    };
    let described = |plan: &Plan| describe(plan);
    let outputs: u64 = honest.compared().map(|argument| argument.count()).sum();
    let inputs: u64 = honest.filled().map(|argument| argument.count()).sum();
    let right = described(&with_flops(2.0 * 512.0 * outputs as f64));
    assert!(right.contains("sums of 512 terms"), "{right}");
    let wrong = described(&with_flops(2.0 * 512.0 * outputs as f64 * 1e9));
    assert!(
        wrong.contains(&format!("sums of {} terms", inputs.max(4096))),
        "{wrong}"
    );
}
