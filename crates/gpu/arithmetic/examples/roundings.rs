//! The sum of 1 and 1/3 in single precision under each rounding of PTX, and its random ones.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use gpu_arithmetic::{Round, single};

fn main() {
    let third = 1.0_f32 / 3.0;
    for (name, round) in [
        ("rn", Round::Rn),
        ("rz", Round::Rz),
        ("rm", Round::Rm),
        ("rp", Round::Rp),
    ] {
        let sum = single::add(1.0, third, round);
        println!("add.{name}.f32 {sum:.9} {:#010x}", sum.to_bits());
    }
}
