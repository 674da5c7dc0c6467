//! Hard inputs of attention: q [B, H, S, D], k and v [B, H, T, D], and the scales if present.

use super::{Case, CaseData, Form, extreme, representable};

/// Longest sequence with a selection case: distinguishing all keys costs the square of their
/// number.
const SELECTION_KEYS_MAX: u64 = 2048;

/// Difference of scores at which all other weights vanish in float32.
const DECISIVE_SCORE_GAP: f64 = 120.0;

/// Scores of the negative case: their exponentials are zero in float32.
const LOWEST_SCORE: f64 = -200.0;

struct Heads {
    heads: u64,
    queries: u64,
    keys: u64,
    depth: u64,
    scale: f64,
    causal: bool,
}

impl Heads {
    /// Returns head, row and column of an element of a matrix with `rows` rows per head.
    fn locate(&self, index: u64, rows: u64) -> (u64, u64, u64) {
        let row = index / self.depth;
        (row / rows, row % rows, index % self.depth)
    }

    /// Keys that a query sees.
    fn visible(&self, query: u64) -> u64 {
        if self.causal {
            // Aligned to the last key if the lengths differ, as in the oracle.
            (query + 1 + self.keys)
                .saturating_sub(self.queries)
                .min(self.keys)
        } else {
            self.keys
        }
    }
}

pub(super) fn fills(form: &Form<'_>, case: Case) -> Option<CaseData> {
    let (&[b, h, queries, depth], &[_, _, keys, _]) = (form.shape(0), form.shape(1)) else {
        return None;
    };
    let heads = Heads {
        heads: b * h,
        queries,
        keys,
        depth,
        scale: form
            .scalar("scale")
            .unwrap_or(1.0 / (depth as f64).sqrt())
            .abs(),
        causal: form.flag("CAUSAL"),
    };
    if depth == 0 || keys == 0 || queries == 0 || heads.scale == 0.0 {
        return None;
    }
    let noise = |input: usize| move |index: u64| form.noise(input, index);
    let (q, k, v) = (noise(0), noise(1), noise(2));
    let row = |index: u64| heads.locate(index, keys).1;
    let outlier = |at: u64| {
        let key = move |index: u64| k(index) * if row(index) == at { 16.0 } else { 1.0 };
        plain(form, q, key, v)
    };
    Some(match case {
        Case::Selection => return selection(form, &heads),
        Case::Uniform => plain(form, q, |_| 0.0, |_| 1.0),
        Case::Means => plain(form, q, |_| 0.0, |index| (row(index) % 8) as f64),
        Case::Large => {
            // Standard deviation of the scores; the large case reaches four times that.
            let factor = (2500.0 / (heads.scale * (depth as f64).sqrt())).sqrt();
            let factor = factor.min(extreme(form.element(0)) / 4.0);
            plain(form, |i| q(i) * factor, |i| k(i) * factor, v)
        }
        Case::OutlierFirst => outlier(0),
        Case::OutlierLast => outlier(keys - 1),
        Case::Ascending => ramp(form, &heads, 1.0),
        Case::Descending => ramp(form, &heads, -1.0),
        Case::Extremes => {
            let most = extreme(form.element(2)).min(extreme(form.output.element));
            plain(form, q, k, |i| form.end(2, i, most))
        }
        Case::Contained => return contained(form, &heads),
        Case::Negative => negative(form, &heads),
        _ => return None,
    })
}

/// Scores lie far below zero, where weights relative to a score of zero vanish.
fn negative(form: &Form<'_>, heads: &Heads) -> CaseData {
    let depth = heads.depth;
    let first = |i: u64| i.is_multiple_of(depth);
    let key = LOWEST_SCORE / (8.0 * heads.scale);
    let key = key.max(-extreme(form.element(1)));
    plain(
        form,
        |i| if first(i) { 8.0 } else { form.noise(0, i) },
        |i| if first(i) { key } else { form.noise(1, i) },
        |i| form.noise(2, i),
    )
}

/// Scores of one column rise from 0 to 60 over the keys, or fall if `sign` is negative.
fn ramp(form: &Form<'_>, heads: &Heads, sign: f64) -> CaseData {
    let (keys, depth) = (heads.keys, heads.depth);
    let step = sign * 60.0 / (4.0 * heads.scale * keys as f64);
    let first = |i: u64| i.is_multiple_of(depth);
    let query = |i: u64| {
        if first(i) {
            4.0
        } else {
            0.1 * form.noise(0, i)
        }
    };
    let key = |i: u64| {
        if first(i) {
            step * heads.locate(i, keys).1 as f64
        } else {
            form.noise(1, i)
        }
    };
    plain(form, query, key, |i| form.noise(2, i))
}

