//! The timing protocol on synthetic clocks, where the truth is known: drift, two modes, spikes,
//! throttling.

use tuner_core::cache_mode::CacheMode;
use tuner_core::evidence::Proof;
use tuner_core::judgement::Judgement;
use tuner_core::record::Verdict;
use tuner_judge::session::Contents;
use tuner_judge::stopwatch::{OutputSet, Sample, Stopwatch, Subject};
use tuner_judge::timing::calibration::{Calibration, DatasheetPeaks, NeededWork};
use tuner_judge::timing::executor;
use tuner_judge::timing::executor::{
    Incumbent, Recheck, TimingResult, TimingSession, race_candidate, settle,
};
use tuner_judge::timing::paired::{Decision, PairedComparison};
use tuner_judge::timing::plan::{Runner, Settings};
use tuner_testkit::synthetic::{CLOCKS, Noise, SyntheticClock};

const CHALLENGER: Subject = Subject(0);
const INCUMBENT: Subject = Subject(1);
const REFERENCE: Subject = Subject(2);

/// The incumbent, which takes a third of the reference's time.
const INCUMBENT_RUNNER: Incumbent = Incumbent {
    runner: Runner {
        subject: INCUMBENT,
        launches: 150,
    },
    ratio: 10.0 / 30.0,
};

fn brief() -> Settings {
    Settings {
        warm_up_us: 50e3,
        ..Settings::default()
    }
}

/// A duel of a challenger that takes `ratio` of the incumbent's 20 µs.
fn duel(noise: Noise, ratio: f64, seed: u64) -> Decision {
    let settings = brief();
    let mut clock = SyntheticClock::new(noise, vec![20.0 * ratio, 20.0], seed);
    let runner = |subject| Runner {
        subject,
        launches: settings.launches(20.0),
    };
    let mut duel = PairedComparison::new(settings, runner(CHALLENGER), runner(INCUMBENT));
    executor::run(&mut duel, &mut clock, CacheMode::Warm).expect("synthetic clocks do not fail");
    duel.result().expect("blocks").decision
}

/// Shares of (faster, slower) decisions.
fn shares(noise: Noise, ratio: f64, trials: u64) -> (f64, f64) {
    let (mut faster, mut slower) = (0.0, 0.0);
    for seed in 0..trials {
        match duel(noise, ratio, seed) {
            Decision::Faster => faster += 1.0 / trials as f64,
            Decision::Slower => slower += 1.0 / trials as f64,
            Decision::Tie => {}
        }
    }
    (faster, slower)
}

const TRIALS: u64 = 100;

#[test]
fn equal_kernels_tie_on_every_clock() {
    for (name, noise) in CLOCKS {
        let (faster, slower) = shares(noise, 1.0, TRIALS);
        assert!(faster + slower <= 0.05, "{name}: {faster} {slower}");
    }
}

#[test]
fn a_kernel_two_per_cent_faster_wins_on_every_clock() {
    for (name, noise) in CLOCKS {
        for ratio in [0.98, 0.95] {
            let (faster, slower) = shares(noise, ratio, TRIALS);
            assert!(faster >= 0.99 && slower == 0.0, "{name} {ratio}: {faster}");
        }
        let (faster, slower) = shares(noise, 1.0 / 0.98, TRIALS);
        assert!(slower >= 0.99 && faster == 0.0, "{name}: {slower}");
    }
}

#[test]
fn between_equal_and_two_per_cent_the_slower_kernel_does_not_win() {
    for (name, noise) in CLOCKS {
        for ratio in [1.005, 1.01, 1.015] {
            let (faster, _) = shares(noise, ratio, TRIALS);
            assert!(faster <= 0.05, "{name} {ratio}: {faster}");
        }
    }
}

/// The gate's proof, as far as the protocol can tell.
struct Given;

impl Proof for Given {}

const NO_WORK: NeededWork = NeededWork {
    flops: None,
    bytes: None,
    input_bits: 16,
};

fn session(clock: &mut SyntheticClock, calibration: Option<Calibration>) -> TimingSession {
    TimingSession::begin(clock, REFERENCE, None, calibration, brief()).expect("it warms up")
}

/// Times the challenger, from its race to the cold mode.
fn time_challenger(
    clock: &mut dyn Stopwatch,
    session: &mut TimingSession,
    work: &NeededWork,
    look: &mut Recheck<'_>,
) -> Result<TimingResult, Judgement> {
    let raced = race_candidate(clock, session, CHALLENGER, look)?;
    settle(&Given, clock, session, raced, work, look)
}

fn time(clock: &mut dyn Stopwatch, session: &mut TimingSession) -> executor::TimingResult {
    time_challenger(clock, session, &NO_WORK, &mut |_, _| Ok(())).expect("not refused")
}

