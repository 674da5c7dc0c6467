use super::*;
use crate::Work;
use std::path::PathBuf;
use tuner_core::plan::{Code, Plan, PlanReference};
use tuner_core::record::Compilation;
use tuner_core::units::ContentHash;

/// Returns work with this job.
fn work(job: Job) -> Work {
    let hash = || ContentHash::from_parts([]);
    Work {
        candidate: hash(),
        compilation: Compilation {
            template_hash: hash(),
            cubin_hash: hash(),
            nvrtc_version: "13.0".to_owned(),
            arch: "sm_90".to_owned(),
            registers: 32,
            spill_bytes: 0,
            stack_bytes: 0,
            shared_bytes: 0,
            compile_us: 0,
            ptx_bytes: 0,
            sass_bytes: 0,
        },
        job,
        same: hash(),
        put_off: true,
    }
}

#[test]
fn a_sender_chooses_the_plans_and_nothing_else() {
    let plan = |problem: &str| Plan {
        problem: problem.to_owned(),
        ..Plan::new(Vec::new(), Vec::new(), Code::default(), PlanReference::None)
    };
    let plans = Job {
        checks: vec![plan("small")],
        timed: Some(plan("large")),
        ..Job::default()
    };
    let sent = Job {
        seeds: Vec::new(),
        schedules: u32::MAX,
        level: Level::Final,
        proof_limit: Some(u64::MAX),
        outputs: Some(PathBuf::from("/etc")),
        ..plans.clone()
    };
    let text = serde_json::to_vec(&work(sent)).unwrap();
    let received: Work = serde_json::from_slice(&text).unwrap();
    let expected = Job {
        seeds: SEEDS.to_vec(),
        ..plans
    };
    assert_eq!(received, work(expected));
}
