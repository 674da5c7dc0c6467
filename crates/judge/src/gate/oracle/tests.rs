//! Tensors for the tests of the oracles.

use super::*;
use tuner_core::fill::Fill;

pub(super) fn input(name: &str, element: Element, shape: &[u64], seed: u64) -> Tensor {
    let count = shape.iter().product();
    let fill = Fill::Normal {
        mean: 0.0,
        std: 1.0,
    };
    let bytes = fill.bytes(element, seed, 0, count);
    Tensor {
        name: name.into(),
        element,
        shape: shape.to_vec(),
        bytes,
    }
}

pub(super) fn output(name: &str, element: Element, shape: &[u64]) -> Tensor {
    Tensor {
        name: name.into(),
        element,
        shape: shape.to_vec(),
        bytes: Arc::new([]),
    }
}
