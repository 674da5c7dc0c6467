//! The device's worker process: what it does to the tuner when it hangs, dies or is killed.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tuner_core::record::Verdict;
use tuner_device::limits;
use tuner_device::worker::host::{Settings, Worker, WorkerError};
use tuner_device::worker::protocol::Job;
use tuner_kernel::build::PlanBuilder;
use tuner_kernel::catalog;
use tuner_kernel::compile::{Compiler, CompilerSettings};
use tuner_space::Config;

/// The smallest check problem of the GEMM, at its default configuration.
fn job() -> Job {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let kernels = catalog::resolve(&["gemm_f32".to_owned()], root).expect("the GEMM is there");
    let kernel = Arc::new(kernels.into_iter().next().expect("one kernel"));
    let choices: Vec<u32> = kernel.spec.parameters.iter().map(|p| p.default).collect();
    let device = limits::by_name("h100").expect("a virtual GPU");
    let builder = PlanBuilder::new(kernel, "thin", &device, "sm_90").expect("a plan builder");
    let settings = CompilerSettings {
        isolation: tuner_kernel::compile::Isolation::InProcess,
        ..CompilerSettings::default()
    };
    let compiler = Compiler::new(settings).expect("NVRTC");
    let built = builder
        .build(&compiler, &Config::new(choices))
        .expect("the compiler works")
        .expect("the default compiles");
    Job {
        checks: vec![built.plan],
        timed: None,
        level: tuner_judge::gate::level::Level::Screening,
        seeds: vec![1],
        schedules: 0,
        proof_limit: None,
        outputs: None,
    }
}

fn worker(fault: &str) -> Worker {
    Worker::new(Settings {
        program: crate::rig::program().into(),
        arguments: ["device-worker", "--device", "vgpu:h100"]
            .map(str::to_owned)
            .to_vec(),
        environment: vec![("TUNER_FAULT".to_owned(), fault.to_owned())],
        load: Duration::from_secs(2),
        ..Settings::for_device("vgpu:h100").expect("this program has a path")
    })
}

#[test]
fn a_worker_that_hangs_is_killed_and_the_next_candidate_is_judged() {
    let job = job();
    let mut worker = worker("hang@1");
    assert_eq!(
        worker.judge(job.clone()).unwrap().judgement.verdict,
        Verdict::Ok
    );
    let hung = worker.judge(job.clone()).unwrap().judgement;
    assert_eq!(hung.verdict, Verdict::Timeout, "{hung:?}");
    assert!(
        hung.detail.contains("no answer within 2 s"),
        "{}",
        hung.detail
    );
    assert_eq!(worker.restarts(), 1);
    assert_eq!(worker.judge(job).unwrap().judgement.verdict, Verdict::Ok);
}

#[test]
fn a_deadline_of_the_caller_is_no_verdict_and_the_next_candidate_is_judged() {
    let job = job();
    let mut worker = worker("hang@1");
    let soon = |millis| Some(Instant::now() + Duration::from_millis(millis));
    worker.set_deadline(soon(60_000));
    let judged = worker.judge(job.clone()).unwrap().judgement;
    assert_eq!(judged.verdict, Verdict::Ok);
    for (millis, restarts) in [(100, 1), (0, 1)] {
        worker.set_deadline(soon(millis));
        let late = worker.judge(job.clone());
        assert!(matches!(late, Err(WorkerError::OutOfTime)), "{late:?}");
        assert_eq!(worker.restarts(), restarts);
    }
    worker.set_deadline(None);
    assert_eq!(worker.judge(job).unwrap().judgement.verdict, Verdict::Ok);
}

#[test]
fn a_worker_that_dies_is_the_candidates_outcome_with_the_signal() {
    let job = job();
    for (fault, expected) in [("abort@0", "signal: 6"), ("exit@0", "exit status: 7")] {
        let mut worker = worker(fault);
        for _ in 0..2 {
            // Each new worker counts from zero: every job meets the fault, and none ends the run.
            let dead = worker.judge(job.clone()).unwrap().judgement;
            assert_eq!(dead.verdict, Verdict::Crashed);
            assert!(dead.detail.contains(expected), "{}", dead.detail);
        }
        assert_eq!(worker.restarts(), 2);
    }
}

#[test]
fn a_worker_lost_from_outside_is_no_verdict_and_the_next_one_is_asked() {
    let job = job();
    // Killed at its second candidate, which the next worker judges as its first.
    for fault in ["kill@1", "stop@1"] {
        let mut worker = worker(fault);
        for _ in 0..2 {
            let judged = worker.judge(job.clone()).unwrap();
            assert!(judged.judgement.is_ok(), "{fault}: {judged:?}");
        }
        assert_eq!(worker.restarts(), 1, "{fault}");
    }
    // Each one is killed: the signal is told, and in the end that there is no use in going on.
    let mut worker = worker("kill@0");
    for _ in 0..7 {
        let lost = worker.judge(job.clone()).unwrap();
        let lost = lost.judgement;
        assert_eq!(lost.verdict, Verdict::NotJudged, "{lost:?}");
        assert!(lost.detail.contains("lost 3 times"), "{}", lost.detail);
        assert!(lost.detail.contains("signal: 9"), "{}", lost.detail);
    }
    assert_eq!(worker.restarts(), 21);
    let error = worker.judge(job).unwrap_err().to_string();
    assert!(error.contains("find what kills them"), "{error}");
}

