//! Text from outside stays text in exports with code: the package for PyTorch and the C++ launcher. Each
//! option and format of `tuner export` is on a list here, so that a new one has such a test.

use super::foreign_text::{assert_text, exported, nasty, nasty_start, stored};
use crate::program::{ended, root, tuner};
use crate::store::headers::{CPP17, compile};
use crate::store::support::fresh;
use std::path::{Component, Path};
use std::process::Command;
use tuner_core::entry::Entry;
use tuner_core::record::DeviceKind;
use tuner_core::value::Value;
use tuner_kernel::catalog::Kernel;
use tuner_report::export::{
    ExportError, Launcher, LauncherError, LauncherImage, LauncherSource, PackageFiles,
    launcher_entries, torch_package,
};

/// Fails for a Python file that is not one, or whose names or code have a text of others.
const READ: &str = r#"
import ast, sys
for name in sys.argv[1:]:
    for node in ast.walk(ast.parse(open(name, encoding="utf-8").read(), name)):
        for field, value in ast.iter_fields(node):
            if isinstance(value, str) and ("forged" in value.lower() or "x" * 200 in value):
                plain = value.isascii() and value.replace(".", "_").isidentifier()
                assert plain or isinstance(node, ast.Constant), f"{name}: {type(node).__name__}.{field} is {value[:80]!r}"
"#;

/// A small kernel whose texts are nasty wherever its search space may have any.
fn nasty_kernel() -> Kernel {
    let text = nasty() + "\u{0}";
    let path = root().join("search_spaces/softmax.quick.yaml");
    let mut kernel = Kernel::load_in(&path, root()).unwrap();
    kernel.spec.torch_fallback = Some(text.clone());
    kernel.spec.options = vec!["--use_fast_math".to_owned()];
    for launch in &mut kernel.spec.launches {
        launch.entry.clone_from(&text);
    }
    // As the entry has them.
    kernel.spec.parameters.truncate(2);
    for (parameter, name) in kernel.spec.parameters.iter_mut().zip(["TILE", "PAD"]) {
        parameter.name = name.to_owned();
    }
    kernel
}

fn source<'a>(kernel: &'a Kernel, text: &'a str) -> LauncherSource<'a> {
    LauncherSource {
        spec: &kernel.spec,
        name: text,
        text,
        headers: vec![(text.to_owned(), text.to_owned())],
        mentions: &|_| true,
        checked_only: true,
    }
}

/// An entry with nasty texts and the sizes of the kernel.
async fn nasty_entry() -> Entry {
    let (_directory, store) = fresh().await;
    stored(&store, &nasty_start(DeviceKind::Cuda)).await;
    let (mut entry, _) = exported(&store).await;
    let text = nasty() + "\u{0}";
    entry.best.measured_at.clone_from(&text);
    entry.best.device.clone_from(&text);
    entry.sizes = ["R", "N"]
        .map(|name| (name.to_owned(), Value::Int(64)))
        .to_vec();
    let layout = ("LAYOUT".to_owned(), Value::Text(text.as_str().into()));
    entry.sizes.push(layout);
    entry
}

fn assert_relative(name: &str) {
    let parts = Path::new(name).components();
    let is_plain = |part: Component<'_>| {
        let part = part.as_os_str().to_string_lossy().into_owned();
        let word = |c: char| c.is_ascii_alphanumeric() || "_.".contains(c);
        part.chars().all(word) && part != ".." && part.len() <= 255
    };
    assert!(parts.clone().all(is_plain), "{name:.200}");
}

fn assert_package(files: &PackageFiles) {
    let folder = tempfile::tempdir().unwrap();
    let mut modules = Vec::new();
    for (name, bytes) in files {
        assert_relative(name);
        if name.ends_with(".cubin") {
            continue;
        }
        let text = std::str::from_utf8(bytes).unwrap();
        assert_text(name, text);
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("py") => modules.push(path),
            Some("toml") => _ = toml::from_str::<toml::Table>(text).unwrap(),
            Some("json") => {
                let whole: serde_json::Value = serde_json::from_str(text).unwrap();
                let text = nasty() + "\u{0}";
                assert_eq!(whole["entries"][0]["device"], *text);
                assert_eq!(whole["torch"]["source"]["text"], *text);
                assert_eq!(whole["torch"]["fallback"], *text);
            }
            other => panic!("{name}: {other:?} has no check here"),
        }
    }
    assert!(modules.len() >= 3);
    let read = ended(Command::new("python3").args(["-c", READ]).args(modules));
    assert_eq!(read.code, 0, "{}", read.stderr);
}

#[tokio::test]
async fn a_nasty_string_stays_data_in_a_package_for_pytorch() {
    let (kernel, text) = (nasty_kernel(), nasty() + "\u{0}");
    let entry = nasty_entry().await;
    let entries = [entry];
    let source = source(&kernel, &text);
    let image = LauncherImage {
        entry: 0,
        arch: "sm_80".to_owned(),
        is_ptx: false,
        bytes: b"\x7fELF".to_vec(),
        symbols: vec![text.clone()],
    };
    let images = [(image, vec![(text.clone(), text.clone())])];
    let files = torch_package(&text, &entries, &source, &images).unwrap();
    assert_package(&files);
    // Its code is that of any other kernel.
    let plain = torch_package("plain", &entries, &source, &images).unwrap();
    let (module, _) = files[1].0.split_once('/').unwrap();
    let op = module.trim_end_matches("_torch");
    let hyphens = op.replace('_', "-");
    for ((name, text), (plain_name, plain_text)) in files.iter().zip(&plain) {
        assert_eq!(&name.replace(op, "plain"), plain_name);
        if !name.ends_with(".json") {
            let [text, plain_text] = [text, plain_text].map(|bytes| String::from_utf8_lossy(bytes));
            let text = text.replace(op, "plain").replace(&hyphens, "plain");
            assert_eq!(text, plain_text, "{name:.80}");
        }
    }
}