#[test]
fn the_reported_time_is_the_true_one_whatever_the_clock_does() {
    for (name, noise) in CLOCKS {
        for seed in 0..10 {
            let mut clock = SyntheticClock::new(noise, vec![12.0, 10.0, 30.0], seed);
            let mut session = session(&mut clock, None);
            let unit = session.warm.session_us;
            let timed = time(&mut clock, &mut session);
            assert!(
                (timed.ratio / 0.4 - 1.0).abs() < 0.02,
                "{name}: {}",
                timed.ratio
            );
            let record = timed.measured.record();
            let evidence = record.evidence.as_ref().unwrap();
            assert!((record.p50.get() / unit / timed.ratio - 1.0).abs() < 1e-9);
            assert!(record.ci95[0] <= record.p50 && record.p50 <= record.ci95[1]);
            assert!(record.p90 >= record.p50);
            assert!(record.samples.len() >= 12, "{name}: {:?}", record.samples);
            assert_eq!(evidence.cycles.len(), record.samples.len());
            assert_eq!(evidence.cache, CacheMode::Warm);
            // The first of a session is its incumbent, and timed cold as well.
            assert!(timed.replaces_incumbent);
            let cold = evidence.other.as_ref().unwrap();
            assert_eq!(cold.cache, CacheMode::Cold);
            // Each mode has a unit of its own, taken where the drifting clock was then.
            let cold_ratio = cold.p50.get() / (1.3 * record.p50.get());
            assert!((cold_ratio - 1.0).abs() < 0.15, "{name}: {cold_ratio}");
        }
    }
}

#[test]
fn two_modes_are_flagged_and_get_more_samples() {
    let noise = Noise {
        modes: 0.4,
        mode: 0.08,
        ..CLOCKS[0].1
    };
    let mut clock = SyntheticClock::new(noise, vec![12.0, 10.0, 30.0], 3);
    let mut session = session(&mut clock, None);
    let timed = time(&mut clock, &mut session);
    let record = timed.measured.record();
    let flags = &record.evidence.as_ref().unwrap().flags;
    assert!(
        flags.contains(&"bimodal".to_owned()),
        "{flags:?} {:?}",
        record.evidence
    );
    assert!(record.samples.len() > 40, "{}", record.samples.len());
}

#[test]
fn a_clear_loser_is_dropped_after_three_samples() {
    let mut clock = SyntheticClock::new(CLOCKS[1].1, vec![12.0, 10.0, 30.0], 1);
    let mut session = session(&mut clock, None);
    session.incumbent = Some(INCUMBENT_RUNNER);
    let timed = time(&mut clock, &mut session);
    let record = timed.measured.record();
    assert_eq!(record.samples.len(), 3);
    assert_eq!(record.evidence.as_ref().unwrap().flags, ["raced"]);
    assert!(!timed.replaces_incumbent && timed.duel.is_none());
}

fn against(truth: f64, change: impl FnOnce(&mut SyntheticClock)) -> executor::TimingResult {
    let mut clock = SyntheticClock::new(CLOCKS[0].1, vec![truth, 10.0, 30.0], 5);
    let mut session = session(&mut clock, None);
    session.incumbent = Some(INCUMBENT_RUNNER);
    change(&mut clock);
    time(&mut clock, &mut session)
}

#[test]
fn a_faster_candidate_replaces_the_incumbent_by_a_duel() {
    let timed = against(9.5, |_| {});
    assert!(timed.replaces_incumbent);
    assert_eq!(timed.duel.unwrap().decision, Decision::Faster);
    assert!(!against(9.95, |_| {}).replaces_incumbent, "half a per cent");
}

#[test]
fn a_win_that_the_cycles_do_not_confirm_is_none() {
    let timed = against(10.0, |clock| clock.liar = Some((CHALLENGER, 1.2)));
    assert!(!timed.replaces_incumbent);
    let flags = &timed.measured.record().evidence.as_ref().unwrap().flags;
    assert!(flags.contains(&"cycles_disagree".to_owned()), "{flags:?}");
}

fn calibration() -> Calibration {
    Calibration {
        null_us: Some(1.0),
        tensor_tflops: Some(100.0),
        dram_gb_s: Some(300.0),
        promise: DatasheetPeaks::default(),
        ..Calibration::default()
    }
}

#[test]
fn a_time_below_the_floor_of_physics_is_refused() {
    // 1 GFLOP at 100 TFLOP/s takes 10 µs, and 6 MB at 300 GB/s take 20 µs cold.
    let work = |bytes| NeededWork {
        flops: Some(1e9),
        bytes: Some(bytes),
        input_bits: 16,
    };
    for (truth, bytes, expected) in [
        (9.0, 1.0, Some("arithmetic peak")),
        (10.5, 1.0, None),
        (12.0, 6e6, Some("memory bandwidth")),
        (16.5, 6e6, None),
        (0.5, 1.0, Some("arithmetic peak")),
    ] {
        let mut clock = SyntheticClock::new(CLOCKS[0].1, vec![truth, 10.0, 30.0], 2);
        let (work, mut session) = (work(bytes), session(&mut clock, Some(calibration())));
        let timed = time_challenger(&mut clock, &mut session, &work, &mut |_, _| Ok(()));
        match (timed, expected) {
            (Ok(_), None) => {}
            (Err(refused), Some(limit)) => {
                assert_eq!(refused.verdict, Verdict::Implausible);
                assert!(refused.detail.contains(limit), "{}", refused.detail);
            }
            (other, _) => panic!("{truth} µs: {other:?}"),
        }
    }
}