#[test]
fn a_program_that_is_no_worker_judges_nothing_and_a_missing_one_is_an_error() {
    let mut noise = Worker::new(Settings {
        program: "/bin/echo".into(),
        arguments: vec!["x".repeat(100)],
        ..Settings::for_device("vgpu:h100").unwrap()
    });
    let answer = noise.judge(job()).unwrap().judgement;
    assert_eq!(answer.verdict, Verdict::NotJudged, "{answer:?}");
    let mut missing = Worker::new(Settings {
        program: "/nonexistent/tuner".into(),
        ..Settings::for_device("vgpu:h100").unwrap()
    });
    let error = missing.judge(job()).unwrap_err().to_string();
    assert!(error.contains("did not start"), "{error}");
}

/// Processes whose environment holds this text.
fn marked(mark: &str) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").expect("a Linux machine");
    let numbers = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let holds = |number: &u32| {
        let environment = std::fs::read(format!("/proc/{number}/environ")).unwrap_or_default();
        let name = std::fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        let has = |text: &[u8], part: &str| {
            text.windows(part.len())
                .any(|window| window == part.as_bytes())
        };
        has(&environment, mark) && has(&name, "device-worker")
    };
    numbers.filter(holds).collect()
}

fn within(seconds: u64, condition: impl Fn() -> bool) -> bool {
    let end = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < end {
        if condition() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

#[test]
fn a_hanging_worker_ends_with_its_tuner_even_when_that_is_killed() {
    let mark = format!("TUNER_TEST_MARK={}", std::process::id());
    let (name, value) = mark.split_once('=').unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut tuner = std::process::Command::new(crate::rig::program())
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["run", "gemm_f32", "--problem", "square1024", "--evals", "1"])
        .args(["--device", "vgpu:h100", "--db"])
        .arg(folder.path().join("t.db"))
        .env(name, value)
        .env("TUNER_FAULT", "hang@every")
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    assert!(
        within(60, || !marked(&mark).is_empty()),
        "no worker came up"
    );
    tuner.kill().unwrap();
    tuner.wait().unwrap();
    assert!(
        within(10, || marked(&mark).is_empty()),
        "the worker outlived its tuner"
    );
}

/// What a run said and how it ended, whose device workers are stopped (SIGSTOP) as soon as they come
/// up. `act` is done once, right after the first was stopped.
fn with_stopped_workers(
    budget: &str,
    act: impl FnOnce(&std::process::Child),
) -> (Option<i32>, String) {
    let mark = format!("TUNER_TEST_STOPPED={}-{budget}", std::process::id());
    let (name, value) = mark.split_once('=').unwrap();
    let folder = tempfile::tempdir().unwrap();
    let said = folder.path().join("said");
    let mut tuner = std::process::Command::new(crate::rig::program())
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args([
            "run",
            "gemm_f32",
            "--problem",
            "square1024",
            "--budget",
            budget,
        ])
        .args(["--device", "vgpu:h100", "--db"])
        .arg(folder.path().join("t.db"))
        .env(name, value)
        .stdout(std::process::Stdio::null())
        .stderr(std::fs::File::create(&said).unwrap())
        .spawn()
        .unwrap();
    let mut act = Some(act);
    let give_up = Instant::now() + Duration::from_secs(300);
    let status = loop {
        for worker in marked(&mark) {
            // One that is gone by now is no longer to be stopped.
            let worker = rustix::process::Pid::from_raw(worker.cast_signed()).unwrap();
            let _ = rustix::process::kill_process(worker, rustix::process::Signal::STOP);
            if let Some(act) = act.take() {
                act(&tuner);
            }
        }
        if let Some(status) = tuner.try_wait().unwrap() {
            break status;
        }
        if Instant::now() > give_up {
            tuner.kill().unwrap();
            tuner.wait().unwrap();
            let said = std::fs::read_to_string(&said).unwrap();
            panic!("a stopped worker holds up the run: {said}");
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(act.is_none(), "no worker came up");
    (status.code(), std::fs::read_to_string(&said).unwrap())
}

#[test]
fn the_budget_ends_a_run_whose_workers_are_stopped_and_the_run_says_so() {
    let (code, said) = with_stopped_workers("3s", |_| {});
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("the budget is used up"), "{said}");
    assert!(said.contains("workers that were stopped"), "{said}");
}

#[test]
fn the_first_interrupt_ends_a_run_whose_workers_are_stopped_and_says_what_is_waited_for() {
    let (code, said) = with_stopped_workers("1h", |tuner| {
        let tuner = rustix::process::Pid::from_child(tuner);
        rustix::process::kill_process(tuner, rustix::process::Signal::INT).unwrap();
    });
    assert_eq!(code, Some(130), "{said}");
    assert!(said.contains("press Ctrl-C again to stop now"), "{said}");
    assert!(said.contains("judging gemm_f32 square1024"), "{said}");
    assert!(said.contains("everything finished is stored"), "{said}");
}
