//! Made-up runs and trials for the store's and the exports' tests.

use tuner_core::evidence::{Measured, Proof};
use tuner_core::judgement::Judgement;
use tuner_core::record::{
    Compared, Compilation, ConfigValues, ConstraintDefinition, Definition, DeviceKind, Hazard,
    LeaderboardRow, Measurement, ParameterDefinition, Provenance, TaskKey, TimingKind, TrialRecord,
    Verdict,
};
use tuner_core::units::{ContentHash, Micros, Seed};
use tuner_core::value::Value;
use tuner_store::{
    DeviceStart, LeaderboardQuery, RecordingSource, RunEnd, RunId, RunStart, Store, TaskStart,
};

pub(crate) fn hash(text: &str) -> ContentHash {
    ContentHash::from_parts([text.as_bytes()])
}

pub(crate) fn config(tile: i64, pad: i64) -> ConfigValues {
    vec![
        ("TILE".to_owned(), Value::Int(tile)),
        ("PAD".to_owned(), Value::Int(pad)),
    ]
}

pub(crate) fn definition() -> Definition {
    let parameter = |name: &str, values: &[i64], default: i64| ParameterDefinition {
        name: name.to_owned(),
        values: values.iter().map(|value| Value::Int(*value)).collect(),
        default: Some(Value::Int(default)),
        doc: String::new(),
    };
    Definition {
        parameters: vec![
            parameter("TILE", &[16, 32, 64, 128], 32),
            parameter("PAD", &[0, 8], 0),
        ],
        derived: vec![("BYTES".to_owned(), "2 * TILE * (TILE + PAD)".to_owned())],
        constraints: vec![ConstraintDefinition {
            rule: "BYTES <= DEVICE_SHARED_BYTES and TILE % 16 == 0".to_owned(),
            why: "the tile must fit".to_owned(),
        }],
        launches: Vec::new(),
    }
}

pub(crate) fn start(kind: DeviceKind) -> RunStart {
    let (name, selector) = match kind {
        DeviceKind::Cuda => ("NVIDIA H200", "cuda:0"),
        DeviceKind::Vgpu => ("vgpu:h100", "vgpu:h100"),
        DeviceKind::Replay => ("NVIDIA A100-PCIE-40GB", "replay:file.json"),
    };
    let replay = kind == DeviceKind::Replay;
    RunStart {
        device: DeviceStart {
            name: name.to_owned(),
            kind,
            arch: "sm_90".to_owned(),
            selector: selector.to_owned(),
            recording: replay.then(|| RecordingSource {
                path: "/data/file.json".into(),
                hash: hash("recording"),
            }),
            environment: vec![("DEVICE_SHARED_BYTES".to_owned(), Value::Int(232_448))],
        },
        seed: Seed(u64::MAX),
        strategy: "evolve".to_owned(),
        settings: serde_json::json!({"evals": 10}),
        tasks: vec![TaskStart {
            kernel: "gemm".to_owned(),
            problem: "square".to_owned(),
            sizes: vec![("N".to_owned(), Value::Int(1024))],
            template_hash: (!replay).then(|| hash("template")),
            reference_hash: None,
            definition: definition(),
            default_config: Some(config(32, 0)),
            space_path: (!replay).then(|| "/spaces/gemm.yaml".into()),
            provenance: Provenance {
                commit: Some("c0ffee".to_owned()),
                dirty: true,
                diff_hash: Some("d1ff".to_owned()),
                host: "here".to_owned(),
                tuner_version: "0.1.0".to_owned(),
                driver: Some("580.65".to_owned()),
                nvrtc_version: Some("13.0".to_owned()),
            },
        }],
    }
}

pub(crate) fn key(start: &RunStart) -> TaskKey {
    start.key(&start.tasks[0])
}

pub(crate) fn timing_of(start: &RunStart) -> TimingKind {
    match start.device.kind {
        DeviceKind::Cuda => TimingKind::Measured,
        DeviceKind::Vgpu => TimingKind::Predicted,
        DeviceKind::Replay => TimingKind::Recorded,
    }
}

