use super::*;
use tuner_core::element::Element;
use tuner_core::plan::{Code, PlanReference, Role};

fn plan(shape: &[u64]) -> Plan {
    let output = PlanArgument::new("y", Element::F32, Role::Output, shape);
    Plan::new(
        vec![output],
        Vec::new(),
        Code::default(),
        PlanReference::None,
    )
}

fn starts(shape: &[u64]) -> Vec<u64> {
    let points = choose_points(&plan(shape), 1);
    points.iter().map(|point| point.elements.start).collect()
}

#[test]
fn both_ends_every_part_and_the_corners_of_tiles_are_among_them() {
    let found = starts(&[1000, 1024]);
    assert!(found.contains(&0) && found.contains(&(1000 * 1024 - 32)));
    // The last row, and the first row and column of the last tile of 64.
    for corner in [999 * 1024, 960 * 1024, 999 * 1024 + 960] {
        assert!(found.contains(&corner), "{corner}");
    }
    let part = 1000 * 1024 / 256;
    for stratum in 0..256u64 {
        let range = stratum * part..(stratum + 1) * part;
        assert!(found.iter().any(|start| range.contains(start)), "{stratum}");
    }
}

#[test]
fn elements_where_32_bit_offsets_overflow_come_first() {
    let found = starts(&[3 << 30]);
    for element in [1u64 << 29, 1 << 30, 1 << 31] {
        let at = found.iter().position(|start| *start == element);
        assert!(at.is_some_and(|at| at < 8), "{element} at {at:?}");
    }
}

#[test]
fn an_output_without_elements_has_no_points() {
    assert!(starts(&[0, 16]).is_empty());
}

#[test]
fn the_edges_of_tiles_of_the_space_are_among_them() {
    let mut plan = plan(&[1000, 1024]);
    plan.tile_sizes = vec![80];
    let points = choose_points(&plan, 1);
    for edge in [79 * 1024, 80 * 1024, 960 * 1024, 960] {
        let held = points.iter().any(|point| point.elements.start == edge);
        assert!(held, "{edge}");
    }
}

#[test]
fn another_seed_draws_other_elements_and_keeps_the_corners() {
    let drawn = |seed| -> std::collections::BTreeSet<u64> {
        let points = choose_points(&plan(&[4096, 4096]), seed);
        points.iter().map(|point| point.elements.start).collect()
    };
    let (one, two) = (drawn(1), drawn(2));
    assert_eq!(one, drawn(1));
    let common = one.intersection(&two).count();
    assert!(common + 200 < one.len(), "{common} of {}", one.len());
    assert!(two.contains(&0) && two.contains(&(4095 * 4096)));
}
