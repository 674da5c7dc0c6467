use super::*;
use crate::stopwatch::Subject;

fn blocks(expected: Option<f64>, expected_mhz: Option<f64>) -> Blocks {
    let runner = |number| Runner {
        subject: Subject(number),
        launches: 10,
    };
    let expected = ExpectedReference {
        micros: expected,
        clock_mhz: expected_mhz,
    };
    Blocks::new(Settings::default(), runner(2), runner(0), 2, expected)
}

/// Runs the blocks on a clock that returns `time` of the sample number.
fn first_block(blocks: &mut Blocks, mut time: impl FnMut(usize) -> Sample) -> (Block, u32) {
    let (mut number, mut pauses) = (0, 0);
    loop {
        let told = match blocks.next() {
            Step::Sample { .. } => {
                number += 1;
                blocks.tell(Some(time(number - 1)))
            }
            _ => {
                pauses += 1;
                blocks.tell(None)
            }
        };
        if let Some(block) = told {
            return (block, pauses);
        }
    }
}

#[test]
fn an_even_drift_falls_out_of_the_ratio() {
    let (block, _) = first_block(&mut blocks(None, None), |number| {
        let time = if number == 0 || number == 3 {
            20.0
        } else {
            10.0
        };
        Sample::of_micros(time * (1.0 + 0.005 * number as f64))
    });
    assert!((block.ratio() - 0.5).abs() < 1e-4, "{}", block.ratio());
}

#[test]
fn a_block_whose_ends_differ_is_done_again() {
    let mut blocks = blocks(None, None);
    let (block, _) = first_block(&mut blocks, |number| {
        Sample::of_micros(if number < 3 { 10.0 } else { 11.0 })
    });
    assert_eq!(block.outer[0].micros, 11.0);
    assert_eq!(blocks.trouble().drifted, 1);
}

#[test]
fn a_reference_off_its_running_median_warms_up_again_without_a_pause() {
    let mut blocks = blocks(Some(10.0), None);
    let (block, pauses) = first_block(&mut blocks, |number| {
        Sample::of_micros(if number < 40 { 11.0 } else { 10.1 })
    });
    assert_eq!((block.outer[0].micros, pauses), (10.1, 0));
}

#[test]
fn a_reference_that_stays_off_its_median_is_followed_after_one_warm_up() {
    let mut blocks = blocks(Some(10.0), None);
    let (block, pauses) = first_block(&mut blocks, |_| Sample::of_micros(12.0));
    assert_eq!((block.outer[0].micros, pauses), (12.0, 0));
    let trouble = blocks.trouble();
    assert_eq!((trouble.rewarmed, trouble.unsteady), (1, false));
}

/// A card permanently at its power limit: the clock varies between 70 and 100 % of the highest.
#[test]
fn a_clock_that_a_power_limit_holds_down_is_no_fault() {
    let mut blocks = blocks(Some(10.0), Some(1500.0));
    for _ in 0..20 {
        let (_, pauses) = first_block(&mut blocks, |number| Sample {
            clock_mhz: Some(1500.0 * (0.8 + 0.1 * (number % 3) as f64)),
            ..Sample::of_micros(10.0)
        });
        assert_eq!(pauses, 0);
    }
    assert_eq!(blocks.trouble(), RetryStats::default());
}

#[test]
fn a_clock_below_three_quarters_of_the_usual_one_is_discarded() {
    let mut blocks = blocks(Some(10.0), Some(1500.0));
    let (_, pauses) = first_block(&mut blocks, |number| Sample {
        clock_mhz: Some(if number < 3 { 1100.0 } else { 1480.0 }),
        ..Sample::of_micros(10.0)
    });
    assert_eq!((pauses, blocks.trouble().throttled), (3, 3));
}

#[test]
fn a_sample_that_the_host_was_late_for_is_told() {
    let mut blocks = blocks(None, None);
    let (_, _) = first_block(&mut blocks, |_| Sample {
        late: true,
        ..Sample::of_micros(10.0)
    });
    assert!(blocks.trouble().late);
}

#[test]
fn throttled_samples_are_waited_out_but_not_for_ever() {
    let slow = |throttled| Sample {
        throttled,
        ..Sample::of_micros(12.0)
    };
    let mut short = blocks(None, None);
    let (_, pauses) = first_block(&mut short, |number| slow(number < 2));
    assert_eq!((pauses, short.trouble().slowed), (2, false));
    let mut endless = blocks(None, None);
    let (_, pauses) = first_block(&mut endless, |_| slow(true));
    assert_eq!((pauses, endless.trouble().slowed), (6, true));
}

#[test]
fn a_device_that_never_settles_still_ends() {
    let mut blocks = blocks(Some(5.0), None);
    let (_, pauses) = first_block(&mut blocks, |number| {
        Sample::of_micros(10.0 + (number % 7) as f64)
    });
    assert!(pauses <= 6 && blocks.trouble().unsteady);
}
