//! Peers of a kernel: the baseline command and the fallback in PyTorch.

use super::check::Checker;
use super::schema::{BaselineText, TorchText};
use tuner_core::escape::CMacroBody;

impl Checker<'_> {
    pub(super) fn baseline(&mut self, baseline: Option<BaselineText>) -> Vec<String> {
        let Some(BaselineText { command }) = baseline else {
            return Vec::new();
        };
        if command.value.is_empty() {
            self.error("the command is empty", command.at, "name a program");
        }
        command.value
    }

    /// Checks the shape of a Python expression: one line, with closed brackets and quotations.
    pub(super) fn torch_fallback(&mut self, torch: Option<TorchText>) -> Option<String> {
        let fallback = torch?.fallback;
        let text = fallback.value.trim();
        if text.is_empty() {
            let help = "name a call, such as torch.softmax(x.float(), -1)";
            self.error("the fallback is empty", fallback.at, help);
        } else if let Err(why) = CMacroBody::new(text) {
            // The brackets and quotations of an expression are checked like those of a macro's body.
            let help = "write one line of Python without comments";
            self.error(
                format!("the fallback is not an expression: {why}"),
                fallback.at,
                help,
            );
        }
        Some(text.to_owned())
    }
}
