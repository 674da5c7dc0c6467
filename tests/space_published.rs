//! Published spaces, counted by brute force with their constraints written a second time, in
//! Rust. Skipped where the files are not at hand.

use std::path::PathBuf;
use tuner_core::value::Value;
use tuner_space::BareSpace;

/// Products up to here are counted one by one.
const MOST: u128 = 100_000_000;

type Rule = fn(&[i64]) -> bool;

fn rule(name: &str) -> Option<Rule> {
    Some(match name {
        "dedispersion" => dedispersion,
        "expdist" => expdist,
        "gemm" => gemm,
        "hotspot" => hotspot,
        "microhh" => microhh,
        "prl_2x2" | "prl_4x4" => prl,
        _ => return None,
    })
}

fn dedispersion(v: &[i64]) -> bool {
    (32..=1024).contains(&(v[0] * v[1])) && (v[3] > 1 || v[5] == 0) && (v[4] > 1 || v[6] == 0)
}

fn expdist(v: &[i64]) -> bool {
    v[0] * v[1] <= 1024
        && (v[7] != 0 || (v[9] <= 1 && v[4] != 2))
        && v[2] % v[5] == 0
        && v[3] % v[6] == 0
}

fn gemm(v: &[i64]) -> bool {
    // KWG % (threads / x) == 0 with true division: KWG * x is a multiple of the threads.
    let threads = v[4] * v[5];
    v[3] % v[8] == 0
        && v[1] % (v[4] * v[9]) == 0
        && v[2] % (v[5] * v[10]) == 0
        && v[1] % (v[6] * v[9]) == 0
        && v[2] % (v[7] * v[10]) == 0
        && v[3] * v[6] % threads == 0
        && v[3] * v[7] % threads == 0
        && !(v[1] == 128 && v[2] == 128 && v[4] == 8 && v[5] == 8)
}

fn hotspot(v: &[i64]) -> bool {
    let threads = v[2] * v[3];
    if !(32..=1024).contains(&threads) || v[6] % v[8] != 0 {
        return false;
    }
    let bytes = (v[2] * v[4] + v[6] * 2) * (v[3] * v[5] + v[6] * 2) * (2 + v[9]) * 4;
    bytes <= 49_152 && bytes * v[10] <= 102_400
}

fn microhh(v: &[i64]) -> bool {
    // By name: see `PARAMETERS_OF_MICROHH`.
    let threads = v[0] * v[1] * v[2];
    let divides = |tile: i64, unroll: i64| unroll == 0 || tile % unroll == 0;
    threads * v[6] <= 1024
        && (32..=1536).contains(&threads)
        && divides(v[3], v[7])
        && divides(v[4], v[8])
        && divides(v[5], v[9])
}

const PARAMETERS_OF_MICROHH: [&str; 10] = [
    "BLOCK_SIZE_X",
    "BLOCK_SIZE_Y",
    "BLOCK_SIZE_Z",
    "TILING_FACTOR_X",
    "TILING_FACTOR_Y",
    "TILING_FACTOR_Z",
    "BLOCKS_PER_MP",
    "LOOP_UNROLL_FACTOR_X",
    "LOOP_UNROLL_FACTOR_Y",
    "LOOP_UNROLL_FACTOR_Z",
];

fn prl(v: &[i64]) -> bool {
    // input % cb == 0 and cb % pcb == 0 make the true divisions below whole.
    let side = |at: usize| {
        let (input, cb, pcb, groups, items) = (v[at], v[at + 1], v[at + 2], v[at + 4], v[at + 5]);
        input % cb == 0
            && cb % pcb == 0
            && (input / cb) % groups == 0
            && (cb / pcb) % items == 0
            && items as f64 <= (input + groups) as f64 - 1.0 / groups as f64
    };
    v[3] <= v[2]
        && v[4] <= v[3]
        && v[14] != v[8]
        && side(5)
        && side(11)
        && (v[15] == 1 || v[15] % v[12] == 0)
}

/// The number of combinations that satisfy the rule, each looked at.
fn brute_force(domains: &[Vec<i64>], rule: Rule) -> u128 {
    let mut at = vec![0; domains.len()];
    let mut values: Vec<i64> = domains.iter().map(|domain| domain[0]).collect();
    let mut count = 0;
    loop {
        count += u128::from(rule(&values));
        let mut place = domains.len();
        loop {
            if place == 0 {
                return count;
            }
            place -= 1;
            at[place] += 1;
            if at[place] < domains[place].len() {
                values[place] = domains[place][at[place]];
                break;
            }
            at[place] = 0;
            values[place] = domains[place][0];
        }
    }
}

#[test]
fn counts_of_published_spaces_equal_a_brute_force() {
    let names = [
        "dedispersion",
        "expdist",
        "gemm",
        "hotspot",
        "microhh",
        "prl_2x2",
        "prl_4x4",
    ];
    for name in names {
        let path = PathBuf::from(format!("../shared/spaces/{name}.json"));
        let Ok(text) = std::fs::read_to_string(&path) else {
            eprintln!("skipped: no {} here", path.display());
            continue;
        };
        let space = BareSpace::parse(&text, &path).unwrap().space().unwrap();
        assert!(space.cartesian() <= MOST);
        let mut parameters: Vec<_> = space.parameters().iter().collect();
        // One value each and in no rule, or looked up by name.
        if name == "microhh" {
            parameters.retain(|parameter| parameter.values.len() > 1);
            let order = |name: &str| {
                PARAMETERS_OF_MICROHH
                    .iter()
                    .position(|known| *known == name)
            };
            parameters.sort_by_key(|parameter| order(&parameter.name));
        }
        let domains: Vec<Vec<i64>> = parameters
            .iter()
            .map(|parameter| parameter.values.iter().filter_map(Value::as_i64).collect())
            .collect();
        let product: u128 = domains.iter().map(|domain| domain.len() as u128).product();
        assert_eq!(product, space.cartesian(), "{name}");
        assert_eq!(
            space.count(),
            brute_force(&domains, rule(name).unwrap()),
            "{name}"
        );
    }
}
