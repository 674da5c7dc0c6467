//! Tests of boxes of tensors.

use super::*;

fn map(swizzle: u32) -> TensorMap {
    TensorMap {
        element: TensorElement::F16,
        address: 4096,
        sizes: vec![100, 10],
        strides: vec![208],
        boxes: vec![64, 4],
        steps: vec![1, 1],
        interleave: 0,
        swizzle,
        promotion: 0,
        fills_nan: false,
        pixels: None,
    }
}

#[test]
fn chunks_outside_the_tensor_are_cut() {
    let map = map(0);
    let copy = TensorBox {
        map: &map,
        mode: CopyMode::Tile,
        corner: vec![-4, 8],
        shared: 256,
    };
    assert_eq!(copy.bytes(), 512);
    let chunks: Vec<Chunk> = copy.chunks().collect();
    assert_eq!(chunks.len(), 32);
    assert_eq!(chunks[0].inside, 8..16);
    assert_eq!(chunks[0].global, 4096 + 8 * 208 - 8);
    assert_eq!(chunks[1].inside, 0..16);
    assert_eq!(chunks[9].shared, 256 + 128 + 16);
    // Row 10 does not exist.
    assert_eq!(chunks[17].inside, 0..0);
    let end = TensorBox {
        corner: vec![92, 0],
        ..copy
    };
    assert_eq!(end.chunks().next().unwrap().inside, 0..16);
    assert_eq!(end.chunks().nth(1).unwrap().inside, 0..0);
}

#[test]
fn a_swizzle_permutes_the_chunks_of_a_row() {
    let map = map(3);
    let copy = TensorBox {
        map: &map,
        mode: CopyMode::Tile,
        corner: vec![0, 0],
        shared: 1024,
    };
    let second: Vec<u32> = copy.chunks().skip(8).take(2).map(|c| c.shared).collect();
    assert_eq!(second, [1024 + 128 + 16, 1024 + 128]);
}

#[test]
fn wide_atoms_are_permuted_whole() {
    // PTX ISA, 5.5.7: chunks of the rows of shared memory by their numbers.
    let patterns: [(u32, &[[u32; 8]]); 2] = [
        (
            4,
            &[
                [0, 1, 2, 3, 4, 5, 6, 7],
                [2, 3, 0, 1, 6, 7, 4, 5],
                [4, 5, 6, 7, 0, 1, 2, 3],
                [6, 7, 4, 5, 2, 3, 0, 1],
            ],
        ),
        (6, &[[0, 1, 2, 3, 4, 5, 6, 7], [4, 5, 6, 7, 0, 1, 2, 3]]),
    ];
    for (swizzle, rows) in patterns {
        let map = map(swizzle);
        let copy = TensorBox {
            map: &map,
            mode: CopyMode::Tile,
            corner: vec![0, 0],
            shared: 1024,
        };
        assert_eq!(copy.problem(), None);
        let places: Vec<u32> = copy.chunks().map(|chunk| chunk.shared).collect();
        for (row, line) in places.chunks(8).enumerate() {
            let pattern = rows[row % rows.len()];
            let wanted = pattern.map(|place| 1024 + row as u32 * 128 + place * 16);
            assert_eq!(line, wanted);
        }
    }
    let flipped = map(5);
    let copy = TensorBox {
        map: &flipped,
        mode: CopyMode::Tile,
        corner: vec![0, 0],
        shared: 1024,
    };
    assert!(copy.problem().is_some());
}

/// Images of 8 channels, 5 pixels wide and 4 high, and filters of 3 x 3 with padding of one.
fn columns() -> TensorMap {
    TensorMap {
        sizes: vec![8, 5, 4, 2],
        strides: vec![16, 80, 320],
        boxes: vec![8, 12],
        steps: vec![1, 1, 2, 1],
        pixels: Some(gpu_tensor_map::PixelBox {
            lower: vec![-1, -1],
            upper: vec![-1, -1],
        }),
        ..map(0)
    }
}

#[test]
fn a_column_goes_through_the_box_of_the_corners() {
    let map = columns();
    map.check().unwrap();
    let copy = TensorBox {
        map: &map,
        mode: CopyMode::Im2col(vec![1, 2]),
        corner: vec![0, 2, 1, 0],
        shared: 128,
    };
    assert_eq!(copy.problem(), None);
    assert_eq!(copy.bytes(), 12 * 16);
    let found: Vec<Option<u64>> = copy
        .chunks()
        .map(|c| (!c.inside.is_empty()).then_some(c.global - 4096))
        .collect();
    // Width from -1 to 3, height -1 and 1 in steps of two; then the next image.
    let mut wanted = Vec::new();
    for (width, height, image) in [(2, 1, 0), (3, 1, 0)].into_iter().chain(
        [-1, 1]
            .into_iter()
            .flat_map(|h| (-1..4).map(move |w| (w, h, 1))),
    ) {
        let (w, h): (i64, i64) = (width + 1, height + 2);
        let inside = (0..5).contains(&w) && (0..4).contains(&h);
        wanted.push(inside.then_some((16 * w + 80 * h + 320 * image) as u64));
    }
    assert_eq!(found, wanted);
}

