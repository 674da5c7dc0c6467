//! The gate against devices that lie: each fake does everything right but one thing.

mod proof;
mod sampled;
mod timed_size;

use std::collections::BTreeMap;
use std::ops::Range;
use tuner_core::element::Element;
use tuner_core::fill::Fill;
use tuner_core::judgement::Judgement;
use tuner_core::plan::{Code, Plan, PlanArgument, PlanGate, PlanLaunch, PlanReference, Role};
use tuner_core::record::Verdict;
use tuner_judge::gate::level::Level;
use tuner_judge::gate::recheck;
use tuner_judge::gate::references::References;
use tuner_judge::gate::verify::{Demands, Evidence, verify};
use tuner_judge::session::{Run, RunReport, Session, Slot};

/// What the device does besides computing row sums.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Lie {
    /// Nothing.
    Honest,
    /// Says that it ran, and did not.
    NeverRan,
    /// Leaves the last row out.
    LastRowMissing,
    /// One row has a relative error of 1e-3.
    SlightlyWrong,
    /// Answers with what the first data gave, whatever the data.
    Remembers,
    /// Each run differs in the last bit.
    Unsteady,
    /// The naive kernel that candidates are compared with is wrong.
    WrongReference,
    /// Writes to its input.
    ChangesInput,
    /// Results are NaN.
    NotANumber,
    /// Runs the first time only; later what it left lies in the same memory.
    RunsOnce,
    /// Works on another stream: what it computes arrives when the next launch is made.
    Late,
    /// The thirtieth run differs in the last bit.
    RarelyUnsteady,
    /// Says that the launch failed.
    Fails,
    /// Allocation fails.
    NoMemory,
}

struct Fake {
    lie: Lie,
    /// Whether it can tell what was written.
    tells: bool,
    buffers: Vec<Vec<u8>>,
    written: BTreeMap<usize, Vec<bool>>,
    runs: u32,
    memory: Option<Vec<f32>>,
    late: Option<Vec<f32>>,
}

const ROWS: usize = 4;
const LENGTH: usize = 100;

impl Fake {
    fn new(lie: Lie, tells: bool) -> Self {
        let (buffers, written) = (Vec::new(), BTreeMap::new());
        Self {
            lie,
            tells,
            buffers,
            written,
            runs: 0,
            memory: None,
            late: None,
        }
    }

    fn sums(&self) -> Vec<f32> {
        let values: Vec<f32> = self.buffers[0]
            .chunks_exact(4)
            .map(|bytes| f32::from_le_bytes(bytes.try_into().expect("four bytes")))
            .collect();
        values.chunks(LENGTH).map(|row| row.iter().sum()).collect()
    }

    fn put(&mut self, row: usize, value: f32) {
        self.buffers[1][row * 4..row * 4 + 4].copy_from_slice(&value.to_le_bytes());
        if let Some(written) = self.written.get_mut(&1) {
            written[row * 4..row * 4 + 4].fill(true);
        }
    }
}

impl Session for Fake {
    fn reset(&mut self) {
        self.buffers.clear();
        self.written.clear();
    }

    fn alloc(&mut self, _name: &str, bytes: u64) -> Result<Slot, Judgement> {
        if self.lie == Lie::NoMemory {
            return Err(Judgement::new(Verdict::OutOfMemory, "none left"));
        }
        self.buffers
            .push(vec![0; usize::try_from(bytes).expect("small")]);
        Ok(Slot(self.buffers.len() - 1))
    }

    fn upload(&mut self, slot: Slot, bytes: &[u8]) -> Result<(), Judgement> {
        self.buffers[slot.0].copy_from_slice(bytes);
        Ok(())
    }

    fn poison(&mut self, slot: Slot, pattern: &[u8]) -> Result<(), Judgement> {
        for (byte, poison) in self.buffers[slot.0].iter_mut().zip(pattern.iter().cycle()) {
            *byte = *poison;
        }
        let length = self.buffers[slot.0].len();
        self.written.insert(slot.0, vec![false; length]);
        Ok(())
    }

    fn download(&mut self, slot: Slot) -> Result<Vec<u8>, Judgement> {
        Ok(self.buffers[slot.0].clone())
    }

    fn unwritten(&self, slot: Slot) -> Option<Vec<Range<u64>>> {
        let bytes = self.written.get(&slot.0)?;
        let mut holes: Vec<Range<u64>> = Vec::new();
        for (_, at) in bytes.iter().zip(0u64..).filter(|(written, _)| !**written) {
            match holes.last_mut() {
                Some(last) if last.end == at => last.end += 1,
                _ => holes.push(Range {
                    start: at,
                    end: at + 1,
                }),
            }
        }
        self.tells.then_some(holes)
    }

