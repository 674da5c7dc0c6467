//! Captures written, cut short and read again.

use super::*;
use std::path::Path;

fn limits(launches: usize, bytes: u64) -> Limits {
    Limits { launches, bytes }
}

fn writer(folder: &Path, limits: Limits) -> Writer {
    let document = Document {
        program: vec!["./app".to_owned()],
        device: "vgpu:a100".to_owned(),
        ..Document::default()
    };
    Writer::create(folder, limits, document).expect("a capture")
}

fn launch(kernel: &str) -> Launch {
    Launch {
        kernel: kernel.to_owned(),
        symbol: format!("_Z1{kernel}v"),
        ..Launch::default()
    }
}

fn buffer(before: &[u8]) -> BufferContents {
    BufferContents {
        buffer: Buffer {
            bytes: before.len() as u64,
            ..Buffer::default()
        },
        before: Some(before.to_vec()),
        ..BufferContents::default()
    }
}

#[test]
fn a_launch_is_read_back_with_its_contents() {
    let folder = tempfile::tempdir().expect("a folder");
    let writer = writer(folder.path(), limits(4, 1 << 20));
    writer.add(launch("ns::k<4>"), vec![buffer(b"data"), buffer(b"data")]);
    let capture = Capture::open(folder.path()).expect("a capture");
    let found = capture.launches("k").next().expect("the launch");
    let [one, two] = found.buffers.as_slice() else {
        panic!("two buffers");
    };
    assert_eq!(one.before, two.before);
    let hash = one.before.as_deref().expect("contents");
    assert_eq!(capture.contents(hash).expect("contents"), b"data");
    assert!(capture.document.ended.is_none());
}

#[test]
fn a_folder_with_a_capture_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    writer(folder.path(), limits(4, 8)).add(launch("k"), Vec::new());
    let error = Writer::create(folder.path(), limits(4, 8), Document::default());
    let error = error.expect_err("a second capture").to_string();
    assert!(error.contains("name another folder"), "{error}");
    let capture = Capture::open(folder.path()).expect("the first one");
    assert_eq!(capture.document.launches.len(), 1);
}

#[test]
fn limits_are_told_and_lose_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let writer = writer(folder.path(), limits(1, 6));
    let shape = |x| Shape {
        grid: [x, 1, 1],
        block: [32, 1, 1],
        shared_bytes: 0,
    };
    assert!(writer.wants("k", "k", &shape(1)));
    assert!(!writer.wants("k", "k", &shape(1)));
    assert!(!writer.wants("k", "k", &shape(2)));
    writer.add(launch("k"), vec![buffer(b"1234")]);
    writer.add(launch("l"), vec![buffer(b"5678")]);
    writer.add(launch("m"), vec![buffer(b"1234")]);
    let ended = Ended {
        exit_code: Some(0),
        signal: None,
    };
    let document = writer.finish(ended).expect("the document");
    let kernels: Vec<&str> = document.launches.iter().map(|l| &*l.kernel).collect();
    assert_eq!(kernels, ["k", "m"]);
    let [shapes, bytes] = document.skipped.as_slice() else {
        panic!("{:?}", document.skipped);
    };
    assert!(shapes.contains("--capture-limit N"), "{shapes}");
    assert!(
        bytes.contains("take 4 B and 2 B of --capture-bytes 6 B are left"),
        "{bytes}"
    );
}

#[test]
fn a_full_disk_ends_the_capture_and_loses_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let writer = writer(folder.path(), limits(4, 99));
    writer.add(launch("k"), vec![buffer(b"first")]);
    // The next contents are written to a device that is always full.
    let hash = hex::encode(<sha2::Sha256 as sha2::Digest>::digest(b"second"));
    let temporary = format!(".{hash}.gz.{}.tmp", std::process::id());
    let temporary = folder.path().join(DATA).join(temporary);
    std::os::unix::fs::symlink("/dev/full", temporary).expect("a link");
    writer.add(launch("l"), vec![buffer(b"second")]);
    writer.add(launch("m"), vec![buffer(b"first")]);
    let ended = Ended {
        exit_code: Some(0),
        signal: None,
    };
    let document = writer.finish(ended).expect("the document");
    let [why] = document.skipped.as_slice() else {
        panic!("{:?}", document.skipped);
    };
    assert!(why.contains("l: the capture ended here"), "{why}");
    assert!(why.contains("No space left"), "{why}");
    let capture = Capture::open(folder.path()).expect("a capture");
    assert_eq!(capture.document.launches.len(), 1);
    let hash = capture.document.launches[0].buffers[0].before.clone();
    assert_eq!(
        capture.contents(&hash.expect("contents")).expect("kept"),
        b"first"
    );
}

