//! The device worker's host against a worker with corrupted messages or a premature end. A
//! candidate gets its own judgement, a verdict that names the worker's failure, or `not_judged`;
//! the next candidate is judged as usual.
//!
//! The program is its own worker and its own proxy, so it has no test harness: it exits with 0 if
//! every point passed.
#![expect(clippy::expect_used, reason = "a test that cannot go on should fail")]

use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tuner_core::judgement::Judgement;
use tuner_core::plan::{Code, Plan, PlanReference};
use tuner_core::record::Verdict;
use tuner_device::step::Step;
use tuner_device::worker::host::{Settings, Worker, WorkerError};
use tuner_device::worker::protocol::{Job, Request, Response};
use tuner_process::{Parent, to_json};
use tuner_testkit::points;
use tuner_testkit::proxy::{self, Point};

/// Candidates of a conversation; each has two replies: the begin of a step, and the judgement.
const CANDIDATES: u32 = 2;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["worker", ..] => points::code(worker().map(|()| 0)),
        ["slow", telling] => points::code(slow(*telling == "telling").map(|()| 0)),
        ["failing-device", ..] => points::code(failing_device().map(|()| 0)),
        ["proxy", point, mark, ..] => points::code(harmed_once(point, mark, &arguments[3..])),
        // Query of test runners to every test program.
        ["--list", ..] => ExitCode::SUCCESS,
        _ => check_all_points(),
    }
}

/// Runs the proxy for the first worker only: it finds no mark yet.
fn harmed_once(point: &str, mark: &str, arguments: &[String]) -> io::Result<i32> {
    if std::fs::File::create_new(mark).is_err() {
        return worker().map(|()| 0);
    }
    proxy::run(point.parse().map_err(io::Error::other)?, arguments)
}

/// Judges a candidate by repeating the sizes of its code.
fn worker() -> io::Result<()> {
    let parent = Parent::connect()?;
    let reply = |response: Response| parent.replies().send(&[&to_json(&response)?]);
    while let Some(request) = parent.request() {
        let Request::Judge(job) = Request::from_parts(request)? else {
            return Err(io::Error::other("another request"));
        };
        reply(Response::Begins(Step::Gate))?;
        let code = job.timed.map(|plan| plan.code);
        let code = code.ok_or(io::ErrorKind::InvalidData)?;
        let judgement = Judgement {
            verdict: Verdict::Ok,
            detail: format!("{} {}", code.ptx.len(), code.cubin.len()),
            hazards: Vec::new(),
            warnings: Vec::new(),
            max_error: None,
            compared: None,
        };
        reply(Response::Judged(Box::new(judgement.into())))?;
    }
    Ok(())
}

/// Time that a slow worker takes for a candidate: three deadlines.
const SLOW: Duration = Duration::from_millis(4_500);
const DEADLINE: Duration = Duration::from_millis(1_500);

/// Judges a candidate for longer than the deadline of a step; with `telling`, it reports progress,
/// as workers do while they compare the whole outputs of a large problem.
fn slow(telling: bool) -> io::Result<()> {
    let parent = Parent::connect()?;
    let reply = |response: Response| parent.replies().send(&[&to_json(&response)?]);
    while parent.request().is_some() {
        let began = Instant::now();
        reply(Response::Begins(Step::Gate))?;
        while began.elapsed() < SLOW {
            std::thread::sleep(DEADLINE / 15);
            if telling {
                reply(Response::Begins(Step::Gate))?;
            }
        }
        reply(Response::Judged(Box::new(Judgement::ok(None).into())))?;
    }
    Ok(())
}

/// Checks that a worker that reports progress is waited for, and one that does not is killed as
/// hung.
fn check_slow(how: &str, wanted: Verdict) -> Result<(), String> {
    let settings = Settings::for_device("vgpu:h100").map_err(|error| error.to_string())?;
    let mut worker = Worker::new(Settings {
        program: std::env::current_exe().map_err(|error| error.to_string())?,
        arguments: vec!["slow".to_owned(), how.to_owned()],
        load: DEADLINE,
        gate: DEADLINE,
        ..settings
    });
    let judged = worker.judge(job(0)).map_err(|error| error.to_string())?;
    match judged.judgement.verdict {
        verdict if verdict == wanted => Ok(()),
        _ => Err(format!("{how}: {judged:?}")),
    }
}

