//! Programs that use both interfaces, and launches that end early.

use super::{exec, text};
use std::process::Output;

fn check(output: &Output, code: i32, stdout: &str) {
    assert_eq!(text(&output.stdout), stdout, "{}", text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
}

#[track_caller]
fn says(output: &Output, parts: &[&str]) {
    let said = text(&output.stderr);
    for part in parts {
        assert!(said.contains(part), "`{part}` is not in:\n{said}");
    }
}

#[test]
fn streams_have_what_they_were_created_with() {
    let expected = "flags 1, greatest priority 1\ndriver: flags 1, greatest priority 1\n\
                    plain: flags 0, priority 0\ndevice 0, policy 1, then 4, unknown 1\n\
                    primary context 1\ndestroyed 0\n";
    check(&exec(&[], "stream_state"), 0, expected);
}

#[test]
fn a_stream_keeps_its_context() {
    let expected = "before 3\nnull stream 201\nstream 0, its own 1, unknown 400\n";
    check(&exec(&[], "stream_context"), 0, expected);
}

#[test]
fn pools_are_distinct_and_have_their_kind_of_memory() {
    let expected = "distinct 1\nselected 1, default 1\nthreshold 1, reuse 0\n\
                    from the selected pool 1, used 256, host access 0\n\
                    managed: type 3, value 5\nhost: type 1, value 6\n\
                    device address 0, with access 1\n\
                    after its end 1, destroyed 1\n";
    check(&exec(&[], "pools"), 0, expected);
}

#[test]
fn a_host_function_has_the_handles_of_its_kernel() {
    let expected = "function right\nkernel right\nunknown 98\n";
    check(&exec(&[], "kernel_handles"), 0, expected);
}

/// A call that copies to the host returns when the copy has completed ("API synchronization behavior").
#[test]
fn the_host_waits_for_copies_from_the_device() {
    check(&exec(&[], "awaited_copies"), 0, "right\n");
    let output = exec(&[], "copy_under_way");
    check(&output, 4, "right\n");
    says(&output, &["unordered", "copy to the device"]);
}

/// Libraries choose their settings by the version of the PTX (CUB's dispatch).
#[test]
fn code_translated_for_a_newer_device_keeps_the_version_of_its_ptx() {
    let output = exec(&["--device", "vgpu:h100"], "versions");
    check(&output, 0, "runtime: 80 90\ndriver: 80 90\n");
}

#[test]
fn atomics_of_two_streams_need_no_order() {
    check(&exec(&[], "two_atomics"), 0, "");
    let output = exec(&[], "atomic_and_store");
    check(&output, 4, "");
    says(&output, &["unordered"]);
}

#[test]
fn a_kernel_that_waits_for_the_host_is_told_the_limit() {
    let output = exec(&[], "handshake");
    check(&output, 4, "launch 0\nsynchronize 719\n");
    says(
        &output,
        &[
            "memory that the host shares",
            "no kernel can wait for the host",
        ],
    );
}

#[test]
fn a_launch_that_cannot_run_fails_the_command() {
    let output = exec(&[], "unsupported");
    check(&output, 4, "launch 801\n");
    let reason = "1 launch of unknown did not run, so the results are not those of a GPU: \
                  unsupported: `vmad.u32.u32.u32.sat";
    says(&output, &[reason]);
    let output = exec(&["--format", "sanitizer"], "unsupported");
    check(&output, 4, "launch 801\n");
    says(
        &output,
        &["launch of unknown did not run", "ERROR SUMMARY: 1 error"],
    );
    let output = exec(&["--error-exitcode", "0"], "unsupported");
    check(&output, 0, "launch 801\n");
}

#[test]
fn a_killed_program_leaves_the_launches_before_the_last() {
    let output = exec(&[], "killed");
    check(&output, 4, "");
    says(
        &output,
        &[
            "race in collide",
            "the program ended while count_long ran",
            "1 hazard:",
        ],
    );
}
