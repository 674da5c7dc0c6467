use super::*;
use tuner_core::units::Micros;

fn facts(spill_bytes: u64, predicted: f64) -> CompileStats {
    CompileStats {
        registers: 64,
        spill_bytes,
        shared_bytes: 1024,
        predicted: Micros::new(predicted),
        other: None,
    }
}

#[test]
fn a_prediction_that_was_right_is_trusted_and_spills_that_cost_are_feared() {
    let mut correction = Correction::default();
    for at in 0..60_u32 {
        let (spill, far) = (u64::from(at % 3 * 40), f64::from(at % 7) - 3.0);
        let cost = 0.2 * (spill as f64).ln_1p();
        correction.learn(&facts(spill, (0.3 * far).exp()), 0.0, 0.0, 0.3 * far + cost);
    }
    let shift = |spill, predicted: f64| correction.shift(&facts(spill, predicted), 0.0, 0.0);
    assert!(shift(0, 0.5) < shift(0, 1.0) - 0.5, "{correction:?}");
    assert!(shift(80, 1.0) > shift(0, 1.0) + 0.5, "{correction:?}");
}

#[test]
fn facts_that_say_nothing_change_little() {
    let mut correction = Correction::default();
    for at in 0..120_u32 {
        let error = if at % 2 == 0 { 0.1 } else { -0.1 };
        correction.learn(&facts(u64::from(at / 2 % 5 * 16), 1.0), 0.0, 0.0, error);
    }
    let shift = |spill| correction.shift(&facts(spill, 1.0), 0.0, 0.0);
    let difference = shift(64) - shift(0);
    assert!(difference.abs() < 0.02, "{difference}");
}
