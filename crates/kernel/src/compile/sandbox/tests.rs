use super::{header_folders, linked_folders};
use crate::compile::discover::Surroundings;
use crate::compile::image::RawStatus;
use crate::compile::nvrtc::Nvrtc;
use crate::compile::request::Request;
use crate::compile::worker;
use std::path::{Path, PathBuf};

/// Compiles a text with these options and the folders that they name: returns the status and the log.
fn compile(text: &str, options: &[String]) -> (RawStatus, String) {
    compile_with(text, options, &header_folders(options))
}

/// Compiles a text with these options and folders of headers that may be read.
fn compile_with(text: &str, options: &[String], folders: &[PathBuf]) -> (RawStatus, String) {
    let nvrtc = Nvrtc::find(&Surroundings::from_env()).unwrap();
    let own = nvrtc.folders();
    let folders = folders.iter().chain(&own).cloned().collect();
    let own = own.iter().map(|folder| format!("-I{}", folder.display()));
    let request = Request {
        text: text.to_owned(),
        names: Vec::new(),
        headers: Vec::new(),
        options: options.iter().cloned().chain(own).collect(),
        folders,
        expressions: Vec::new(),
        linked_folders: Vec::new(),
        prelude: String::new(),
    };
    let result = worker::compile(&nvrtc, &request, Path::new("/"), None);
    (result.head.status, result.head.log)
}

/// Creates a folder of headers, and a file next to it.
fn project() -> (tempfile::TempDir, String, String) {
    let root = tempfile::tempdir().unwrap();
    let include = root.path().join("include");
    std::fs::create_dir(&include).unwrap();
    std::fs::write(include.join("mine.h"), "constexpr int MINE = 1;\n").unwrap();
    let secret = root.path().join("secret.h");
    std::fs::write(&secret, "hunter2\n").unwrap();
    std::os::unix::fs::symlink(&secret, include.join("link.h")).unwrap();
    let folder = format!("-I{}", include.display());
    let secret = secret.display().to_string();
    (root, folder, secret)
}

#[test]
fn headers_of_the_folders_and_of_cuda_are_found() {
    let (_root, folder, _) = project();
    let text = "#include <mine.h>\n#include <cuda_fp16.h>\n#define H \"mine.h\"\n#if __has_include(H)\n\
                #include H\n#endif\nextern \"C\" __global__ void k(int* x) { *x = MINE; }";
    assert!(text.contains("MINE"));
    let text = text.replace("#include <mine.h>\n", "");
    let (status, log) = compile(&text, &[folder]);
    assert_eq!(status, RawStatus::Compiled, "{log}");
}

#[test]
fn no_spelling_reads_a_file_of_elsewhere() {
    let (_root, folder, secret) = project();
    for directive in [
        "#include \"SECRET\"",
        "#include <SECRET>",
        "#include <../secret.h>",
        "#include <link.h>",
        "#include_next <../secret.h>",
        "#define NAME \"SECRET\"\n#include NAME",
        "#define TEXT(x) #x\n#define QUOTE(x) TEXT(x)\n#include QUOTE(SECRET)",
        "#inc\\\nlude /* x */ \"SECRET\"",
        "%:include \"SECRET\"",
        "const char data[] = {\n#embed \"SECRET\"\n};",
        "#if __has_include(\"SECRET\")\n#error hunter2\n#endif",
        "#if __has_include(<../secret.h>)\n#error hunter2\n#endif",
        "#define NAME \"SECRET\"\n#if __has_include(NAME)\n#error hunter2\n#endif",
    ] {
        let text = format!(
            "{}\n__global__ void k() {{}}",
            directive.replace("SECRET", &secret)
        );
        let (_, log) = compile(&text, std::slice::from_ref(&folder));
        assert!(!log.contains("hunter2"), "{directive}: {log}");
    }
    for option in [
        format!("--pre-include={secret}"),
        format!("-include={secret}"),
    ] {
        let (_, log) = compile("__global__ void k() {}", &[folder.clone(), option]);
        assert!(!log.contains("hunter2"), "{log}");
    }
}

#[test]
fn an_option_writes_no_file() {
    let (root, folder, _) = project();
    let [trace, pch] = ["trace.json", "headers.pch"].map(|name| root.path().join(name));
    for option in [
        format!("--fdevice-time-trace={}", trace.display()),
        format!("--create-pch={}", pch.display()),
        format!("-pch-dir={}", root.path().display()),
    ] {
        let text = "#include <mine.h>\n__global__ void k() {}";
        let (status, log) = compile(text, &[folder.clone(), option]);
        assert_eq!(status, RawStatus::Refused, "{log}");
        assert!(log.contains("writes a file"), "{log}");
    }
    assert!(!trace.exists() && !pch.exists());
}

#[test]
fn folders_are_read_from_every_spelling_of_the_option() {
    let options = [
        "-I/a",
        "-I",
        "/b",
        "--include-path=/c",
        "--include-path",
        "/d",
        "-DI=/e",
    ];
    let options: Vec<String> = options.map(str::to_owned).to_vec();
    let folders = header_folders(&options);
    assert_eq!(folders, ["/a", "/b", "/c", "/d"].map(Path::new));
}

#[test]
fn an_option_opens_no_folder_and_no_file() {
    let (root, folder, secret) = project();
    let granted = header_folders(&[folder]);
    let root = root.path().display().to_string();
    let text = "extern \"C\" __global__ void k() {}";
    for options in [
        vec![format!("-I{root}"), format!("--pre-include={secret}")],
        vec!["-I".to_owned(), root.clone()],
        vec![format!("--include-path={root}")],
        vec![format!("--pre-include={secret}")],
        vec![format!("-include={secret}")],
        vec!["-include".to_owned(), secret.clone()],
        vec![format!("--pre-include={root}/include/../secret.h")],
    ] {
        let (status, log) = compile_with(text, &options, &granted);
        assert_eq!(status, RawStatus::Refused, "{options:?}: {log}");
        assert!(!log.contains("hunter2"), "{options:?}: {log}");
    }
}

#[test]
fn a_toolkit_of_links_leads_to_its_folders() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    let [toolkit, store] = ["toolkit", "store"].map(|name| root.join(name));
    std::fs::create_dir_all(toolkit.join("cuda")).unwrap();
    std::fs::create_dir_all(store.join("a/cub")).unwrap();
    std::fs::create_dir_all(store.join("b")).unwrap();
    std::fs::write(toolkit.join("plain.h"), "").unwrap();
    assert!(linked_folders(&toolkit).is_empty());
    std::fs::write(store.join("b/deep.h"), "").unwrap();
    let link = std::os::unix::fs::symlink::<std::path::PathBuf, std::path::PathBuf>;
    link(store.join("a/cub"), toolkit.join("cub")).unwrap();
    link(store.join("b/deep.h"), toolkit.join("cuda/deep.h")).unwrap();
    let found: Vec<_> = linked_folders(&toolkit).into_iter().collect();
    assert_eq!(found, [store.join("a/cub"), store.join("b")]);
}
