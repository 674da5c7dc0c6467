//! What an evaluation costs beside the device: ask, look up, judge, store, announce, tell.
//!
//! `cargo bench --bench engine [-- FILE…]`; without files the project's own recording. The target
//! is 50 µs an evaluation, commits included.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tuner_core::record::TaskKey;
use tuner_core::units::Seed;
use tuner_device::replay::Recording;
use tuner_engine as engine;
use tuner_engine::{Evaluator as _, Event, Limits, Plan, ReplayEvaluator, Task};
use tuner_store::{DeviceStart, RunStart, Store, TaskStart};

/// Enough that opening the database does not show.
const EVALS: u64 = 4000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut files: Vec<PathBuf> = std::env::args_os()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .map(PathBuf::from)
        .collect();
    if files.is_empty() {
        files.push("tests/data/recorded/convbat_RTX3090.json.gz".into());
    }
    for file in files {
        let began = Instant::now();
        let recording = Arc::new(Recording::load(&file).map_err(|error| error.to_string())?);
        let load = began.elapsed();
        println!(
            "{}: load {:.1} ms, {} configurations",
            file.display(),
            load.as_secs_f64() * 1e3,
            recording.space.count()
        );
        let all = tuner_search::StrategyName::ALL.iter();
        for strategy in all.map(|strategy| strategy.name()) {
            let (evals, elapsed) = run(&recording, strategy)?;
            println!(
                "  {strategy}: {:.1} us per evaluation, store included ({evals} evaluations)",
                elapsed.as_secs_f64() * 1e6 / evals as f64
            );
        }
    }
    Ok(())
}

fn run(
    recording: &Arc<Recording>,
    strategy: &str,
) -> Result<(u64, Duration), Box<dyn std::error::Error>> {
    let evaluator = Arc::new(ReplayEvaluator::new(Arc::clone(recording)));
    let key = TaskKey {
        kernel: recording.kernel.clone(),
        problem: recording.problem.clone(),
        device: recording.device.clone(),
    };
    let facts = evaluator.facts();
    let start = RunStart {
        device: DeviceStart {
            name: facts.name.clone(),
            kind: facts.kind,
            arch: String::new(),
            selector: "replay".to_owned(),
            recording: None,
            environment: Vec::new(),
        },
        seed: Seed(1),
        strategy: strategy.to_owned(),
        settings: serde_json::Value::Null,
        tasks: vec![TaskStart {
            kernel: key.kernel.clone(),
            problem: key.problem.clone(),
            sizes: Vec::new(),
            template_hash: None,
            reference_hash: None,
            definition: recording.definition(),
            default_config: None,
            space_path: None,
            provenance: tuner_core::provenance::of_recording(),
        }],
    };
    let plan = Plan {
        id: None,
        tasks: vec![Task {
            knowledge: tuner_search::Knowledge::default(),
            key,
            space: recording.space.clone(),
            start: Vec::new(),
            weight: 1.0,
            work: 0.0,
        }],
        start,
        resume: None,
        limits: Limits {
            evals: Some(EVALS),
            budget: None,
            converged: None,
        },
        jobs: 1,
        live: None,
        objectives: None,
        known: Vec::new(),
    };
    let directory = std::env::temp_dir().join(format!("tuner-bench-{}", std::process::id()));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let measured = runtime.block_on(async {
        let store = Store::open(&directory.join("bench.db")).await?;
        let (_sender, shutdown) = tokio::sync::watch::channel(false);
        let began = Instant::now();
        let mut announced = 0_u64;
        let mut sink = |event: &Event| announced += u64::from(matches!(event, Event::Trial(_)));
        engine::run(&evaluator, plan, &store, shutdown, &mut sink).await?;
        let elapsed = began.elapsed();
        store.close().await?;
        Ok::<_, Box<dyn std::error::Error>>((announced, elapsed))
    });
    let _ = std::fs::remove_dir_all(&directory);
    measured
}
