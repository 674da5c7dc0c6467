//! Work that kernels start (dynamic parallelism): it runs after the grid that started it, in the order of the calls,
//! and belongs to that grid's operation in its stream.

use cuda_shim::errors::{self, Code};
use cuda_shim::protocol::Shape;
use vgpu::{DeviceLaunch, DeviceOperation, DeviceWork};

use crate::device::{Device, Function};
use crate::launches::Request;

impl Device {
    /// Runs what a grid started; returns the text that was printed. A grid ends after all that it started, so
    /// that each one runs with what it starts itself before the next.
    pub(crate) fn run_device_work(
        &mut self,
        parent: &Request,
        function: &Function,
        operations: Vec<DeviceOperation>,
    ) -> Vec<u8> {
        let mut text = Vec::new();
        let (tail, others): (Vec<_>, Vec<_>) =
            operations.into_iter().partition(|started| started.at_tail);
        for started in others.into_iter().chain(tail) {
            if self.sticky != errors::SUCCESS {
                break;
            }
            let done = match started.work {
                DeviceWork::Launch(launch) => {
                    // A launch that does not run is reported where it is refused.
                    text.extend(
                        self.launch_child(parent, function, launch)
                            .unwrap_or_default(),
                    );
                    Ok(())
                }
                DeviceWork::Copy { to, from, bytes } => {
                    let shape = Shape::linear(bytes);
                    self.copy(parent.stream, to, shape, from, shape)
                }
                DeviceWork::Fill { to, value, bytes } => {
                    self.fill(parent.stream, to, &[value], Shape::linear(bytes))
                }
            };
            if let Err(code) = done {
                let kernel = &function.shown_name;
                self.summary.add_note(format!(
                    "a copy or fill that {kernel} started failed with error {code}"
                ));
            }
        }
        text
    }

    fn launch_child(
        &mut self,
        parent: &Request,
        function: &Function,
        launch: DeviceLaunch,
    ) -> Result<Vec<u8>, Code> {
        let child = self.get_function(function.module, &launch.entry)?;
        self.launch(&Request {
            stream: parent.stream,
            function: child.id,
            grid: launch.grid,
            block: launch.block,
            shared_bytes: launch.shared_bytes,
            flags: 0,
            cluster: [1; 3],
            parameters: launch.parameters,
            nesting: parent.nesting + 1,
        })
    }
}
