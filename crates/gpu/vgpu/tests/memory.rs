//! Memory of a device: tracking of written bytes.
#![expect(clippy::expect_used, reason = "a test that cannot go on should fail")]

use vgpu::{BufferId, GlobalMemory, MemoryError};

#[test]
fn exactly_the_bytes_that_were_written_are_known_as_written() {
    for start in [0_u64, 1, 31, 32, 33, 63] {
        for end in [start, start + 1, start + 5, 64, 65, 96, 99] {
            let mut memory = GlobalMemory::new(1 << 20);
            let buffer = memory.alloc(100, "buffer").unwrap();
            let bytes = vec![7; (end - start) as usize];
            memory.write(buffer, start, &bytes);
            let unwritten: Vec<u64> = memory.unwritten(buffer).flatten().collect();
            let expected: Vec<u64> = (0..start).chain(end..100).collect();
            assert_eq!(unwritten, expected, "{start}..{end}");
        }
    }
}

/// A memory with two buffers of 100 bytes: `a` with the bytes 10..60 written, `b` written whole.
fn two() -> (GlobalMemory, BufferId, BufferId) {
    let mut memory = GlobalMemory::new(1 << 20);
    let a = memory.alloc(100, "a").expect("memory");
    let b = memory.alloc(100, "b").expect("memory");
    let bytes: Vec<u8> = (10..60).collect();
    memory.write(a, 10, &bytes);
    memory.write(b, 0, &[200; 100]);
    (memory, a, b)
}

fn unwritten(memory: &GlobalMemory, buffer: BufferId) -> Vec<u64> {
    memory.unwritten(buffer).flatten().collect()
}

#[test]
fn a_copy_carries_which_bytes_were_never_written() {
    for (from, to, bytes) in [
        (0, 0, 100),
        (5, 3, 60),
        (8, 41, 7),
        (33, 64, 36),
        (10, 0, 50),
        (0, 0, 0),
    ] {
        let (mut memory, a, b) = two();
        memory.copy_range(a, from, b, to, bytes).unwrap();
        let copied = |byte: u64| (to..to + bytes).contains(&byte);
        let source = |byte: u64| byte - to + from;
        let expected: Vec<u64> = (0..100)
            .filter(|byte| copied(*byte) && !(10..60).contains(&source(*byte)))
            .collect();
        assert_eq!(unwritten(&memory, b), expected, "{from} {to} {bytes}");
        for (byte, value) in (0..100).zip(memory.read(b)) {
            match copied(byte) {
                true if (10..60).contains(&source(byte)) => {
                    assert_eq!(u64::from(value), source(byte));
                }
                true => {}
                false => assert_eq!(value, 200),
            }
        }
    }
}

#[test]
fn overlapping_copies_move_bytes() {
    let size = 5 << 20;
    for (from, to) in [(0, 3), (3, 0), (0, 1 << 20), (2 << 20, 7), (5, 5)] {
        let mut memory = GlobalMemory::new(1 << 30);
        let buffer = memory.alloc(size, "buffer").unwrap();
        let bytes: Vec<u8> = (0..size).map(|i| (i * 7 % 251) as u8).collect();
        memory.write(buffer, 0, &bytes);
        let count = size - from.max(to);
        memory.copy_range(buffer, from, buffer, to, count).unwrap();
        let mut expected = bytes.clone();
        expected.copy_within(from as usize..(from + count) as usize, to as usize);
        assert!(memory.read(buffer) == expected, "{from} {to}");
    }
}

#[test]
fn an_overlapping_copy_moves_definedness() {
    let (mut memory, a, _) = two();
    memory.copy_range(a, 0, a, 20, 80).unwrap();
    let expected: Vec<u64> = (0..10).chain(20..30).chain(80..100).collect();
    assert_eq!(unwritten(&memory, a), expected);
}

#[test]
fn ranges_are_filled_and_queried() {
    let (mut memory, a, _) = two();
    memory.fill_range(a, 58, 9, &[1, 2, 3, 4]).unwrap();
    let expected: Vec<u64> = (0..10).chain(67..100).collect();
    assert_eq!(unwritten(&memory, a), expected);
    let mut bytes = [0; 11];
    memory.read_at(a, 57, &mut bytes);
    assert_eq!(bytes, [57, 1, 2, 3, 4, 1, 2, 3, 4, 1, 0]);
    memory.fill_range(a, 0, 100, &[]).unwrap();
    assert_eq!(unwritten(&memory, a), expected);
    memory.fill_range(a, 0, 100, &[0]).unwrap();
    assert_eq!(unwritten(&memory, a), []);
    assert_eq!(memory.read(a), [0; 100]);
}

#[test]
fn ranges_outside_are_errors() {
    let (mut memory, a, b) = two();
    let outside = |result: Result<(), MemoryError>| {
        assert!(
            matches!(result, Err(MemoryError::OutOfRange { .. })),
            "{result:?}"
        );
    };
    outside(memory.fill_range(a, u64::MAX, 1, &[0]));
    outside(memory.fill_range(a, 1, 100, &[0]));
    outside(memory.copy_range(a, 1, b, 0, 100));
    outside(memory.copy_range(b, 0, a, 1, 100));
    memory.free(a);
    outside(memory.fill_range(a, 0, 1, &[1]));
    outside(memory.copy_range(b, 0, a, 0, 1));
    memory.fill_range(b, 0, 100, &[1]).unwrap();
}

#[test]
fn buffers_stay_valid_while_others_are_freed() {
    let mut memory = GlobalMemory::new(1 << 20);
    let kept = memory.alloc(64, "kept").unwrap();
    memory.write(kept, 0, &[7; 64]);
    let mut before = None;
    for round in 0..5000u64 {
        let buffer = memory.alloc(64, "short").unwrap();
        let address = memory.address(buffer);
        assert_eq!(memory.find(address + 63).unwrap().buffer(), buffer);
        assert!(memory.find(address + 64).is_none());
        if let Some(old) = before.replace(buffer) {
            memory.free(old);
            assert_eq!(memory.len(old), 0);
        }
        if round % 1000 == 0 {
            assert_eq!(memory.find(memory.address(kept) + 5).unwrap().offset, 5);
            assert_eq!(memory.read(kept), [7; 64]);
        }
    }
    assert_eq!(memory.buffers().count(), 2);
    assert_eq!(memory.allocated(), 128);
}
