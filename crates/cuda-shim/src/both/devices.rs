//! The context of a device: functions that differ by name only in the two interfaces.

use std::ffi::{c_int, c_uint};
use std::sync::atomic::Ordering;

use crate::abi::{both, store};
use crate::client;
use crate::errors;
use crate::protocol::{GREATEST_PRIORITY, LEAST_PRIORITY};
use crate::state::state;

/// The last cache hint, `CU_FUNC_CACHE_PREFER_EQUAL`.
const EQUAL: c_uint = 3;

both! {
    /// Waits for the device.
    fn cuCtxSynchronize | cudaDeviceSynchronize() { client::synchronize_device() }

    /// Sets how the host waits: no effect.
    fn cuCtxSetFlags | cudaSetDeviceFlags(_flags: c_uint) { Ok(()) }

    /// Returns the priorities of streams, which change no order.
    fn cuCtxGetStreamPriorityRange | cudaDeviceGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) {
        // SAFETY: the program passes where the results go, or null.
        unsafe {
            let _ = store(least, LEAST_PRIORITY);
            let _ = store(greatest, GREATEST_PRIORITY);
        }
        Ok(())
    }

    /// Sets a limit, such as the size of the heap of kernels.
    fn cuCtxSetLimit | cudaDeviceSetLimit(limit: c_uint, value: usize) { client::set_limit(limit, value as u64) }

    /// Returns a limit.
    fn cuCtxGetLimit | cudaDeviceGetLimit(value: *mut usize, limit: c_uint) {
        // SAFETY: the program passes where the result goes.
        unsafe { store(value, client::get_limit(limit)? as usize) }
    }

    /// Keeps the cache hint, which has no effect.
    fn cuCtxSetCacheConfig | cudaDeviceSetCacheConfig(config: c_uint) {
        match config {
            0..=EQUAL => state().cache_config.store(config, Ordering::Relaxed),
            _ => return Err(errors::INVALID_VALUE),
        }
        Ok(())
    }

    /// Returns the cache hint.
    fn cuCtxGetCacheConfig | cudaDeviceGetCacheConfig(config: *mut c_uint) {
        // SAFETY: the program passes where the result goes.
        unsafe { store(config, state().cache_config.load(Ordering::Relaxed)) }
    }

    /// A hint without an effect.
    fn cuCtxSetSharedMemConfig | cudaDeviceSetSharedMemConfig(_config: c_uint) { Ok(()) }

    /// Returns the bank hint.
    fn cuCtxGetSharedMemConfig | cudaDeviceGetSharedMemConfig(config: *mut c_uint) {
        // SAFETY: the program passes where the result goes.
        unsafe { store(config, 1) }
    }

    /// Resets the persisting cache: no effect.
    fn cuCtxResetPersistingL2Cache | cudaCtxResetPersistingL2Cache() { Ok(()) }

    /// Begins profiling: no effect.
    fn cuProfilerStart | cudaProfilerStart() { Ok(()) }

    /// Ends profiling: no effect.
    fn cuProfilerStop | cudaProfilerStop() { Ok(()) }
}
