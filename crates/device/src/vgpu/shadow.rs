//! Conversion of shadow values to the gate's form.

use ::vgpu::{BufferId, FloatFormat, GlobalMemory};
use tuner_core::element::Element;
use tuner_judge::gate::spread::shadow_error_type;

/// Returns the distance of each number's shadow value from the number, 0 if it has none.
pub(super) fn shadow_errors(
    memory: &GlobalMemory,
    buffer: BufferId,
    element: Element,
) -> Option<Vec<u8>> {
    // Only float32 has shadow values.
    let ty = shadow_error_type(element)?;
    let bytes = memory.read(buffer);
    let mut errors = Vec::with_capacity(bytes.len());
    for (index, code) in bytes.chunks(element.size()).enumerate() {
        let offset = (index * element.size()) as u64;
        let shadow = memory.shadow_value(buffer, offset, FloatFormat::Single);
        let error = shadow.map_or(0.0, |shadow| shadow - element.decode(code));
        ty.encode(if error.is_finite() { error } else { 0.0 }, &mut errors);
    }
    Some(errors)
}
