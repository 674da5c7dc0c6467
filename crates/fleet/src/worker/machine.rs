//! Properties of this machine.

use crate::link::FleetError;
use crate::names;
use std::path::PathBuf;
use std::sync::Arc;
use tuner_core::provenance;
use tuner_core::record::DeviceKind;
use tuner_device::{DeviceFacts, DeviceSelector, gpu};
use tuner_engine::fleet::{PROTOCOL, WorkerView};
use tuner_engine::job::{self, WorkerResource};
use tuner_kernel::compile::{Compiler, CompilerSettings};

/// The lent part of this machine.
pub(super) struct Machine {
    pub(super) lent: WorkerResource,
    /// Device properties; `None` for recordings.
    facts: Option<DeviceFacts>,
    pub(super) compiler: Option<Arc<Compiler>>,
    pub(super) compilers: usize,
    /// Folder for the files of runs.
    pub(super) folder: PathBuf,
}

impl Machine {
    /// Detects the device and the compiler.
    pub(super) fn new(
        lent: WorkerResource,
        compilers: usize,
        folder: PathBuf,
    ) -> Result<Self, FleetError> {
        let facts = match &lent {
            WorkerResource::Device(selector) => Some(facts(selector)?),
            WorkerResource::Recording(_) | WorkerResource::Compiler => None,
        };
        let compiler = match &lent {
            WorkerResource::Recording(_) => None,
            WorkerResource::Device(_) | WorkerResource::Compiler => {
                let settings = CompilerSettings::with_jobs(compilers.max(1));
                let compiler = Compiler::new(settings);
                let compiler = compiler.map_err(|error| FleetError::Machine(error.to_string()))?;
                Some(Arc::new(compiler))
            }
        };
        Ok(Self {
            lent,
            facts,
            compiler,
            compilers,
            folder,
        })
    }

    fn nvrtc(&self) -> Option<String> {
        let compiler = self.compiler.as_ref()?;
        Some(compiler.nvrtc().version())
    }

    /// Returns the class of its device.
    pub(super) fn class(&self) -> Option<String> {
        match (&self.lent, &self.facts) {
            (WorkerResource::Recording(recording), _) => {
                Some(format!("replay-{}", recording.content.short()))
            }
            (WorkerResource::Device(_), Some(facts)) => {
                let nvrtc = self.nvrtc().unwrap_or_default();
                Some(names::class(facts.kind, &facts.name, &nvrtc))
            }
            _ => None,
        }
    }

    /// Reports whether it lends a GPU, whose times are measured.
    pub(super) fn is_gpu(&self) -> bool {
        let facts = self.facts.as_ref();
        facts.is_some_and(|facts| facts.kind == DeviceKind::Cuda)
    }

    /// Returns the class of its GPU in a separate group.
    pub(super) fn class_apart(&self, name: &str) -> String {
        names::class(DeviceKind::Cuda, name, &self.nvrtc().unwrap_or_default())
    }

    /// Reports whether it compiles for others.
    pub(super) fn compiles(&self) -> bool {
        self.compiler.is_some() && self.compilers > 0
    }

    /// Returns the suffix of its compile queues.
    pub(super) fn compile_suffix(&self) -> String {
        names::nvrtc_word(&self.nvrtc().unwrap_or_default())
    }

    /// Returns its public record.
    pub(super) fn record(&self) -> WorkerView {
        let facts = self.facts.as_ref();
        let selector = match &self.lent {
            WorkerResource::Recording(recording) => format!("replay:{}", recording.path.display()),
            WorkerResource::Device(selector) => selector.clone(),
            WorkerResource::Compiler => String::new(),
        };
        let device = match &self.lent {
            WorkerResource::Recording(recording) => recording.device.clone(),
            _ => facts.map(|facts| facts.name.clone()).unwrap_or_default(),
        };
        WorkerView {
            protocol: PROTOCOL,
            name: super::new_name(),
            host: provenance::host().to_owned(),
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            selector,
            device,
            class: self.class().unwrap_or_default(),
            arch: facts.map(|facts| facts.arch.clone()).unwrap_or_default(),
            driver: facts.and_then(|facts| facts.driver.clone()),
            nvrtc: self.nvrtc(),
            compilers: if self.compiles() { self.compilers } else { 0 },
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            state: "idle".to_owned(),
            facts: facts.and_then(|facts| serde_json::to_value(facts).ok()),
            ..WorkerView::default()
        }
    }

    /// Describes it in a sentence.
    pub(super) fn describe(&self) -> String {
        let record = self.record();
        let mut parts = Vec::new();
        if !record.device.is_empty() {
            parts.push(format!("lends {} ({})", record.device, record.selector));
        }
        if record.compilers > 0 {
            let nvrtc = record.nvrtc.unwrap_or_default();
            parts.push(format!(
                "compiles {} at a time with NVRTC {nvrtc}",
                record.compilers
            ));
        }
        parts.join(", ")
    }
}

/// Reads the properties of a local device.
fn facts(selector: &str) -> Result<DeviceFacts, FleetError> {
    let wrong = |error: &dyn std::fmt::Display| FleetError::Machine(error.to_string());
    let parsed: DeviceSelector = selector.parse().map_err(|e| wrong(&e))?;
    match parsed {
        DeviceSelector::Vgpu(name) => job::virtual_facts(&name).map_err(|e| wrong(&e)),
        DeviceSelector::Cuda(ordinal) => {
            let found = gpu::find(ordinal);
            let found = found
                .map_err(|error| wrong(&job::absent(&DeviceSelector::Cuda(ordinal), &error)))?;
            Ok(job::facts_of(&found))
        }
        other => Err(wrong(&format!(
            "`{other}` is not a device that a worker can lend; type cuda:0, vgpu:h100 or replay:FILE, one \
             worker for each"
        ))),
    }
}
