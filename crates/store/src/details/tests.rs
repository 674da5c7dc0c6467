use super::{MAX_PLAIN_BYTES, packed, unpacked};

#[test]
fn a_long_detail_reads_back_and_takes_a_small_part_of_its_size() {
    for length in [0, 1, 700, 5_000] {
        let detail = "kernel.cu(3): error: „x“ is undefined\n".repeat(length);
        let (plain, body) = packed(&detail);
        assert!(plain.len() <= MAX_PLAIN_BYTES && detail.starts_with(plain));
        let size = body.as_ref().map_or(0, Vec::len);
        assert!(
            plain.len() + size <= detail.len().min(2 * MAX_PLAIN_BYTES),
            "{size} for {}",
            detail.len()
        );
        assert_eq!(unpacked(plain.to_owned(), body.as_deref()), detail);
    }
}

#[test]
fn of_a_damaged_body_the_beginning_is_left() {
    let detail = "x".repeat(5000);
    let (plain, body) = packed(&detail);
    let mut body = body.unwrap();
    body.truncate(body.len() / 2);
    assert_eq!(unpacked(plain.to_owned(), Some(&body)), plain);
}
