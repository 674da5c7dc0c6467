//! The driver calls, answered from the virtual GPU's memory.

use super::NAME;
use super::clock::Costs;
use super::execute::Queued;
use super::virtual_driver::{Kernel, MEMORY_BYTES, VirtualDriver};
use std::sync::Arc;
use tuner_device::gpu::driver::*;
use vgpu::{Module as Ptx, TENSOR_MAP_BYTES, TensorMap};

impl Driver for VirtualDriver {
    fn init(&mut self) -> Answer<()> {
        Ok(())
    }

    fn version(&mut self) -> Answer<i32> {
        Ok(13_000)
    }

    fn device_count(&mut self) -> Answer<i32> {
        Ok(2)
    }

    fn device(&mut self, ordinal: i32) -> Answer<Device> {
        Ok(Device(ordinal))
    }

    fn device_name(&mut self, _: Device) -> Answer<String> {
        Ok(NAME.to_owned())
    }

    fn device_uuid(&mut self, _: Device) -> Answer<[u8; 16]> {
        Ok([0; 16])
    }

    fn device_memory(&mut self, _: Device) -> Answer<u64> {
        Ok(MEMORY_BYTES)
    }

    fn device_attribute(&mut self, _: Device, attribute: DeviceAttribute) -> Answer<i32> {
        use DeviceAttribute as A;
        let arch = self.arch;
        let value = match attribute {
            A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR => arch.cc / 10,
            A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR => arch.cc % 10,
            A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT => arch.sm_count,
            A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK => 1024,
            A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN => arch.shared_bytes_optin,
            A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR => arch.shared_bytes_per_sm,
            A::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR => arch.registers_per_sm,
            A::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE => {
                return Ok(i32::try_from(self.cache.bytes()).unwrap_or(i32::MAX));
            }
            _ => 0,
        };
        Ok(i32::try_from(value).unwrap_or(i32::MAX))
    }

    fn context_retain(&mut self, _: Device) -> Answer<Context> {
        Ok(Context(1))
    }

    fn context_set_current(&mut self, _: Context) -> Answer<()> {
        self.sound("cuCtxSetCurrent")
    }

    fn context_synchronize(&mut self) -> Answer<()> {
        self.clock.wait();
        self.sound("cuCtxSynchronize")
    }

    fn context_release(&mut self, _: Device) -> Answer<()> {
        self.sound("cuDevicePrimaryCtxRelease_v2")
    }

    fn memory_info(&mut self) -> Answer<(u64, u64)> {
        self.sound("cuMemGetInfo_v2")?;
        let used: u64 = self.living.values().map(|(_, bytes)| bytes).sum();
        Ok((MEMORY_BYTES - used, MEMORY_BYTES))
    }

    fn memory_alloc(&mut self, bytes: u64) -> Answer<DevicePointer> {
        self.sound("cuMemAlloc_v2")?;
        self.clock.spend(self.costs.alloc_us);
        let id = self
            .memory
            .alloc(bytes, "device memory")
            .map_err(|_| CudaError::new("cuMemAlloc_v2", code::OUT_OF_MEMORY))?;
        let base = self.memory.address(id);
        self.living.insert(base, (id, bytes));
        Ok(DevicePointer(base))
    }

    fn memory_free(&mut self, at: DevicePointer) -> Answer<()> {
        self.sound("cuMemFree_v2")?;
        self.clock.spend(self.costs.alloc_us);
        match self.living.remove(&at.0) {
            Some((id, _)) => {
                self.memory.free(id);
                Ok(())
            }
            None => Err(CudaError::new("cuMemFree_v2", code::INVALID_VALUE)),
        }
    }

    fn copy_to_device(&mut self, to: DevicePointer, from: &[u8]) -> Answer<()> {
        self.sound("cuMemcpyHtoD_v2")?;
        self.ran.clear();
        self.copied(from.len());
        self.write(to, from)
    }

    fn copy_from_device(&mut self, to: &mut [u8], from: DevicePointer) -> Answer<()> {
        self.sound("cuMemcpyDtoH_v2")?;
        let (id, offset) = self.locate("cuMemcpyDtoH_v2", from, to.len() as u64)?;
        self.memory.read_at(id, offset, to);
        self.copied(to.len());
        Ok(())
    }

    fn copy_on_device(
        &mut self,
        to: DevicePointer,
        from: DevicePointer,
        bytes: u64,
        _: Stream,
    ) -> Answer<()> {
        self.sound("cuMemcpyDtoDAsync_v2")?;
        let (id, offset) = self.locate("cuMemcpyDtoDAsync_v2", from, bytes)?;
        self.ran.clear();
        self.moves(2 * bytes);
        self.write_made(to, bytes, |driver, all| {
            driver.memory.read_at(id, offset, all)
        })
    }

