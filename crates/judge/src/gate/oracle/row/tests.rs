use super::super::tests::{input, output};
use super::*;
use std::collections::BTreeMap;

fn problem(out: &[u64]) -> Problem {
    Problem {
        inputs: vec![input("x", Element::F32, &[3, 50], 4)],
        outputs: vec![output("y", Element::F32, out)],
        scalars: BTreeMap::new(),
        sizes: BTreeMap::new(),
    }
}

#[test]
fn softmax_rows_sum_to_one() {
    let oracle = Row::softmax(&problem(&[3, 50])).unwrap();
    let row: f64 = oracle.span(0, 50, 50).iter().map(|e| e.value).sum();
    assert!((row - 1.0).abs() < 1e-12);
}

#[test]
fn layernorm_rows_have_mean_zero_and_variance_one() {
    let oracle = Row::layernorm(&problem(&[3, 50])).unwrap();
    let row: Vec<f64> = oracle.span(0, 0, 50).iter().map(|e| e.value).collect();
    assert!((row.iter().sum::<f64>() / 50.0).abs() < 1e-12);
    assert!((row.iter().map(|v| v * v).sum::<f64>() / 50.0 - 1.0).abs() < 1e-3);
}

#[test]
fn a_sum_is_of_each_row_or_of_everything() {
    let rows = Row::reduce_sum(&problem(&[3])).unwrap().span(0, 0, 3);
    let all = Row::reduce_sum(&problem(&[1])).unwrap().span(0, 0, 1);
    assert!((rows.iter().map(|e| e.value).sum::<f64>() - all[0].value).abs() < 1e-9);
    assert!(Row::reduce_sum(&problem(&[7])).is_err());
}
