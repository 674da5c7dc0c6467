//! Programs of nvcc that use both interfaces, or call them as few programs do.

use super::nvcc::built_for;

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
