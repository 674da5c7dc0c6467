//! Random spaces and sizes: the answers of the compiled header against the tuner's own evaluator.

use crate::store::headers::CPP17;
use crate::store::lookups::{Answer, CHECKED, Made, Program, holds, named, nearest, obeys};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use tuner_core::record::ConfigValues;
use tuner_core::value::Value;

/// A random expression and a bound on the absolute value of it and its parts.
type Bounded = (String, f64);

struct Generator {
    rng: ChaCha8Rng,
    /// Names of whole numbers, with bounds.
    whole: Vec<(&'static str, f64)>,
}

impl Generator {
    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.rng.random_range(0..from.len())]
    }

    /// A whole number.
    fn int(&mut self, depth: u32) -> Bounded {
        if depth == 0 || self.rng.random_range(0..5) == 0 {
            let at = self.rng.random_range(0..self.whole.len() + 3);
            let (name, bound) = self.whole.get(at).copied().unwrap_or(("", 0.0));
            if bound > 0.0 {
                return (name.to_owned(), bound);
            }
            let value = self.rng.random_range(-9..20_i32);
            return (format!("({value})"), 20.0);
        }
        let (a, x) = self.int(depth - 1);
        let (b, y) = self.int(depth - 1);
        match self.rng.random_range(0..18) {
            0 | 1 => (format!("({a} + {b})"), x + y),
            2 | 3 => (format!("({a} - {b})"), x + y),
            4 | 5 => (format!("({a} * {b})"), x * y),
            6 => (format!("({a} // {b})"), x.max(y) + 1.0),
            7 => (format!("({a} % {b})"), x.max(y)),
            8 => (format!("ceil_div({a}, {b})"), x.max(y) + 1.0),
            9 => (format!("min({a}, {b}, 7)"), x.max(y).max(7.0)),
            10 => (format!("max([{a}, {b}])"), x.max(y)),
            11 => (format!("abs({a})"), x),
            12 => (
                format!("({a} if {} else {b})", self.truth(depth - 1)),
                x.max(y),
            ),
            13 => (
                format!("({a} {} {b})", self.pick(&["&", "|", "^"])),
                2.0 * x.max(y),
            ),
            14 => (format!("({a} >> abs({b} % 5))"), x.max(y)),
            15 => (format!("({a} << 2)"), 4.0 * x),
            16 => (format!("(~{a})"), x + 1.0),
            _ => {
                let (real, bound) = self.real(depth - 1);
                let function = self.pick(&["int", "floor", "ceil", "round"]);
                (format!("{function}({real})"), bound + 1.0)
            }
        }
    }

    /// A number that need not be whole.
    fn real(&mut self, depth: u32) -> Bounded {
        let (a, x) = self.int(depth.saturating_sub(1));
        let (b, y) = self.int(depth.saturating_sub(1));
        match self.rng.random_range(0..9) {
            0 => (format!("({a} / {b})"), x.max(y)),
            1 => (format!("({a} * 1.5)"), 1.5 * x),
            2 => (format!("({a} * 0.1 - {b} / 3)"), x + y),
            3 => (format!("sqrt({a})"), x.max(1.0)),
            4 => (format!("sqrt({a} * 0.3)"), x.max(1.0)),
            5 => (
                format!("({a} * 0.7 // ({b} / 4))"),
                4.0 * x * y.max(1.0) + 1.0,
            ),
            6 => (format!("({a} * 0.7 % {b})"), x.max(y)),
            7 => (format!("ceil_div({a} / 2, {b})"), x.max(y) + 1.0),
            _ => (format!("float({a})"), x),
        }
    }

    fn truth(&mut self, depth: u32) -> String {
        let deeper = depth.saturating_sub(1);
        let (a, x) = if self.rng.random_range(0..3) == 0 {
            self.real(depth)
        } else {
            self.int(depth)
        };
        let (b, y) = self.int(deeper);
        let sign = self.pick(&["<", "<=", ">", ">=", "==", "!="]);
        if x.max(y) > 9e18 {
            return format!("N {sign} 12");
        }
        match self.rng.random_range(0..10) {
            0 if depth > 0 => format!("({} and {a} {sign} {b})", self.truth(deeper)),
            1 if depth > 0 => format!("({} or {a} {sign} {b})", self.truth(deeper)),
            2 if depth > 0 => format!("(not {})", self.truth(deeper)),
            3 => format!("{a} in [1, {b}, 4, 8]"),
            4 => format!("{b} not in (1, 2, 'x', 0.5)"),
            5 => format!("{a} {sign} {b} < 30"),
            6 => format!("(LAYOUT == 'row' or {a} {sign} {b})"),
            7 => format!("({a} {sign} {b} if CAUSAL else N % A == 0)"),
            8 => format!("bool({a} and {b})"),
            _ => format!("({a} {sign} {b})"),
        }
    }

    fn sizes(&mut self, real: bool) -> ConfigValues {
        let mut sizes = named(&[
            ("N", self.rng.random_range(1..70)),
            ("M", 1 << self.rng.random_range(0..7)),
            ("FLAG", self.rng.random_range(0..2)),
        ]);
        if real {
            let quarters = self.rng.random_range(1..40);
            sizes.push(("S".to_owned(), Value::Float(f64::from(quarters) / 4.0)));
        }
        sizes
    }

    /// An entry whose own sizes keep its rules.
    fn made(&mut self, real: bool, zero: bool) -> Made {
        let layout = self.pick(&["row", "column"]);
        let mut config = named(&[
            ("A", self.rng.random_range(1..17)),
            ("Z", self.rng.random_range(-5..6)),
        ]);
        config.push(("LAYOUT".to_owned(), Value::Text(layout.into())));
        let causal = self.rng.random_range(0..2) == 0;
        config.push(("CAUSAL".to_owned(), Value::Bool(causal)));
        self.whole = vec![
            ("N", 70.0),
            ("M", 64.0),
            ("FLAG", 1.0),
            ("A", 16.0),
            ("Z", 5.0),
        ];
        let (first, x) = self.int(2);
        self.whole.push(("D1", x));
        let (second, y) = self.int(2);
        self.whole.push(("D2", y));
        self.whole.push(("DEVICE_SHARED_BYTES", 40_960.0));
        let mut made = Made {
            sizes: self.sizes(real),
            config,
            derived: vec![("D1".to_owned(), first), ("D2".to_owned(), second)],
            rules: Vec::new(),
        };
        if zero {
            // A size that is 0 somewhere must match.
            made.sizes[2].1 = Value::Int(0);
        }
        let wanted = self.rng.random_range(2..8);
        while made.rules.len() < wanted {
            let rule = match self.rng.random_range(0..8) {
                0 if real => format!("S * {} <= N + 9", self.rng.random_range(1..5)),
                _ => self.truth(3),
            };
            if holds(&made, &made.sizes, &rule) {
                made.rules.push(rule);
            }
        }
        made
    }
}

