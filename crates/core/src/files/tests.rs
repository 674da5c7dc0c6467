use super::{MAX_RATIO, SMALL_BYTES, read, unpack};
use std::io::{ErrorKind, Write as _};

fn packed(plain: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_fifo_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("space.yaml");
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.unwrap().success());
    let error = read(&path, 10).unwrap_err();
    assert!(error.to_string().contains("not a regular file"), "{error}");
    let device = read(std::path::Path::new("/dev/zero"), 10).unwrap_err();
    assert!(
        device.to_string().contains("not a regular file"),
        "{device}"
    );
}

#[test]
fn limits_hold_to_the_byte() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, [7; 100]).unwrap();
    assert_eq!(read(&path, 100).unwrap().len(), 100);
    assert_eq!(read(&path, 99).unwrap_err().kind(), ErrorKind::FileTooLarge);
    assert_eq!(unpack(packed(&[7; 100]), 100).unwrap().bytes, [7; 100]);
    let error = unpack(packed(&[7; 101]), 100).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::FileTooLarge);
}

#[test]
fn a_bomb_is_refused_before_it_is_large() {
    let bomb = packed(&vec![0; 4 * usize::try_from(SMALL_BYTES).unwrap()]);
    assert!((bomb.len() as u64) * MAX_RATIO < 4 * SMALL_BYTES);
    let error = unpack(bomb, u64::MAX - 1).unwrap_err();
    assert!(error.to_string().contains("times their size"), "{error}");
}

#[test]
fn what_comes_before_damage_is_kept() {
    let plain: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
    let mut data = packed(&plain);
    data.truncate(data.len() / 2);
    let unpacked = unpack(data, 1 << 30).unwrap();
    assert!(unpacked.damage.is_some());
    assert!(plain.starts_with(&unpacked.bytes) && !unpacked.bytes.is_empty());
}

#[test]
fn a_small_limit_is_named_in_bytes() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), [0; 100]).unwrap();
    let error = read(file.path(), 99).unwrap_err();
    assert_eq!(error.to_string(), "it holds more than 99 bytes");
}
