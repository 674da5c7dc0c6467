use super::{DecisionTree, LookupError, Node, TreeText, cut_value};
use crate::portfolio::{Axis, AxisValues, Shape, Table};
use std::collections::BTreeMap;
use tuner_core::record::TimingKind;

/// A table over S and D; a time of 0 marks a pair that does not work.
fn table(times: &[&[f64]]) -> Table {
    let (sizes, depths) = (vec![128, 512, 2048, 8192], vec![64, 128]);
    let axis = |name: &str, values: &Vec<i64>| Axis {
        name: name.to_owned(),
        values: AxisValues::Numbers(values.clone()),
    };
    let axes = vec![axis("S", &sizes), axis("D", &depths)];
    let places = (0..sizes.len()).flat_map(|s| (0..2).map(move |d| vec![s, d]));
    let shapes = places.map(|place| Shape {
        name: format!("{place:?}"),
        place,
    });
    Table {
        axes,
        shapes: shapes.collect(),
        configs: vec![Vec::new(); times.len()],
        times: times
            .iter()
            .map(|row| {
                row.iter()
                    .map(|time| (*time > 0.0).then_some(*time))
                    .collect()
            })
            .collect(),
        timing: TimingKind::Predicted,
    }
}

/// Three configurations: for small S, for large S, and for large S with D = 128.
fn three() -> Table {
    table(&[
        &[10.0, 10.0, 20.0, 20.0, 100.0, 100.0, 400.0, 400.0],
        &[15.0, 15.0, 21.0, 21.0, 80.0, 88.0, 300.0, 390.0],
        &[30.0, 30.0, 60.0, 60.0, 0.0, 80.0, 330.0, 300.0],
    ])
}

fn sizes(s: i64, d: i64) -> BTreeMap<String, String> {
    BTreeMap::from([
        ("S".to_owned(), s.to_string()),
        ("D".to_owned(), d.to_string()),
    ])
}

/// The fewest leaves by trying every tree of a box, without the table of plans.
fn brute_force(table: &Table, members: &[usize], loss: f64, region: &[(usize, usize)]) -> usize {
    let losses = table.losses();
    let region = region.to_vec();
    let fits = |member: &&usize| {
        let mut shapes = table.inside(&region);
        shapes.all(|shape| losses.loss(**member, shape) <= loss)
    };
    if members.iter().any(|member| fits(&member)) {
        return 1;
    }
    let mut least = 1000;
    for axis in 0..region.len() {
        for first in region[axis].0 + 1..=region[axis].1 {
            let [below, above] = super::halves(&region, axis, first);
            let both = [below, above].map(|half| brute_force(table, members, loss, &half));
            least = least.min(both[0] + both[1]);
        }
    }
    least
}

#[test]
fn the_tree_has_the_fewest_leaves_of_all_trees() {
    let table = three();
    let losses = table.losses();
    let members = [0, 1, 2];
    for loss in [0.0, 0.02, 0.06, 0.12, 0.3, 0.5, 9.0] {
        let tree = DecisionTree::new(&table, &losses, &members, loss).unwrap();
        let least = brute_force(&table, &members, loss, &[(0, 3), (0, 1)]);
        assert_eq!(tree.leaves, least, "loss {loss}");
        assert!(tree.worst <= loss);
    }
    assert!(DecisionTree::new(&table, &losses, &[0], 0.1).is_none());
}

#[test]
fn the_tree_prints_its_cuts_and_losses() {
    let table = three();
    let losses = table.losses();
    let tree = DecisionTree::new(&table, &losses, &[0, 1, 2], 0.02).unwrap();
    let text = TreeText {
        tree: &tree,
        table: &table,
    };
    assert_eq!(
        text.to_string(),
        "if S <= 1024:\n\
         \u{20} variant 1: 0.00 % on 4 tuned shapes, up to 25.00 % between them\n\
         else:\n\
         \u{20} if D <= 90:\n\
         \u{20}   variant 2: 0.00 % on 2 tuned shapes, up to 30.00 % between them\n\
         \u{20} else:\n\
         \u{20}   variant 3: 0.00 % on 2 tuned shapes, not known between them\n"
    );
}

