use super::measure;
use crate::stopwatch::{Draw, OutputSet, Sample, Stopwatch, Subject};
use crate::timing::plan::{Runner, Settings};
use std::time::Duration;
use tuner_core::cache_mode::CacheMode;
use tuner_core::judgement::Judgement;

/// Windows with these energies, millijoules.
struct Windows(Vec<u64>, Vec<u64>);

impl Stopwatch for Windows {
    fn sample(&mut self, _: Subject, _: CacheMode, _: u32) -> Result<Sample, Judgement> {
        Ok(Sample::of_micros(1.0))
    }
    fn pause(&mut self, _: Duration) {}
    fn poison(&mut self, _: Subject) -> Result<(), Judgement> {
        Ok(())
    }
    fn outputs(&mut self, _: Subject) -> Result<Vec<OutputSet>, Judgement> {
        Ok(Vec::new())
    }
    fn draw(&mut self, _: Subject, _: u32, least: u64) -> Result<Option<Draw>, Judgement> {
        self.1.push(least);
        let launches = least;
        Ok(self.0.pop().map(|millijoules| Draw {
            millijoules,
            launches,
        }))
    }
}

#[test]
fn a_launch_has_its_share_of_each_window_and_no_counter_means_no_energy() {
    let settings = Settings::default();
    let runner = Runner {
        subject: Subject(0),
        launches: 10,
    };
    let mut windows = Windows(vec![36_000, 24_000, 30_000], Vec::new());
    let energy = measure(&mut windows, runner, 10.0, settings);
    let energy = energy.unwrap().expect("three windows");
    // 120 ms of launches of 10 µs.
    assert_eq!(windows.1, [12_000; 3]);
    assert!((energy.launch_mj - 2.5).abs() < 1e-9, "{energy:?}");
    assert_eq!(energy.samples_mj, [2.5, 2.0, 3.0]);
    assert!(energy.ci95_mj[0] <= 2.5 && energy.ci95_mj[1] >= 2.5);
    let none = measure(&mut windows, runner, 10.0, settings);
    assert_eq!(none.unwrap(), None);
}
