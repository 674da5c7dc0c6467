use super::{Macros, load_template, shown};
use std::path::Path;

fn write(folder: &Path, name: &str, text: &str) -> std::path::PathBuf {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn included_files_enter_the_hash_and_those_of_the_installation_do_not() {
    let dir = tempfile::tempdir().unwrap();
    let kernel = write(
        dir.path(),
        "t/kernel.cu",
        "#include \"a.cuh\"\n#include <cuda_fp16.h>\n#include <b.cuh>\n",
    );
    write(dir.path(), "t/a.cuh", "#include \"sub/c.cuh\"\n");
    write(dir.path(), "t/sub/c.cuh", "// c\n");
    write(dir.path(), "include/b.cuh", "#include \"b.cuh\"\n");
    let folders = [dir.path().join("include")];
    let before = load_template(&kernel, &folders, &Macros::new()).unwrap();
    let spelled: Vec<&str> = before
        .headers
        .iter()
        .map(|header| header.spelled.as_str())
        .collect();
    assert_eq!(spelled, ["a.cuh", "sub/c.cuh", "b.cuh"]);
    write(dir.path(), "t/sub/c.cuh", "// changed\n");
    assert_ne!(
        load_template(&kernel, &folders, &Macros::new())
            .unwrap()
            .hash,
        before.hash
    );
}

#[test]
fn two_files_of_one_name_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let kernel = write(
        dir.path(),
        "kernel.cu",
        "#include \"x/a.cuh\"\n#include \"u.cuh\"\n",
    );
    write(dir.path(), "x/a.cuh", "#include \"u.cuh\"\n");
    write(dir.path(), "x/u.cuh", "");
    write(dir.path(), "u.cuh", "");
    let error = load_template(&kernel, &[], &Macros::new())
        .unwrap_err()
        .to_string();
    assert!(error.contains("u.cuh"), "{error}");
}

#[test]
fn a_missing_or_binary_template_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("kernel.cu");
    let error = load_template(&missing, &[], &Macros::new())
        .unwrap_err()
        .to_string();
    assert!(error.contains("kernel.cu"), "{error}");
    std::fs::write(&missing, [0x66, 0xff, 0xfe]).unwrap();
    let error = load_template(&missing, &[], &Macros::new())
        .unwrap_err()
        .to_string();
    assert!(error.contains("not UTF-8"), "{error}");
}

#[test]
fn paths_are_shown_without_detours() {
    assert_eq!(
        shown(Path::new("search_spaces/../templates/./t/kernel.cu")),
        "templates/t/kernel.cu"
    );
    assert_eq!(shown(Path::new("/nowhere/a/../b.cu")), "/nowhere/b.cu");
}

#[test]
fn every_file_that_a_macro_may_name_is_read_and_a_byte_order_mark_is_no_text() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write(
        "k.cu",
        "\u{feff}#ifndef HEADER\n#define HEADER \"c.h\"\n#endif\n#include HEADER\n",
    );
    for name in ["a.h", "b.h", "c.h", "d.h"] {
        write(name, name);
    }
    let values = ["\"a.h\"", "\"b.h\"", "<d.h>"].map(str::to_owned).to_vec();
    let macros = Macros::from([("HEADER".to_owned(), values)]);
    let read = load_template(&folder.path().join("k.cu"), &[], &macros).unwrap();
    let spelled: Vec<&str> = read.headers.iter().map(|header| &*header.spelled).collect();
    assert_eq!(
        spelled,
        ["a.h", "b.h", "c.h"],
        "`<d.h>` does not lie beside"
    );
    assert!(read.text.starts_with("#ifndef"), "{:?}", read.text);
}

#[test]
fn only_files_of_the_template_and_of_named_folders_are_included() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    std::fs::create_dir(root.join("search_spaces")).unwrap();
    write(root, "secret.h", "hunter2\n");
    write(root, "templates/common.cuh", "");
    write(root, "named/named.cuh", "");
    let secret = root.join("secret.h").display().to_string();
    let kernel = write(root, "templates/k/kernel.cu", "");
    std::os::unix::fs::symlink(&secret, root.join("templates/k/link.h")).unwrap();
    write(
        root,
        "templates/k/nested.cuh",
        "#include \"../../secret.h\"\n",
    );
    for (directive, right) in [
        ("\"../common.cuh\"", true),
        ("\"../../named/named.cuh\"", true),
        ("\"../../secret.h\"", false),
        ("\"link.h\"", false),
        ("\"nested.cuh\"", false),
        ("<../secret.h>", false),
        (&format!("\"{secret}\""), false),
        ("\"/etc/passwd\"", false),
        ("</etc/passwd>", false),
    ] {
        write(
            root,
            "templates/k/kernel.cu",
            &format!("#include {directive}\n"),
        );
        let read = load_template(&kernel, &[root.join("named")], &Macros::new());
        assert_eq!(read.is_ok(), right, "{directive}");
        if let Err(error) = read {
            let text = error.to_string();
            assert!(text.contains("compile: { include"), "{text}");
            assert!(!text.contains("hunter2"), "{text}");
        }
    }
}
