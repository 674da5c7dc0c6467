//! The probes of calibration on a real GPU.

use super::driver::{DevicePointer, LaunchConfig};
use super::helpers::{config, entry};
use super::launches::PreparedLaunch;
use super::session::{Buffer, GpuSession};
use tuner_core::judgement::Judgement;
use tuner_judge::stopwatch::Sample;
use tuner_judge::timing::calibration::{Probe, Prober};

/// Empty kernels in a graph.
const NULL_LAUNCHES: u32 = 500;
/// Copies in a sample.
const SAMPLE_COPIES: u32 = 8;
/// Minimum and maximum size of each buffer of the copy, bytes.
const COPY_BYTES: (u64, u64) = (64 << 20, 512 << 20);
/// Bytes read from the L2 cache in a sample.
const CACHE_BYTES: u64 = 8 << 30;
/// Threads of a probe's block.
const THREADS: u32 = 256;
/// Blocks per multiprocessor: the maximum for the memory probes, and for the arithmetic ones as
/// many as their registers allow everywhere.
const MEMORY_BLOCKS: u32 = 8;
const ARITHMETIC_BLOCKS: u32 = 4;
/// Rounds of the arithmetic probes, and the operations of a round (see `helpers.cu`).
const SINGLE_ROUNDS: u32 = 4000;
const SINGLE_OPERATIONS: u64 = 2 * 8 * 16;
const TENSOR_ROUNDS: u32 = 3200;
const TENSOR_PRODUCTS: u64 = 8 * 4;

impl Prober for GpuSession {
    fn probe(&mut self, probe: Probe) -> Result<Option<(Sample, f64)>, Judgement> {
        match probe {
            Probe::Null => self.probe_null().map(Some),
            Probe::DramCopy => self.probe_copy().map(Some),
            Probe::CacheRead => self.probe_cache().map(Some),
            Probe::Single => {
                let threads = u64::from(self.blocks(ARITHMETIC_BLOCKS)) * u64::from(THREADS);
                let work = u64::from(SINGLE_ROUNDS) * SINGLE_OPERATIONS * threads;
                self.arithmetic(entry::SINGLE, SINGLE_ROUNDS, work)
                    .map(Some)
            }
            Probe::Tensor => {
                // Multiply-adds per product: 16 × 8 × 16, or 16 × 8 × 8 before compute capability
                // 8.
                let capability = self.gpu.facts().capability;
                if capability < (7, 5) {
                    return Ok(None);
                }
                let product = if capability.0 >= 8 { 4096 } else { 2048 };
                let warps = u64::from(self.blocks(ARITHMETIC_BLOCKS)) * u64::from(THREADS / 32);
                let work = u64::from(TENSOR_ROUNDS) * TENSOR_PRODUCTS * product * warps;
                self.arithmetic(entry::TENSOR, TENSOR_ROUNDS, work)
                    .map(Some)
            }
        }
    }
}

impl GpuSession {
    fn blocks(&self, per_multiprocessor: u32) -> u32 {
        self.gpu.facts().sm_count * per_multiprocessor
    }

    /// Runs `work` with buffers of these sizes, and frees them in any case.
    fn with_buffers<T>(
        &mut self,
        sizes: &[u64],
        work: impl FnOnce(&mut Self, &[DevicePointer]) -> Result<T, Judgement>,
    ) -> Result<T, Judgement> {
        let mut buffers: Vec<Buffer> = Vec::new();
        let allocated = sizes.iter().try_for_each(|bytes| {
            buffers.push(self.guarded("a probe's buffer", *bytes)?);
            Ok(())
        });
        let pointers: Vec<DevicePointer> = buffers.iter().map(Buffer::start).collect();
        let result = allocated.and_then(|()| work(self, &pointers));
        for buffer in &buffers {
            self.free(buffer);
        }
        result
    }

