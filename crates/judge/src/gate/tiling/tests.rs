use super::*;

/// Returns the elements that each block writes, from the block that writes each element.
fn wrote(count: u64, block: u64, writer: impl Fn(u64) -> u64) -> Vec<Range<u64>> {
    let mine: Vec<Range<u64>> = (0..count)
        .filter(|at| writer(*at) == block)
        .map(|at| at..at + 1)
        .collect();
    super::super::ranges::union(&mine, &[])
}

#[test]
fn the_usual_layouts_are_learnt_from_one_block() {
    // 61 rows of 100 columns.
    let (shape, count) = ([61u64, 100], 6100u64);
    let (row, column) = (|at: u64| at / 100, |at: u64| at % 100);
    type Writer = Box<dyn Fn(u64) -> u64>;
    let kernels: [([u64; 3], Writer); 6] = [
        // One thread for each element, 128 in a block.
        ([48, 1, 1], Box::new(|at| at / 128)),
        // 16 x 16 threads, x along the row.
        (
            [7, 4, 1],
            Box::new(move |at| column(at) / 16 + 7 * (row(at) / 16)),
        ),
        // The same with x down the column.
        (
            [4, 7, 1],
            Box::new(move |at| row(at) / 16 + 4 * (column(at) / 16)),
        ),
        // A block for each row.
        ([61, 1, 1], Box::new(row)),
        // The same, tiles numbered.
        (
            [28, 1, 1],
            Box::new(move |at| column(at) / 16 + 7 * (row(at) / 16)),
        ),
        // Parts of rows.
        (
            [4, 61, 1],
            Box::new(move |at| column(at) / 32 + 4 * row(at)),
        ),
    ];
    for (grid, writer) in kernels {
        let first = grid.iter().product::<u64>() / 2;
        let tiling = Tiling::learn(&shape, grid, first, &wrote(count, first, &writer));
        let tiling = tiling.unwrap_or_else(|| panic!("{grid:?}"));
        for at in 0..count {
            assert_eq!(tiling.block(at), writer(at), "{grid:?}: element {at}");
        }
        assert_eq!(tiling.blocks(&[3..4, 250..1000]), {
            let elements = std::iter::once(3).chain(250..1000);
            elements.map(&writer).collect()
        });
    }
}

#[test]
fn scattered_elements_are_no_tiling() {
    let strided = wrote(1000, 3, |at| at % 8);
    assert_eq!(Tiling::learn(&[1000], [8, 1, 1], 3, &strided), None);
    assert_eq!(Tiling::learn(&[1000], [8, 1, 1], 3, &[]), None);
}

#[test]
fn a_spread_is_even_and_no_larger_than_asked() {
    let all: BTreeSet<u64> = (0..100).collect();
    assert_eq!(spread(&all, 4), BTreeSet::from([0, 25, 50, 75]));
    assert_eq!(spread(&all, 1000), all);
    assert!(spread(&all, 7).len() <= 7);
}
