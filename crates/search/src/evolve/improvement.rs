//! Expected improvement (Mockus 1975; Jones, Schonlau and Welch 1998), as a logarithm: it ranks
//! candidates even if the improvement itself underflows.

use std::f64::consts::{FRAC_1_SQRT_2, LN_2, PI};

/// Computes the natural logarithm of the expected improvement of a standard normal below `u`:
/// `ln(u Φ(u) + φ(u))`.
pub(super) fn log_improvement(u: f64) -> f64 {
    let log_density = -0.5 * (u * u + LN_2 + PI.ln());
    if u > -5.0 {
        (u * normal_cdf(u) + log_density.exp())
            .max(f64::MIN_POSITIVE)
            .ln()
    } else {
        // The first term of the asymptotic series: φ(u) / u².
        log_density - 2.0 * (-u).ln()
    }
}

/// Computes the distribution function of the standard normal with a relative error below 1.2e-7,
/// by the Chebyshev fit of erfc in Numerical Recipes, section 6.2.
pub(super) fn normal_cdf(x: f64) -> f64 {
    const FIT: [f64; 10] = [
        -1.265_512_23,
        1.000_023_68,
        0.374_091_96,
        0.096_784_18,
        -0.186_288_06,
        0.278_868_07,
        -1.135_203_98,
        1.488_515_87,
        -0.822_152_23,
        0.170_872_77,
    ];
    let z = x.abs() * FRAC_1_SQRT_2;
    let t = 1.0 / (1.0 + 0.5 * z);
    let fit = FIT.iter().rev().fold(0.0, |sum, term| sum * t + term);
    let tail = 0.5 * t * (fit - z * z).exp();
    if x >= 0.0 { 1.0 - tail } else { tail }
}

#[cfg(test)]
mod tests;
