//! Expressions that explain the numbers of several launches: constants, products and divisions of names.

use crate::expr::Expr;
use std::collections::BTreeMap;

/// Names with their values in one launch.
pub(crate) type Names = BTreeMap<String, i64>;

/// Largest constant divisor that is tried.
const MAX_DIVISOR: i64 = 1 << 16;

/// Reports whether an expression has the captured number in every launch.
pub(crate) fn holds(expr: &Expr, names: &[Names], numbers: &[i64]) -> bool {
    let values = names.iter().map(|names| expr.value(names));
    names.len() == numbers.len() && values.eq(numbers.iter().map(|number| Some(*number)))
}

/// Finds the simplest expression that equals `numbers[i]` for `names[i]`; names with only one value are not
/// used. `divisors` are likely constants, such as extents of blocks.
pub(crate) fn infer(names: &[Names], numbers: &[i64], divisors: &[i64]) -> Option<Expr> {
    let first = *numbers.first()?;
    if numbers.iter().all(|number| *number == first) {
        return Some(Expr::Number(first));
    }
    let varying = varying(names);
    let products = products(&varying);
    let holds = |expr: &Expr| holds(expr, names, numbers);
    if let Some(found) = products.iter().find(|expr| holds(expr)) {
        return Some(found.clone());
    }
    // Several divisors may fit a few launches; an extent of the block is the most likely.
    let mut constants: Vec<i64> = divisors.iter().copied().filter(|it| *it > 1).collect();
    let powers = (1..=16).map(|power| 1_i64 << power);
    constants.extend(powers.filter(|power| *power <= MAX_DIVISOR));
    let scaled = products.iter().filter_map(|product| {
        let value = product.value(names.first()?)?;
        let factor = (value > 0 && first % value == 0).then_some(first / value)?;
        Some(Expr::binary("*", product.clone(), Expr::Number(factor)))
    });
    if let Some(found) = scaled.into_iter().find(|expr| holds(expr)) {
        return Some(found);
    }
    let divided = divisions(&products, &constants);
    if let Some(found) = divided.iter().find(|expr| holds(expr)) {
        return Some(found.clone());
    }
    // A bound of the grid: the largest number that occurs.
    let most = numbers.iter().copied().max()?;
    let bounded = divided.iter().chain(&products).filter(|expr| {
        let mut pairs = names.iter().zip(numbers);
        pairs.any(|(names, number)| expr.value(names) == Some(*number) && *number < most)
    });
    let bounded = bounded.map(|expr| Expr::call("min", vec![expr.clone(), Expr::Number(most)]));
    let mut bounded = bounded.filter(|expr| holds(expr));
    bounded.next().or_else(|| {
        let plus = products.iter().filter_map(|product| {
            let rest = first - product.value(names.first()?)?;
            Some(Expr::binary("+", product.clone(), Expr::Number(rest)))
        });
        plus.into_iter().find(|expr| holds(expr))
    })
}

/// Returns names that are positive in all launches and differ between some.
fn varying(names: &[Names]) -> Vec<String> {
    let Some((first, rest)) = names.split_first() else {
        return Vec::new();
    };
    let usable = |name: &&String| names.iter().all(|it| it.get(*name).is_some_and(|v| *v > 0));
    let differs = |name: &&String| rest.iter().any(|it| it.get(*name) != first.get(*name));
    first
        .keys()
        .filter(usable)
        .filter(differs)
        .cloned()
        .collect()
}

/// Returns the products of one to three of the names.
fn products(names: &[String]) -> Vec<Expr> {
    let name = |name: &String| Expr::Name(name.clone());
    let times = |a: &Expr, b: &Expr| Expr::binary("*", a.clone(), b.clone());
    let single: Vec<Expr> = names.iter().map(name).collect();
    let mut pairs = Vec::new();
    let mut triples = Vec::new();
    for (at, a) in single.iter().enumerate() {
        for (next, b) in single.iter().enumerate().skip(at) {
            let pair = times(a, b);
            triples.extend(single.iter().skip(next).map(|c| times(&pair, c)));
            pairs.push(pair);
        }
    }
    single.into_iter().chain(pairs).chain(triples).collect()
}

/// Returns divisions of products by products and constants, rounding up before rounding down.
fn divisions(products: &[Expr], constants: &[i64]) -> Vec<Expr> {
    let numbers = constants.iter().map(|number| Expr::Number(*number));
    let divisors: Vec<Expr> = numbers.chain(products.iter().cloned()).collect();
    let mut found = Vec::new();
    for up in [true, false] {
        for whole in products {
            for by in divisors.iter().filter(|by| *by != whole) {
                found.push(match up {
                    true => Expr::call("ceil_div", vec![whole.clone(), by.clone()]),
                    false => Expr::binary("//", whole.clone(), by.clone()),
                });
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(all: &[&[(&str, i64)]]) -> Vec<Names> {
        let one = |pairs: &&[(&str, i64)]| {
            let pairs = pairs
                .iter()
                .map(|(name, value)| ((*name).to_owned(), *value));
            pairs.collect()
        };
        all.iter().map(one).collect()
    }

    fn found(all: &[&[(&str, i64)]], numbers: &[i64], divisors: &[i64]) -> String {
        let found = infer(&names(all), numbers, divisors);
        found.map_or("none".to_owned(), |expr| expr.to_string())
    }

    #[test]
    fn grids_are_products_and_divisions() {
        let sizes: &[&[(&str, i64)]] = &[&[("n", 1000), ("m", 7)], &[("n", 4000), ("m", 7)]];
        assert_eq!(found(sizes, &[5, 5], &[]), "5");
        assert_eq!(found(sizes, &[1000, 4000], &[]), "n");
        assert_eq!(found(sizes, &[4, 16], &[256]), "ceil_div(n, 256)");
        assert_eq!(found(sizes, &[4000, 16000], &[]), "n * 4");
        assert_eq!(found(sizes, &[4, 8], &[256]), "min(ceil_div(n, 256), 8)");
        assert_eq!(found(sizes, &[17, 3], &[]), "none");
    }

    #[test]
    fn tunable_parameters_divide() {
        let both: &[&[(&str, i64)]] = &[
            &[("n", 1000), ("TILE", 16)],
            &[("n", 1000), ("TILE", 32)],
            &[("n", 3000), ("TILE", 16)],
        ];
        assert_eq!(found(both, &[63, 32, 188], &[]), "ceil_div(n, TILE)");
        assert_eq!(found(both, &[256, 1024, 256], &[]), "TILE * TILE");
    }
}
