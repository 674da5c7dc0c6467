use super::*;

#[test]
fn products_are_those_of_one_vector_after_the_other_bit_for_bit() {
    let at = |vector: usize, place: usize| ((vector * 37 + place * 11) % 101) as f64 / 7.0 - 6.0;
    for (length, count) in [(1, 1), (5, 8), (64, 21), (3, 40)] {
        let panels = Panels::new(length, count, at);
        let other: Vec<f64> = (0..length).map(|place| at(99, place)).collect();
        for range in [0..count, count / 3..count, count - 1..count] {
            let mut found = Vec::new();
            panels.products(range.clone(), &other, |sum, square| {
                found.push((sum, square))
            });
            let wanted: Vec<(f64, f64)> = range
                .map(|vector| {
                    let (mut sum, mut squares) = (0.0, 0.0);
                    for (place, x) in other.iter().enumerate() {
                        let product = x * at(vector, place);
                        sum += product;
                        squares += product * product;
                    }
                    (sum, squares)
                })
                .collect();
            assert_eq!(found, wanted, "{length} {count}");
        }
    }
}