fn generator(seed: u64) -> Generator {
    Generator {
        rng: ChaCha8Rng::seed_from_u64(seed),
        whole: Vec::new(),
    }
}

/// Judges the answers: what is valid obeys its rules, what C can state is valid exactly where it does, and the
/// lookup returns the nearest of the valid. Counts the entries with and without limits.
fn judge(kernels: &[(Vec<Made>, Vec<ConfigValues>)], limited: &[u64], answers: &[Answer]) {
    let mut answered = answers.iter();
    for ((made, queries), limited) in kernels.iter().zip(limited) {
        for sizes in queries {
            let answer = answered.next().unwrap();
            for (at, entry) in made.iter().enumerate() {
                let flags = |(name, value): &(String, Value)| {
                    name != "FLAG" || entry.sizes.contains(&(name.clone(), value.clone()))
                };
                let expected = obeys(entry, sizes) && sizes.iter().all(flags);
                let valid = answer.valid >> at & 1 == 1;
                let rules = &entry.rules;
                assert!(!valid || expected, "{rules:?} {sizes:?}");
                let stated = limited >> at & 1 == 0;
                assert!(!stated || valid == expected, "{rules:?} {sizes:?}");
                // Its own sizes keep its rules: the tuner has judged them.
                assert!(valid || entry.sizes != *sizes, "{rules:?} {sizes:?}");
            }
            let nearest = nearest(made, sizes, |at| answer.valid >> at & 1 == 1);
            assert_eq!(answer.index, nearest, "{sizes:?}");
        }
    }
}

