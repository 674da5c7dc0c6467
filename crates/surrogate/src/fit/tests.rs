use super::*;

#[test]
fn a_parameter_that_does_not_matter_gets_a_long_scale() {
    let points: Vec<[f64; 2]> = (0..60)
        .map(|i| [f64::from(i * 7 % 60) / 60.0, f64::from(i * 13 % 60) / 60.0])
        .collect();
    let values: Vec<f64> = points.iter().map(|p| (9.0 * p[0]).sin()).collect();
    let points: Vec<&[f64]> = points.iter().map(<[f64; 2]>::as_slice).collect();
    let mut scales = Scales::prior(&[0, 1], -0.5);
    scales.climb(&points, &values, &[0.0; 60], 40);
    assert!(
        scales.log_lengths[1] > scales.log_lengths[0] + 1.0,
        "{scales:?}"
    );
    assert!(scales.log_noise < LOG_NOISE, "{scales:?}");
}

#[test]
fn noise_is_seen_as_noise() {
    let points: Vec<[f64; 1]> = (0..80).map(|i| [f64::from(i) / 80.0]).collect();
    let values: Vec<f64> = (0..80_u32)
        .map(|i| {
            // The finaliser of MurmurHash3: no pattern that a smooth function could follow.
            let mut bits = (i + 1).wrapping_mul(0x9e37_79b9);
            for factor in [0x85eb_ca6b_u32, 0xc2b2_ae35] {
                bits = (bits ^ bits >> 15).wrapping_mul(factor);
            }
            f64::from((bits ^ bits >> 16) >> 8) / f64::from(1 << 24) - 0.5
        })
        .collect();
    let points: Vec<&[f64]> = points.iter().map(<[f64; 1]>::as_slice).collect();
    let mut scales = Scales::prior(&[0], -0.5);
    scales.climb(&points, &values, &[0.0; 80], 40);
    assert!(scales.log_noise > LOG_NOISE + 2.0, "{scales:?}");
}
