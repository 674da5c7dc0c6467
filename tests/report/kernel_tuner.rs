//! Round trips with the real Kernel Tuner, where pip can install it.

use crate::report::interop::{CACHE, T1, imported};
use crate::report::support::{json, run, write};
use std::path::{Path, PathBuf};
use std::process::Command;

const VERSION: &str = "1.5.0";

/// A Python with that Kernel Tuner, kept between runs; `Err` says why there is none.
fn python() -> Result<PathBuf, String> {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("kernel-tuner-{VERSION}"));
    let python = home.join("bin/python");
    let works = |python: &Path| {
        let imported = Command::new(python)
            .args(["-c", "import kernel_tuner"])
            .output();
        imported.is_ok_and(|output| output.status.success())
    };
    if works(&python) {
        return Ok(python);
    }
    let step = |program: &Path, arguments: &[&str]| -> Result<(), String> {
        let output = Command::new(program).args(arguments).output();
        let output = output.map_err(|error| format!("{}: {error}", program.display()))?;
        if output.status.success() {
            return Ok(());
        }
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(words
            .lines()
            .last()
            .unwrap_or("it failed without a word")
            .to_owned())
    };
    let place = home.to_string_lossy().into_owned();
    step(Path::new("python3"), &["-m", "venv", &place])?;
    let package = format!("kernel_tuner=={VERSION}");
    let install = [
        "-m",
        "pip",
        "install",
        "-q",
        "--timeout",
        "20",
        "--retries",
        "1",
        &package,
    ];
    step(&python, &install)?;
    if works(&python) {
        Ok(python)
    } else {
        Err("it cannot be imported".to_owned())
    }
}

#[test]
fn kernel_tuner_reads_what_is_exported_and_what_it_writes_is_imported() {
    let python = match python() {
        Ok(python) => python,
        Err(why) => return eprintln!("skipped: no Kernel Tuner {VERSION} can be installed: {why}"),
    };
    let folder = imported();
    let folder = folder.path();
    write(folder, "t1.json", T1);
    for (to, file) in [("kernel-tuner", "ours.json"), ("t4", "t4.json")] {
        run(
            folder,
            &["export", "stencil", "--db", "t.db", "--to", to, "-o", file],
            0,
        );
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/report/real_tool.py");
    let output = Command::new(&python)
        .arg(script)
        .current_dir(folder)
        .output()
        .expect("it runs");
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words}");
    let answer = String::from_utf8_lossy(&output.stdout);
    let answer = answer.lines().last().expect("an answer");
    let answer: serde_json::Value = serde_json::from_str(answer).expect("JSON");

    // It simulates from our cache, and finds what we found.
    assert_eq!(
        answer["simulated"],
        serde_json::json!([0.625, 0.75, 1.5]),
        "{answer}"
    );
    assert_eq!(answer["t4_valid"], true);
    assert_eq!(answer["t1_valid"], true);
    let ours = json(folder, &["space", "t1.json", "--format", "json"]);
    assert_eq!(ours["valid"], answer["t1_count"].to_string(), "{ours}");
    // It resumed our file, added a row and closed it.
    run(folder, &["import", "ours.json", "--db", "resumed.db"], 0);
    let rows = json(
        folder,
        &["leaderboard", "--db", "resumed.db", "--format", "json"],
    );
    let rows = rows.as_array().expect("rows");
    assert_eq!(rows.len(), CACHE.matches("\"time\":").count() + 1);
    assert_eq!(rows[0]["time_us_p50"], 500.0);
    assert_eq!(
        rows[0]["config"],
        serde_json::json!({"block_size_x": 128, "tile": 1, "pad": false, "mode": "column"})
    );
}
