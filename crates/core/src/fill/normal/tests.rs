use super::*;

const FLOATS: [Element; 6] = [
    Element::F16,
    Element::Bf16,
    Element::F32,
    Element::F64,
    Element::F8e4m3,
    Element::F8e5m2,
];

#[test]
fn elements_are_those_computed_one_by_one() {
    let moments = [
        (0.0, 1.0),
        (0.5, -2.0),
        (1e4, 1e-3),
        (0.0, 1e-6),
        (3.0, 0.0),
        (1e38, 1e38),
        (f64::INFINITY, 1.0),
    ];
    for (mean, std) in moments {
        let fill = Fill::Normal { mean, std };
        for element in FLOATS {
            let mut expected = Vec::new();
            for index in 0..30_000 {
                element.encode(fill.value(11, 5, index), &mut expected);
            }
            let bytes = fill.bytes(element, 11, 5, 30_000);
            assert!(*bytes == *expected, "{element:?}, {mean} and {std}");
        }
    }
}

#[test]
fn the_series_err_by_less_than_an_eighth_of_the_bound() {
    let fill = Fill::Normal {
        mean: 0.0,
        std: 1.0,
    };
    let half_step = 2f64.powi(-54);
    let ends = [half_step, 0.125, 0.25, 0.5, 0.75, 0.875, 1.0 - half_step];
    for (first, second) in ends.iter().flat_map(|a| ends.map(|b| (*a, b))) {
        let exact = (-2.0 * first.ln()).sqrt() * (TAU * second).cos();
        let error = (normal(first, second) - exact).abs();
        assert!(
            error < MAX_ERROR * MAX_NORMAL / 8.0,
            "{first} {second}: {error}"
        );
    }
    for index in 0..200_000 {
        let (first, second) = uniforms(3, 1, index);
        let error = (normal(first, second) - fill.value(3, 1, index)).abs();
        assert!(error < MAX_ERROR * MAX_NORMAL / 8.0, "{index}: {error}");
    }
}
