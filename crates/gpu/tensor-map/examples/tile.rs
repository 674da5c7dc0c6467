//! A tensor map of a matrix of halves, and a limit that it breaks.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use gpu_tensor_map::{TensorElement, TensorMap};

fn main() {
    let mut map = TensorMap {
        element: TensorElement::F16,
        address: 0x7000_0000_0000,
        sizes: vec![4096, 1024],
        strides: vec![8192],
        boxes: vec![64, 128],
        steps: vec![1, 1],
        interleave: 0,
        swizzle: 3,
        promotion: 0,
        fills_nan: false,
        pixels: None,
    };
    println!("{:?}", map.check());
    map.boxes[0] = 128;
    println!("{:?}", map.check());
}
