//! Device clocks: a virtual GPU's from its table, a real one's from NVML.

use super::view::DeviceView;
use std::sync::OnceLock;
use tuner_core::record::DeviceKind;
use tuner_device::gpu;
use tuner_device::gpu::nvml::Monitor;
use tuner_store::DeviceRow;

/// Builds the view of a stored device with its clocks. Blocks for some milliseconds on a GPU.
pub(super) fn describe(row: DeviceRow, running: Option<String>) -> DeviceView {
    let model = row.name.strip_prefix("vgpu:").and_then(vgpu::Arch::by_name);
    let mut view = DeviceView {
        full_name: model.map(|arch| arch.full_name.to_owned()),
        sm_count: model.map(|arch| arch.sm_count),
        boost_mhz: model.map(|arch| arch.boost_mhz),
        dram_gb_s: model.map(|arch| arch.dram_gb_s),
        sm_mhz: None,
        memory_mhz: None,
        name: row.name,
        kind: row.kind,
        arch: row.arch,
        runs: row.runs,
        last_run_at: row.last_run_at,
        running,
    };
    if view.kind == DeviceKind::Cuda {
        measure(&mut view);
    }
    view
}

/// Returns identity and multiprocessors of the local GPUs by name; detected once.
fn here() -> &'static [(String, String, u32)] {
    static HERE: OnceLock<Vec<(String, String, u32)>> = OnceLock::new();
    HERE.get_or_init(|| {
        let gpus = gpu::list().unwrap_or_default();
        gpus.into_iter()
            .map(|gpu| (gpu.name, gpu.uuid, gpu.sm_count))
            .collect()
    })
}

/// Reads the current clocks of a real GPU; of several with the same name, the first.
fn measure(view: &mut DeviceView) {
    let Some((_, uuid, sm_count)) = here().iter().find(|(name, _, _)| *name == view.name) else {
        return;
    };
    view.sm_count = Some(*sm_count);
    if let Some(health) = Monitor::open(uuid).health() {
        view.sm_mhz = health.clock_mhz;
        view.boost_mhz = health.max_clock_mhz;
        view.memory_mhz = health.memory_clock_mhz;
    }
}
