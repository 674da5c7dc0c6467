use super::*;
use crate::session::{SlotRange, StridedRange};
use std::ops::Range;

/// A block that stores to `count` ranges, `stride` bytes apart.
fn block(block: u64, bytes: Range<u64>, stride: u64, count: u64) -> BlockTrace {
    let first = SlotRange {
        slot: Slot(1),
        bytes,
    };
    let writes = vec![StridedRange {
        first,
        stride,
        count,
    }];
    BlockTrace {
        block,
        writes,
        reads: Vec::new(),
    }
}

#[test]
fn adjacent_and_interleaved_stores_do_not_conflict() {
    let tiles = [block(0, 0..64, 128, 8), block(1, 64..128, 128, 8)];
    assert_eq!(first_conflict(&tiles), None);
    let bytes = [block(0, 0..3, 0, 1), block(1, 3..4, 0, 1)];
    assert_eq!(first_conflict(&bytes), None);
}

#[test]
fn a_byte_that_two_blocks_store_to_is_found() {
    let blocks = [
        block(3, 0..64, 0, 1),
        block(5, 64..192, 0, 1),
        block(7, 300..304, 0, 1),
        block(9, 62..63, 129, 2),
    ];
    let expected = Conflict {
        slot: Slot(1),
        byte: 62,
        blocks: [3, 9],
    };
    assert_eq!(first_conflict(&blocks), Some(expected));
    let later = Conflict {
        byte: 191,
        blocks: [5, 9],
        ..expected
    };
    assert_eq!(first_conflict(&blocks[1..]), Some(later));
}

#[test]
fn only_atomics_that_several_blocks_see_are_shared_updates() {
    for shared in [
        "\tatom.global.add.u32 %r1",
        "@%p red.gpu.global.add.f32 [",
        "x;red.add.u32",
    ] {
        assert!(updates_atomically(shared), "{shared}");
    }
    for own in [
        "atom.shared.add.u32 %r1, [s], 1;",
        "\tred.shared::cta.add.u32 [s], 1;",
        "call (retval0), shared_red.add",
        "redux.sync.add.s32 %r1, %r2, %r3;",
    ] {
        assert!(!updates_atomically(own), "{own}");
    }
    assert!(can_order_blocks("ld.acquire.gpu.u32"));
    assert!(!can_order_blocks(
        "fence.proxy.async; bar.sync 0; st.global.u32"
    ));
}
