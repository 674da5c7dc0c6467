//! `tuner verify`: shipped files a year later.

use crate::program::{replace, words, write};
use crate::report::support::{json, project, run, tune};
use std::path::Path;

/// A tuned project with a header, a launcher and a record in `ship`.
fn shipped() -> tempfile::TempDir {
    let folder = project();
    tune(folder.path(), "1");
    std::fs::create_dir(folder.path().join("ship")).unwrap();
    for (what, file) in [
        ("--to header", "s.h"),
        ("--launcher cpp", "s_launch.h"),
        ("--to json", "s.json"),
    ] {
        let mut line = words("export scale --db t.db --allow-predicted --allow-uncompared -o");
        let file = format!("ship/{file}");
        line.push(&file);
        line.extend(what.split(' '));
        run(folder.path(), &line, 0);
    }
    folder
}

fn verify(folder: &Path, more: &str, code: i32) -> (serde_json::Value, String) {
    let line = format!("verify --format json {more}");
    let (out, told) = run(folder, &line.split(' ').collect::<Vec<_>>(), code);
    (serde_json::from_str(&out).unwrap_or_default(), told)
}

#[test]
fn what_was_shipped_yesterday_passes_with_the_same_code() {
    let folder = shipped();
    let folder = folder.path();
    // Other headers of the folder are nothing of ours.
    write(folder, "ship/other.h", "int other(void);\n");
    write(folder, "ship/other.json", "{\"a\": 1}");
    let (lines, _) = verify(folder, "ship", 0);
    let lines = lines.as_array().unwrap();
    assert_eq!(lines.len(), 3, "{lines:?}");
    for line in lines {
        assert_eq!(line["outcome"], "passed", "{line}");
        assert_eq!(line["changes"], serde_json::json!([]), "{line}");
        assert_eq!(line["ratio"], 1.0, "{line}");
        assert_eq!(line["device"], "vgpu:a100");
        let launcher = line["file"].as_str().unwrap().contains("launch");
        assert_eq!(line["source"], if launcher { "shipped" } else { "project" });
    }
    // On another device: right, and neither code nor time is compared.
    let (lines, _) = verify(folder, "ship/s.h --device vgpu:h100", 0);
    assert_eq!(lines[0]["changes"], serde_json::Value::Null, "{lines}");
    assert_eq!(lines[0]["ratio"], serde_json::Value::Null, "{lines}");
}

#[test]
fn a_template_that_became_wrong_fails_a_header_and_not_a_launcher() {
    let folder = shipped();
    let folder = folder.path();
    replace(
        &folder.join("templates/scale/kernel.cu"),
        "2.0f * x[i]",
        "3.0f * x[i]",
    );
    let (lines, told) = verify(folder, "ship/s.h", 4);
    assert_eq!(lines[0]["outcome"], "wrong");
    assert_eq!(lines[0]["verdict"], "incorrect");
    let changed = |what: &str| told.contains(&format!("small: {what} "));
    assert!(
        changed("template") && changed("code") && !changed("registers"),
        "{told}"
    );
    // A launcher is built from the source that it holds.
    let (lines, _) = verify(folder, "ship/s_launch.h", 0);
    assert_eq!(lines[0]["changes"], serde_json::json!([]), "{lines}");
    replace(
        &folder.join("ship/s_launch.h"),
        "2.0f * x[i]",
        "3.0f * x[i]",
    );
    let (lines, told) = verify(folder, "ship/s_launch.h", 4);
    assert_eq!(lines[0]["verdict"], "incorrect", "{lines}");
    assert!(told.contains("s_launch.h small: template "), "{told}");
    // The gate reports the same of a shipped file.
    let line = "gate scale --device vgpu:a100 --problem small --db none.db --shipped ship/s.h";
    let (_, told) = run(folder, &words(line), 4);
    assert!(
        told.contains("changed since it was shipped: scale small: code "),
        "{told}"
    );
}

#[test]
fn the_gate_judges_the_source_that_a_shipped_file_holds() {
    let folder = shipped();
    let folder = folder.path();
    let gate = |shipped: &str, code| {
        let line = "gate scale --device vgpu:a100 --problem small --db none.db --format json";
        let mut line = words(line);
        line.extend(["--shipped", shipped]);
        let (out, told) = run(folder, &line, code);
        let answer: serde_json::Value = serde_json::from_str(&out).unwrap_or_default();
        (answer["problems"][0].clone(), told)
    };
    // A folder has them all.
    gate("ship/s_launch.h", 0);
    gate("ship", 0);
    let launcher = folder.join("ship/s_launch.h");
    replace(&launcher, "2.0f * x[i]", "3.0f * x[i]");
    for shipped in ["ship/s_launch.h", "ship"] {
        let (line, told) = gate(shipped, 4);
        assert_eq!(line["outcome"], "wrong", "{line}");
        let detail = line["detail"].as_str().unwrap();
        assert!(detail.contains("s_launch.h: incorrect"), "{detail} {told}");
    }
    gate("ship/s.h", 0);
    // Launchers of other kernels in the folder are not of this one.
    std::fs::remove_file(folder.join("ship/s_launch.h")).unwrap();
    let header = std::fs::read_to_string(folder.join("ship/s.h")).unwrap();
    let other = header.replace("\"kernel\":\"scale\"", "\"kernel\":\"other\"");
    assert_ne!(header, other);
    write(
        folder,
        "ship/a.h",
        &other.replace("\"config\":{", "\"config\":{\"NOPE\":1,"),
    );
    gate("ship", 0);
}

