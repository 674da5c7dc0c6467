//! Text that kernels print: the last of it, in an order that does not depend on the workers.

use std::collections::BTreeMap;

/// Bytes of text that a launch keeps: the size of CUDA's buffer for `printf`.
const KEPT_BYTES: usize = 1 << 20;

/// Instructions of the budget that a byte of text uses: the host takes about as long for it.
const BYTE_INSTRUCTIONS: u64 = 4;

/// Text of one block; its beginning is lost where it has more than [`KEPT_BYTES`].
#[derive(Debug, Default)]
pub(super) struct Printed {
    text: Vec<u8>,
    dropped: u64,
    /// Instructions that are not yet charged to the block's budget.
    cost: u64,
}

impl Printed {
    pub(super) fn add(&mut self, text: &[u8]) {
        self.cost += BYTE_INSTRUCTIONS * text.len() as u64;
        self.text.extend_from_slice(text);
        // At twice the size: a cut at each addition would move the text that is kept every time.
        if self.text.len() > 2 * KEPT_BYTES {
            self.cut();
        }
    }

    /// Returns the instructions that the text since the last call costs.
    pub(super) fn take_cost(&mut self) -> u64 {
        std::mem::take(&mut self.cost)
    }

    fn cut(&mut self) {
        let excess = self.text.len().saturating_sub(KEPT_BYTES);
        self.text.drain(..excess);
        self.dropped += excess as u64;
    }
}

/// Text of many blocks.
#[derive(Debug, Default)]
pub(super) struct Output {
    blocks: BTreeMap<u32, Vec<u8>>,
    bytes: usize,
    dropped: u64,
}

impl Output {
    pub(super) fn of_block(block: u32, mut printed: Printed) -> Output {
        printed.cut();
        let mut output = Output {
            dropped: printed.dropped,
            ..Output::default()
        };
        if !printed.text.is_empty() {
            output.bytes = printed.text.len();
            output.blocks.insert(block, printed.text);
        }
        output
    }

    pub(super) fn merge(&mut self, other: Output) {
        self.blocks.extend(other.blocks);
        self.bytes += other.bytes;
        self.dropped += other.dropped;
        // What has that much text after it is not kept, whatever other workers have.
        while let Some(first) = self.blocks.first_entry() {
            let length = first.get().len();
            if self.bytes - length < KEPT_BYTES {
                break;
            }
            first.remove();
            self.bytes -= length;
            self.dropped += length as u64;
        }
    }

    /// Returns the text of all blocks and the number of bytes that are lost.
    pub(super) fn join(self) -> (Vec<u8>, u64) {
        let mut all = Printed {
            text: self.blocks.into_values().flatten().collect(),
            dropped: self.dropped,
            cost: 0,
        };
        all.cut();
        (all.text, all.dropped)
    }
}
