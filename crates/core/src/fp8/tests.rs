use super::*;

#[test]
fn every_finite_code_survives_a_round_trip() {
    for format in [&E4M3, &E5M2] {
        for code in 0..=255u8 {
            let value = format.decode(code);
            if value.is_finite() {
                assert_eq!(format.encode(value), code, "{value}");
            }
        }
    }
}

#[test]
fn values_between_two_codes_go_to_the_nearer_one_and_ties_to_even() {
    assert_eq!(E4M3.decode(0x7e), 448.0);
    assert_eq!(E5M2.decode(0x7b), 57344.0);
    assert_eq!(E4M3.encode(1e9), 0x7e);
    // 1.0 is 0x38 and 1.125 is 0x39 in E4M3: the middle goes to the even code.
    assert_eq!(E4M3.encode(1.0625), 0x38);
    assert_eq!(E4M3.encode(1.07), 0x39);
    // 1.125 (0x39) and 1.25 (0x3a): the middle goes up to the even code.
    assert_eq!(E4M3.encode(1.1875), 0x3a);
}
