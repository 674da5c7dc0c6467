//! Attributes of the device, by their number in `cudaDeviceAttr` (equal in the driver interface).

use vgpu::Arch;

/// Shared memory per block without an opt-in, bytes.
pub(crate) const DEFAULT_SHARED_BYTES: u32 = 48 << 10;
/// Shared memory that the system reserves per block, bytes.
pub(crate) const RESERVED_SHARED_BYTES: i32 = 1024;

/// Largest window of an access policy, bytes, from an A100.
const MAX_WINDOW_BYTES: i32 = 134_213_632;

/// Attributes that are equal for every GPU here: CUDA C++ Programming Guide 13.0, "Compute Capabilities",
/// and the driver of an A100 for those that describe the system.
const COMMON: [(u32, i32); 51] = [
    (1, 1024),
    (2, 1024),
    (3, 1024),
    (4, 64),
    (5, i32::MAX),
    (6, 65_535),
    (7, 65_535),
    (8, DEFAULT_SHARED_BYTES as i32),
    (9, 65_536),
    (10, 32),
    (11, i32::MAX),
    (12, 65_536),
    (14, 512),
    (15, 1),
    (19, 1),
    (21, 131_072),
    (22, 131_072),
    (23, 65_536),
    (24, 16_384),
    (25, 16_384),
    (26, 16_384),
    (27, 32_768),
    (28, 32_768),
    (29, 2048),
    (30, 512),
    (31, 1),
    (33, 1),
    (40, 3),
    (41, 1),
    (51, 32),
    (69, 268_435_456),
    (70, 131_072),
    (71, 65_000),
    (72, 2_097_120),
    (78, 1),
    (79, 1),
    (80, 1),
    (83, 1),
    (87, 2),
    (89, 1),
    (90, 1),
    (95, 1),
    (99, 1),
    (102, 1),
    (111, RESERVED_SHARED_BYTES),
    (115, 1),
    (121, 1),
    (122, 1),
    (123, 1),
    (142, 1),
    (144, 1),
];

/// Returns all attributes of a GPU. Omitted ones are zero: pageable memory is not accessible to kernels
/// (88), and registered memory has no device address (91).
pub(crate) fn device_attributes(arch: &Arch) -> Vec<(u32, i32)> {
    let int = |value: u32| i32::try_from(value).unwrap_or(i32::MAX);
    let memory_khz = 1_215_000;
    // Two transfers per clock: bytes per second = 2 · clock · width / 8.
    // Buses are multiples of 32 bits; the bandwidth of a data sheet is rounded.
    let bus_bits = arch.dram_gb_s * 1e9 * 8.0 / (2.0 * f64::from(memory_khz) * 1e3);
    let bus_bits = (bus_bits / 32.0).round() * 32.0;
    // Three quarters of the L2 cache, as on an A100.
    let persisting = i32::try_from(arch.l2_bytes / 4 * 3).unwrap_or(i32::MAX);
    let mut all = COMMON.to_vec();
    all.extend([
        (13, int(arch.boost_mhz * 1000)),
        (16, int(arch.sm_count)),
        (36, memory_khz),
        (37, bus_bits as i32),
        (38, i32::try_from(arch.l2_bytes).unwrap_or(i32::MAX)),
        (39, int(arch.max_threads_per_sm)),
        (75, int(arch.cc / 10)),
        (76, int(arch.cc % 10)),
        (81, int(arch.shared_bytes_per_sm)),
        (82, int(arch.registers_per_sm)),
        (97, int(arch.shared_bytes_optin)),
        (106, int(arch.max_blocks_per_sm)),
        (108, if arch.cc >= 80 { persisting } else { 0 }),
        (109, if arch.cc >= 80 { MAX_WINDOW_BYTES } else { 0 }),
        (120, i32::from(arch.cc >= 90)),
    ]);
    all
}
