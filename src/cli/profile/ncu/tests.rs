use super::{name_pattern, read, taken};
use std::path::Path;

#[test]
fn kernels_are_named_without_template_arguments() {
    let pattern = |entries: &[&str]| name_pattern(entries.iter().copied());
    assert_eq!(pattern(&["softmax"]), "regex:^(.*::)?(softmax)$");
    assert_eq!(
        pattern(&["blas::gemm<std::pair<float, TILE>>", "reduce", "gemm<1>"]),
        "regex:^(.*::)?(gemm|reduce)$"
    );
    assert_eq!(pattern(&["k$1"]), r"regex:^(.*::)?(k\$1)$");
}

#[test]
fn a_profile_is_kept_though_the_worker_was_ended_by_a_signal() {
    let table = "==PROF== Connected to process 1\n\
        \"ID\",\"Kernel Name\",\"gpu__time_duration.sum\"\n\
        \"\",\"\",\"ns\"\n\
        \"0\",\"gemm\",\"3000\"\n\
        ==ERROR== The application returned an error code (9).\n";
    let ncu = Path::new("ncu");
    let metrics = taken(ncu, table, "", false).unwrap();
    assert_eq!(metrics["duration_us"], 3.0);
    let nothing = taken(ncu, "==ERROR== no kernel\n", "", false);
    assert!(nothing.unwrap_err().to_string().contains("no kernel"));
    let refused = format!("{table}==ERROR== ERR_NVGPUCTRPERM\n");
    assert!(taken(ncu, &refused, "", true).is_err());
}

#[test]
fn launches_are_put_together_by_their_durations() {
    let text = "==PROF== Connected to process 1\n\
        \"ID\",\"Kernel Name\",\"gpu__time_duration.sum\",\"sm__warps_active.avg.pct_of_peak_sustained_active\",\"l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum\",\"smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio\",\"smsp__average_warps_issue_stalled_wait_per_issue_active.ratio\"\n\
        \"\",\"\",\"ns\",\"%\",\"\",\"inst\",\"inst\"\n\
        \"0\",\"gemm\",\"3,000\",\"50\",\"1,000\",\"3\",\"1\"\n\
        \"1\",\"reduce\",\"1000\",\"10\",\"24\",\"3\",\"1\"\n\
        ==PROF== Disconnected\n";
    let metrics = read(text).unwrap();
    let get = |name: &str| metrics[name].as_f64().unwrap();
    assert!((get("achieved_occupancy_pct") - 40.0).abs() < 1e-9);
    assert!((get("bank_conflicts") - 1024.0).abs() < 1e-9);
    assert!((get("duration_us") - 4.0).abs() < 1e-9);
    assert!((get("stall_barrier_pct") - 75.0).abs() < 1e-9);
    assert!(read("==PROF== nothing\n").unwrap_err().contains("no table"));
    assert!(
        read("\"ID\",\"a\"\n\"\",\"%\"\n")
            .unwrap_err()
            .contains("no launch")
    );
}
