//! Texture fetches and surface accesses (PTX ISA, 9.7.10 and 9.7.11), in the unified mode: one handle
//! names the texels and the rules of the fetch.

use super::program::{
    Boundary, Data, Fetch, ImageQuery, ImageShape, Op, Queried, SurfaceAccess, SurfaceKind,
};
use super::{Fail, Lower, Lowered, Mods};
use crate::counters::Class;
use crate::exec::regs::Kind;
use ptx::ast::{Instruction, Operand, Type};

/// Returns the shape of the image that an instruction names.
fn shape_of(m: &Mods<'_>) -> Lowered<ImageShape> {
    let shapes = [
        ("1d", ImageShape::D1),
        ("2d", ImageShape::D2),
        ("3d", ImageShape::D3),
        ("a1d", ImageShape::Layers1),
        ("a2d", ImageShape::Layers2),
        ("cube", ImageShape::Cube),
        ("acube", ImageShape::Cubes),
    ];
    let found = shapes.iter().find(|(name, _)| m.has(name));
    found
        .map(|(_, shape)| *shape)
        .ok_or(Fail::Unsupported("this geometry"))
}

impl<'a> Lower<'a> {
    /// Lowers texture and surface instructions; returns `false` for any other.
    pub(super) fn image(&mut self, i: &'a Instruction<'a>, m: &Mods<'_>) -> Lowered<bool> {
        match i.opcode {
            "tex" | "tld4" => self.fetch(i, m)?,
            "suld" | "sust" => self.surface(i, m)?,
            "txq" | "suq" => self.query(i, m)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn fetch(&mut self, i: &'a Instruction<'a>, m: &Mods<'_>) -> Lowered<()> {
        let types: Vec<Type> = m.types().collect();
        let ([Type::F32 | Type::S32 | Type::U32, from], true) = (types.as_slice(), m.has("v4"))
        else {
            return Err(Fail::Unsupported("this type"));
        };
        let [dest, image, rest @ ..] = i.operands.as_slice() else {
            return Err(Fail::Operand("operands are missing".to_owned()));
        };
        // A level and derivatives choose among levels of detail, of which there is one.
        let ignored = match () {
            () if m.has("level") => 1,
            () if m.has("grad") => 2,
            () => 0,
        };
        if rest.len() > ignored {
            return Err(Fail::Unsupported("with offsets or a depth comparison"));
        }
        let (dest, resident) = match dest {
            Operand::Pair(dest, resident) => (&**dest, Some(self.dest(resident, Kind::P)?.0)),
            dest => (dest, None),
        };
        let gather = match i.opcode {
            "tld4" => Some(gathered_channel(m)?),
            _ => None,
        };
        let shape = shape_of(m)?;
        if gather.is_some() && shape != ImageShape::D2 {
            return Err(Fail::Unsupported("this geometry"));
        }
        let (object, coordinates) = self.image_operand(image, shape)?;
        let fetch = Fetch {
            object,
            shape,
            coordinates,
            integer: match from {
                Type::F32 => false,
                Type::S32 => true,
                _ => return Err(Fail::Unsupported("this type")),
            },
            gather,
            data: self.texel_data(dest, 4)?,
            resident,
        };
        self.push(Op::Fetch(Box::new(fetch)), Class::Global);
        Ok(())
    }

    /// Returns the rows of the handle and of the coordinates of `[object, {x, y}]`.
    fn image_operand(
        &mut self,
        operand: &'a Operand<'a>,
        shape: ImageShape,
    ) -> Lowered<(u32, Vec<u32>)> {
        let missing = || Fail::Operand("an object with coordinates is needed".to_owned());
        let Operand::List(parts) = operand else {
            return Err(missing());
        };
        let [object, place] = parts.as_slice() else {
            return Err(Fail::Unsupported("with a separate sampler"));
        };
        let places = match place {
            Operand::Vector(list) => list.as_slice(),
            single => std::slice::from_ref(single),
        };
        // The vector of a shape with three coordinates has a fourth element without a meaning.
        let places = places.get(..shape.coordinates()).ok_or_else(missing)?;
        let rows = places.iter().map(|place| self.source(place, Kind::R32));
        let rows = rows.collect::<Lowered<_>>()?;
        Ok((self.object(object)?, rows))
    }

    fn object(&mut self, operand: &'a Operand<'a>) -> Lowered<u32> {
        match operand {
            Operand::Address(base, 0) if matches!(**base, Operand::Reg(_) | Operand::Int(_)) => {
                self.source(base, Kind::R64)
            }
            _ => Err(Fail::Unsupported("with a texture or surface reference")),
        }
    }

    fn texel_data(&mut self, operand: &'a Operand<'a>, width: u32) -> Lowered<Vec<Data>> {
        let list = match operand {
            Operand::Vector(list) => list.as_slice(),
            single => std::slice::from_ref(single),
        };
        let data = list.iter().map(|part| match part {
            Operand::Sink => Ok(Data::Nothing),
            part => self.data_source(part, width),
        });
        data.collect()
    }

    fn surface(&mut self, i: &'a Instruction<'a>, m: &Mods<'_>) -> Lowered<()> {
        let ty = m.ty().ok_or(Fail::Unsupported(""))?;
        let store = i.opcode == "sust";
        let kind = match (store, m.has("b"), m.has("p")) {
            (false, true, _) => SurfaceKind::Load,
            (true, true, _) => SurfaceKind::Store,
            (true, _, true) if ty.bytes() == 4 => SurfaceKind::StoreFormatted,
            _ => return Err(Fail::Unsupported("")),
        };
        let boundary = match () {
            () if m.has("trap") => Boundary::Trap,
            () if m.has("clamp") => Boundary::Clamp,
            () if m.has("zero") => Boundary::Zero,
            () => return Err(Fail::Unsupported("without a boundary mode")),
        };
        let (image, data) = match (store, i.operands.as_slice()) {
            (true, [image, data]) | (false, [data, image]) => (image, data),
            _ => return Err(Fail::Operand("two operands are needed".to_owned())),
        };
        let shape = shape_of(m)?;
        if matches!(shape, ImageShape::Cube | ImageShape::Cubes) {
            return Err(Fail::Unsupported("this geometry"));
        }
        let (object, coordinates) = self.image_operand(image, shape)?;
        let width = ty.bytes();
        let access = SurfaceAccess {
            object,
            shape,
            coordinates,
            boundary,
            kind,
            width,
            data: self.texel_data(data, width)?,
        };
        if access.data.len() as u32 * width > 16 {
            return Err(Fail::Unsupported("a vector of this size"));
        }
        self.push(Op::Surface(Box::new(access)), Class::Global);
        Ok(())
    }

    fn query(&mut self, i: &'a Instruction<'a>, m: &Mods<'_>) -> Lowered<()> {
        let [dest, object] = i.operands.as_slice() else {
            return Err(Fail::Operand("two operands are needed".to_owned()));
        };
        let surface = i.opcode == "suq";
        let queries = [
            ("width", Queried::Width),
            ("height", Queried::Height),
            ("depth", Queried::Depth),
            ("array_size", Queried::Depth),
            ("normalized_coords", Queried::NormalizedCoordinates),
        ];
        let found = queries.iter().find(|(name, _)| m.has(name));
        let queried = match found {
            Some((_, Queried::NormalizedCoordinates)) if surface => None,
            Some((_, queried)) if !m.has("level") => Some(*queried),
            _ => None,
        };
        let query = ImageQuery {
            object: self.object(object)?,
            queried: queried.ok_or(Fail::Unsupported(""))?,
            dest: self.dest(dest, Kind::R32)?.0,
        };
        self.push(Op::ImageQuery(Box::new(query)), Class::Global);
        Ok(())
    }
}

/// Returns the number of the channel that a gather names.
fn gathered_channel(m: &Mods<'_>) -> Lowered<usize> {
    let channel = ["r", "g", "b", "a"].iter().position(|name| m.has(name));
    channel.ok_or(Fail::Unsupported(""))
}