#[test]
fn damaged_contents_and_documents_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let none = Capture::open(folder.path()).expect_err("no capture");
    assert!(none.to_string().contains("tuner exec --capture"), "{none}");
    writer(folder.path(), limits(4, 99)).add(launch("k"), vec![buffer(b"data")]);
    let capture = Capture::open(folder.path()).expect("a capture");
    let hash = capture.document.launches[0].buffers[0].before.clone();
    let hash = hash.expect("contents");
    let path = folder.path().join(DATA).join(format!("{hash}.gz"));
    let whole = std::fs::read(&path).expect("the file");
    std::fs::write(&path, &whole[..whole.len() - 9]).expect("cut");
    assert!(capture.contents(&hash).is_err());
    let text = std::fs::read_to_string(folder.path().join(DOCUMENT)).expect("the document");
    let other = text.replace("\"format\": 1", "\"format\": 99");
    std::fs::write(folder.path().join(DOCUMENT), other).expect("another version");
    let error = Capture::open(folder.path()).expect_err("another version");
    assert!(error.to_string().contains("format 99"), "{error}");
}

/// Replaces a text in the document of a capture with one buffer of four bytes.
fn edit_document(folder: &Path, from: &str, to: &str) {
    let path = folder.join(DOCUMENT);
    let text = std::fs::read_to_string(&path).expect("the document");
    assert!(text.contains(from), "{text}");
    std::fs::write(path, text.replace(from, to)).expect("written");
}

/// A capture with one launch, and the file of its contents.
fn one_launch(folder: &Path) -> (String, std::path::PathBuf) {
    writer(folder, limits(4, 99)).add(launch("k"), vec![buffer(b"data")]);
    let capture = Capture::open(folder).expect("a capture");
    let hash = capture.document.launches[0].buffers[0].before.clone();
    let hash = hash.expect("contents");
    let path = folder.join(DATA).join(format!("{hash}.gz"));
    (hash, path)
}

#[test]
fn contents_that_unpack_to_more_than_their_buffer_are_refused_before_they_are_unpacked() {
    let folder = tempfile::tempdir().expect("a folder");
    let (hash, path) = one_launch(folder.path());
    let file = std::fs::File::create(&path).expect("the file");
    let mut bomb = flate2::write::GzEncoder::new(file, flate2::Compression::best());
    for _ in 0..64 {
        std::io::Write::write_all(&mut bomb, &vec![0; 1 << 20]).expect("zeros");
    }
    bomb.finish().expect("the end");
    let capture = Capture::open(folder.path()).expect("a capture");
    let error = capture.contents(&hash).expect_err("a bomb").to_string();
    assert!(error.contains("more than 4 bytes"), "{error}");
}

#[test]
fn names_that_leave_the_folder_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    one_launch(folder.path());
    for name in [
        "../../x",
        "/x",
        "a/b",
        "",
        "a b",
        "9",
        r"a\u0000",
        &"a".repeat(65),
    ] {
        let values = format!("\"values\": {{\"{name}\": 1}}");
        edit_document(folder.path(), "\"values\": {}", &values);
        let error = Capture::open(folder.path()).expect_err(name).to_string();
        assert!(error.contains("is not a name of a value"), "{error}");
        edit_document(folder.path(), &values, "\"values\": {}");
    }
    let capture = Capture::open(folder.path()).expect("a capture");
    let error = capture.contents("../../x").expect_err("a path").to_string();
    assert!(error.contains("not a SHA-256 hash"), "{error}");
}

#[test]
fn a_fifo_is_refused_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let (hash, path) = one_launch(folder.path());
    let capture = Capture::open(folder.path()).expect("a capture");
    for file in [path, folder.path().join(DOCUMENT)] {
        std::fs::remove_file(&file).expect("removed");
        let made = std::process::Command::new("mkfifo").arg(&file).status();
        assert!(made.expect("mkfifo").success());
    }
    let error = capture.contents(&hash).expect_err("a FIFO").to_string();
    assert!(error.contains("not a regular file"), "{error}");
    let error = Capture::open(folder.path())
        .expect_err("a FIFO")
        .to_string();
    assert!(error.contains("not a regular file"), "{error}");
}

#[test]
fn ranges_merge_and_are_cut_to_a_window() {
    let ranges = Ranges::merge(vec![8..12, 0..4, 4..6, 20..24]);
    assert_eq!(ranges.list, [[0, 6], [8, 12], [20, 24]]);
    assert_eq!((ranges.bytes, ranges.bounds), (14, [0, 24]));
    assert!(ranges.covers(6) && !ranges.covers(7));
    assert_eq!(ranges.within(&(4..10)).list, [[0, 2], [4, 6]]);
}
