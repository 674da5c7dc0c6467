use super::importance;

fn grid(levels: &[usize]) -> Vec<Vec<usize>> {
    let mut points = vec![Vec::new()];
    for count in levels {
        points = points
            .into_iter()
            .flat_map(|point| (0..*count).map(move |level| [point.clone(), vec![level]].concat()))
            .collect();
    }
    points
}

#[test]
fn shares_of_a_sum_are_those_of_its_terms() {
    let levels = [4, 4, 4];
    let points = grid(&levels);
    // Variances 9 : 1 : 0.
    let value = |point: &Vec<usize>| 3.0 * point[0] as f64 + point[1] as f64;
    let values: Vec<f64> = points.iter().map(value).collect();
    let found = importance(&levels, &points, &values).unwrap();
    assert!((found.alone[0] - 0.9).abs() < 0.05, "{found:?}");
    assert!((found.alone[1] - 0.1).abs() < 0.05, "{found:?}");
    assert!(found.alone[2] < 0.02, "{found:?}");
    assert!(found.together < 0.05, "{found:?}");
    assert_eq!(importance(&levels, &points, &values), Some(found));
}

#[test]
fn what_two_do_together_is_ascribed_to_none() {
    let levels = [6, 6];
    let points = grid(&levels);
    // Neither alone changes the mean.
    let value = |point: &Vec<usize>| (point[0] as f64 - 2.5) * (point[1] as f64 - 2.5);
    let values: Vec<f64> = points.iter().map(value).collect();
    let found = importance(&levels, &points, &values).unwrap();
    assert!(found.together > 0.6, "{found:?}");
}

#[test]
fn too_few_or_equal_values_have_no_answer() {
    let levels = [8];
    let points = grid(&levels);
    assert_eq!(importance(&levels, &points, &[1.0; 8]), None);
    assert_eq!(importance(&levels, &points[..3], &[1.0, 2.0, 3.0]), None);
    assert_eq!(importance(&[4], &points, &[1.0; 8]), None);
}
