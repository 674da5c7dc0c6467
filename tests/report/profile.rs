//! `tuner profile`, with a profiler that is played.

use crate::program::{ended, tuner};
use crate::report::support::{json, project, run, tune};
use crate::store::support::{finished, start, timed};
use std::path::Path;
use tuner_core::record::DeviceKind;
use tuner_core::value::Value;
use tuner_kernel::catalog::Kernel;
use tuner_store::Store;

/// What ncu prints for one launch.
const NCU: &str = r#"#!/bin/sh
if [ "$1" = "--version" ]; then
  echo "NVIDIA (R) Nsight Compute Command Line Profiler"
  echo "Version 2025.3.1.0 (build 36398880) (public-release)"
  exit 0
fi
printf '%s\n' "$@" > ncu-arguments.txt
echo "==PROF== Connected to process 4711 (tuner)"
echo "==PROF== Profiling \"scale\" - 0: 0%....50%....100% - 12 passes"
echo '"ID","Process ID","Kernel Name","gpu__time_duration.sum","sm__instruction_throughput.avg.pct_of_peak_sustained_active","sm__inst_issued.avg.pct_of_peak_sustained_active","sm__warps_active.avg.pct_of_peak_sustained_active","gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed","lts__t_sectors.avg.pct_of_peak_sustained_elapsed","sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active","l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum","l1tex__data_pipe_lsu_wavefronts_mem_shared.sum","launch__registers_per_thread","smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio","smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio"'
echo '"","","","ns","%","%","%","%","%","%","","","register/thread","inst","inst"'
echo '"0","4711","scale","4,200","71.5","33","62.25","88.5","41","0","126,976","131072","10","6","2"'
echo "==PROF== Disconnected from process 4711"
"#;

/// A project with one measured result, and a played profiler in `bin`.
async fn measured() -> tempfile::TempDir {
    let folder = project();
    let path = folder.path().join("search_spaces/scale.yaml");
    let kernel = Kernel::load(&path).expect("the kernel");
    let store = Store::open(&folder.path().join("t.db"))
        .await
        .expect("a database");
    let config = vec![
        ("BLOCK".to_owned(), Value::Int(128)),
        ("PAD".to_owned(), Value::Int(0)),
        ("SYNC".to_owned(), Value::Int(1)),
    ];
    let mut start = start(DeviceKind::Cuda);
    start.device.name = "NVIDIA A100-SXM4-40GB".to_owned();
    start.device.arch = "sm_80".to_owned();
    let task = &mut start.tasks[0];
    task.kernel = "scale".to_owned();
    task.problem = "large".to_owned();
    task.sizes = kernel
        .spec
        .problem("large")
        .expect("the problem")
        .sizes
        .clone();
    task.template_hash = Some(kernel.template.hash.clone());
    task.space_path = Some(path);
    finished(&store, &start, &[timed(&start, 0, config, 4.2)]).await;
    store.close().await.expect("it closes");
    play(folder.path(), NCU);
    folder
}

fn play(folder: &Path, script: &str) {
    std::fs::create_dir_all(folder.join("bin")).expect("the folder is made");
    crate::rig::executable::script(&folder.join("bin/ncu"), script);
}

/// Runs `tuner profile` with the played profiler on PATH, or without it.
fn profile(folder: &Path, more: &[&str], played: bool, code: i32) -> (String, String) {
    let mut arguments = vec!["profile", "scale", "--db", "t.db"];
    arguments.extend(more);
    let system = "/usr/bin:/bin";
    let path = if played {
        format!("{}:{system}", folder.join("bin").display())
    } else {
        system.to_owned()
    };
    let ran = ended(tuner(folder).args(arguments).env("PATH", path));
    ran.says(code, &[]);
    (ran.stdout, ran.stderr)
}

