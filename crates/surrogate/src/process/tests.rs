use super::*;

fn input(x: f64) -> Input {
    Input::new(vec![x])
}

fn process(points: &[f64]) -> Process {
    let mut process = Process::new(Shape {
        inverse: vec![2.0],
        noise: 1e-6,
    });
    for x in points {
        let point = process.point(&input(*x));
        process.push(point);
    }
    process
}

fn predict(process: &Process, values: &[Option<f64>], x: f64) -> (f64, f64) {
    let point = process.point(&input(x));
    (
        dot(&process.whiten(values), &point.whitened),
        point.variance,
    )
}

#[test]
fn known_values_are_met_and_certain() {
    let process = process(&[0.0, 0.3, 0.9]);
    let values = [Some(1.0), Some(-2.0), Some(0.5)];
    for (x, value) in [0.0, 0.3, 0.9].into_iter().zip(values) {
        let (mean, variance) = predict(&process, &values, x);
        assert!((mean - value.unwrap()).abs() < 1e-4 && variance < 1e-5);
    }
}

#[test]
fn the_weight_of_a_feature_is_learned_and_holds_far_away() {
    let mut process = process(&[]);
    let with = |x: f64, feature: f64| Input {
        features: vec![feature],
        ..input(x)
    };
    let rows = [(0.0, 1.0), (9.0, -1.0), (20.0, 0.5), (40.0, -2.0)];
    for (x, feature) in rows {
        let point = process.point(&with(x, feature));
        process.push(point);
    }
    // Inverted: the targets fall where the feature rises.
    let targets: Vec<Option<f64>> = rows.iter().map(|place| Some(-3.0 * place.1)).collect();
    let whitened = process.whiten(&targets);
    let weight = process.weights(&whitened)[0];
    assert!((-3.0..-2.4).contains(&weight), "{weight}");
    let far = process.point(&with(100.0, 2.0));
    assert!((dot(&whitened, &far.whitened) - 2.0 * weight).abs() < 1e-6);
}

#[test]
fn far_away_the_prior_is_left() {
    let (mean, variance) = predict(&process(&[0.0, 0.1]), &[Some(5.0), Some(4.0)], 40.0);
    assert!(mean.abs() < 1e-9 && (variance - 1.0).abs() < 1e-9);
}

#[test]
fn a_pending_point_takes_variance_and_leaves_the_mean() {
    let (mean, before) = predict(&process(&[0.0]), &[Some(1.0)], 0.35);
    let (same, after) = predict(&process(&[0.0, 0.3]), &[Some(1.0), None], 0.35);
    assert!((mean - same).abs() < 1e-12 && after < before / 4.0);
}

#[test]
fn a_doubted_value_is_believed_less_than_its_neighbours() {
    let mut process = process(&[0.0, 0.2]);
    let odd = process.point(&input(0.1));
    process.push(odd);
    process.widen_last(4.0);
    let values = [Some(0.0), Some(0.0), Some(1.0)];
    let (mean, _) = predict(&process, &values, 0.1);
    assert!(mean.abs() < 0.1, "{mean}");
    let smooth = process.smooth(&values, &process.whiten(&values));
    assert!(
        (smooth[2].expect("known") - mean).abs() < 1e-9,
        "{smooth:?}"
    );
    assert!(smooth[0].expect("known").abs() < 1e-2);
}

#[test]
fn what_two_points_have_in_common_shrinks_when_one_of_them_is_known() {
    let mut process = process(&[]);
    let (a, b) = (process.point(&input(0.1)), process.point(&input(0.3)));
    let before = process.covariance(&a, &b);
    process.push(a.clone());
    let (mut c, mut b) = (process.point(&input(0.12)), b);
    process.catch_up(&mut c);
    process.catch_up(&mut b);
    assert!(process.covariance(&c, &b) < before / 2.0);
}

#[test]
fn a_point_that_catches_up_is_the_same_as_a_new_one() {
    let mut process = process(&[0.0, 0.2]);
    let mut old = process.point(&input(0.5));
    let more = process.point(&input(0.8));
    process.push(more);
    process.catch_up(&mut old);
    let new = process.point(&input(0.5));
    assert_eq!((old.whitened, old.variance), (new.whitened, new.variance));
}
