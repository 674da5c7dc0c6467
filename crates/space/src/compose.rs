//! Construction of arguments and variables from the values of one configuration.

use super::bind::{BindError, Number, Rest, extent, number};
use super::tensor_map;
use super::{Argument, Expr, PieceValue, Record, RecordField};
use tuner_core::fill::Fill;
use tuner_core::layout::{Field, Layout};
use tuner_core::plan::{Passed, PlanArgument, Role};

/// Builds an argument or a variable. `fault`: error of a tensor map, which matters only if a launch uses
/// the map.
pub(super) fn argument(
    argument: &Argument,
    rest: Rest<'_, '_>,
    fault: &mut Option<BindError>,
) -> Result<PlanArgument, BindError> {
    let mut extents =
        |of: &[Expr]| -> Result<Vec<u64>, BindError> { of.iter().map(|_| extent(rest)).collect() };
    let (shape, sizes) = (extents(&argument.shape)?, extents(&argument.fill_sizes)?);
    let value = match argument.value {
        Some(_) => Some(number(rest)?),
        None => None,
    };
    let fill = argument.fill.clone();
    let fill = fill.unwrap_or_else(|| Fill::default_for(argument.ty));
    let fill = match (fill, sizes.as_slice()) {
        (Fill::CsrOffsets { .. }, [entries]) => Fill::CsrOffsets { entries: *entries },
        (Fill::CsrIndices { .. }, [rows, columns]) => Fill::CsrIndices {
            rows: *rows,
            columns: *columns,
        },
        (Fill::Boxes { min, max, .. }, _) => Fill::Boxes {
            min,
            max,
            // The last extent holds both corners of a box.
            axes: shape.last().copied().unwrap_or(4) / 2,
        },
        (fill, _) => fill,
    };
    let any_value = argument.any_value && fill == Fill::default_for(argument.ty);
    let layout = argument
        .record
        .as_ref()
        .filter(|_| argument.role != Role::Scalar);
    Ok(PlanArgument {
        name: argument.name.clone(),
        element: argument.ty,
        role: argument.role,
        shape,
        fill,
        any_value,
        value: value.map_or(0.0, Number::as_f64),
        layout: layout.map(layout_of),
        passed: passed(argument, value, rest, fault)?,
    })
}

fn layout_of(record: &Record) -> Layout {
    let field = |field: &RecordField| Field {
        name: field.name.clone(),
        element: field.ty,
        count: field.count,
        offset: field.offset,
        fill: field.fill.clone(),
    };
    Layout {
        size: record.size,
        fields: record.fields.iter().map(field).collect(),
    }
}

/// Largest magnitude up to which float64 represents every whole number.
const MAX_EXACT: i128 = 1 << 53;

/// Returns the exact value to pass if float64 cannot represent the scalar.
fn passed(
    argument: &Argument,
    value: Option<Number>,
    rest: Rest<'_, '_>,
    fault: &mut Option<BindError>,
) -> Result<Option<Passed>, BindError> {
    if let Some(Number::Whole(whole)) = value
        && !(-MAX_EXACT..=MAX_EXACT).contains(&whole)
    {
        let mut bytes = Vec::new();
        argument.ty.encode_whole(whole, &mut bytes);
        return Ok(Some(Passed {
            bytes,
            ..Passed::default()
        }));
    }
    if argument.pieces.is_empty() {
        return Ok(None);
    }
    let size = match &argument.record {
        Some(record) => record.size,
        None => u64::from(argument.lanes) * argument.ty.size() as u64,
    };
    let mut passed = Passed {
        bytes: vec![0; usize::try_from(size).unwrap_or(0)],
        ..Passed::default()
    };
    for piece in &argument.pieces {
        let mut bytes = Vec::new();
        match &piece.value {
            PieceValue::Address(index) => {
                passed.addresses.push((piece.offset, *index));
                continue;
            }
            PieceValue::Number(_) => match number(rest)? {
                Number::Whole(whole) => piece.ty.encode_whole(whole, &mut bytes),
                Number::Float(value) => piece.ty.encode(value, &mut bytes),
            },
            PieceValue::TensorMap(map) => {
                passed.tensor_map = true;
                // All values are consumed at once: after an early error, the other arguments would read the
                // rest.
                let values: Vec<_> = rest.take(map.expressions().count()).collect();
                match tensor_map::encoded(&argument.name, map, &mut values.into_iter()) {
                    Ok(encoded) => bytes = encoded,
                    Err(error) => *fault = Some(error),
                }
            }
        }
        let at = usize::try_from(piece.offset).unwrap_or(usize::MAX);
        if let Some(place) = passed.bytes.get_mut(at..at.saturating_add(bytes.len())) {
            place.copy_from_slice(&bytes);
        }
    }
    Ok(Some(passed))
}