#[test]
fn a_slower_build_is_a_regression() {
    let folder = shipped();
    let folder = folder.path();
    let slow = "for (int k = 0; k < 400; ++k) left = left * 1.0001f + 0.5f;\n  if (i < N) y[i]";
    replace(
        &folder.join("templates/scale/kernel.cu"),
        "if (i < N) y[i]",
        slow,
    );
    let (lines, told) = verify(folder, "ship/s.h", 4);
    assert_eq!(lines[0]["outcome"], "regression", "{lines}");
    assert!(
        told.contains("against the recorded time, more than 2 %"),
        "{told}"
    );
    verify(folder, "ship/s.h --max-regression 100000%", 0);
}

#[test]
fn older_files_need_the_kernel_and_use_its_problem() {
    let folder = shipped();
    let folder = folder.path();
    let header = std::fs::read_to_string(folder.join("ship/s.h")).unwrap();
    let (before, entry) = header.split_once("/* tuner-entry ").unwrap();
    let (entry, after) = entry.split_once(" */").unwrap();
    let mut entry: serde_json::Value = serde_json::from_str(entry).unwrap();
    for name in [
        "kernel",
        "sizes",
        "cc",
        "template_hash",
        "cubin_hash",
        "registers",
        "spill_bytes",
    ] {
        assert!(
            entry.as_object_mut().unwrap().remove(name).is_some(),
            "{name}"
        );
    }
    write(
        folder,
        "old.h",
        &format!("{before}/* tuner-entry {entry} */{after}"),
    );
    let (_, told) = verify(folder, "old.h", 2);
    assert!(
        told.contains("does not name its kernel; add --kernel"),
        "{told}"
    );
    let (lines, _) = verify(folder, "old.h --kernel scale", 0);
    assert_eq!(lines[0]["changes"], serde_json::Value::Null, "{lines}");
}

#[test]
fn files_that_cannot_be_checked_are_explained() {
    let folder = shipped();
    let folder = folder.path();
    std::fs::create_dir(folder.join("empty")).unwrap();
    write(folder, "other.h", "int other(void);\n");
    let launcher = std::fs::read_to_string(folder.join("ship/s_launch.h")).unwrap();
    write(folder, "cut.h", &launcher.replace("#line 1 ", "#lone 1 "));
    let header = std::fs::read_to_string(folder.join("ship/s.h")).unwrap();
    write(
        folder,
        "sizes.h",
        &header.replace("{\"N\":4096}", "{\"M\":4096}"),
    );
    write(
        folder,
        "large.h",
        &header.replace("{\"N\":4096}", "{\"N\":1e300}"),
    );
    write(
        folder,
        "renamed.h",
        &header.replace("\"kernel\":\"scale\"", "\"kernel\":\"gone\""),
    );
    for (arguments, why) in [
        ("missing.h", "cannot be read"),
        ("empty", "has no file of `tuner export`"),
        ("other.h", "not a header of tuned configurations"),
        ("cut.h", "source cannot be read; export it again"),
        ("sizes.h", "`M` is not a size of the kernel"),
        ("renamed.h", "gone"),
        ("ship/s.h --device replay:a.json", "checked on one GPU"),
        ("ship/s.h --max-regression x", "is not a percentage"),
    ] {
        let (_, told) = verify(folder, arguments, 2);
        assert!(told.contains(why), "{arguments}: {told}");
    }
    let line = ["verify", "large.h"];
    let ended = crate::program::ended(crate::program::tuner(folder).args(line));
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    let _ = json(folder, &words("leaderboard scale --db t.db --format json"));
}

#[test]
fn a_kernel_named_by_a_shipped_file_selects_no_file() {
    let folder = shipped();
    let folder = folder.path();
    let text = std::fs::read_to_string(folder.join("ship/s.json")).unwrap();
    let named = "\"kernel\": \"scale\"";
    assert!(text.contains(named), "{text}");
    for path in [
        "/etc/passwd",
        "../scale",
        "search_spaces/scale.yaml",
        "scale.yaml",
    ] {
        let other = text.replace(named, &format!("\"kernel\": \"{path}\""));
        write(folder, "ship/other.json", &other);
        let (_, told) = verify(folder, "ship/other.json", 2);
        assert!(
            told.contains("is not a valid kernel name"),
            "{path}: {told}"
        );
    }
}
