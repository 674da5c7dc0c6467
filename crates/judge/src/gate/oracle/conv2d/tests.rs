use super::super::tests::{input, output};
use super::*;
use std::collections::BTreeMap;
use tuner_core::element::Element;

fn problem(x: &[u64], f: &[u64], y: &[u64]) -> Problem {
    Problem {
        inputs: vec![
            input("x", Element::F32, x, 1),
            input("f", Element::F32, f, 2),
        ],
        outputs: vec![output("y", Element::F32, y)],
        scalars: BTreeMap::new(),
        sizes: BTreeMap::new(),
    }
}

/// Returns the worst ratio of a float32 kernel that may omit the last tap.
fn worst(problem: &Problem, drop: u64) -> f64 {
    let oracle = Conv2d::new(problem).unwrap();
    let (x, f) = (&problem.inputs[0], &problem.inputs[1]);
    let (height, width) = (problem.outputs[0].shape[0], problem.outputs[0].shape[1]);
    let expected = oracle.span(0, 0, height * width);
    let mut worst = 0.0f64;
    for r in 0..height {
        for c in 0..width {
            let mut sum = 0.0f32;
            for tap in 0..f.count() - drop {
                let (i, j) = (tap / f.shape[1], tap % f.shape[1]);
                let from = x.value_at((r + i) * x.shape[1] + c + j) as f32;
                sum = from.mul_add(f.value_at(tap) as f32, sum);
            }
            let want = expected[(r * width + c) as usize];
            worst = worst.max((f64::from(sum) - want.value).abs() / want.tolerance);
        }
    }
    worst
}

#[test]
fn an_honest_kernel_passes_and_one_that_drops_a_tap_does_not() {
    for (x, f, y) in [
        ([9, 12], [3, 3], [7, 10]),
        ([20, 31], [15, 9], [6, 23]),
        ([4, 4], [1, 2], [4, 3]),
    ] {
        let problem = problem(&x, &f, &y);
        assert!(worst(&problem, 0) <= 1.0, "{x:?}");
        assert!(worst(&problem, 1) > 3.0, "{x:?}");
    }
}

#[test]
fn shapes_that_do_not_fit_are_refused_with_what_is_needed() {
    for y in [[7, 11], [9, 12]] {
        let error = Conv2d::new(&problem(&[9, 12], &[3, 3], &y)).err().unwrap();
        assert!(error.to_string().contains("[H + FH - 1"), "{error}");
    }
}
