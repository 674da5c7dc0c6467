//! Limits of the virtual GPUs, from their tables.

use tuner_space::DeviceLimits;
use vgpu::Arch;

/// Default virtual GPU of `auto`.
pub const DEFAULT: &str = "h100";

/// Returns the opt-in limit of shared memory per block of a compute capability, including static, bytes.
#[must_use]
pub fn shared_bytes(cc: u32) -> u32 {
    let known = vgpu::arch::list_gpus().iter().find(|arch| arch.cc == cc);
    match known {
        Some(arch) => arch.shared_bytes_optin,
        // Orin, which has no table: CUDA C++ Programming Guide, technical specifications.
        None if cc == 87 => 166_912,
        None => vgpu::arch::SHARED_BYTES_DEFAULT,
    }
}

/// Returns the limits of the virtual GPU of that name.
#[must_use]
pub fn by_name(name: &str) -> Option<DeviceLimits> {
    let arch = Arch::by_name(name)?;
    Some(DeviceLimits {
        sm_count: arch.sm_count,
        shared_bytes: arch.shared_bytes_optin,
        cc: arch.cc,
        max_threads: vgpu::arch::MAX_THREADS_PER_BLOCK,
    })
}

/// Lists all names, for messages and help.
#[must_use]
pub fn names() -> String {
    let names: Vec<&str> = vgpu::arch::list_gpus()
        .iter()
        .map(|arch| arch.name)
        .collect();
    names.join(", ")
}

#[cfg(test)]
mod tests;
