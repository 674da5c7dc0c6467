//! One entry of an exported header, its clusters, and the header's length.

use crate::store::headers::{C11, CPP17, compile, entries_of, example, sized};
use std::process::Command;
use tuner_core::record::{ConstraintDefinition, DeviceKind, LaunchDefinition, ParameterDefinition};
use tuner_core::value::Value;
use tuner_report::export;

/// What was a wrong launch: compiled for one entry, launched with the values of another.
#[tokio::test]
async fn macros_and_launches_of_two_entries_cannot_be_mixed() {
    let directory = tempfile::tempdir().unwrap();
    let header = export::header("gemm", &example().await).unwrap();
    std::fs::write(directory.path().join("gemm_tuned.h"), &header).unwrap();
    let main = "int main(void) { return 0; }\n";
    let include = "#include \"gemm_tuned.h\"\n";
    let entry = |number: &str| {
        format!("#undef GEMM_TUNED_ENTRY\n#define GEMM_TUNED_ENTRY {number}\n{include}")
    };
    let mixed = [
        (entry("0") + &entry("1") + main, "cannot be mixed"),
        (include.to_owned() + &entry("0") + main, "cannot be mixed"),
        (
            entry("0") + "#undef GEMM_TUNED_ENTRY\n" + include + main,
            "cannot be mixed",
        ),
        (entry("4") + main, "is not the number of an entry (0 to 3)"),
        (
            entry("0") + "int main(void) { return gemm_tuned_table[1].config.tile; }\n",
            "gemm_tuned_table",
        ),
        (
            entry("0")
                + "int main(void) { return gemm_tuned_lookup(\"NVIDIA H200\", 256, 0) != 0; }\n",
            "gemm_tuned_lookup",
        ),
    ];
    for (compiler, name) in [(C11, "mixed.c"), (CPP17, "mixed.cpp")] {
        for (source, expected) in &mixed {
            let message = compile(directory.path(), compiler, name, source).unwrap_err();
            assert!(message.contains(expected), "{message}\n{source}");
        }
        let same = entry("2") + &entry("2") + main;
        compile(directory.path(), compiler, name, &same).unwrap();
    }
}

/// A person reads the header: 80 lines for one entry, and 25 for each further.
#[tokio::test]
async fn a_header_is_short() {
    let mut start = sized(DeviceKind::Cuda, "small", 256, 0);
    let launch = |entry: &str| LaunchDefinition {
        entry: entry.to_owned(),
        when: Some("N > 4096 or TILE > 8".to_owned()),
        grid: ["ceil_div(N, TILE)", "1", "1"].map(str::to_owned),
        block: ["TILE", "1", "1"].map(str::to_owned),
        shared: "4 * TILE".to_owned(),
        cluster: None,
    };
    start.tasks[0].definition.launches = vec![launch("gemm")];
    for word in ["VEC", "WARPS"] {
        start.tasks[0]
            .definition
            .parameters
            .push(ParameterDefinition {
                name: word.to_owned(),
                values: vec![Value::Int(4)],
                default: None,
                doc: String::new(),
            });
    }
    start.tasks[0]
        .definition
        .constraints
        .push(ConstraintDefinition {
            rule: "N % TILE == 0 or N > 300".to_owned(),
            why: "no tail".to_owned(),
        });
    let mut entries = entries_of(&[(start, &[(32, 9.0)])]).await;
    for word in ["VEC", "WARPS"] {
        entries[0]
            .best
            .config
            .push((word.to_owned(), Value::Int(4)));
    }
    for at in 0..5 {
        let mut entry = entries[0].clone();
        entry.sizes[0].1 = Value::Int(512 << at);
        entry.best.config[0].1 = Value::Int(16 << (at % 3));
        entry.best.config[1].1 = Value::Int(8 * (at % 2));
        entry.best.device = format!("NVIDIA L{at}");
        entries.push(entry);
    }
    for count in 1..=entries.len() {
        let header = export::header("gemm", &entries[..count]).unwrap();
        let lines = header.lines().count();
        assert!(
            lines <= 80 + 25 * (count - 1),
            "{lines} lines for {count}\n{header}"
        );
    }
}

/// Launches in clusters of which some do not divide the grid or are larger than any GPU's, and one without any.
const CLUSTERS: &str = r#"
#include "gemm_tuned.h"
#ifdef __cplusplus
static_assert(gemm_tuned_launch_gemm(gemm_tuned_table, 512, 0).cluster[0] == 2, "at compile time");
#endif
static int blocks(long long n) {
  const gemm_tuned_launch made = gemm_tuned_launch_gemm(gemm_tuned_table, n, 0);
  return made.runs ? (int)(made.cluster[0] * made.cluster[1] * made.cluster[2]) : 0;
}
int main(void) {
  if (blocks(256) != 1 || blocks(512) != 2 || blocks(4096) != 16) return 1;
  if (blocks(8192) || blocks(832)) return 2;
  const gemm_tuned_launch made = gemm_tuned_launch_reduce(gemm_tuned_table, 512, 0);
  if (!made.runs || made.cluster[0] != 1 || made.cluster[1] != 1 || made.cluster[2] != 1) return 3;
  return gemm_tuned_launch_gemm(0, 512, 0).cluster[0] ? 4 : 0;
}
"#;

#[tokio::test]
async fn a_launch_has_the_blocks_of_its_cluster() {
    let mut start = sized(DeviceKind::Cuda, "small", 256, 0);
    let launch = |entry: &str| LaunchDefinition {
        entry: entry.to_owned(),
        when: None,
        grid: ["N // 64", "1", "1"].map(str::to_owned),
        block: ["TILE", "1", "1"].map(str::to_owned),
        shared: "0".to_owned(),
        cluster: None,
    };
    let definition = &mut start.tasks[0].definition;
    definition.constraints.clear();
    definition.launches = vec![launch("gemm"), launch("reduce")];
    let without = entries_of(&[(start.clone(), &[(32, 9.0)])]).await;
    let without = export::header("gemm", &without).unwrap();
    assert!(!without.contains("luster"), "{without}");
    let first = &mut start.tasks[0].definition.launches[0];
    first.cluster = Some(["N // 256", "1", "1"].map(str::to_owned));
    let entries = entries_of(&[(start, &[(32, 9.0)])]).await;
    let header = export::header("gemm", &entries).unwrap();
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("gemm_tuned.h"), &header).unwrap();
    for (compiler, name) in [(C11, "clusters.c"), (CPP17, "clusters.cpp")] {
        if let Err(message) = compile(directory.path(), compiler, name, CLUSTERS) {
            panic!("{message}\n{header}");
        }
        let status = Command::new(directory.path().join("program")).status();
        assert_eq!(status.unwrap().code(), Some(0), "{name}\n{header}");
    }
}
