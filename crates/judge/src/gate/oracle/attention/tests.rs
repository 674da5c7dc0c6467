use super::super::tests::{input, output};
use super::*;
use std::collections::BTreeMap;

fn problem(causal: f64, s: u64, t: u64) -> Problem {
    let half = Element::F16;
    Problem {
        inputs: vec![
            input("q", half, &[1, 2, s, 16], 1),
            input("k", half, &[1, 2, t, 16], 2),
            input("v", half, &[1, 2, t, 16], 3),
        ],
        outputs: vec![output("o", half, &[1, 2, s, 16])],
        scalars: BTreeMap::new(),
        sizes: BTreeMap::from([("CAUSAL".to_owned(), causal)]),
    }
}

#[test]
fn a_constant_v_comes_out_unchanged() {
    let mut problem = problem(0.0, 5, 9);
    let ones: Vec<u8> = (0..2 * 9 * 16)
        .flat_map(|_| 0x3c00u16.to_le_bytes())
        .collect();
    problem.inputs[2].bytes = ones.into();
    let oracle = Attention::new(&problem).unwrap();
    assert!(
        oracle
            .span(0, 0, 2 * 5 * 16)
            .iter()
            .all(|e| (e.value - 1.0).abs() < 1e-12)
    );
}

/// One key of weight 1 whose V is 0, and 64 of weight 2⁻¹⁵, which float16 represents in steps of
/// 2⁻²⁴: each may lose half a step, far more than P's relative roundoff allows.
#[test]
fn subnormal_weights_may_lose_half_a_step() {
    let half = |values: &[f64]| -> Vec<u8> {
        let mut bytes = Vec::new();
        values
            .iter()
            .for_each(|x| Element::F16.encode(*x, &mut bytes));
        bytes
    };
    let mut problem = problem(0.0, 1, 65);
    problem.scalars.insert("scale".into(), 1.0);
    let score = 15.0 * std::f64::consts::LN_2;
    let first = |of: &dyn Fn(usize) -> f64| -> Vec<f64> {
        let each = (0..2 * 65 * 16).map(|at| if at % 16 == 0 { of(at / 16 % 65) } else { 0.0 });
        each.collect()
    };
    problem.inputs[0].bytes = half(&[vec![1.0], vec![0.0; 15]].concat().repeat(2)).into();
    problem.inputs[1].bytes = half(&first(&|key| if key == 0 { score } else { 0.0 })).into();
    problem.inputs[2].bytes = half(&first(&|key| if key == 0 { 0.0 } else { 1.0 })).into();
    let oracle = Attention::new(&problem).unwrap();
    let expected = oracle.span(0, 0, 1)[0];
    let lost = 64.0 * 2f64.powi(-25);
    assert!(expected.tolerance >= 0.99 * lost, "{expected:?}");
    assert!(expected.tolerance < 5.0 * lost, "{expected:?}");
    assert_eq!(oracle.lost(2f64.powi(-14)), 0.0);
    assert_eq!(oracle.lost(2f64.powi(-30)), 2f64.powi(-30));
}

/// Two rows with badly rounded weights are honest; sixteen are not chance.
#[test]
fn a_norm_needs_more_rows_than_may_round_badly_by_chance() {
    use crate::gate::compare::with_oracle;
    use crate::gate::expected_output::Rule;
    let oracle = Attention::new(&problem(0.0, 64, 64)).unwrap();
    let u = Element::F16.unit_roundoff();
    let mut bytes = Vec::new();
    for want in oracle.span(0, 0, 256) {
        Element::F16.encode(want.value * (1.0 + 1.9 * u), &mut bytes);
    }
    let of = |count: u64| {
        let all = 0..count;
        let all = std::slice::from_ref(&all);
        with_oracle(&oracle, 0, Element::F16, &bytes, all, Rule::Tiles)
    };
    assert!(of(2 * 16).passed());
    let whole = of(256);
    assert!(
        !whole.passed() && whole.max_error > 1.0,
        "{}",
        whole.max_error
    );
}

/// O of a kernel that subtracts the maximum of the first 64 keys and rounds P to f16. The largest weight of
/// each 16th row is 4, off by `unlucky` roundoffs. `cut`: O is cut off instead of rounded.
fn lagging(problem: &Problem, depth: usize, unlucky: f64, cut: bool) -> Vec<u8> {
    let [q, k, v] = [0, 1, 2].map(|of: usize| {
        let tensor = &problem.inputs[of];
        tensor.strided(0, tensor.shape.iter().product(), 1)
    });
    let half = |x: f64| {
        let mut bytes = Vec::new();
        Element::F16.encode(x, &mut bytes);
        (Element::F16.decode(&bytes), bytes)
    };
    let mut out = Vec::new();
    for (row, query) in q.chunks(depth).enumerate() {
        let dot = |key: &[f64]| key.iter().zip(query).map(|(a, b)| a * b).sum::<f64>();
        let scale = problem.scalars["scale"];
        let scores: Vec<f64> = k.chunks(depth).map(|key| scale * dot(key)).collect();
        let most = |of: &[f64]| of.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let top = if row % 16 == 0 {
            most(&scores) - (4.0 * (1.0 + unlucky * Element::F16.unit_roundoff())).ln()
        } else {
            most(&scores[..64])
        };
        let weights: Vec<f64> = scores.iter().map(|score| (score - top).exp()).collect();
        let total: f64 = weights.iter().sum();
        for column in 0..depth {
            let terms = weights.iter().zip(v.iter().skip(column).step_by(depth));
            let value = terms.map(|(p, v)| half(*p).0 * v).sum::<f64>() / total;
            let (rounded, mut bytes) = half(value);
            if cut && rounded.abs() > value.abs() {
                let bits = u16::from_le_bytes([bytes[0], bytes[1]]) - 1;
                bytes = bits.to_le_bytes().to_vec();
            }
            out.extend(bytes);
        }
    }
    out
}