#[tokio::test]
async fn a_measured_winner_is_profiled_under_ncu_and_the_report_uses_it() {
    let folder = measured().await;
    let folder = folder.path();
    let (out, _) = profile(folder, &["--format", "json"], true, 0);
    let answer: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    let answer = &answer[0];
    assert_eq!(
        (answer["source"].as_str(), answer["timing"].as_str()),
        (Some("ncu"), Some("measured"))
    );
    assert_eq!(answer["tool"], "ncu 2025.3.1.0");
    for (metric, value) in [
        ("sm_busy_pct", 71.5),
        ("achieved_occupancy_pct", 62.25),
        ("dram_throughput_pct", 88.5),
        ("l2_throughput_pct", 41.0),
        ("bank_conflicts", 126_976.0),
        ("tensor_pipe_pct", 0.0),
        ("stall_long_scoreboard_pct", 75.0),
        ("stall_barrier_pct", 25.0),
    ] {
        assert_eq!(answer["metrics"][metric], value, "{metric}");
    }
    let arguments =
        std::fs::read_to_string(folder.join("ncu-arguments.txt")).expect("it was called");
    for expected in [
        "--csv",
        "regex:^(.*::)?(scale)$",
        "profile-target",
        "large",
        "BLOCK=128,PAD=0,SYNC=1",
    ] {
        assert!(arguments.contains(expected), "{expected}\n{arguments}");
    }
    let (table, _) = profile(folder, &[], true, 0);
    assert!(
        table.contains("SM busy")
            && table.contains("71.5 %")
            && table.contains("stall: long scoreboard"),
        "{table}"
    );
    run(folder, &["report", "--db", "t.db", "-o", "out"], 0);
    let md = std::fs::read_to_string(folder.join("out/report.md")).expect("the report");
    assert!(
        md.contains("from ncu 2025.3.1.0 (measured)") && md.contains("88 % of the peak"),
        "{md}"
    );
    assert!(md.contains("Profile: sm busy 71.5 %"), "{md}");
}

#[tokio::test]
async fn without_ncu_the_virtual_gpu_stands_in_and_says_so() {
    let folder = measured().await;
    let folder = folder.path();
    let (out, told) = profile(folder, &["--format", "json"], false, 0);
    assert!(
        told.contains("ncu is not installed; the virtual GPU's counters instead"),
        "{told}"
    );
    let answer: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(
        (answer[0]["source"].as_str(), answer[0]["timing"].as_str()),
        (Some("vgpu"), Some("predicted"))
    );
    assert!(
        answer[0]["metrics"]["bank_conflicts"]
            .as_f64()
            .is_some_and(|conflicts| conflicts > 1e5)
    );
    assert!(
        answer[0]["metrics"]["achieved_occupancy_pct"]
            .as_f64()
            .is_some()
    );
    let (_, told) = profile(folder, &["--source", "ncu"], false, 2);
    assert!(told.contains("ncu is not on PATH"), "{told}");
}

#[tokio::test]
async fn a_profiler_that_fails_is_told_in_its_own_words() {
    let folder = measured().await;
    let folder = folder.path();
    play(
        folder,
        "#!/bin/sh\necho '==ERROR== ERR_NVGPUCTRPERM - no permission'\nexit 1\n",
    );
    let (_, told) = profile(folder, &[], true, 2);
    assert!(
        told.contains("NVreg_RestrictProfilingToAdminUsers=0"),
        "{told}"
    );
    play(
        folder,
        "#!/bin/sh\necho '==ERROR== The application returned an error code (11).'\nexit 11\n",
    );
    let (_, told) = profile(folder, &[], true, 1);
    assert!(told.contains("returned an error code (11)"), "{told}");
    play(
        folder,
        "#!/bin/sh\necho '==WARNING== No kernels were profiled.'\n",
    );
    let (_, told) = profile(folder, &[], true, 1);
    assert!(told.contains("printed no table"), "{told}");
}

#[test]
fn a_predicted_winner_is_profiled_on_the_virtual_gpu() {
    let folder = project();
    let folder = folder.path();
    tune(folder, "1");
    let answer = json(
        folder,
        &["profile", "scale", "--db", "t.db", "--format", "json"],
    );
    assert_eq!(answer[0]["timing"], "predicted");
    assert_eq!(answer[0]["device"], "vgpu:a100");
    let (_, told) = run(folder, &["profile", "stranger", "--db", "t.db"], 2);
    assert!(told.contains("it has `scale`"), "{told}");
    let (_, told) = run(folder, &["profile", "scale", "--db", "none.db"], 2);
    assert!(told.contains("none.db"), "{told}");
    assert!(!folder.join("none.db").exists());
}
