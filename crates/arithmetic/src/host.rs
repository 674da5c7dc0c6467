//! The vector instructions of this host, found at run time.
//!
//! Rust compiles for plain SSE2 on x86-64. Loops over lanes gain a factor of 2 to 10 from AVX2 and
//! fused multiply-adds, so they are compiled twice and chosen here. Both give the same bits.

#[cfg(target_arch = "x86_64")]
use fearless_simd::{Level, Simd};

/// Runs `f` compiled for the vectors of this host. What `f` calls is compiled so only as far as it
/// is inlined into it.
#[inline(always)]
pub fn vectorised<R>(f: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    if let Some(avx2) = Level::new().as_avx2() {
        return avx2.vectorize(f);
    }
    f()
}

/// Runs `fused` where the host multiplies and adds in one instruction, else `plain`. Both are given
/// `data`, and must give the same.
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