    fn fill_bytes(&mut self, at: DevicePointer, value: u8, count: u64, _: Stream) -> Answer<()> {
        self.sound("cuMemsetD8Async")?;
        self.ran.clear();
        self.moves(count);
        self.write_made(at, count, |_, all| all.fill(value))
    }

    fn fill_words(&mut self, at: DevicePointer, value: u32, count: u64, _: Stream) -> Answer<()> {
        self.sound("cuMemsetD32Async")?;
        self.ran.clear();
        self.moves(4 * count);
        self.write_made(at, 4 * count, |_, all| {
            for word in all.chunks_exact_mut(4) {
                word.copy_from_slice(&value.to_le_bytes());
            }
        })
    }

    fn module_load(&mut self, image: &[u8]) -> Answer<Module> {
        self.sound("cuModuleLoadDataEx")?;
        self.clock.spend(self.costs.load_us);
        let refused =
            |why: &str| CudaError::new("cuModuleLoadDataEx", code::INVALID_IMAGE).noting(why);
        let text = std::str::from_utf8(image).map_err(|_| refused("not PTX"))?;
        let module = Ptx::load(text).map_err(|error| refused(&error.to_string()))?;
        let handle = self.handle();
        let reads_clock = ["%clock", "%globaltimer"]
            .iter()
            .any(|name| text.contains(name));
        self.modules.insert(handle, (Arc::new(module), reads_clock));
        Ok(Module(handle))
    }

    fn module_unload(&mut self, module: Module) -> Answer<()> {
        self.sound("cuModuleUnload")?;
        self.kernels.retain(|_, (of, _)| *of != module.0);
        match self.modules.remove(&module.0) {
            Some(_) => Ok(()),
            None => Err(CudaError::new("cuModuleUnload", code::INVALID_HANDLE)),
        }
    }

    fn function(&mut self, module: Module, name: &str) -> Answer<Function> {
        self.sound("cuModuleGetFunction")?;
        let failed = |code| CudaError::new("cuModuleGetFunction", code);
        let known = self.modules.get(&module.0).cloned();
        let (ptx, reads_clock) = known.ok_or_else(|| failed(code::INVALID_HANDLE))?;
        if ptx.entry(name).is_none() {
            return Err(failed(code::NOT_FOUND).noting(name));
        }
        let handle = self.handle();
        let kernel = Kernel {
            module: ptx,
            name: name.to_owned(),
            reads_clock,
        };
        self.kernels.insert(handle, (module.0, kernel));
        Ok(Function(handle))
    }

    fn variable(&mut self, module: Module, name: &str) -> Answer<(DevicePointer, u64)> {
        self.sound("cuModuleGetGlobal_v2")?;
        let failed = |code| CudaError::new("cuModuleGetGlobal_v2", code);
        let known = self.modules.get(&module.0).cloned();
        let (ptx, _) = known.ok_or_else(|| failed(code::INVALID_HANDLE))?;
        let found = ptx.place_variable(&mut self.memory, name);
        let found = found.map_err(|_| failed(code::OUT_OF_MEMORY))?;
        let (id, bytes) = found.ok_or_else(|| failed(code::NOT_FOUND).noting(name))?;
        let base = self.memory.address(id);
        // Copies look it up among the allocations.
        self.living.insert(base, (id, bytes));
        Ok((DevicePointer(base), bytes))
    }

    fn function_attribute(
        &mut self,
        function: Function,
        attribute: FunctionAttribute,
    ) -> Answer<i32> {
        use FunctionAttribute as F;
        self.sound("cuFuncGetAttribute")?;
        let kernel = self.kernel("cuFuncGetAttribute", function)?;
        let entry = kernel.module.entry(&kernel.name);
        Ok(match attribute {
            F::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES => {
                entry.map_or(0, |entry| entry.static_shared_bytes as i32)
            }
            F::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK => 1024,
            F::CU_FUNC_ATTRIBUTE_NUM_REGS => 32,
            _ => 0,
        })
    }

    fn function_set_attribute(
        &mut self,
        function: Function,
        _: FunctionAttribute,
        value: i32,
    ) -> Answer<()> {
        self.sound("cuFuncSetAttribute")?;
        self.kernel("cuFuncSetAttribute", function)?;
        if i64::from(value) > i64::from(self.arch.shared_bytes_optin) {
            return Err(CudaError::new("cuFuncSetAttribute", code::INVALID_VALUE));
        }
        Ok(())
    }

    fn tensor_map(&mut self, map: &TensorMap) -> Answer<[u8; TENSOR_MAP_BYTES]> {
        self.sound("cuTensorMapEncodeTiled")?;
        Ok(map.encode())
    }

