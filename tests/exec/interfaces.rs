//! Programs of nvcc that use both interfaces, or call them as few programs do.

use super::nvcc::{built, built_for};

/// Captures, graphs, waits for values, printed text, page-locked memory and faults are those of the process,
/// whichever interface a call belongs to.
#[test]
#[cfg_attr(not(nvcc), ignore = "nvcc is not installed (scripts/get-nvcc)")]
fn both_interfaces_have_one_state() {
    let options = ["--error-exitcode", "0"];
    let (code, stdout, stderr) = built_for("mixed.cu", &options, &["-lcuda"], &[]);
    let expected = "kernel 7\npassed\n";
    assert_eq!((code, stdout.as_str()), (Some(0), expected), "{stderr}");
    assert!(!stderr.contains("unordered"), "{stderr}");
}

/// Destroyed streams that wait, attributes of launches, frees of the other kind, sizes of pools, memory of graphs,
/// calls of functions of the host, and calls after a fault.
#[test]
#[cfg_attr(not(nvcc), ignore = "nvcc is not installed (scripts/get-nvcc)")]
fn unusual_calls_return_what_is_documented() {
    let options = ["--error-exitcode", "0"];
    let (code, stdout, stderr) = built_for("unusual_calls.cu", &options, &["-lcuda"], &[]);
    let expected = (Some(0), "passed\n");
    assert_eq!((code, stdout.as_str()), expected, "{stderr}");
}

/// Memory of a pool begins and ends in the order of a stream, and no other stream may use it without an order.
#[test]
#[cfg_attr(not(nvcc), ignore = "nvcc is not installed (scripts/get-nvcc)")]
fn uses_of_memory_of_a_pool_are_ordered_with_its_beginning_and_end() {
    for (case, expected) in [
        ("use", &["allocation", "free"][..]),
        ("neither", &["free"]),
        ("host", &[]),
        ("event", &[]),
        ("same", &[]),
    ] {
        let (code, _, stderr) = built("stream_pools.cu", &[case]);
        let hazards = if expected.is_empty() { 0 } else { 4 };
        assert_eq!(code, Some(hazards), "{case}: {stderr}");
        for name in expected {
            assert!(
                stderr.contains(&format!("{name} (stream")),
                "{case}: {stderr}"
            );
        }
    }
}