    fn can_sample(&self) -> bool {
        false
    }

    fn run(&mut self, run: &Run<'_>) -> Result<RunReport, Judgement> {
        self.runs += 1;
        let mut sums = self.sums();
        if run.launch.entry == "naive" {
            if self.lie == Lie::WrongReference {
                sums[3] += 1.0;
            }
            for (row, sum) in sums.into_iter().enumerate() {
                self.put(row, sum);
            }
            return Ok(RunReport::default());
        }
        match self.lie {
            Lie::NeverRan => return Ok(RunReport::default()),
            Lie::Fails => {
                let detail = "unspecified launch failure";
                return Err(Judgement::new(Verdict::Crashed, detail));
            }
            Lie::SlightlyWrong => sums[2] *= 1.001,
            Lie::NotANumber => sums[1] = f32::NAN,
            Lie::Remembers => sums = self.memory.get_or_insert(sums).clone(),
            Lie::Unsteady if self.runs > 1 => sums[0] = sums[0].next_up(),
            Lie::RarelyUnsteady if self.runs == 30 => sums[0] = sums[0].next_up(),
            Lie::RunsOnce if self.runs > 1 => return Ok(RunReport::default()),
            Lie::Late => {
                let before = self.late.replace(sums);
                for (row, sum) in before.into_iter().flatten().enumerate() {
                    self.put(row, sum);
                }
                return Ok(RunReport::default());
            }
            Lie::ChangesInput => self.buffers[0][7] ^= 1,
            _ => {}
        }
        let rows = if self.lie == Lie::LastRowMissing {
            ROWS - 1
        } else {
            ROWS
        };
        for (row, sum) in sums.into_iter().enumerate().take(rows) {
            self.put(row, sum);
        }
        Ok(RunReport::default())
    }
}

fn plan() -> Plan {
    let argument = |name: &str, role, shape: &[u64]| PlanArgument {
        fill: Fill::Uniform { min: 0.5, max: 1.0 },
        ..PlanArgument::new(name, Element::F32, role, shape)
    };
    Plan::new(
        vec![
            argument("x", Role::Input, &[ROWS as u64, LENGTH as u64]),
            argument("y", Role::Output, &[ROWS as u64]),
        ],
        vec![PlanLaunch::new("sum", [1; 3], [32, 1, 1], vec![0, 1])],
        Code::default(),
        PlanReference::Oracle("reduce_sum".into()),
    )
}

/// The plan with a naive kernel in place of the oracle, which may be held against float64.
fn with_reference(oracle: Option<&str>, tolerance: f64) -> Plan {
    let plain = plan();
    Plan {
        reference: PlanReference::Kernel {
            code: plain.code.clone(),
            launch: PlanLaunch {
                entry: "naive".into(),
                ..plain.launches[0].clone()
            },
            oracle: oracle.map(str::to_owned),
        },
        gate: PlanGate {
            atol: Some(tolerance),
            ..plain.gate
        },
        ..plain
    }
}

fn judge_at(level: Level, lie: Lie, plan: &Plan) -> Result<Evidence, Judgement> {
    verify(
        &mut Fake::new(lie, true),
        plan,
        &Demands::for_level(level, &[1], 0),
        &mut References::default(),
    )
    .expect("the oracle fits")
    .map(|(_, evidence)| evidence)
}

fn judge(lie: Lie, tells: bool) -> Result<Evidence, Judgement> {
    let demands = Demands {
        seeds: vec![1, 2],
        ..Demands::default()
    };
    verify(
        &mut Fake::new(lie, tells),
        &plan(),
        &demands,
        &mut References::default(),
    )
    .expect("the oracle fits")
    .map(|(_, evidence)| evidence)
}

#[test]
fn an_honest_device_passes_with_its_margin() {
    for tells in [true, false] {
        let evidence = judge(Lie::Honest, tells).unwrap();
        assert!(evidence.max_error.unwrap() <= 1.0, "{evidence:?}");
    }
}

