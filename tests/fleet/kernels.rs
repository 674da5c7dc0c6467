//! Kernels on a fleet: compiled on one machine, judged on another.

use super::{Process, Row, Site, children, finish, rows, tuner, until};
use crate::program::{replace, write};
use crate::virtual_run::REFERENCE;
use bytes::Bytes;
use futures_util::StreamExt as _;
use std::path::Path;

const KERNEL: &str = r#"
#include "factor.cuh"
extern "C" __global__ void scale(const float* x, float* y) {
  int i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < N || OVER) y[i] = times(x[i]);
}
"#;

const HEADER: &str = "__device__ float times(float x) { return FACTOR * x; }\n";

const SPACE: &str = r#"
version: 1
kernel: scale
source: ../templates/kernel.cu
problems: { small: { N: 1000 } }
parameters:
  BLOCK: { values: [64, 128, 256, 512], default: 128 }
  OVER: { values: [0, 1], default: 0 }
  FACTOR: { values: [2, 3], default: 2 }
arguments:
  - { name: x, type: f32, role: input, shape: [N], fill: { file: ../data/x.bin } }
  - { name: y, type: f32, role: output, shape: [N] }
launches:
  - { entry: scale, grid: ["ceil_div(N, BLOCK)", 1, 1], block: [BLOCK, 1, 1] }
reference: { source: ../templates/reference.cu, entry: plain, grid: [4, 1, 1], block: [64, 1, 1] }
metric: { bytes: "8 * N" }
"#;

pub(super) fn lay_out(folder: &Path) {
    for (name, text) in [
        ("spaces/scale.yaml", SPACE),
        ("templates/kernel.cu", KERNEL),
        ("templates/factor.cuh", HEADER),
        ("templates/reference.cu", REFERENCE),
    ] {
        write(folder, name, text);
    }
    // What the argument is filled with travels too.
    let numbers = (0..1000_u16).flat_map(|i| f32::from(i % 37 + 1).to_le_bytes());
    std::fs::create_dir_all(folder.join("data")).unwrap();
    std::fs::write(folder.join("data/x.bin"), numbers.collect::<Vec<u8>>()).unwrap();
}

/// Makes it a space of sixty-four candidates.
pub(super) fn widen(site: &Site) {
    let blocks: Vec<String> = (1..=16).map(|n| (32 * n).to_string()).collect();
    replace(
        &site.path("spaces/scale.yaml"),
        "BLOCK: { values: [64, 128, 256, 512]",
        &format!("BLOCK: {{ values: [{}]", blocks.join(", ")),
    );
}

/// A run over the whole space, from the folder of the project.
fn run(site: &Site, db: &str, more: &[&str]) -> Process {
    let mut command = tuner();
    command
        .current_dir(site.folder.path())
        .env("TUNER_CACHE", site.path("hub-cache"))
        .args(["run", "spaces/scale.yaml", "--device", "vgpu:a100"])
        .args(["--strategy", "exhaustive", "--db", db])
        .args(more);
    Process::start(&mut command, site.path(&format!("{db}.log")))
}

fn on_fleet(site: &Site, db: &str) -> Process {
    on_fleet_with(site, db, &[])
}

/// A run on the fleet with further options.
pub(super) fn on_fleet_with(site: &Site, db: &str, more: &[&str]) -> Process {
    let url = site.server.url();
    let fleet = ["--fleet", url.as_str(), "--fleet-patience", "5s"];
    run(site, db, &[&fleet[..], more].concat())
}

fn by_config(mut rows: Vec<Row>) -> Vec<(String, String, String, Option<f64>)> {
    rows.sort_by(|a, b| a.2.cmp(&b.2));
    rows.into_iter()
        .map(|(_, hash, config, v, t)| (hash, config, v, t))
        .collect()
}

/// A worker of a fleet proves what would become the best, as one machine does.
#[test]
#[cfg_attr(not(nats_server), ignore = "no nats-server is here: scripts/get-nats")]
fn a_fleet_runs_the_best_whole_as_one_machine_does() {
    use crate::program::{run as command, write};
    use crate::run::proof::{KERNEL, REFERENCE, SPACE};
    let mut site = Site::new();
    let folder = site.folder.path().to_owned();
    for (name, text) in [
        ("space.yaml", SPACE),
        ("kernel.cu", KERNEL),
        ("ref.cu", REFERENCE),
    ] {
        write(&folder, name, text);
    }
    let url = site.server.url();
    let _worker = site.worker_with(&url, &["--device", "vgpu:l4", "--jobs", "1"]);
    let run = "run space.yaml --device vgpu:l4 --strategy exhaustive --evals 2";
    let alone = command(&folder, &format!("{run} --db alone.db"));
    let fleet = command(&folder, &format!("{run} --db fleet.db --fleet {url}"));
    for (ended, db) in [(alone, "alone.db"), (fleet, "fleet.db")] {
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        assert!(ended.stdout.contains("incorrect 1"), "{}", ended.stdout);
        let rows = command(&folder, &format!("leaderboard --db {db} --format json")).rows();
        assert_eq!(rows.len(), 1, "{rows:?}");
        assert_eq!(rows[0]["compared"], "whole", "{db}: {}", ended.stderr);
    }
}

