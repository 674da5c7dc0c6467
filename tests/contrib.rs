//! What `contrib/` has for others: files that their programs read, with commands that ours understands.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn path(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("contrib");
    folder.join(name)
}

fn documents(name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(path(name)).unwrap();
    serde_yaml::from_multiple(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The command's options are those of `tuner`.
#[track_caller]
fn assert_understood(arguments: &Value) {
    let all: Vec<&str> = arguments
        .as_array()
        .unwrap_or_else(|| panic!("no list: {arguments}"))
        .iter()
        .map(|argument| argument.as_str().unwrap())
        .collect();
    let mut help = Command::new(env!("CARGO_BIN_EXE_tuner"));
    let help = help.args([all[0], "--help"]).output().unwrap();
    assert!(help.status.success(), "{all:?}");
    let help = String::from_utf8_lossy(&help.stdout);
    for argument in &all[1..] {
        let option = argument.split('=').next().unwrap();
        let mut words = help.split([' ', ',', '\n', '[', '<']);
        assert!(
            words.any(|word| word == option),
            "`{option}` of {all:?} is no option:\n{help}"
        );
    }
}

#[test]
fn the_kubernetes_manifests_are_yaml_with_commands_that_tuner_understands() {
    let all = documents("kubernetes-worker.yaml");
    let kinds = all.iter().map(|one| one["kind"].as_str().unwrap());
    let kinds: Vec<&str> = kinds.collect();
    assert_eq!(kinds, ["Secret", "Deployment", "Deployment"]);
    for deployment in &all[1..] {
        let pod = &deployment["spec"]["template"];
        let selector = &deployment["spec"]["selector"]["matchLabels"];
        assert_eq!(*selector, pod["metadata"]["labels"]);
        assert!(deployment["apiVersion"] == "apps/v1", "{deployment}");
        let volumes = pod["spec"]["volumes"].as_array().unwrap();
        for container in pod["spec"]["containers"].as_array().unwrap() {
            assert_understood(&container["args"]);
            for mount in container["volumeMounts"].as_array().unwrap() {
                let mut names = volumes.iter().map(|volume| &volume["name"]);
                assert!(names.any(|name| *name == mount["name"]), "{mount}");
            }
        }
    }
}

#[test]
fn the_compose_file_is_yaml_with_commands_that_tuner_understands() {
    let all = documents("compose.yaml");
    let [file] = &all[..] else { panic!("{all:?}") };
    let services = file["services"].as_object().unwrap();
    let mut ours = 0;
    for service in services.values() {
        if service["image"] == "tuner:latest" {
            assert_understood(&service["command"]);
            ours += 1;
        }
        for needed in service["depends_on"].as_array().into_iter().flatten() {
            assert!(services.contains_key(needed.as_str().unwrap()), "{needed}");
        }
    }
    assert_eq!(ours, 3);
}

/// The script, with these lines of shell as `tuner`.
fn slurm(folder: &Path, tuner: &str) -> Command {
    let program = folder.join("tuner");
    crate::rig::executable::script(&program, &format!("#!/bin/bash\n{tuner}\n"));
    let mut command = Command::new("bash");
    let found = std::env::var("PATH").unwrap_or_default();
    command
        .arg(path("slurm-worker.sbatch"))
        .current_dir(folder)
        .env("PATH", format!("{}:{found}", folder.display()))
        .env("FLEET", "nats://hub:4222")
        .env("FLEET_OPTIONS", "--fleet-name night")
        .env("SLURM_CPUS_PER_TASK", "4")
        .env("USER", "somebody")
        .stdin(Stdio::null());
    command
}

fn said(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("said")).unwrap_or_default()
}

#[test]
fn the_slurm_script_starts_a_worker_and_hands_on_its_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let ended = slurm(folder.path(), "echo \"$@ $TUNER_CACHE\" > said; exit 7").status();
    assert_eq!(ended.unwrap().code(), Some(7));
    let said = said(folder.path());
    let wanted = "worker --fleet nats://hub:4222 --device cuda:0 --jobs 4 --fleet-name night";
    assert!(
        said.starts_with(wanted) && said.contains("tuner-somebody"),
        "{said}"
    );
    let words = wanted.split(' ');
    let options = words.filter(|word| *word == "worker" || word.starts_with("--"));
    assert_understood(&options.map(Value::from).collect());
    let text = std::fs::read_to_string(path("slurm-worker.sbatch")).unwrap();
    for line in ["--array=", "--requeue", "--signal=B:TERM@120"] {
        assert!(text.contains(&format!("#SBATCH {line}")), "{line}");
    }
}

/// Slurm signals the shell (`B:`) two minutes before the end; the worker must get it, give back what
/// it has in hand, and be waited for.
#[test]
fn the_slurm_script_passes_the_signal_before_the_end_on_and_waits() {
    let folder = tempfile::tempdir().unwrap();
    // Giving back takes a moment.
    let worker = "trap 'echo told >> said; sleep 0.5; echo gave back >> said; exit 0' TERM
        echo begun >> said; while :; do sleep 0.05; done";
    let mut script = slurm(folder.path(), worker).spawn().unwrap();
    let began = Instant::now();
    while !said(folder.path()).contains("begun") {
        let waited = began.elapsed();
        assert!(waited < Duration::from_secs(60), "no worker begins");
        std::thread::sleep(Duration::from_millis(20));
    }
    let pid = script.id().to_string();
    let sent = Command::new("kill").args(["-TERM", &pid]).status();
    assert!(sent.unwrap().success());
    assert_eq!(script.wait().unwrap().code(), Some(0));
    assert_eq!(said(folder.path()), "begun\ntold\ngave back\n");
}