#[test]
fn untuned_sizes_have_the_losses_of_their_neighbours() {
    let table = three();
    let losses = table.losses();
    let members = [0, 1, 2];
    let tree = DecisionTree::new(&table, &losses, &members, 0.02).unwrap();
    let at = |s, d| tree.lookup(&table, &losses, &members, &sizes(s, d));
    // A tuned size has its own loss alone.
    assert_eq!(at(512, 64).unwrap().neighbours, [(2, Some(0.0))]);
    // 600 is nearer to 512: the first variant, which is 25.00 % slower at 2048.
    let between = at(600, 64).unwrap();
    assert_eq!(between.variant, 0);
    assert_eq!(between.neighbours, [(2, Some(0.0)), (4, Some(0.25))]);
    assert_eq!(at(1500, 64).unwrap().variant, 1);
    // The corner where a variant does not work has no loss.
    assert!(at(4096, 100).unwrap().neighbours.contains(&(4, None)));
    assert_eq!(at(3000, 100).unwrap().neighbours.len(), 4);
    for outside in [at(64, 64), at(16384, 64), at(512, 256)] {
        assert!(
            matches!(outside, Err(LookupError::Outside { .. })),
            "{outside:?}"
        );
    }
    let unnamed = BTreeMap::from([("S".to_owned(), "512".to_owned())]);
    let missing = tree.lookup(&table, &losses, &members, &unnamed);
    assert_eq!(missing, Err(LookupError::Missing("D".to_owned())));
}

#[test]
fn a_cut_is_the_nearer_tuned_size_by_ratio() {
    assert_eq!(cut_value(&[128, 512], 1), Some(256));
    assert_eq!(cut_value(&[0, 1], 1), Some(0));
    assert_eq!(cut_value(&[7, 8], 1), Some(7));
    assert_eq!(cut_value(&[7, 8], 0), None);
}

#[test]
fn names_are_grouped_by_the_variant_that_serves_them() {
    let name = |index: usize| format!("gpu{index}");
    let shape = |place: usize| Shape {
        name: name(place),
        place: vec![place],
    };
    let mut table = Table {
        axes: vec![Axis {
            name: "device".to_owned(),
            values: AxisValues::Names((0..4).map(name).collect()),
        }],
        shapes: (0..4).map(shape).collect(),
        configs: vec![Vec::new(); 2],
        times: [[1.0, 2.0, 1.0, 2.0], [2.0, 1.0, 2.0, 1.0]]
            .map(|row| row.map(Some).to_vec())
            .to_vec(),
        timing: TimingKind::Recorded,
    };
    let losses = table.losses();
    assert_eq!(
        DecisionTree::new(&table, &losses, &[0, 1], 0.0)
            .unwrap()
            .leaves,
        4
    );
    table.group_names(&losses, &[0, 1]);
    let tree = DecisionTree::new(&table, &losses, &[0, 1], 0.0).unwrap();
    assert_eq!(tree.leaves, 2);
    let text = TreeText {
        tree: &tree,
        table: &table,
    };
    assert!(
        text.to_string().starts_with("if device in (gpu0, gpu2):"),
        "{text}"
    );
    let asked = BTreeMap::from([("device".to_owned(), "gpu3".to_owned())]);
    assert_eq!(
        tree.lookup(&table, &losses, &[0, 1], &asked)
            .unwrap()
            .variant,
        1
    );
}

#[test]
fn one_variant_is_one_leaf() {
    let table = table(&[&[1.0; 8]]);
    let tree = DecisionTree::new(&table, &table.losses(), &[0], 0.0).unwrap();
    assert!(matches!(tree.root, Node::Leaf(ref leaf) if leaf.shapes == 8));
}