    fn occupancy(&mut self, function: Function, threads: i32, _: u64) -> Answer<i32> {
        self.sound("cuOccupancyMaxActiveBlocksPerMultiprocessor")?;
        self.kernel("cuOccupancyMaxActiveBlocksPerMultiprocessor", function)?;
        Ok(2048 / threads.max(1))
    }

    fn launch(&mut self, function: Function, _: Stream, launch: &LaunchConfig) -> Answer<()> {
        self.sound("cuLaunchKernel")?;
        let queued = Queued {
            kernel: self.kernel("cuLaunchKernel", function)?.clone(),
            config: launch.clone(),
        };
        match &mut self.recording {
            Some(queue) => {
                queue.push(queued);
                Ok(())
            }
            None => {
                self.clock.spend(self.costs.launch_us);
                self.execute(&queued)?;
                self.tick();
                Ok(())
            }
        }
    }

    fn stream_create(&mut self) -> Answer<Stream> {
        let handle = self.handle();
        self.streams.insert(handle);
        Ok(Stream(handle))
    }

    fn stream_synchronize(&mut self, _: Stream) -> Answer<()> {
        self.sound("cuStreamSynchronize")?;
        self.clock.wait();
        Ok(())
    }

    fn stream_destroy(&mut self, stream: Stream) -> Answer<()> {
        self.streams.remove(&stream.0);
        Ok(())
    }

    fn event_create(&mut self) -> Answer<Event> {
        self.sound("cuEventCreate")?;
        Ok(Event(self.handle()))
    }

    fn event_record(&mut self, event: Event, _: Stream) -> Answer<()> {
        self.sound("cuEventRecord")?;
        self.events.insert(event.0, self.clock.micros());
        Ok(())
    }

    fn event_is_over(&mut self, event: Event) -> Answer<bool> {
        self.sound("cuEventQuery")?;
        let at = self.events.get(&event.0).copied();
        // Without costs the host is never late.
        Ok(self.costs != Costs::NONE && at.is_some_and(|at| at <= self.clock.host()))
    }

    fn event_synchronize(&mut self, _: Event) -> Answer<()> {
        self.sound("cuEventSynchronize")?;
        self.clock.wait();
        self.tick();
        Ok(())
    }

    fn event_elapsed(&mut self, from: Event, to: Event) -> Answer<f32> {
        self.sound("cuEventElapsedTime")?;
        let time = |event: Event| {
            let found = self.events.get(&event.0).copied();
            found.ok_or_else(|| CudaError::new("cuEventElapsedTime", code::INVALID_HANDLE))
        };
        Ok(((time(to)? - time(from)?) / 1e3) as f32)
    }

    fn event_destroy(&mut self, event: Event) -> Answer<()> {
        self.sound("cuEventDestroy_v2")?;
        self.events.remove(&event.0);
        Ok(())
    }

    fn capture_begin(&mut self, _: Stream) -> Answer<()> {
        self.sound("cuStreamBeginCapture_v2")?;
        self.recording = Some(Vec::new());
        Ok(())
    }

    fn capture_end(&mut self, _: Stream) -> Answer<Graph> {
        self.sound("cuStreamEndCapture")?;
        let queue = self.recording.take().unwrap_or_default();
        let handle = self.handle();
        self.graphs.insert(handle, queue);
        Ok(Graph(handle))
    }

    fn graph_instantiate(&mut self, graph: Graph) -> Answer<GraphExec> {
        self.sound("cuGraphInstantiateWithFlags")?;
        let queue = self.graphs.get(&graph.0).cloned().unwrap_or_default();
        self.clock.spend(self.costs.node_us * queue.len() as f64);
        let handle = self.handle();
        self.graphs.insert(handle, queue);
        Ok(GraphExec(handle))
    }

    fn graph_upload(&mut self, _: GraphExec, _: Stream) -> Answer<()> {
        self.sound("cuGraphUpload")
    }

    fn graph_launch(&mut self, exec: GraphExec, _: Stream) -> Answer<()> {
        self.sound("cuGraphLaunch")?;
        let queue = self.graphs.get(&exec.0).cloned().unwrap_or_default();
        self.clock.spend(self.costs.graph_us);
        queue.iter().try_for_each(|queued| self.replay(queued))?;
        self.tick();
        Ok(())
    }

    fn graph_destroy(&mut self, graph: Graph) -> Answer<()> {
        self.graphs.remove(&graph.0);
        self.sound("cuGraphDestroy")
    }

    fn exec_destroy(&mut self, exec: GraphExec) -> Answer<()> {
        self.graphs.remove(&exec.0);
        self.sound("cuGraphExecDestroy")
    }
}
