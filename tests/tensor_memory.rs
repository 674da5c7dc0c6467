//! A user's product in tensor memory (`tcgen05`): checked, timed and ranked on a virtual B200.

use crate::program::{ended, root, tuner};
use std::collections::BTreeMap;

/// A kernel that multiplies in one block or in pairs of them, with a search space.
fn example() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for file in ["kernel.cu", "reference.cu", "space.yaml"] {
        let from = root().join("tests/tensor_memory").join(file);
        std::fs::copy(from, folder.path().join(file)).expect("the file is copied");
    }
    folder
}

#[test]
fn products_of_one_block_and_of_pairs_are_right() {
    let folder = example();
    for config in ["BN=64,STAGES=3", "BN=128,STAGES=2,CTAS=2"] {
        let arguments =
            "check space.yaml --problem small --device vgpu:b200 --format json --config";
        let mut check = tuner(folder.path());
        check.args(arguments.split(' ')).arg(config);
        let rows = ended(&mut check).json();
        assert_eq!(rows[0]["verdict"], "ok", "{rows}");
    }
}

#[test]
fn predicted_times_order_stages_tiles_and_pairs() {
    let folder = example();
    let configs = "BN,STAGES,CTAS\n256,1,2\n256,4,2\n256,4,1\n64,4,1\n";
    std::fs::write(folder.path().join("some.csv"), configs).expect("the file is written");
    let arguments = "predict space.yaml --device vgpu:b200 --problem square2048 --configs some.csv --format json";
    let rows = ended(tuner(folder.path()).args(arguments.split(' '))).json();
    let times: BTreeMap<String, f64> = rows
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| {
            let [columns, stages, blocks] =
                ["BN", "STAGES", "CTAS"].map(|name| &row["config"][name]);
            let time = row["time_us"].as_f64().expect("a time");
            (format!("{columns} {stages} {blocks}"), time)
        })
        .collect();
    let faster = |a: &str, b: &str| assert!(times[a] < times[b], "{a} and {b}: {times:?}");
    faster("256 4 2", "256 1 2");
    faster("256 4 2", "256 4 1");
    faster("256 4 1", "64 4 1");
}
