//! Kernel data in a cubin apart from the code: constants and resource usage.

use std::collections::BTreeMap;

use sass::{Cubin, Instruction, Unknown};

use super::SassError;

/// A kernel with its data from a cubin.
#[derive(Debug, Clone, Default)]
pub(super) struct Image {
    /// Compute capability times ten.
    pub(super) sm: u32,
    pub(super) code: Vec<Result<Instruction, Unknown>>,
    /// Constant bank 0 without the values that a launch writes there.
    pub(super) bank0: Vec<u8>,
    /// Offset of the parameters in bank 0.
    pub(super) parameters: usize,
    /// Offset of each parameter from there, bytes: large alignments are those of the bank, not of the
    /// parameters alone.
    pub(super) places: Vec<usize>,
    /// Bank 2: literals of the kernel.
    pub(super) bank2: Vec<u8>,
    /// Bank 3: variables in constant memory.
    pub(super) bank3: Vec<u8>,
    /// Bank 4: addresses of variables.
    pub(super) bank4: Vec<u8>,
    pub(super) shared_bytes: u64,
    pub(super) local_bytes: u32,
    /// Variables in bank 3: name, offset, bytes.
    pub(super) constants: Vec<(String, u64, u64)>,
    /// Relocations: offset in bank 4, variable, addend.
    pub(super) pointers: Vec<(u64, String, i64)>,
    /// Addresses of functions in other sections.
    pub(super) functions: BTreeMap<String, u64>,
    /// The file of a kernel that cannot run from its own section alone.
    pub(super) unlinked: Option<Box<Cubin>>,
}

impl Image {
    /// Reads the kernel `name`.
    ///
    /// # Errors
    /// Bytes that are not a valid cubin, or a cubin without that kernel.
    pub(super) fn read(cubin: &[u8], name: &str) -> Result<Image, SassError> {
        let mut cubin = Cubin::read(cubin).map_err(|error| SassError(error.to_string()))?;
        let unlinked = cubin.needs_link(name).then(|| Box::new(cubin.clone()));
        let functions = cubin.function_addresses();
        let functions = functions.iter().map(|(name, at)| ((*name).to_owned(), *at));
        let functions = functions.collect();
        let Some(mut kernel) = cubin.kernels.remove(name) else {
            return Err(SassError(format!("there is no kernel {name}")));
        };
        let mut bank = |number: u8| kernel.constants.remove(&number).unwrap_or_default();
        let (bank0, bank2, bank3, bank4) = (bank(0), bank(2), bank(3), bank(4));
        let user = cubin.globals.into_iter();
        let user = user.filter(|global| global.section == ".nv.constant3");
        let addresses = kernel.relocations.into_iter();
        let addresses = addresses.filter(|r| r.target == sass::RelocationTarget::Constant(4));
        Ok(Image {
            sm: cubin.sm,
            code: kernel.code,
            bank0,
            parameters: kernel.info.parameter_base as usize,
            places: kernel
                .info
                .parameters
                .iter()
                .map(|one| one.offset as usize)
                .collect(),
            bank2,
            bank3,
            bank4,
            shared_bytes: kernel.shared,
            local_bytes: kernel.info.frame.max(kernel.info.stack),
            constants: user.map(|g| (g.name, g.offset, g.size)).collect(),
            pointers: addresses.map(|r| (r.offset, r.symbol, r.addend)).collect(),
            functions,
            unlinked,
        })
    }
}