/// The largest weight of a row is not 1 then and is rounded, which moves the whole row: it may carry the
/// tile where the other rows spread theirs over many keys.
#[test]
fn a_maximum_that_lags_behind_is_honest_and_a_result_cut_off_is_not() {
    use crate::gate::compare::with_oracle;
    use crate::gate::expected_output::Rule;
    let shape = [1, 1, 512, 64];
    let mut problem = problem(0.0, 1, 1);
    let named = (1..).zip(["q", "k", "v"]);
    problem.inputs = named
        .map(|(seed, name)| input(name, Element::F16, &shape, seed))
        .collect();
    problem.outputs = vec![output("o", Element::F16, &shape)];
    problem.scalars.insert("scale".into(), 0.125);
    let error = |problem: &Problem, unlucky, cut| {
        let bytes = lagging(problem, 64, unlucky, cut);
        let (oracle, all) = (Attention::new(problem).unwrap(), 0..512 * 64);
        let ranges = std::slice::from_ref(&all);
        with_oracle(&oracle, 0, Element::F16, &bytes, ranges, Rule::Tiles).max_error
    };
    let (honest, cut) = (error(&problem, 0.0, false), error(&problem, 0.0, true));
    assert!(honest < 0.95 && cut > 1.0, "{honest}, cut off {cut}");
    // The first row of each tile: three times the scores of the others.
    let q = &problem.inputs[0];
    let mut peaked = Vec::new();
    for (at, value) in q.strided(0, 512 * 64, 1).into_iter().enumerate() {
        let factor = if at / 64 % 16 == 0 { 3.0 } else { 1.0 };
        Element::F16.encode(factor * value, &mut peaked);
    }
    problem.inputs[0].bytes = peaked.into();
    let honest = error(&problem, 0.9, false);
    assert!(honest < 1.0, "a row carries the tile: {honest}");
}

#[test]
fn the_first_causal_row_sees_only_the_first_key() {
    let problem = problem(1.0, 6, 6);
    let oracle = Attention::new(&problem).unwrap();
    for (d, expected) in oracle.span(0, 0, 16).iter().enumerate() {
        assert_eq!(expected.value, problem.inputs[2].value_at(d as u64));
    }
}

#[test]
fn scales_of_blocks_of_rows_multiply_their_rows() {
    let plain = problem(1.0, 6, 6);
    let scales = |name: &str, rows: u64, values: &[f32]| Tensor {
        name: name.into(),
        element: Element::F32,
        shape: vec![1, 2, rows],
        bytes: values.iter().flat_map(|x| x.to_le_bytes()).collect(),
    };
    let mut scaled = plain.clone();
    scaled.sizes.insert("SCALE_ROWS".into(), 4.0);
    scaled.inputs.push(scales("qs", 2, &[1.0; 4]));
    scaled.inputs.push(scales("ks", 2, &[1.0; 4]));
    scaled.inputs.push(scales("vs", 2, &[2.0; 4]));
    let once = Attention::new(&plain).unwrap().span(0, 0, 192);
    let twice = Attention::scaled(&scaled).unwrap().span(0, 0, 192);
    for (one, two) in once.iter().zip(&twice) {
        assert!((2.0 * one.value - two.value).abs() < 1e-12);
    }
    scaled.inputs[5] = scales("vs", 2, &[0.0, 1.0, 1.0, 1.0]);
    let first = Attention::scaled(&scaled).unwrap().span(0, 0, 16);
    assert!(
        first.iter().all(|e| e.value == 0.0),
        "sees only the first block of keys"
    );
    scaled.inputs.pop();
    assert!(Attention::scaled(&scaled).is_err());
}

#[test]
fn a_longer_key_sequence_aligns_the_causal_mask_to_its_end() {
    let problem = problem(1.0, 1, 9);
    let full = Problem {
        sizes: BTreeMap::new(),
        ..problem.clone()
    };
    let causal = Attention::new(&problem).unwrap().span(0, 0, 32);
    assert_eq!(causal, Attention::new(&full).unwrap().span(0, 0, 32));
}