#[tokio::test]
async fn a_value_or_name_that_is_more_than_a_macro_is_refused_in_packages_and_launchers() {
    let (kernel, text) = (nasty_kernel(), nasty());
    let good = nasty_entry().await;
    for (name, value) in [
        ("PAD", "1\n#define system(x) evil(x)"),
        ("PAD", "a \\"),
        ("PAD", "a /*"),
        ("PAD(x) evil\n#define B", "1"),
        ("", "1"),
    ] {
        let mut entry = good.clone();
        entry.best.config[1] = (name.to_owned(), Value::Text(value.into()));
        let entries = launcher_entries(&[entry]);
        let source = source(&kernel, &text);
        let refused = [
            torch_package("k", &entries, &source, &[]).err(),
            Launcher::new("k", &entries, &source).err(),
        ];
        for error in refused {
            let error = error.expect(value);
            let known = matches!(
                error,
                LauncherError::Export(ExportError::NotABody { .. } | ExportError::NotAName(_))
            );
            assert!(known, "{error}");
        }
    }
}

#[tokio::test]
async fn an_argument_whose_name_is_not_one_of_c_is_refused_in_packages_and_launchers() {
    let (mut kernel, text) = (nasty_kernel(), nasty());
    kernel.spec.arguments[0].name = "x; } int evil() {".to_owned();
    let entries = launcher_entries(&[nasty_entry().await]);
    let source = source(&kernel, &text);
    let refused = [
        torch_package("k", &entries, &source, &[]).err(),
        Launcher::new("k", &entries, &source).err(),
    ];
    for error in refused {
        let expected = ExportError::NotAName("x; } int evil() {".to_owned());
        assert_eq!(error, Some(expected.into()));
    }
}

#[tokio::test]
async fn a_nasty_string_stays_a_comment_or_a_literal_in_a_launcher() {
    let (kernel, text) = (nasty_kernel(), nasty() + "\u{0}");
    let mut entry = nasty_entry().await;
    let launches = kernel.spec.launches.len();
    entry.definition.launches.truncate(launches);
    let entries = launcher_entries(&[entry]);
    let source = source(&kernel, &text);
    let launcher = Launcher::new(&text, &entries, &source).unwrap();
    let header = launcher.text(&[]);
    let others = || header.lines().filter(|line| !line.starts_with("#error \""));
    assert_text("launcher", &others().collect::<Vec<_>>().join("\n"));
    let known = [
        "if", "ifdef", "ifndef", "elif", "else", "endif", "define", "undef", "include", "pragma",
    ];
    for line in others().filter_map(|line| line.trim_start().strip_prefix('#')) {
        let line = line.trim_start();
        let word = line.split([' ', '(']).next().unwrap_or_default();
        assert!(known.contains(&word), "{line:.100}");
    }
    let directory = tempfile::tempdir().unwrap();
    // What the declarations need of CUDA.
    let cuda = "typedef struct CUstream_st* cudaStream_t;\ntypedef int cudaError_t;\n";
    std::fs::write(directory.path().join("cuda_runtime_api.h"), cuda).unwrap();
    let compiler = [CPP17, &["-Wno-overlength-strings"]].concat();
    let program = format!("{header}\nint main() {{ return 0; }}\n");
    compile(directory.path(), &compiler, "nasty.cpp", &program).unwrap();
}

/// A new option or format needs a test with the nasty string, and its name here.
#[test]
fn every_option_and_format_of_export_is_known_to_these_tests() {
    // Each of the first row writes: see `foreign_text.rs` and above.
    let writing = ["--embed", "--launcher", "--torch", "--to"];
    let others = [
        "--allow-predicted",
        "--allow-uncompared",
        "--checked-only",
        "--db",
        "--device",
        "--help",
        "--output",
        "--problem",
        "--prove-budget",
        "--version",
        "--wide",
    ];
    let folder = tempfile::tempdir().unwrap();
    let help = ended(tuner(folder.path()).args(["export", "--help"])).stdout;
    let options = help.lines().filter_map(|line| {
        let words = line.strip_prefix("  ")?.split([' ', '=', '[', ',']);
        let is_option = line.trim_start().starts_with('-');
        words
            .filter(|_| is_option)
            .find(|word| word.starts_with("--"))
    });
    let mut options: Vec<&str> = options.collect();
    options.sort_unstable();
    options.dedup();
    let mut expected = [&writing[..], &others[..]].concat();
    expected.sort_unstable();
    assert_eq!(options, expected);
    let formats = ended(tuner(folder.path()).args(["export", "k", "--to", "?"])).stderr;
    let known = "[possible values: header, json, kernel-tuner, t4, wisdom, triton, kernelbench]";
    assert!(formats.contains(known), "{formats}");
}