#[test]
fn no_lie_gets_through() {
    for (lie, verdict, detail) in [
        (Lie::NeverRan, Verdict::Incorrect, ""),
        (Lie::LastRowMissing, Verdict::Incorrect, ""),
        (Lie::SlightlyWrong, Verdict::Incorrect, "y[2]"),
        (Lie::Remembers, Verdict::Incorrect, "y[0]"),
        (Lie::Unsteady, Verdict::Nondeterministic, "element 0 of `y`"),
        (
            Lie::ChangesInput,
            Verdict::Incorrect,
            "changed its input `x`",
        ),
        (Lie::NotANumber, Verdict::Incorrect, "y[1]"),
        (Lie::RunsOnce, Verdict::Nondeterministic, "differ"),
        (Lie::Late, Verdict::Incorrect, ""),
        (Lie::Fails, Verdict::Crashed, "unspecified launch failure"),
        (Lie::NoMemory, Verdict::OutOfMemory, "none left"),
    ] {
        for tells in [true, false] {
            let rejection = judge(lie, tells).unwrap_err();
            assert_eq!(rejection.verdict, verdict, "{lie:?}: {rejection:?}");
            assert!(
                rejection.detail.contains(detail),
                "{lie:?}: {}",
                rejection.detail
            );
        }
    }
}

#[test]
fn an_output_that_nobody_wrote_is_named() {
    let detail = judge(Lie::LastRowMissing, true).unwrap_err().detail;
    assert!(
        detail.contains("1 of 4 elements of `y` are never written"),
        "{detail}"
    );
    assert!(detail.contains("the first is element 3"), "{detail}");
}

#[test]
fn an_honest_device_passes_every_level() {
    for level in [Level::Screening, Level::Timing, Level::Check, Level::Final] {
        for plan in [plan(), with_reference(Some("reduce_sum"), 1e-3)] {
            judge_at(level, Lie::Honest, &plan).unwrap();
        }
    }
}

#[test]
fn a_rare_difference_shows_in_fifty_runs() {
    judge_at(Level::Screening, Lie::RarelyUnsteady, &plan()).unwrap();
    let rejection = judge_at(Level::Final, Lie::RarelyUnsteady, &plan()).unwrap_err();
    assert_eq!(rejection.verdict, Verdict::Nondeterministic);
}

#[test]
fn outputs_that_do_not_depend_on_the_inputs_are_found_whatever_the_tolerance() {
    let rejection =
        judge_at(Level::Timing, Lie::Remembers, &with_reference(None, 1e9)).unwrap_err();
    assert_eq!(rejection.verdict, Verdict::Incorrect);
    let detail = rejection.detail;
    assert!(detail.contains("do not depend on the inputs"), "{detail}");
}

#[test]
fn a_wrong_reference_kernel_is_the_spaces_fault_and_no_candidates() {
    let error = verify(
        &mut Fake::new(Lie::WrongReference, true),
        &with_reference(Some("reduce_sum"), 1e-3),
        &Demands::default(),
        &mut References::default(),
    )
    .unwrap_err();
    let text = error.to_string();
    assert!(text.contains("the reference kernel disagrees"), "{text}");
    assert!(text.contains("y[3]"), "{text}");
}

#[test]
fn adversarial_inputs_are_judged_by_float64_beside_a_reference_kernel() {
    // Within this tolerance a last row that is never summed would pass; the integers do not let it.
    let plan = with_reference(Some("reduce_sum"), 1e3);
    let rejection = judge_at(Level::Check, Lie::SlightlyWrong, &plan).unwrap_err();
    assert!(
        rejection.detail.contains("small integers"),
        "{}",
        rejection.detail
    );
}

#[test]
fn what_timed_launches_left_is_looked_at_again() {
    let plan = plan();
    let mut references = References::default();
    let mut look = |bytes: Vec<u8>| {
        let set = vec![(1, tuner_judge::session::Contents::Host(bytes))];
        let mut device = Fake::new(Lie::Honest, true);
        recheck(&plan, 1, &[set], &mut references, &mut device).expect("the oracle fits")
    };
    // A graph that never ran leaves the poison, and one that ran half leaves some of it.
    let poison = Element::F32.poison().repeat(ROWS);
    assert_eq!(look(poison).unwrap_err().verdict, Verdict::Incorrect);
    let mut fake = Fake::new(Lie::Honest, true);
    let mut own = References::default();
    let demands = Demands {
        seeds: vec![1],
        ..Demands::default()
    };
    verify(&mut fake, &plan, &demands, &mut own)
        .expect("fits")
        .expect("right");
    let right = fake.buffers[1].clone();
    look(right.clone()).unwrap();
    let mut half = right;
    half[8..].copy_from_slice(&Element::F32.poison().repeat(ROWS - 2));
    assert_eq!(look(half).unwrap_err().verdict, Verdict::Incorrect);
}

/// A time needs the gate's proof, so nothing else in the program may claim to be one.
#[test]
fn only_the_gate_makes_a_proof() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut folders = vec![root.join("src"), root.join("crates")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let claims = text.lines().filter(|line| line.contains("Proof for "));
                found.extend(claims.map(|_| path.clone()));
            }
        }
    }
    assert_eq!(found, [root.join("crates/judge/src/gate/verified.rs")]);
}
