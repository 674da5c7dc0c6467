use super::super::tests::{input, output};
use super::*;
use std::collections::BTreeMap;
use tuner_core::element::Element;
use tuner_core::fill::Fill;

fn problem(m: u64, n: u64, k: u64, element: Element) -> Problem {
    Problem {
        inputs: vec![
            input("a", element, &[m, k], 1),
            input("b", element, &[k, n], 2),
        ],
        outputs: vec![output("c", element, &[m, n])],
        scalars: BTreeMap::new(),
        sizes: BTreeMap::new(),
    }
}

/// Largest |honest kernel − value| / tolerance, where the kernel may drop the last `drop` terms.
fn worst(problem: &Problem, drop: u64) -> f64 {
    let oracle = Gemm::new(problem).unwrap();
    let (a, b) = (&problem.inputs[0], &problem.inputs[1]);
    let (m, n, k) = (a.shape[0], b.shape[1], a.shape[1]);
    let element = problem.outputs[0].element;
    let expected = oracle.span(0, 0, m * n);
    let mut worst = 0.0f64;
    for i in 0..m {
        for j in 0..n {
            let mut sum = 0.0f32;
            for t in 0..k - drop {
                sum = (a.value_at(i * k + t) as f32).mul_add(b.value_at(t * n + j) as f32, sum);
            }
            let want = expected[(i * n + j) as usize];
            worst = worst.max((element.round(f64::from(sum)) - want.value).abs() / want.tolerance);
        }
    }
    worst
}

#[test]
fn an_honest_float32_kernel_passes_and_one_that_drops_a_term_does_not() {
    for element in [Element::F32, Element::F16, Element::Bf16] {
        for k in [1, 2, 3, 17, 64, 300] {
            let problem = problem(9, 7, k, element);
            assert!(worst(&problem, 0) <= 1.0, "{element:?} K={k}");
            if k > 1 {
                assert!(worst(&problem, 1) > 3.0, "{element:?} K={k}");
            }
        }
    }
}

/// A bound from `root` alone once rejected 4 in 32768 elements of a correct float32 kernel.
#[test]
fn elements_far_from_zero_may_carry_the_roundings_of_their_partial_sums() {
    let mut problem = problem(64, 128, 64, Element::F32);
    let fill = Fill::Uniform {
        min: -1.0,
        max: 1.0,
    };
    for seed in 0..8 {
        for (i, tensor) in problem.inputs.iter_mut().enumerate() {
            let count = tensor.shape.iter().product();
            tensor.bytes = fill.bytes(Element::F32, seed * 2 + i as u64, 0, count);
        }
        let worst = worst(&problem, 0);
        assert!(worst <= 1.0, "seed {seed}: {worst}");
    }
}

#[test]
fn shapes_that_do_not_fit_are_refused_with_what_is_needed() {
    let mut wrong = problem(4, 5, 6, Element::F32);
    wrong.inputs[1].shape = vec![5, 6];
    let error = Gemm::new(&wrong).err().unwrap();
    assert!(error.to_string().contains("[K, N]"), "{error}");
}