#[tokio::test]
async fn random_lookups_answer_as_the_evaluator_does() {
    let mut generator = generator(11);
    let mut program = Program::new().await;
    let mut kernels = Vec::new();
    for kernel in 0..24 {
        let real = kernel % 4 == 0;
        let made: Vec<Made> = (0..4).map(|at| generator.made(real, at == 0)).collect();
        let mut queries: Vec<ConfigValues> = (0..150).map(|_| generator.sizes(real)).collect();
        queries.extend(made.iter().map(|made| made.sizes.clone()));
        program.add(&made, &queries, 0);
        kernels.push((made, queries));
    }
    let stated: u32 = program
        .limited
        .iter()
        .map(|bits| 4 - bits.count_ones())
        .sum();
    assert!(
        stated > 12,
        "{stated} of 96 entries are stated for all sizes"
    );
    for (compiler, name) in [(CHECKED, "random.c"), (CPP17, "random.cpp")] {
        if let Some(answers) = program.answers(compiler, name) {
            judge(&kernels, &program.limited, &answers);
        }
    }
}

/// Numbers beyond 64 bits, powers and logarithms: an answer may be missing, but is never wrong.
#[tokio::test]
async fn lookups_with_huge_numbers_never_return_what_breaks_a_rule() {
    let mut generator = generator(5);
    let rules = [
        "N * M * N * M * A > 5",
        "N * M * N < 1 << 100",
        "not N * M * M * 4096 < 10",
        "2 ** (N % 70) > M",
        "N ** A >= M",
        "(A - M) ** (Z % 3) != 4",
        "2 ** (Z - 3) * M < 50",
        "log2(M) >= 2",
        "log2(N) == int(log2(N)) or N % 2 == 1",
        "int(log2(N + 1)) <= 40",
        "ceil(log2(N)) >= floor(log2(M))",
        "N // (M - 64) <= 1 << 60",
        "N / (M % 32) > 0.5",
        "N % (Z - M) <= 0",
        "-N // M < 0 or -N % M == 0",
        "round(N / 8) % 2 == 0 or N << (M % 40) > 9",
        "N / 3 * 3 <= N",
        "sqrt(N) * sqrt(N) <= N + 1",
        "(A == 3 or 10 // (A - 3) < N)",
    ];
    let mut program = Program::new().await;
    let mut kernels = Vec::new();
    for _ in 0..24 {
        let huge = |generator: &mut Generator| {
            let bits = generator.rng.random_range(0..62);
            let n = (1_i64 << bits) + generator.rng.random_range(-1..2);
            let m = 1 << generator.rng.random_range(0..8);
            named(&[("N", n.max(1)), ("M", m)])
        };
        let mut made: Vec<Made> = Vec::new();
        while made.len() < 4 {
            let mut next = Made {
                sizes: huge(&mut generator),
                config: named(&[
                    ("A", generator.rng.random_range(1..6)),
                    ("Z", generator.rng.random_range(-4..5)),
                ]),
                derived: Vec::new(),
                rules: Vec::new(),
            };
            for _ in 0..3 {
                let rule = generator.pick(&rules).to_owned();
                if holds(&next, &next.sizes, &rule) {
                    next.rules.push(rule);
                }
            }
            made.push(next);
        }
        let mut queries: Vec<ConfigValues> = (0..60).map(|_| huge(&mut generator)).collect();
        queries.extend(made.iter().map(|made| made.sizes.clone()));
        program.add(&made, &queries, 0);
        kernels.push((made, queries));
    }
    if let Some(answers) = program.answers(CHECKED, "huge.c") {
        // Sizes beyond 32 bits are refused, so that nothing is valid for all sizes.
        let limited = vec![u64::MAX; kernels.len()];
        judge(&kernels, &limited, &answers);
    }
}
