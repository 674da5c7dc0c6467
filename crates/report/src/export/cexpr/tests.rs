//! Written texts and refusals; `tests/store/random_lookups.rs` compares values with the evaluator's.

use super::*;
use tuner_core::value::Value;
use tuner_space::{Environment, Expr, Parameter, resolve};

/// Writes a condition over the sizes `n` and `m` and the fraction `x`.
fn written(text: &str, target: Target<'_>) -> Result<String, String> {
    let parameters = [
        Parameter::new("N", vec![Value::Int(64)]),
        Parameter::new("M", vec![Value::Int(8)]),
        Parameter::new("X", vec![Value::Float(0.5)]),
    ];
    let mut names = resolve(&parameters, &Environment::default()).unwrap();
    let expr = Expr::parse(text).unwrap();
    let root = names.terms.lower(&expr, &names.scope).unwrap();
    let variable = |name: &str, real| Variable {
        name: name.to_owned(),
        real,
        low: if real { 0.0 } else { 1.0 },
        bound: if real { MAX_EXACT } else { 2_147_483_647.0 },
    };
    let variables = [
        variable("n", false),
        variable("m", false),
        variable("x", true),
    ];
    Writer::new(&names.terms, &variables, None, target).condition(root)
}

fn check(text: &str, expected: &str) {
    let found = written(text, Target::Function("k"));
    assert_eq!(found.as_deref(), Ok(expected), "{text}");
}

#[test]
fn conditions_are_short() {
    check("N % 8 == 0", "n % 8 == 0");
    check("1 <= N < M", "(1 <= n && n < m)");
    check("N in [1, 2] and M > 3", "((n == 1 || n == 2) && m > 3)");
    check("not N > 3", "!(n > 3)");
    check("ceil_div(N, 64) <= M", "(n + 63) / 64 <= m");
    check("ceil_div(N, M) * 2 < 9", "2 * ((n + m - 1) / m) < 9");
    check("N - 2 * M >= 1", "n - 2 * m >= 1");
    check(
        "(8 if N % 8 == 0 else 1) * M <= 64",
        "m * (n % 8 == 0 ? 8 : 1LL) <= 64",
    );
    check("min(N, M, 7) == 7", "k_min(k_min(n, m), 7) == 7");
    check("N / 2 <= M", "(double)n / 2.0 <= (double)m");
    check("X * 4 <= N", "x * 4.0 <= (double)n");
}

#[test]
fn negative_numbers_divide_as_pythons_do() {
    check("(N - M) // 8 == 0", "(n - m) / 8 - ((n - m) % 8 < 0) == 0");
    check("(N - M) % 8 == 0", "((n - m) % 8 + 8) % 8 == 0");
}

#[test]
fn constant_expressions_are_wide_enough() {
    let found = written("N * M <= 10", Target::Constant);
    assert_eq!(found.as_deref(), Ok("1LL * n * m <= 10"));
    assert!(written("N / 2 <= 10", Target::Constant).is_err());
}

#[test]
fn what_may_overflow_divide_by_zero_or_round_otherwise_is_refused() {
    for (text, why) in [
        ("N * M * N * M > 5", "beyond 64 bits"),
        ("N % (M // 8) == 0", "zero or negative"),
        ("N % (M - 4) == 0", "zero or negative"),
        ("N * M / 3 > 5", "beyond 53 bits"),
        ("X * 3 + X * 5 > 1", "products of fractions"),
        ("sqrt(N) < 2", "roots"),
        ("round(N / 8) == 2", "nearest"),
        ("2 ** N > 4", "power"),
        ("N << M > 4", "not constant"),
        ("N == 1 << 70", "beyond 64 bits"),
        ("(N or M) + 1 == 3", "`and` or `or`"),
        ("N == 1 // (M - M)", "zero or negative"),
    ] {
        let found = written(text, Target::Function("k"));
        assert!(
            found.as_ref().is_err_and(|message| message.contains(why)),
            "{text}: {found:?}"
        );
    }
}