#[test]
#[cfg_attr(not(nats_server), ignore = "no nats-server is here: scripts/get-nats")]
fn what_one_worker_compiles_another_judges_as_one_machine_does() {
    let mut site = Site::new();
    lay_out(site.folder.path());
    let mut alone = run(&site, "alone.db", &[]);
    assert_eq!(alone.code(), 0, "{}", alone.log());
    let expected = by_config(rows(&site.path("alone.db")));
    let url = site.server.url();
    let compiler = site.worker_with(&url, &["--compile-only", "--jobs", "1"]);
    let mut device = site.worker_with(&url, &["--device", "vgpu:a100", "--jobs", "1"]);
    let mut first = on_fleet(&site, "first.db");
    assert_eq!(first.code(), 0, "{}", first.log());
    assert_eq!(
        by_config(rows(&site.path("first.db"))),
        expected,
        "{}",
        first.log()
    );
    assert!(
        first.log().contains("for compilers, compilers"),
        "{}",
        first.log()
    );
    assert!(
        !children(compiler.child.id()).is_empty(),
        "a compile has a process of its own"
    );
    assert!(
        !children(device.child.id()).is_empty(),
        "a candidate has a process of its own"
    );

    // All code on the server is replaced by other bytes under the same names.
    tamper(&site);
    let mut second = on_fleet(&site, "second.db");
    assert_eq!(second.code(), 0, "{}", second.log());
    assert_eq!(
        by_config(rows(&site.path("second.db"))),
        expected,
        "{}",
        second.log()
    );
    device.says("is refused: the object");
}

#[test]
#[cfg_attr(not(nats_server), ignore = "no nats-server is here: scripts/get-nats")]
fn one_command_tunes_for_every_kind_that_is_lent() {
    let mut site = Site::new();
    lay_out(site.folder.path());
    let url = site.server.url();
    let mut alone = run(&site, "alone.db", &[]);
    assert_eq!(alone.code(), 0, "{}", alone.log());
    // Somebody opens the fleet, so that workers are there when it is looked who is.
    let mut opens = site.run("opens.db", &["--evals", "5"]);
    let _recording = site.worker();
    let _a100 = site.worker_with(&url, &["--device", "vgpu:a100", "--jobs", "1"]);
    let _l4 = site.worker_with(&url, &["--device", "vgpu:l4", "--jobs", "1"]);
    assert_eq!(opens.code(), 0, "{}", opens.log());
    until(
        || {
            super::status(&site)["workers"]
                .as_array()
                .is_some_and(|all| all.len() == 3)
        },
        || super::status(&site).to_string(),
    );
    let mut command = tuner();
    command
        .current_dir(site.folder.path())
        .args([
            "run",
            "spaces/scale.yaml",
            "--device",
            "any",
            "--fleet",
            &url,
        ])
        .args(["--strategy", "exhaustive", "--db", "any.db"]);
    let mut any = Process::start(&mut command, site.path("any.log"));
    assert_eq!(any.code(), 0, "{}", any.log());
    let stored = by_config(rows(&site.path("any.db")));
    let one = by_config(rows(&site.path("alone.db")));
    assert_eq!(stored.len(), 2 * one.len(), "{}", any.log());
    assert!(one.iter().all(|row| stored.contains(row)), "{stored:?}");

    // A search over a space of which most is not tried takes in what the other kind found.
    widen(&site);
    let mut command = tuner();
    command
        .current_dir(site.folder.path())
        .args(["run", "spaces/scale.yaml", "--device", "any"])
        .args(["--fleet", &url, "--evals", "40", "--db", "learn.db"]);
    let mut learns = Process::start(&mut command, site.path("learn.log"));
    assert_eq!(learns.code(), 0, "{}", learns.log());
    let said = learns.log();
    let worth = "how well what was known ordered the results";
    let others = ["small on vgpu:l4", "small on vgpu:a100"];
    assert!(
        said.contains(worth) && others.iter().any(|other| said.contains(other)),
        "{said}"
    );
}

/// Puts other bytes under the names of all compiled code.
fn tamper(site: &Site) {
    site.server.with_client(async |context| {
        let store = context
            .get_object_store("tuner_tuner_cubins")
            .await
            .unwrap();
        let mut list = store.list().await.unwrap();
        let mut names = Vec::new();
        while let Some(Ok(object)) = list.next().await {
            names.push(object.name);
        }
        assert!(!names.is_empty());
        for name in names {
            store
                .put(name.as_str(), &mut &b"something else"[..])
                .await
                .unwrap();
        }
    });
}

#[test]
#[cfg_attr(not(nats_server), ignore = "no nats-server is here: scripts/get-nats")]
fn a_template_that_is_not_what_its_hash_says_is_not_compiled() {
    let mut site = Site::new();
    lay_out(site.folder.path());
    let url = site.server.url();
    let mut first = on_fleet(&site, "first.db");
    until(
        || {
            super::status(&site)["hubs"]
                .as_array()
                .is_some_and(|hubs| !hubs.is_empty())
        },
        || first.log(),
    );
    // Before any worker is there, the files are exchanged for others.
    site.server.with_client(async |context| {
        let store = context.get_object_store("tuner_tuner_files").await.unwrap();
        let evil = KERNEL.replace("times(x[i])", "666.0f");
        let name = tuner_core::units::ContentHash::from_parts([KERNEL.as_bytes()]).to_string();
        store
            .put(name.as_str(), &mut evil.as_bytes())
            .await
            .unwrap();
        let _ = Bytes::new();
    });
    let worker = site.worker_with(&url, &["--device", "vgpu:a100", "--jobs", "1"]);
    assert_eq!(first.code(), 3, "{}\n{}", first.log(), worker.log());
    let stored = rows(&site.path("first.db"));
    assert!(stored.iter().all(|row| row.3 == "not_judged"), "{stored:?}");
    assert!(
        first.log().contains("is not what its hash says"),
        "{}",
        first.log()
    );
    let help = finish(tuner().args(["worker", "--help"])).stdout;
    assert!(String::from_utf8(help).unwrap().contains("--compile-only"));
}
