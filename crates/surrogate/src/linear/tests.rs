use super::*;

#[test]
fn a_matrix_times_its_inverse_is_the_identity() {
    let n = 13;
    let mut matrix = Symmetric {
        n,
        triangle: Vec::new(),
        diagonal: vec![2.0; n],
    };
    for a in 0..n {
        for b in 0..a {
            matrix.triangle.push((-((a - b) as f64)).exp() * 1.5);
        }
    }
    let inverse = matrix.inverse().unwrap();
    for a in 0..n {
        let row: Vec<f64> = (0..n)
            .map(|b| match a.cmp(&b) {
                std::cmp::Ordering::Equal => 2.0,
                _ => matrix.triangle[Symmetric::start(a.max(b)) + a.min(b)],
            })
            .collect();
        for b in 0..n {
            let expected = f64::from(u8::from(a == b));
            let got = dot(&row, &inverse[b * n..(b + 1) * n]);
            assert!((got - expected).abs() < 1e-12, "{a}, {b}: {got}");
        }
    }
}

#[test]
fn a_matrix_that_is_not_positive_definite_has_no_inverse_here() {
    let matrix = Symmetric {
        n: 2,
        triangle: vec![3.0],
        diagonal: vec![1.0; 2],
    };
    assert!(matrix.inverse().is_none());
}