/// Builds the inputs from the values of q, k and v; scales are 1.
fn plain(
    form: &Form<'_>,
    q: impl Fn(u64) -> f64 + Sync,
    k: impl Fn(u64) -> f64 + Sync,
    v: impl Fn(u64) -> f64 + Sync,
) -> CaseData {
    let mut inputs = vec![form.fill(0, q), form.fill(1, k), form.fill(2, v)];
    inputs.extend((3..form.inputs.len()).map(|input| form.fill(input, |_| 1.0)));
    CaseData::judged_by_oracle(inputs)
}

/// Keys are codes of ±a that differ in many positions. Each query is the code of one visible key,
/// and values are distinct, so the output is exactly the value of that key.
fn selection(form: &Form<'_>, heads: &Heads) -> Option<CaseData> {
    let (keys, depth) = (heads.keys, heads.depth);
    if keys > SELECTION_KEYS_MAX || depth < 16 {
        return None;
    }
    let words = depth.div_ceil(64);
    // Bits of the code of a key; bits beyond the depth are never read.
    let code = |key: u64, word: u64| -> u64 {
        // A draw is a share of one float, which does not hold 64 random bits.
        let half = |part: u64| form.chance(7, (key * words + word) * 2 + part, 1 << 32);
        let bits = half(0) << 32 | half(1);
        // Unused bits would count in the distance of two codes although no column has them.
        let used = (depth - word * 64).min(64);
        if used == 64 {
            bits
        } else {
            bits & ((1 << used) - 1)
        }
    };
    let codes: Vec<Vec<u64>> = (0..keys)
        .map(|key| (0..words).map(|word| code(key, word)).collect())
        .collect();
    let distance =
        |a: &[u64], b: &[u64]| -> u32 { a.iter().zip(b).map(|(x, y)| (x ^ y).count_ones()).sum() };
    let nearest = (1..codes.len())
        .flat_map(|a| (0..a).map(move |b| (a, b)))
        .map(|(a, b)| distance(&codes[a], &codes[b]))
        .min()
        .unwrap_or(1);
    // Two keys with one code tie, and the result would be the mean of their values.
    if nearest == 0 {
        return None;
    }
    let wanted = (DECISIVE_SCORE_GAP / (heads.scale * 2.0 * f64::from(nearest))).sqrt();
    // A power of two is exact in every type, and so are sums of its products.
    let amplitude = wanted.log2().ceil().exp2().max(1.0);
    if amplitude > extreme(form.element(0)).min(extreme(form.element(1))) {
        return None;
    }
    let chip = |key: u64, column: u64| -> f64 {
        let word = codes
            .get(usize::try_from(key).unwrap_or(0))
            .and_then(|code| code.get(usize::try_from(column / 64).unwrap_or(0)));
        let set = word.is_some_and(|word| word >> (column % 64) & 1 == 1);
        if set { amplitude } else { -amplitude }
    };
    let query = |index: u64| {
        let (head, row, column) = heads.locate(index, heads.queries);
        match heads.visible(row) {
            0 => 0.0,
            visible => chip(form.chance(8, head * heads.queries + row, visible), column),
        }
    };
    let key = |index: u64| {
        let (_, row, column) = heads.locate(index, keys);
        chip(row, column)
    };
    let types = [form.element(2), form.output.element];
    let value = |index: u64| {
        let (head, row, column) = heads.locate(index, keys);
        representable(31 * row + 7 * column + 13 * head, types)
    };
    // The other weights and the winner's rounding errors vanish below half a step of the type.
    let coarse = form.output.element.unit_roundoff() >= 2f64.powi(-12);
    Some(plain(form, query, key, value).exact_if(coarse))
}

/// Builds a case with a NaN in the last key of the last head: other heads, and queries that mask that key,
/// keep their bits.
fn contained(form: &Form<'_>, heads: &Heads) -> Option<CaseData> {
    let blind = (0..heads.queries)
        .filter(|query| heads.visible(*query) < heads.keys)
        .count() as u64;
    if heads.heads < 2 && blind == 0 {
        return None;
    }
    let last = heads.heads * heads.keys * heads.depth - heads.depth;
    let inputs = (0..form.inputs.len()).map(|input| match input {
        1 => form.declared_with_nan(1, last..last + heads.depth),
        _ => form.declared(input),
    });
    let built = CaseData::judged_by_oracle(inputs.collect());
    let first_seeing = (heads.heads - 1) * heads.queries + blind;
    let excused = first_seeing * heads.depth..heads.heads * heads.queries * heads.depth;
    Some(built.excusing(vec![excused]))
}