/// A clock whose outputs and faults are made up.
struct Odd {
    clock: SyntheticClock,
    micros: Option<f64>,
    poisoned: u32,
    events: Vec<&'static str>,
}

impl Odd {
    fn new(micros: Option<f64>) -> Self {
        Self {
            clock: SyntheticClock::new(CLOCKS[0].1, vec![12.0, 10.0, 30.0], 2),
            micros,
            poisoned: 0,
            events: Vec::new(),
        }
    }

    /// Times the challenger, with that look at what it computes.
    fn time(&mut self, look: &mut Recheck<'_>) -> Result<TimingResult, Judgement> {
        let mut session =
            TimingSession::begin(self, REFERENCE, None, None, brief()).expect("it warms up");
        time_challenger(self, &mut session, &NO_WORK, look)
    }
}

impl Stopwatch for Odd {
    fn sample(
        &mut self,
        subject: Subject,
        cache: CacheMode,
        launches: u32,
    ) -> Result<Sample, Judgement> {
        if subject == CHALLENGER && self.events.last() != Some(&"sample") {
            self.events.push("sample");
        }
        let sample = self.clock.sample(subject, cache, launches)?;
        let micros = self.micros.filter(|_| subject == CHALLENGER);
        Ok(micros.map_or(sample, Sample::of_micros))
    }

    fn pause(&mut self, how_long: std::time::Duration) {
        self.clock.pause(how_long);
    }

    fn poison(&mut self, _subject: Subject) -> Result<(), Judgement> {
        self.poisoned += 1;
        self.events.push("poison");
        Ok(())
    }

    fn outputs(&mut self, _subject: Subject) -> Result<Vec<OutputSet>, Judgement> {
        self.events.push("outputs");
        Ok(vec![vec![(1, Contents::Host(vec![0xff; 4]))]])
    }
}

#[test]
fn outputs_are_poisoned_before_the_timed_launches_and_looked_at_after_them() {
    let mut odd = Odd::new(None);
    let refused = odd
        .time(&mut |watch, subject| {
            let sets = watch.outputs(subject)?;
            assert_eq!(sets[0][0].1, Contents::Host(vec![0xff; 4]));
            Err(Judgement::new(
                Verdict::Incorrect,
                "the timed launches wrote nothing",
            ))
        })
        .unwrap_err();
    assert_eq!(refused.verdict, Verdict::Incorrect);
    assert_eq!(odd.events, ["poison", "sample", "outputs"]);
}

#[test]
fn the_launch_after_the_timed_ones_is_judged_as_well() {
    let mut odd = Odd::new(None);
    let mut looks = 0;
    let refused = odd
        .time(&mut |watch, subject| {
            watch.outputs(subject)?;
            looks += 1;
            match looks {
                1 => Ok(()),
                _ => Err(Judgement::new(Verdict::Incorrect, "it stopped working")),
            }
        })
        .unwrap_err();
    assert_eq!(refused.verdict, Verdict::Incorrect);
    let once = ["poison", "sample", "outputs"];
    assert_eq!(odd.events, [once, once].concat());
}

#[test]
fn a_clock_that_gives_no_time_is_implausible() {
    for micros in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let fault = Odd::new(Some(micros)).time(&mut |_, _| Ok(())).unwrap_err();
        assert_eq!(fault.verdict, Verdict::Implausible);
    }
}

#[test]
fn the_finale_ranks_by_the_truth() {
    for (name, noise) in CLOCKS {
        let truth = vec![10.6, 10.0, 30.0, 10.0, 11.5];
        let mut clock = SyntheticClock::new(noise, truth, 11);
        let session = session(&mut clock, None);
        let finalists = [Subject(0), Subject(1), Subject(3), Subject(4)];
        let finale = executor::finale(&mut clock, &session, &finalists, 4).unwrap();
        let time = |finalist: usize| {
            let measured = finale.measured(&Given, finalist, CacheMode::Warm);
            measured.unwrap().p50().get()
        };
        let mut order = [0, 1, 2, 3];
        order.sort_by(|a, b| time(*a).total_cmp(&time(*b)));
        assert!(
            order[..2] == [1, 2] || order[..2] == [2, 1],
            "{name}: {order:?}"
        );
        assert_eq!(order[2..], [0, 3], "{name}");
        let measured = finale.measured(&Given, 0, CacheMode::Warm).unwrap();
        let ratio = measured.p50().get() / session.warm.session_us;
        // The session's reference follows the clock: what it drifts during the finale stands between.
        assert!(
            (ratio / (10.6 / 30.0) - 1.0).abs() < 0.03,
            "{name}: {ratio}"
        );
        assert_eq!(measured.record().samples.len(), 40);
    }
}
