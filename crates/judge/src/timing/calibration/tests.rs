use super::*;

/// A GPU that runs at half its clock until it is loaded.
#[derive(Default)]
struct IdleClockProber {
    worked: u32,
}

impl Prober for IdleClockProber {
    fn probe(&mut self, probe: Probe) -> Result<Option<(Sample, f64)>, Judgement> {
        let share = if self.worked >= 10 { 1.0 } else { 0.5 };
        self.worked += u32::from(probe != Probe::Null);
        let sample = Sample {
            clock_mhz: Some(share * 1980.0),
            ..Sample::of_micros(2.0 / share)
        };
        Ok(Some((sample, 1e6)))
    }
}

#[test]
fn the_empty_kernel_is_measured_at_the_clock_of_a_loaded_gpu() {
    let found =
        Calibration::measure(&mut IdleClockProber::default(), DatasheetPeaks::default()).unwrap();
    assert_eq!(found.null_us, Some(2.0));
    assert_eq!(found.idle_clock_mhz, Some(990.0));
    assert_eq!(found.loaded_clock_mhz, Some(1980.0));
    // A kernel of 2 µs is possible.
    let work = NeededWork {
        flops: None,
        bytes: None,
        input_bits: 16,
    };
    assert_eq!(found.implausible(2.1, &work, CacheMode::Warm), None);
}
