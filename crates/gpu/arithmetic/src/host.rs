//! Vector instructions of this host, detected at run time.
//!
//! Rust compiles for plain SSE2 on x86-64. Loops over lanes gain a factor of 2 to 10 from AVX2 and
//! fused multiply-adds, so they are compiled twice and selected here. Both versions return the same
//! bits.

#[cfg(target_arch = "x86_64")]
use fearless_simd::{Level, Simd};

/// Runs `f` compiled for this host's vector instructions. Functions that `f` calls benefit only if
/// they are inlined into it.
#[inline(always)]
pub fn vectorised<R>(f: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    if let Some(avx2) = Level::new().as_avx2() {
        return avx2.vectorize(f);
    }
    f()
}

/// Runs `fused` on hosts with a fused multiply-add, otherwise `plain`. Both receive `data` and must
/// return the same result.
#[inline(always)]
pub(crate) fn fused_or<T, R>(data: T, plain: impl FnOnce(T) -> R, fused: impl FnOnce(T) -> R) -> R {
    if cfg!(target_feature = "fma") {
        return fused(data);
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(avx2) = Level::new().as_avx2() {
        return avx2.vectorize(
            #[inline(always)]
            || fused(data),
        );
    }
    plain(data)
}
