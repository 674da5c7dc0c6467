use super::*;

fn table(rows: &[&[&str]]) -> Vec<Vec<String>> {
    let row = |row: &&[&str]| row.iter().map(|cell| (*cell).to_owned()).collect();
    rows.iter().map(row).collect()
}

#[test]
fn what_fits_stays_as_it_is() {
    let rows = table(&[&["a", ""], &["a", ""]]);
    let fitted = fit(&["kernel", "detail"], &rows, 20, &EXPENDABLE);
    assert_eq!((fitted.rows, fitted.left_out), (rows, 0));
}

#[test]
fn empty_and_equal_columns_go_before_any_other() {
    let rows = table(&[&["gemm", "", "64", "x"], &["gemm", "", "128", "y"]]);
    let fitted = fit(
        &["kernel", "detail", "registers", "config"],
        &rows,
        22,
        &EXPENDABLE,
    );
    assert_eq!(fitted.headings, ["registers", "config"]);
    assert_eq!(fitted.common, "kernel gemm");
    assert_eq!(fitted.left_out, 0);
}

#[test]
fn the_least_important_columns_are_left_out_and_long_cells_broken() {
    let rows = table(&[
        &["ok", "1", "BLOCK_M=128,BLOCK_N=64,BLOCK_K=32"],
        &["race", "2", "default"],
    ]);
    let fitted = fit(
        &["verdict", "bank_conflicts", "config"],
        &rows,
        30,
        &EXPENDABLE,
    );
    assert_eq!(fitted.headings, ["verdict", "config"]);
    assert_eq!(fitted.left_out, 1);
    assert_eq!(fitted.rows[0][1], "BLOCK_M=128,\nBLOCK_N=64,\nBLOCK_K=32");
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let long = "x".repeat(90);
    let rows = table(&[&[&long, &long, "1"], &["a b c", &long, "2"]]);
    for width in [20, 40, 60, 80, 120] {
        let fitted = fit(&["kernel", "config", "n"], &rows, width, &EXPENDABLE);
        let mut widths = vec![0; fitted.headings.len()];
        for row in fitted.rows.iter().chain([&fitted.headings]) {
            for (at, cell) in row.iter().enumerate() {
                let lines = cell.lines().map(|line| line.chars().count());
                widths[at] = widths[at].max(lines.max().unwrap_or(0));
            }
        }
        let all: usize = widths.iter().map(|width| width + 2).sum();
        assert!(all <= width, "{width}: {fitted:?}");
    }
}

#[test]
fn both_ends_of_an_interval_are_shown_or_neither() {
    let rows = table(&[&["1", "0.5", "2.0", "alone"], &["2", "0.5", "3.0", "alone"]]);
    for width in 1..60 {
        let fitted = fit(
            &["time_us", "low_us", "high_us", "detail"],
            &rows,
            width,
            &EXPENDABLE,
        );
        let shown = |name: &str| fitted.headings.iter().any(|heading| heading == name);
        assert_eq!(shown("low_us"), shown("high_us"), "{width}: {fitted:?}");
        assert!(!fitted.common.contains("_us"), "{width}: {fitted:?}");
    }
}