#[test]
fn four_rows_of_a_matrix_are_gathered() {
    let map = TensorMap {
        boxes: vec![64, 1],
        ..map(0)
    };
    let copy = TensorBox {
        map: &map,
        mode: CopyMode::Rows,
        corner: vec![8, 3, 0, 10, -1],
        shared: 0,
    };
    assert_eq!(copy.problem(), None);
    assert_eq!(copy.bytes(), 4 * 128);
    let first: Vec<(u64, bool)> = copy
        .chunks()
        .step_by(8)
        .map(|c| (c.global.wrapping_sub(4096 + 16), c.inside.is_empty()))
        .collect();
    let row = |number: i64| (number * 208) as u64;
    assert_eq!(
        first,
        [
            (row(3), false),
            (row(0), false),
            (row(10), true),
            (row(-1), true)
        ]
    );
}

#[test]
fn a_map_of_another_mode_is_a_problem() {
    let (tiles, columns) = (map(0), columns());
    let problem = |map, mode, coordinates| {
        let corner = vec![0; coordinates];
        TensorBox {
            map,
            mode,
            corner,
            shared: 0,
        }
        .problem()
        .unwrap()
    };
    for (said, wanted) in [
        (
            problem(&tiles, CopyMode::Im2col(Vec::new()), 2),
            "map of tiles",
        ),
        (problem(&columns, CopyMode::Tile, 4), "im2col tensor map"),
        (
            problem(&columns, CopyMode::Im2col(vec![1]), 4),
            "one offset for each",
        ),
        (problem(&tiles, CopyMode::Rows, 5), "one row"),
        (problem(&tiles, CopyMode::Rows, 2), "2 coordinates"),
    ] {
        assert!(said.contains(wanted), "{said}");
    }
}

#[test]
fn bytes_that_a_kernel_wrote_are_a_map_within_the_limits_or_none() {
    // Multiplicative hashing (Knuth, The Art of Computer Programming, volume 3, section 6.4).
    let mut state = 1_u64;
    let mut random = move || {
        state = state.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
        (state >> 32) as usize
    };
    for _ in 0..20_000 {
        let whole = if random() % 2 == 0 { map(3) } else { columns() };
        let mut bytes = whole.encode();
        for _ in 0..1 + random() % 3 {
            bytes[random() % 64] = random() as u8;
        }
        let Ok(decoded) = TensorMap::decode(&bytes) else {
            continue;
        };
        for mode in [CopyMode::Tile, CopyMode::Im2col(vec![1; 2]), CopyMode::Rows] {
            let copy = TensorBox {
                map: &decoded,
                corner: vec![0; mode.coordinates(decoded.sizes.len())],
                mode,
                shared: 0,
            };
            let moved = copy.bytes();
            if copy.problem().is_none() {
                assert_eq!(copy.chunks().count() as u32, moved.div_ceil(CHUNK_BYTES));
            }
        }
    }
}

#[test]
fn padded_elements_leave_gaps_in_shared_memory_only() {
    for (element, bytes) in [(TensorElement::U4Padded, 8), (TensorElement::U6Padded, 12)] {
        let map = TensorMap {
            element,
            sizes: vec![256, 10],
            strides: vec![256],
            boxes: vec![128, 2],
            ..map(3)
        };
        assert_eq!(map.check(), Ok(()));
        let copy = TensorBox {
            map: &map,
            mode: CopyMode::Tile,
            corner: vec![128, 4],
            shared: 1024,
        };
        // An `mbarrier` counts no padding.
        assert_eq!((copy.problem(), copy.bytes()), (None, 2 * 8 * bytes));
        let chunks: Vec<Chunk> = copy.chunks().collect();
        let first = 4096 + 4 * 256 + 8 * u64::from(bytes);
        assert_eq!(chunks.len(), 16);
        for (n, chunk) in (0..).zip(&chunks[..8]) {
            assert_eq!(chunk.shared, 1024 + 16 * n);
            assert_eq!(chunk.global, first + u64::from(bytes * n));
            assert_eq!((chunk.inside.clone(), chunk.bytes), (0..bytes, bytes));
        }
        assert_eq!(chunks[8].shared, 1024 + 128 + 16);
        let askew = TensorBox {
            corner: vec![64, 4],
            ..copy
        };
        assert!(askew.problem().unwrap().contains("128"));
    }
}

#[test]
fn packed_elements_lie_two_in_a_byte() {
    let map = TensorMap {
        element: TensorElement::U4,
        sizes: vec![100, 10],
        boxes: vec![64, 4],
        ..map(0)
    };
    assert_eq!(map.check(), Ok(()));
    let copy = TensorBox {
        map: &map,
        mode: CopyMode::Tile,
        corner: vec![-8, 1],
        shared: 256,
    };
    assert_eq!((copy.problem(), copy.bytes()), (None, 128));
    let chunks: Vec<Chunk> = copy.chunks().collect();
    assert_eq!((chunks.len(), chunks[0].inside.clone()), (8, 4..16));
    assert_eq!(chunks[0].global, 4096 + 208 - 4);
    assert_eq!(
        (chunks[2].shared, chunks[2].global),
        (256 + 32, 4096 + 2 * 208 - 4)
    );
    let odd = TensorBox {
        corner: vec![3, 1],
        ..copy
    };
    assert!(odd.problem().unwrap().contains("odd"));
}
