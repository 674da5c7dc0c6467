//! Small errors planted in right results: what the comparison finds by default, for each built-in
//! oracle and for a reference kernel, and that it lets honest kernels pass.
//!
//! The table of docs/verdicts.md: `cargo test --test program table -- --ignored --nocapture`.

mod judging;
mod kernels;
mod tolerances;

use judging::{By, Case, nearest};
use kernels::{How, Operation, Order};
use tuner_core::element::Element;
use tuner_core::element::Element::{Bf16, F8e4m3, F16, F32, F64, I8, I32};
use tuner_judge::gate::oracle;

/// An operation, the types of its inputs and its output, and what it is compared with; the relative
/// error of everything that is promised to be found, and whether results that are cut off instead of
/// rounded are, and sums in a type that is too narrow.
type Studied = (&'static str, Operation, [Element; 2], By, f64, [bool; 2]);

const TRUNCATED_AND_NARROW: [bool; 2] = [true, true];
const NARROW: [bool; 2] = [false, true];
const NEITHER: [bool; 2] = [false, false];

const GEMM: Operation = Operation::Gemm { k: 512 };
const ATTENTION: Operation = Operation::Attention { keys: 256 };
const ATTENTION_F8: Operation = Operation::AttentionF8 { keys: 256 };
const SOFTMAX: Operation = Operation::Softmax { length: 512 };
const LAYERNORM: Operation = Operation::LayerNorm { length: 512 };
const SUM: Operation = Operation::ReduceSum {
    rows: 128,
    length: 4096,
};
const CONV: Operation = Operation::Conv2d;

#[rustfmt::skip]
const STUDIED: [Studied; 38] = [
    ("gemm", GEMM, [F16, F16], By::Oracle, 0.0001, TRUNCATED_AND_NARROW),
    ("gemm", GEMM, [Bf16, Bf16], By::Oracle, 0.0005, TRUNCATED_AND_NARROW),
    ("gemm", GEMM, [F16, F32], By::Oracle, 5e-06, NARROW),
    ("gemm", GEMM, [F32, F32], By::Oracle, 3e-06, NARROW),
    ("gemm", GEMM, [F64, F64], By::Oracle, 6e-15, NARROW),
    ("gemm", GEMM, [F8e4m3, F16], By::Oracle, 0.003, NEITHER),
    ("gemm", GEMM, [I8, I32], By::Oracle, 5e-06, NEITHER),
    ("attention", ATTENTION, [F16, F16], By::Oracle, 0.0005, TRUNCATED_AND_NARROW),
    ("attention", ATTENTION, [Bf16, Bf16], By::Oracle, 0.004, TRUNCATED_AND_NARROW),
    ("attention", ATTENTION, [F32, F32], By::Oracle, 5e-06, NARROW),
    ("attention_f8", ATTENTION_F8, [F8e4m3, F16], By::Oracle, 0.001, NARROW),
    ("softmax", SOFTMAX, [F16, F16], By::Oracle, 0.0001, TRUNCATED_AND_NARROW),
    ("softmax", SOFTMAX, [Bf16, Bf16], By::Oracle, 0.0005, TRUNCATED_AND_NARROW),
    ("softmax", SOFTMAX, [F32, F32], By::Oracle, 5e-06, NARROW),
    ("layernorm", LAYERNORM, [F16, F16], By::Oracle, 0.0001, TRUNCATED_AND_NARROW),
    ("layernorm", LAYERNORM, [Bf16, Bf16], By::Oracle, 0.0005, TRUNCATED_AND_NARROW),
    ("layernorm", LAYERNORM, [F32, F32], By::Oracle, 2e-06, NARROW),
    ("reduce_sum", SUM, [F16, F16], By::Oracle, 0.0003, TRUNCATED_AND_NARROW),
    ("reduce_sum", SUM, [Bf16, Bf16], By::Oracle, 0.002, TRUNCATED_AND_NARROW),
    ("reduce_sum", SUM, [F32, F32], By::Oracle, 1e-05, NARROW),
    ("reduce_sum", SUM, [F64, F64], By::Oracle, 2e-14, NARROW),
    ("conv2d", CONV, [F16, F16], By::Oracle, 0.0001, TRUNCATED_AND_NARROW),
    ("conv2d", CONV, [F32, F32], By::Oracle, 1e-06, NARROW),
    ("gemm", GEMM, [F16, F16], By::Kernel, 0.0015, NARROW),
    ("gemm", GEMM, [Bf16, Bf16], By::Kernel, 0.01, NARROW),
    ("gemm", GEMM, [F16, F32], By::Kernel, 5e-06, NARROW),
    ("gemm", GEMM, [F32, F32], By::Kernel, 5e-06, NARROW),
    ("gemm", GEMM, [F64, F64], By::Kernel, 2e-14, NARROW),
    ("gemm", GEMM, [F8e4m3, F8e4m3], By::Kernel, 0.1, NEITHER),
    ("gemm", GEMM, [I8, I32], By::Kernel, 5e-06, NEITHER),
    ("attention", ATTENTION, [F16, F16], By::Kernel, 0.0015, NARROW),
    ("attention", ATTENTION, [Bf16, Bf16], By::Kernel, 0.01, NARROW),
    ("softmax", SOFTMAX, [F16, F16], By::Kernel, 0.0015, NARROW),
    ("softmax", SOFTMAX, [F32, F32], By::Kernel, 5e-06, NARROW),
    ("layernorm", LAYERNORM, [F16, F16], By::Kernel, 0.0015, NEITHER),
    ("reduce_sum", SUM, [F16, F16], By::Kernel, 0.0015, NARROW),
    ("reduce_sum", SUM, [F32, F32], By::Kernel, 1e-05, NARROW),
    ("conv2d", CONV, [F32, F32], By::Kernel, 5e-06, NARROW),
];

/// What of the planted errors is found.
struct Found {
    /// Smallest factor, as its distance from one, on everything, on one row, on one 16 x 16 tile.
    factors: [Option<f64>; 3],
    /// Smallest error of one element, in units of its last place.
    element: Option<u64>,
    truncated: bool,
    narrow_sum: bool,
    without_last: bool,
    first_twice: bool,
}

/// What results are compared with, in words.
fn with(name: &str, by: By) -> String {
    match by {
        By::Oracle => format!("oracle `{name}`"),
        By::Kernel => format!("kernel, {name}"),
    }
}

/// The type that a careless kernel adds in.
fn narrower(output: Element) -> Element {
    match output {
        F64 => F32,
        Bf16 => Bf16,
        Element::I32 => F32,
        _ => F16,
    }
}

fn columns(case: &Case) -> usize {
    case.problem.output.shape.last().map_or(1, |n| *n as usize)
}

fn study(case: &Case) -> Found {
    let columns = columns(case);
    let rows = case.honest.len() / columns;
    let everywhere = |_: usize| true;
    let row = |at: usize| at / columns == rows / 2;
    let tile = |at: usize| at % columns < 16 && at / columns < 16;
    let variant = |how: How| case.caught(&case.problem.run(&how));
    let plain = How::honest(Order::Split, case.element);
    Found {
        factors: [
            smallest_factor(case, everywhere),
            smallest_factor(case, row),
            smallest_factor(case, tile),
        ],
        element: smallest_step(case),
        truncated: !case.judge(&truncated(case.element, &case.honest)).passed(),
        narrow_sum: variant(How {
            sum: narrower(case.element),
            ..plain
        }),
        without_last: variant(How {
            without_last: true,
            ..plain
        }),
        first_twice: variant(How {
            first_twice: true,
            ..plain
        }),
    }
}

/// The smallest of 2^-50, 2^-49.5, … 1 that is found when what is chosen is larger by it.
fn smallest_factor(case: &Case, chosen: impl Fn(usize) -> bool) -> Option<f64> {
    let larger = |by: f64| -> Vec<f64> {
        let values = case.honest.iter().enumerate();
        values
            .map(|(at, value)| value * if chosen(at) { 1.0 + by } else { 1.0 })
            .collect()
    };
    (0..=100)
        .map(|half| 2f64.powf(f64::from(half) / 2.0 - 50.0))
        .find(|by| case.caught(&larger(*by)))
}

/// The smallest number of last places by which the element of median size may not be off.
fn smallest_step(case: &Case) -> Option<u64> {
    let mut order: Vec<usize> = (0..case.honest.len()).collect();
    order.sort_by(|a, b| case.honest[*a].abs().total_cmp(&case.honest[*b].abs()));
    let at = order[order.len() / 2];
    let right = nearest(case.element, &case.honest);
    let size = case.element.size();
    (0..40).map(|power| 1u64 << power).find(|steps| {
        let mut wrong = right.clone();
        let place = &mut wrong[at * size..(at + 1) * size];
        let mut code = [0; 8];
        code[..size].copy_from_slice(place);
        let moved = u64::from_le_bytes(code).wrapping_add(*steps).to_le_bytes();
        place.copy_from_slice(&moved[..size]);
        !case.judge(&wrong).passed()
    })
}

/// Values as a kernel stores them that rounds towards zero.
fn truncated(element: Element, values: &[f64]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for value in values {
        let mut one = nearest(element, &[*value]);
        if element.is_float() && element.decode(&one).abs() > value.abs() {
            // The code below is the next number towards zero.
            let mut code = [0; 8];
            code[..one.len()].copy_from_slice(&one);
            let below = (u64::from_le_bytes(code) - 1).to_le_bytes();
            let length = one.len();
            one.copy_from_slice(&below[..length]);
        }
        bytes.extend(one);
    }
    bytes
}

/// Honest kernels pass, and every planted error that is promised to be found is.
fn promised(by: By) {
    for studied in STUDIED.iter().filter(|studied| studied.3 == by) {
        let (name, operation, types, by, factor, [cut_off, narrow_sum]) = *studied;
        let case = Case::new(operation, types, by, 1);
        let what = format!("{} of {types:?}", with(name, by));
        let split = How::honest(Order::Split, case.element);
        let run = |how: How| case.problem.run(&how);
        let honest = case.judge(&nearest(case.element, &case.honest));
        assert!(honest.passed(), "{what}: {honest:?}");
        let sequential = run(How::honest(Order::Sequential, case.element));
        assert!(!case.caught(&sequential), "{what}, sequential");
        let off: Vec<f64> = case.honest.iter().map(|v| v * (1.0 + factor)).collect();
        assert!(case.caught(&off), "{what}, all off by {factor:e}");
        let cut = case.judge(&truncated(case.element, &case.honest));
        assert!(!cut_off || !cut.passed(), "{what}, cut off: {cut:?}");
        let narrow = How {
            sum: narrower(case.element),
            ..split
        };
        assert!(
            !narrow_sum || case.caught(&run(narrow)),
            "{what}, narrow sum"
        );
        let without_last = How {
            without_last: true,
            ..split
        };
        assert!(case.caught(&run(without_last)), "{what}, last term missing");
        let first_twice = How {
            first_twice: true,
            ..split
        };
        assert!(case.caught(&run(first_twice)), "{what}, first term twice");
    }
}

#[test]
fn every_oracle_finds_the_planted_errors_that_the_documentation_promises() {
    for name in oracle::names() {
        let studied = STUDIED.iter().any(|it| (it.0, it.3) == (name, By::Oracle));
        assert!(studied, "no planted errors for `{name}`");
    }
    promised(By::Oracle);
}

#[test]
fn a_comparison_with_a_kernel_finds_the_planted_errors_that_the_documentation_promises() {
    promised(By::Kernel);
}

#[test]
#[ignore = "prints a table"]
fn table_of_planted_errors() {
    println!(
        "| compared with | in → out | factor | factor on a row | on a tile | one element, ulp \
         | cut off | narrow sum | last term missing | first term twice |"
    );
    println!("|---|---|---:|---:|---:|---:|---|---|---|---|");
    for (name, operation, types, by, ..) in STUDIED {
        let found = study(&Case::new(operation, types, by, 1));
        let factor = |f: Option<f64>| f.map_or("missed".to_owned(), |f| format!("{f:.1e}"));
        let yes = |found: bool| if found { "found" } else { "missed" };
        let with = with(name, by);
        println!(
            "| {with} | {} → {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            types[0].name(),
            types[1].name(),
            factor(found.factors[0]),
            factor(found.factors[1]),
            factor(found.factors[2]),
            found.element.map_or("missed".to_owned(), |n| n.to_string()),
            yes(found.truncated),
            yes(found.narrow_sum),
            yes(found.without_last),
            yes(found.first_twice),
        );
    }
}

/// Largest error of honest kernels over so many seeds, as a part of what is allowed, and over how
/// many elements.
fn honest_margin((_, operation, types, by, ..): Studied, seeds: u64) -> (f64, u64) {
    let (mut worst, mut elements) = (0f64, 0);
    for seed in 0..seeds {
        let case = Case::new(operation, types, by, 1000 + seed);
        let narrow = types[0].is_float() && types[0].size() <= 2;
        for order in [Order::Sequential, Order::Split, Order::Tensor] {
            if order == Order::Tensor && !narrow {
                continue;
            }
            let values = case.problem.run(&How::honest(order, types[1]));
            let result = case.judge(&nearest(types[1], &values));
            worst = worst.max(result.max_error);
            elements += result.compared;
        }
    }
    (worst, elements)
}

/// `TUNER_MARGINS` keeps the rows that contain a text, such as `kernel, gemm f32`.
#[test]
#[ignore = "takes many minutes"]
fn margins_of_honest_kernels() {
    println!("| compared with | in → out | tiles of 256 | largest error, of what is allowed |");
    println!("|---|---|---:|---:|");
    let wanted = std::env::var("TUNER_MARGINS").unwrap_or_default();
    for studied in STUDIED {
        let (name, _, types, by, ..) = studied;
        let row = format!("{} {}", with(name, by), types[1].name());
        if !row.contains(&wanted) {
            continue;
        }
        let (worst, elements) = honest_margin(studied, 40);
        println!(
            "| {} | {} → {} | {} | {worst:.2} |",
            with(name, by),
            types[0].name(),
            types[1].name(),
            elements / 256
        );
        assert!(worst <= 1.0, "{studied:?}: {worst}");
    }
}