/// The gate's proof, as far as the store can tell.
struct Given;

impl Proof for Given {}

/// A trial as the store takes it.
pub(crate) fn proven(trial: TrialRecord) -> TrialRecord<Measured> {
    trial.map_time(|time| Measured::new(&Given, time))
}

/// An empty database in a folder of its own.
pub(crate) async fn fresh() -> (tempfile::TempDir, Store) {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&directory.path().join("tuner.db"))
        .await
        .unwrap();
    (directory, store)
}

/// A run that has stored these trials, and goes on.
pub(crate) async fn submitted(store: &Store, start: &RunStart, trials: &[TrialRecord]) -> RunId {
    let run = store.begin_run(start.clone()).await.unwrap();
    for trial in trials {
        let ack = store.submit(&run, &key(start), proven(trial.clone())).await;
        ack.unwrap().await.unwrap();
    }
    run
}

/// The same of a run that is over.
pub(crate) async fn finished(store: &Store, start: &RunStart, trials: &[TrialRecord]) {
    let run = submitted(store, start, trials).await;
    store.finish_run(&run, RunEnd::Finished).await.unwrap();
}

/// A time as the store takes it.
pub(crate) fn proven_time(time: Measurement) -> Measured {
    Measured::new(&Given, time)
}

/// A trial that passed; `version` stands for the template.
pub(crate) fn timed(start: &RunStart, sequence: u64, config: ConfigValues, us: f64) -> TrialRecord {
    let kind = timing_of(start);
    let version = format!(
        "{:?}{:?}",
        start.tasks[0].template_hash, start.tasks[0].sizes
    );
    let time = Micros::new(us).unwrap();
    TrialRecord {
        sequence,
        candidate_hash: hash(&format!("{version}{config:?}")),
        compilation: (kind != TimingKind::Recorded).then(|| Compilation {
            template_hash: start.tasks[0].template_hash.clone().unwrap(),
            cubin_hash: hash(&format!("cubin{config:?}")),
            nvrtc_version: "13.0".to_owned(),
            arch: "sm_90".to_owned(),
            registers: 64,
            spill_bytes: 0,
            stack_bytes: 0,
            shared_bytes: 8192,
            compile_us: 250_000,
            ptx_bytes: 9000,
            sass_bytes: 4096,
        }),
        config,
        judgement: Judgement {
            compared: (kind != TimingKind::Recorded).then_some(Compared::Whole),
            ..Judgement::ok(Some(0.25))
        },
        measurement: Some(Measurement {
            kind,
            p50: time,
            p90: time,
            ci95: [time, time],
            samples: vec![us],
            protocol: "test".to_owned(),
            reused: false,
            evidence: None,
        }),
        charged_us: 1000,
        origin: "mutate".to_owned(),
        counters: (kind == TimingKind::Predicted)
            .then(|| serde_json::json!({"bound": "dram", "bank_conflicts": 3.0})),
    }
}

/// A trial that failed.
pub(crate) fn failed(
    start: &RunStart,
    sequence: u64,
    config: ConfigValues,
    verdict: Verdict,
) -> TrialRecord {
    TrialRecord {
        judgement: Judgement {
            hazards: vec![Hazard {
                kind: verdict,
                detail: "store".to_owned(),
                file: Some("kernel.cu".to_owned()),
                line: Some(7),
                block: Some([1, 0, 0]),
                thread: None,
                address: Some("0x10 (c)".to_owned()),
            }],
            ..Judgement::new(verdict, "wrote 4 bytes past the end of c")
        },
        measurement: None,
        ..timed(start, sequence, config, 1.0)
    }
}

/// The rows that a page asks for: those of boards that are cut off.
pub(crate) async fn first_rows(store: &Store) -> Vec<LeaderboardRow> {
    let query = LeaderboardQuery {
        top: Some(20),
        ..LeaderboardQuery::default()
    };
    store.leaderboard(&query).await.unwrap()
}
