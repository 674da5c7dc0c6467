//! Files that a test starts as programs.
//!
//! Another process writes them. A descriptor for writing in this one is inherited by what other tests
//! start at that moment, and as long as it is open somewhere, the kernel refuses to execute the file
//! (`ETXTBSY`).

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Copies a program.
pub(crate) fn copied(from: &Path, to: &Path) {
    let done = Command::new("cp").args([from, to]).status();
    assert!(
        done.is_ok_and(|status| status.success()),
        "{}",
        to.display()
    );
}

/// Writes a script that everybody may execute.
pub(crate) fn script(to: &Path, text: &str) {
    let mut writer = Command::new("install")
        .args(["-m", "755", "/dev/stdin"])
        .arg(to)
        .stdin(Stdio::piped())
        .spawn()
        .expect("`install` starts");
    let mut input = writer.stdin.take().expect("it has an input");
    input
        .write_all(text.as_bytes())
        .expect("the script is sent");
    drop(input);
    let status = writer.wait().expect("`install` ends");
    assert!(status.success(), "{}", to.display());
}
