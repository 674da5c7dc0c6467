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