/// Answers every candidate with a device failure.
fn failing_device() -> io::Result<()> {
    let parent = Parent::connect()?;
    while parent.request().is_some() {
        let lost = Response::Lost("an uncorrectable memory error".to_owned());
        parent.replies().send(&[&to_json(&lost)?])?;
    }
    Ok(())
}

/// Checks that a failing device does not affect its candidates; after three in a row it is lost.
fn check_failing_device() -> Result<(), String> {
    let settings = Settings::for_device("vgpu:h100").map_err(|error| error.to_string())?;
    let mut worker = Worker::new(Settings {
        program: std::env::current_exe().map_err(|error| error.to_string())?,
        arguments: vec!["failing-device".to_owned()],
        ..settings
    });
    for number in 0..2 {
        let judged = worker.judge(job(number));
        let judged = judged.map_err(|error| error.to_string())?.judgement;
        if judged.verdict != Verdict::NotJudged || !judged.detail.contains("uncorrectable") {
            return Err(format!("candidate {number}: {judged:?}"));
        }
    }
    match worker.judge(job(2)) {
        Err(WorkerError::DeviceLost(_)) => Ok(()),
        other => Err(format!("the third candidate: {other:?}")),
    }
}

/// Returns a candidate that is distinguished by the size of its code.
fn job(number: u32) -> Job {
    let code = Code {
        cubin: vec![0x7f; 1_000 * (1 + number as usize)].into(),
        ptx: "p".repeat(90_000 + number as usize).into(),
        ..Code::default()
    };
    let oracle = PlanReference::Oracle("none".into());
    Job {
        timed: Some(Plan::new(Vec::new(), Vec::new(), code, oracle)),
        ..Job::default()
    }
}

fn expected(number: u32) -> String {
    format!("{} {}", 90_000 + number, 1_000 * (1 + number))
}

fn check(point: Point, mark: &Path) -> Result<(), String> {
    let within = Duration::from_millis(if point.waits() { 500 } else { 20_000 });
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let (point_text, mark) = (point.to_string(), mark.to_string_lossy());
    let mut worker = Worker::new(Settings {
        program: own,
        arguments: ["proxy", &point_text, &mark, "worker"]
            .map(str::to_owned)
            .to_vec(),
        load: within,
        gate: within,
        ..Settings::for_device("vgpu:h100").map_err(|error| error.to_string())?
    });
    let mut blamed = 0;
    for number in 0..=CANDIDATES {
        let judged = worker.judge(job(number));
        let judged = judged.map_err(|error| error.to_string())?;
        match judged.judgement.verdict {
            Verdict::Ok if judged.judgement.detail == expected(number) => {}
            Verdict::Timeout | Verdict::Crashed if judged.judgement.detail.len() > 20 => {
                blamed += 1
            }
            _ => return Err(format!("candidate {number}: {judged:?}")),
        }
    }
    // A short deadline may pass on a busy machine without a fault.
    let allowed = match point.waits() {
        true => CANDIDATES + 1,
        false => u32::from(point.may_be_blamed()),
    };
    if blamed > allowed {
        return Err(format!("{blamed} candidates were blamed"));
    }
    Ok(())
}

fn check_all_points() -> ExitCode {
    let folder = tempfile::tempdir().expect("a temporary folder");
    // Every fifth of the many points: all of them are tested in crates/process.
    let fast = Point::list_fast(CANDIDATES, 2 * CANDIDATES);
    let all: Vec<Point> = fast
        .into_iter()
        .step_by(5)
        .chain(Point::slow(1, 2))
        .collect();
    let failed = points::check_all(&all, |number, point| {
        check(point, &folder.path().join(number.to_string()))
    });
    let conclusion = points::conclude("between the tuner and a device worker", all.len(), failed);
    check_failing_device().expect("a failing device is no verdict");
    check_slow("telling", Verdict::Ok).expect("a worker at work is waited for");
    check_slow("silent", Verdict::Timeout).expect("a silent worker has hung");
    conclusion
}
