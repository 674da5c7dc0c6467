use super::{relative, undefined};
use std::path::Path;

#[test]
fn the_way_to_a_file_is_relative() {
    let way = |folder: &str, file: &str| relative(Path::new(folder), Path::new(file));
    assert_eq!(way("/a/b", "/a/c/k.cu").as_deref(), Some("../c/k.cu"));
    assert_eq!(way("/a", "/a/k.cu").as_deref(), Some("k.cu"));
    assert_eq!(way("/a", "/a/k\".cu"), None);
}

#[test]
fn missing_names_are_read_from_messages() {
    let log = "t.cu(3): error: identifier \"helper\" is undefined\n  x = helper(1);\n";
    assert_eq!(undefined(log).collect::<Vec<_>>(), ["helper"]);
}

#[test]
fn warnings_before_the_errors_are_not_shown() {
    let log = "\
a.h(1): warning #1444-D: class \"long4\" was declared deprecated
  DEFINE(long4);
  ^

Remark: The warnings can be suppressed with \"-diag-suppress <warning-number>\"

a.cu(7): error: identifier \"n\" is undefined
  y[n] = 1;
    ^

a.h(2): warning #12-D: parsing restarts here
  };
   ^

1 error detected in the compilation of \"template.cu\".
";
    assert_eq!(
        super::errors_of(log),
        [
            "a.cu(7): error: identifier \"n\" is undefined",
            "  y[n] = 1;",
            "    ^",
            "1 error detected in the compilation of \"template.cu\".",
        ]
    );
}
