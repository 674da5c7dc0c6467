use super::*;

#[test]
fn each_shape_covers_each_cell_once() {
    let shapes = ["32x32b", "16x64b", "16x128b", "16x256b"];
    for shape in shapes.map(|name| Shape::by_name(name).unwrap()) {
        let registers = 2 * shape.registers() as u32;
        let mut cells: Vec<(u32, u32)> = (0..registers)
            .flat_map(|register| (0..32).map(move |thread| shape.cell(register, thread)))
            .collect();
        cells.sort_unstable();
        let columns = registers * 32 / shape.lanes();
        let all = (0..shape.lanes()).flat_map(|lane| (0..columns).map(move |c| (lane, c)));
        assert_eq!(cells, all.collect::<Vec<_>>(), "{shape:?}");
    }
    assert_eq!(Shape::Halves(64).cell(3, 20), (4, 67));
}

#[test]
fn rows_of_every_size_have_lanes_of_their_own() {
    let bits = |m: u32, n: u32| 1 << 4 | (n / 8) << 17 | (m / 16) << 24;
    for (m, n, blocks) in [(64, 32, 1), (128, 32, 1), (128, 64, 2), (256, 64, 2)] {
        let form = Form::decode(ProductKind::F16, bits(m, n), blocks).unwrap();
        let rows = m / blocks;
        let mut cells: Vec<(u32, u32)> = (0..rows)
            .flat_map(|row| (0..n).map(move |column| (row, column)))
            .map(|(row, column)| form.cell(blocks, row, column))
            .collect();
        cells.sort_unstable();
        cells.dedup();
        assert_eq!(cells.len() as u32, rows * n);
        assert!(
            cells
                .iter()
                .all(|(lane, column)| *lane < LANES && *column < n)
        );
    }
    assert!(Form::decode(ProductKind::F16, bits(64, 32), 2).is_err());
    assert!(Form::decode(ProductKind::F16, bits(128, 24), 1).is_err());
}

#[test]
fn elements_of_six_bits_are_packed_in_their_sixteen_bytes() {
    let mut step: Step = [0; 8];
    // The second element is 1.0 in e2m3 (0b001000), at bits 6 to 11; the seventeenth is in the
    // second 16 bytes.
    step[0] = 0b00_1000 << 6;
    step[4] = 0b00_1000;
    let mut values = Vec::new();
    Element::Small(Small::E2m3).decode(&step, &mut values);
    let ones: Vec<usize> = (0..32).filter(|k| values[*k] == 1.0).collect();
    assert_eq!(ones, [1, 16]);
}
