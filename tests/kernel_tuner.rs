//! The comparison with Kernel Tuner: its script, and the stage of `scripts/gpu-check` that runs it, on the
//! stand-in for the driver and with a stand-in for Kernel Tuner.

use crate::program::{root, with_gpu};
use serde_json::Value;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// As much of the packages as the script asks for. It tries the first configurations of the space that
/// the restrictions leave, and says what it was given in a file.
const PACKAGES: [(&str, &str); 4] = [
    ("cuda/__init__.py", ""),
    ("cuda/bindings.py", ""),
    (
        "numpy.py",
        "float16 = 'float16'
class Array:
    def astype(self, element): return self
class Random:
    def normal(self, mean, deviation, shape): return Array()
class random:
    default_rng = staticmethod(lambda seed: Random())
def zeros(shape, element): return Array()
",
    ),
    (
        "kernel_tuner.py",
        "import itertools, json, os
__version__ = '0.0'
def tune_kernel(name, source, problem_size, arguments, tune_params, restrictions, smem_args, **rest):
    assert name == 'softmax' and '__global__' in source and len(arguments) == 2
    results = []
    for values in itertools.product(*tune_params.values()):
        config = dict(zip(tune_params, values))
        # The small space of the tests has this one too.
        if config['THREADS'] == 64 and all(eval(rule, {}, config) for rule in restrictions):
            shape = [problem_size(config), smem_args['size'](config)]
            results.append({**config, 'shape': shape, 'time': len(results) + 0.5})
        if len(results) == 50:
            break
    results.append({**results[0], 'time': results[0]['time']})
    results.append({**results[0], 'THREADS': 1024, 'time': 'CompilationFailedConfig'})
    with open(os.environ['KERNEL_TUNER_ASKED'], 'w') as file:
        rest.pop('answer')
        json.dump({'first': results[0], 'rest': rest}, file)
    return results, {}
",
    ),
];

/// Runs the stage; gives whether it passed, and its part of the report.
fn stage(folder: &Path, environment: &[(&str, &Path)]) -> (bool, Value) {
    let out = folder.join("out");
    let mut command = Command::new("python3");
    command
        .arg(root().join("scripts/gpu-check"))
        .arg(&out)
        .arg("--tuner")
        .arg(crate::rig::program())
        .args(["--minutes", "5", "--only", "kernel_tuner"])
        .env("TUNER_FAKE_GPU", out.join("tuner.db"))
        .env("TUNER_FAKE_GATE", "host")
        .env("XDG_CACHE_HOME", folder.join("cache"))
        .env("TUNER_CACHE", folder.join("compiled"))
        // No index and no folder of packages: pip finds nothing.
        .env("PIP_NO_INDEX", "1")
        .envs(environment.iter().copied());
    let output = command.output().expect("python3 runs");
    let text = std::fs::read_to_string(out.join("report.json")).expect("there is a report");
    let report: Value = serde_json::from_str(&text).expect("it is JSON");
    let markdown = std::fs::read_to_string(out.join("report.md")).expect("and for people");
    assert!(markdown.contains("## Kernel Tuner"), "{markdown}");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!errors.contains("Traceback"), "{errors}");
    let stage = report["stages"]["kernel_tuner"].clone();
    (output.status.success(), stage)
}

#[test]
fn both_tuners_get_the_same_space_and_both_winners_are_timed_in_turn() {
    let folder = tempfile::tempdir().unwrap();
    let packages = folder.path().join("packages");
    for (name, text) in PACKAGES {
        let path = packages.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let asked = folder.path().join("asked.json");
    let environment = [
        ("PYTHONPATH", packages.as_path()),
        ("KERNEL_TUNER_ASKED", asked.as_path()),
    ];
    let (passed, stage) = stage(folder.path(), &environment);
    assert!(passed, "{stage:#}");
    // Fifty that have a time and one that failed; what was asked for twice counts once.
    assert_eq!(stage["kernel_tuner"]["candidates"], 51, "{stage:#}");
    assert_eq!(stage["kernel_tuner"]["failed"], 1, "{stage:#}");
    assert_eq!(stage["kernel_tuner"]["best_us"], 500.0, "{stage:#}");
    assert_eq!(stage["tuner"]["candidates"], 3, "{stage:#}");
    let finale = stage["finale"].as_array().unwrap();
    assert_eq!(finale.len(), 2, "{stage:#}");
    assert!(
        finale.iter().all(|row| row["p50_us"].is_number()),
        "{stage:#}"
    );
    let asked: Value = serde_json::from_slice(&std::fs::read(asked).unwrap()).unwrap();
    assert_eq!(asked["first"]["shape"], serde_json::json!([[64], 0]));
    assert_eq!(asked["rest"]["lang"], "NVCUDA");
    assert!(
        asked["rest"]["strategy_options"]["time_limit"].is_number(),
        "{asked:#}"
    );
}

#[test]
fn where_kernel_tuner_cannot_be_installed_nothing_is_compared_and_the_report_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    // A package of that name that cannot be imported hides one that may be installed here.
    std::fs::write(empty.join("kernel_tuner.py"), "raise ImportError('hidden')").unwrap();
    let (passed, stage) = stage(folder.path(), &[("PYTHONPATH", &empty)]);
    assert!(passed, "{stage:#}");
    let note = stage["note"].as_str().unwrap();
    assert!(note.contains("pip cannot install it"), "{note}");
}

#[test]
fn kernel_tuners_space_has_as_many_configurations_as_ours() {
    for (problem, sizes) in [
        ("square4096", r#"{"R": 4096, "N": 4096}"#),
        ("vocabulary", r#"{"R": 512, "N": 131072}"#),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let space = root().join("search_spaces/softmax.yaml");
        let space = space.display().to_string();
        let words = ["space", &space, "--problem", problem, "--format", "json"];
        let output = with_gpu(folder.path())
            .args(words)
            .output()
            .expect("it runs");
        let ours: Value = serde_json::from_slice(&output.stdout).unwrap();
        let mut script = Command::new("python3")
            .arg(root().join("scripts/kernel-tuner-peer"))
            .arg("--count")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 runs");
        let shared = tuner_device::limits::by_name("h100").unwrap();
        let job = format!(
            "{{\"sizes\": {sizes}, \"shared_bytes\": {}}}",
            shared.shared_bytes
        );
        script
            .stdin
            .take()
            .unwrap()
            .write_all(job.as_bytes())
            .unwrap();
        let output = script.wait_with_output().unwrap();
        let theirs: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(ours["valid"], theirs["valid"].to_string(), "{problem}");
    }
}
