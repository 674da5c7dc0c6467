//! Predicted times of launches, from the timing model of machine code.

use std::collections::BTreeMap;

use gpu_model::{Sampled, Shape};
use sass_machine::Machine;
use vgpu::memory::BufferId;
use vgpu::{Checks, Launch, Module};

use crate::device::{Device, Function};
use crate::launches::Request;

/// Times of launches in the summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Prediction {
    /// A lower bound from counted instructions and bytes.
    #[default]
    Bound,
    /// The timing model.
    Model,
    /// The timing model; only the blocks that it needs are run, so the program's results are not computed.
    ModelOnly,
}

/// Maximum warp instructions of a sampled block.
const MAX_INSTRUCTIONS: u64 = 1 << 28;

/// Identity of launches with the same time: kernel, grid, block, cluster, dynamic shared memory.
pub(crate) type LaunchShape = (u64, [[u32; 3]; 3], u32);

/// Predicted times, µs, of launches by their shape; `None` without a prediction of the model.
pub(crate) type PredictedTimes = BTreeMap<LaunchShape, Option<f64>>;

impl Device {
    /// Returns the predicted time of a launch with its overhead, µs. Launches of one shape are predicted
    /// once. Memory is unchanged.
    pub(crate) fn predicted_us(
        &mut self,
        request: &Request,
        function: &Function,
        code: &Module,
        launch: &Launch,
    ) -> Option<f64> {
        if self.options.prediction == Prediction::Bound {
            return None;
        }
        let shape = (
            request.function,
            [request.grid, request.block, request.cluster],
            request.shared_bytes,
        );
        if let Some(known) = self.predicted.get(&shape) {
            return *known;
        }
        let name = &function.plain_name;
        let time = match self.predict(request, function, code, launch) {
            Ok((us, doubts)) => {
                for doubt in doubts {
                    let note = format!("time of {name} is not reliable: {doubt}");
                    self.summary.add_note(note);
                }
                Some(us)
            }
            Err(why) => {
                let note = format!("no predicted time of {name}, a lower bound instead: {why}");
                self.summary.add_note(note);
                None
            }
        };
        self.predicted.insert(shape, time);
        time
    }

    /// Returns the time of a launch, µs, with the reasons why it is not reliable.
    fn predict(
        &mut self,
        request: &Request,
        function: &Function,
        code: &Module,
        launch: &Launch,
    ) -> Result<(f64, Vec<String>), String> {
        let arch = self.options.arch;
        let module = self.module(function.module);
        let cubin = module.ok().and_then(|module| module.cubin.clone());
        let cubin = cubin.ok_or("the program has no machine code for this GPU")?;
        let machine = Machine::load(&cubin, &function.name).map_err(|error| error.to_string())?;
        let (products, serialized) = gpu_model::serialized_products(machine.code());
        if 100.0 * serialized as f64 > gpu_model::SERIALIZED_MOST_PCT * products as f64 {
            self.summary.add_note(format!(
                "wgmma of {} is serialized: {serialized} of {products} products wait for the one before; see \
                 the messages C7510 and C7511 of ptxas",
                function.shown_name
            ));
        }
        let template = Launch {
            instruction_budget: MAX_INSTRUCTIONS,
            checks: Checks::default(),
            watch: None,
            lane_budget: None,
            ..launch.clone()
        };
        let threads: u32 = request.block.iter().product();
        let shape = Shape {
            grid: request.grid,
            threads,
            registers: function.info.registers,
            shared_bytes: u64::from(request.shared_bytes) + function.info.static_shared_bytes,
        };
        let resident =
            gpu_model::resident_blocks(arch, threads, shape.registers, shape.shared_bytes);
        let together = u64::from(resident) * u64::from(arch.sm_count);
        let before: Vec<(BufferId, Vec<u8>)> = self
            .memory
            .buffers()
            .map(|buffer| (buffer, self.memory.read(buffer)))
            .collect();
        let sampled = gpu_model::trace(&machine, code, &mut self.memory, arch, &template, together);
        for (buffer, bytes) in before {
            // Untouched buffers keep their marks of unwritten bytes.
            if self.memory.read(buffer) != bytes {
                self.memory.write(buffer, 0, &bytes);
            }
        }
        let traces = match sampled.map_err(|error| error.to_string())? {
            Sampled::Traced(traces) => *traces,
            Sampled::Withheld(why) => return Err(why.to_string()),
        };
        let estimate = gpu_model::estimate(arch, &machine, traces, &shape);
        let estimate = estimate.ok_or("no block fits on a multiprocessor")?;
        Ok((estimate.us + arch.launch_us, estimate.doubts))
    }
}