    /// Times `count` launches of a helper kernel, queued one after the other.
    fn launches(
        &mut self,
        entry: &'static str,
        config: &LaunchConfig,
        count: u32,
    ) -> Result<Sample, Judgement> {
        // First use would load the code within the timed span.
        self.helper(entry)?;
        let span = self.timed(count, &mut |session| {
            (0..count).try_for_each(|_| session.queue(entry, config))
        })?;
        let micros = span.micros / f64::from(count);
        Ok(Sample {
            cycles: span.clock_mhz.map(|mhz| mhz * micros),
            clock_mhz: span.clock_mhz,
            ..Sample::of_micros(micros)
        })
    }

    fn probe_null(&mut self) -> Result<(Sample, f64), Judgement> {
        let ready = PreparedLaunch {
            function: self.helper(entry::NULL)?,
            config: config(1, 32, Vec::new()),
        };
        let exec = self.capture(&vec![&ready; NULL_LAUNCHES as usize])?;
        let span = self.timed(NULL_LAUNCHES, &mut |session| {
            session
                .gpu
                .call(|driver, stream| driver.graph_launch(exec, stream))
        });
        // The graph is freed even if its timing has failed.
        let destroyed = self.gpu.call(|driver, _| driver.exec_destroy(exec));
        let span = span?;
        destroyed?;
        let sample = Sample {
            clock_mhz: span.clock_mhz,
            ..Sample::of_micros(span.micros / f64::from(NULL_LAUNCHES))
        };
        Ok((sample, 0.0))
    }

    fn probe_copy(&mut self) -> Result<(Sample, f64), Judgement> {
        let (free, _) = self.gpu.call(|driver, _| driver.memory_info())?;
        let (least, most) = COPY_BYTES;
        // The next copy must not be served from the cache.
        let wanted = (4 * self.gpu.facts().l2_bytes).clamp(least, most);
        let bytes = wanted.min(free / 4) / 16 * 16;
        let blocks = self.blocks(MEMORY_BLOCKS);
        self.with_buffers(&[bytes, bytes], |session, buffers| {
            let parameters = [buffers[0].address(), buffers[1].address(), bytes / 16];
            let parameters = parameters.map(|word| word.to_le_bytes().to_vec()).to_vec();
            let config = config(blocks, THREADS, parameters);
            let sample = session.launches(entry::COPY, &config, SAMPLE_COPIES)?;
            // Every byte is read and written.
            Ok((sample, 2.0 * bytes as f64))
        })
    }

    fn probe_cache(&mut self) -> Result<(Sample, f64), Judgement> {
        let bytes = (self.gpu.facts().l2_bytes / 4).max(1 << 20) / 16 * 16;
        let rounds = u32::try_from(CACHE_BYTES / bytes).unwrap_or(1).max(1);
        let blocks = self.blocks(MEMORY_BLOCKS);
        self.with_buffers(&[bytes, 4], |session, buffers| {
            let parameters = vec![
                buffers[0].address().to_le_bytes().to_vec(),
                buffers[1].address().to_le_bytes().to_vec(),
                (bytes / 16).to_le_bytes().to_vec(),
                rounds.to_le_bytes().to_vec(),
            ];
            let config = config(blocks, THREADS, parameters);
            let sample = session.launches(entry::READ, &config, 1)?;
            Ok((sample, bytes as f64 * f64::from(rounds)))
        })
    }

    fn arithmetic(
        &mut self,
        entry: &'static str,
        rounds: u32,
        work: u64,
    ) -> Result<(Sample, f64), Judgement> {
        let blocks = self.blocks(ARITHMETIC_BLOCKS);
        self.with_buffers(&[4], |session, buffers| {
            let parameters = vec![
                buffers[0].address().to_le_bytes().to_vec(),
                rounds.to_le_bytes().to_vec(),
            ];
            let config = config(blocks, THREADS, parameters);
            let sample = session.launches(entry, &config, 1)?;
            Ok((sample, work as f64))
        })
    }
}
