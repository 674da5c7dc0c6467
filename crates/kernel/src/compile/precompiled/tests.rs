use super::{Precompiled, PrecompiledSettings};
use crate::compile::discover::Surroundings;
use crate::compile::image::{RawResult, RawStatus};
use crate::compile::nvrtc::Nvrtc;
use crate::compile::request::Request;
use crate::compile::worker;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use tuner_core::panics::lock;

/// Folder of NVRTC's temporary files in this process: it is the variable of a worker's environment.
fn temporary() -> PathBuf {
    std::env::temp_dir()
}

/// NVRTC keeps one heap of precompiled headers a process; a worker compiles one source at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

const PRELUDE: &str = "#include <cuda_fp16.h>\n#include <mma.h>\n";

fn request(nvrtc: &Nvrtc, block: u32, body: &str) -> Request {
    let own = nvrtc.folders();
    let mut options = vec![
        "--gpu-architecture=sm_80".to_owned(),
        "-lineinfo".to_owned(),
    ];
    options.extend(own.iter().map(|folder| format!("-I{}", folder.display())));
    Request {
        text: format!("#define BLOCK {block}\n#line 1 \"k.cu\"\n{PRELUDE}{body}"),
        names: vec!["k.cu".to_owned()],
        headers: Vec::new(),
        options,
        folders: own,
        expressions: Vec::new(),
        linked_folders: Vec::new(),
        prelude: PRELUDE.to_owned(),
    }
}

const KERNEL: &str = "extern \"C\" __global__ void k(half* x) {\n    x[threadIdx.x] = \
                      __float2half(BLOCK * __half2float(x[0]));\n}\n";

fn precompiled(folder: &Path, bytes_max: u64) -> Precompiled {
    Precompiled::new(PrecompiledSettings {
        folder: folder.display().to_string(),
        bytes_max,
    })
}

/// Compiles a request with and without its prelude precompiled.
fn both(nvrtc: &Nvrtc, request: &Request, precompiled: &mut Precompiled) -> [RawResult; 2] {
    let plain = worker::compile(nvrtc, request, Path::new("/"), None);
    let shorter = worker::compile(nvrtc, request, Path::new("/"), Some(precompiled));
    [plain, shorter]
}

#[test]
fn code_and_messages_are_the_same_with_and_without() {
    let _alone = lock(&ONE_AT_A_TIME);
    let nvrtc = Nvrtc::find(&Surroundings::from_env()).unwrap();
    let mut precompiled = precompiled(&temporary(), 1 << 30);
    let broken = format!("{KERNEL}int a = ;\n");
    let warned = KERNEL.replace("{\n", "{\n    int unused = 1;\n");
    for (block, body) in [(64, KERNEL), (128, KERNEL), (32, &broken), (32, &warned)] {
        let [plain, shorter] = both(&nvrtc, &request(&nvrtc, block, body), &mut precompiled);
        assert_eq!(
            plain.head.status, shorter.head.status,
            "{}",
            shorter.head.log
        );
        // The assembler's times differ from run to run.
        let lines = |log: &str| {
            let kept = log.lines().filter(|line| !line.contains(" ms"));
            kept.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(lines(&plain.head.log), lines(&shorter.head.log));
        assert_eq!(plain.ptx, shorter.ptx);
        assert_eq!(plain.cubin, shorter.cubin);
    }
    assert_eq!(precompiled.created, 1);
    assert!(precompiled.entries.iter().all(|entry| entry.file.is_some()));
    let mine = format!("prelude-{}-", std::process::id());
    let left = std::fs::read_dir(temporary()).unwrap();
    let named = left.filter(|it| {
        let name = it.as_ref().unwrap().file_name();
        name.to_string_lossy().starts_with(&mine)
    });
    assert_eq!(named.count(), 0, "the files have no names");
}

#[test]
fn each_set_of_options_has_its_own_and_the_oldest_goes() {
    let _alone = lock(&ONE_AT_A_TIME);
    let nvrtc = Nvrtc::find(&Surroundings::from_env()).unwrap();
    let mut precompiled = precompiled(&temporary(), 1 << 30);
    for number in [0, 1, 2, 3, 4, 4, 1, 0] {
        let mut request = request(&nvrtc, 64, KERNEL);
        request.options.push(format!("-DN={number}"));
        let result = worker::compile(&nvrtc, &request, Path::new("/"), Some(&mut precompiled));
        assert_eq!(
            result.head.status,
            RawStatus::Compiled,
            "{}",
            result.head.log
        );
    }
    assert_eq!(precompiled.created, 6, "0 to 4, and 0 again");
    assert_eq!(precompiled.entries.len(), super::ENTRIES_MAX);
    assert!(precompiled.entries.iter().all(|entry| entry.file.is_some()));
}

#[test]
fn a_prelude_that_cannot_be_kept_is_read_each_time() {
    let _alone = lock(&ONE_AT_A_TIME);
    let nvrtc = Nvrtc::find(&Surroundings::from_env()).unwrap();
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("file"), "").unwrap();
    let mut missing = request(&nvrtc, 64, KERNEL);
    missing.prelude = "#include <nowhere.h>\n".to_owned();
    let usual = request(&nvrtc, 64, KERNEL);
    for (request, folder, bytes_max) in [
        (&usual, temporary(), 1000),
        (&usual, root.path().join("file"), 1 << 30),
        (&missing, temporary(), 1 << 30),
    ] {
        let mut precompiled = precompiled(&folder, bytes_max);
        for _ in 0..2 {
            let [plain, shorter] = both(&nvrtc, request, &mut precompiled);
            assert_eq!(
                shorter.head.status,
                RawStatus::Compiled,
                "{}",
                shorter.head.log
            );
            assert_eq!(plain.ptx, shorter.ptx);
        }
        assert_eq!(precompiled.created, 1, "it is tried once");
        assert!(precompiled.entries.iter().all(|entry| entry.file.is_none()));
    }
}

#[test]
fn a_file_that_does_not_suit_is_no_warning_of_the_source() {
    let _alone = lock(&ONE_AT_A_TIME);
    let nvrtc = Nvrtc::find(&Surroundings::from_env()).unwrap();
    let mut precompiled = precompiled(&temporary(), 1 << 30);
    let request = request(&nvrtc, 64, KERNEL);
    let [plain, _] = both(&nvrtc, &request, &mut precompiled);
    let entry = precompiled.entries.front_mut().unwrap();
    let root = tempfile::tempdir().unwrap();
    let other = root.path().join("other");
    std::fs::write(&other, "no precompiled header").unwrap();
    entry.file = Some(std::fs::File::open(&other).unwrap());
    let shorter = worker::compile(&nvrtc, &request, Path::new("/"), Some(&mut precompiled));
    assert_eq!(
        shorter.head.status,
        RawStatus::Compiled,
        "{}",
        shorter.head.log
    );
    assert!(
        !shorter.head.log.contains("precompiled"),
        "{}",
        shorter.head.log
    );
    assert_eq!(plain.ptx, shorter.ptx);
    assert!(precompiled.entries.iter().all(|entry| entry.file.is_none()));
}
