//! Arguments of a plan, and the variables of its code.

use crate::element::Element;
use crate::fill::Fill;
use crate::layout::{Field, Layout};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// What an argument is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Read by the kernel, never written.
    Input,
    /// Written by the kernel: every element.
    Output,
    /// Filled before the first launch, and changed by the kernel.
    Inout,
    /// Working memory, unwritten before the first launch.
    Scratch,
    /// Passed by value.
    Scalar,
}

impl Role {
    /// A buffer that is filled before the first launch.
    #[must_use]
    pub fn is_filled(self) -> bool {
        matches!(self, Self::Input | Self::Inout)
    }

    /// A buffer whose content after the last launch is a result.
    #[must_use]
    pub fn is_compared(self) -> bool {
        matches!(self, Self::Output | Self::Inout)
    }
}

/// One kernel argument.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanArgument {
    /// Name in the space file.
    pub name: String,
    /// Element type.
    pub element: Element,
    /// What it is for.
    pub role: Role,
    /// Extents, outermost first; empty for scalars.
    pub shape: Vec<u64>,
    /// How a buffer is filled that has content before the first launch.
    pub fill: Fill,
    /// The value of a scalar.
    pub value: f64,
    /// Of a buffer of structs: their fields. Its elements are bytes, the last extent is their size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<Layout>,
    /// What a scalar is passed as, where `value` does not say: a vector, a struct, a large number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed: Option<Passed>,
}

/// A value of several numbers, little endian, as C++ lays it out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Passed {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Pointers in it: the byte at which each begins, and the argument that it points to.
    pub addresses: Vec<(u64, usize)>,
}

impl Passed {
    /// The bytes with the addresses of buffers put in; `None` where a buffer has none.
    #[must_use]
    pub fn placed(&self, address: impl Fn(usize) -> Option<u64>) -> Option<Vec<u8>> {
        let mut bytes = self.bytes.clone();
        for (at, argument) in &self.addresses {
            let at = usize::try_from(*at).ok()?;
            let place = bytes.get_mut(at..at.checked_add(8)?)?;
            place.copy_from_slice(&address(*argument)?.to_le_bytes());
        }
        Some(bytes)
    }
}

/// A `__constant__` or `__device__` variable of a template that is set before the first launch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanVariable {
    /// What it holds: a buffer's content (role `input`) or a value, which may be the address of an
    /// argument (role `scalar`). Its name is the variable's.
    pub holds: PlanArgument,
}

impl PlanVariable {
    /// Its bytes; `index` is its number among the plan's variables.
    ///
    /// # Errors
    /// Why the data that it is filled with cannot be used.
    pub fn bytes(
        &self,
        seed: u64,
        index: usize,
        address: impl Fn(usize) -> Option<u64>,
    ) -> Result<Vec<u8>, String> {
        if self.holds.role == Role::Scalar {
            let placed = self.holds.scalar_at(address);
            return placed.ok_or_else(|| format!("`{}` points to nothing", self.holds.name));
        }
        // Streams of their own beside those of the arguments.
        self.holds.content(seed, (1 << 48) + index as u64)
    }
}

impl PlanArgument {
    /// A buffer of normal numbers, or a scalar that is zero.
    #[must_use]
    pub fn new(name: impl Into<String>, element: Element, role: Role, shape: &[u64]) -> Self {
        Self {
            name: name.into(),
            element,
            role,
            shape: shape.to_vec(),
            fill: Fill::Normal {
                mean: 0.0,
                std: 1.0,
            },
            value: 0.0,
            layout: None,
            passed: None,
        }
    }

    /// What its numbers, or those of its fields, are filled with.
    pub fn fills_mut(&mut self) -> impl Iterator<Item = &mut Fill> {
        let fields = self.layout.iter_mut().flat_map(|layout| &mut layout.fields);
        std::iter::once(&mut self.fill).chain(fields.map(|field| &mut field.fill))
    }

    /// Number of elements; 1 for a scalar.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.shape.iter().product()
    }

    /// Size in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.count().saturating_mul(self.element.size() as u64)
    }

    /// Number of numbers: those of all fields where elements are structs.
    #[must_use]
    pub fn numbers(&self) -> u64 {
        let Some(layout) = &self.layout else {
            return self.count();
        };
        let each: u64 = layout.fields.iter().map(|field| field.count).sum();
        (self.count() / layout.size.max(1)).saturating_mul(each)
    }

    /// The content of a buffer that is filled, the `buffer`-th of its plan. What a generator writes
    /// ([`Fill::Kernel`]) is a device's to make: here it is zeros.
    ///
    /// # Errors
    /// Why the file that it comes from cannot be used.
    pub fn content(&self, seed: u64, buffer: u64) -> Result<Vec<u8>, String> {
        Ok(match (&self.layout, &self.fill) {
            (Some(layout), Fill::File(file)) => file
                .read(Element::U8, self.count())
                .map_err(|why| format!("{why} (structs of {} bytes)", layout.size))?,
            (None, Fill::File(file)) => file.read(self.element, self.count())?,
            (Some(layout), _) => layout.content(seed, buffer, self.count() / layout.size.max(1)),
            (None, fill) => fill.bytes(self.element, seed, buffer, self.count()),
        })
    }

    /// The fields of a buffer of structs, each as a buffer of its own.
    #[must_use]
    pub fn columns(&self) -> Vec<Self> {
        let fields = self.layout.iter().flat_map(|layout| &layout.fields);
        let outer = self.shape.split_last().map_or(&[][..], |(_, outer)| outer);
        let column = |field: &Field| {
            let mut shape = outer.to_vec();
            if field.count > 1 {
                shape.push(field.count);
            }
            let name = format!("{}.{}", self.name, field.name);
            Self {
                fill: field.fill.clone(),
                ..Self::new(name, field.element, self.role, &shape)
            }
        };
        fields.map(column).collect()
    }

    /// A scalar's value as the kernel is passed it, but for addresses.
    #[must_use]
    pub fn scalar_bytes(&self) -> Vec<u8> {
        if let Some(passed) = &self.passed {
            return passed.bytes.clone();
        }
        let mut bytes = Vec::with_capacity(8);
        self.element.encode(self.value, &mut bytes);
        bytes
    }

    /// The same with the addresses of the buffers that it points to; `None` where one is missing.
    #[must_use]
    pub fn scalar_at(&self, address: impl Fn(usize) -> Option<u64>) -> Option<Vec<u8>> {
        match &self.passed {
            Some(passed) => passed.placed(address),
            None => Some(self.scalar_bytes()),
        }
    }

    /// The text that stored identities are made of. Its form must not change: what later versions
    /// added stands behind it, where it is there.
    pub(crate) fn identity_text(&self) -> String {
        let mut text = format!(
            "PlanArgument {{ name: {:?}, element: {:?}, role: {:?}, shape: {:?}, fill: {:?}, value: {:?} }}",
            self.name,
            self.element.name(),
            self.role,
            self.shape,
            self.fill,
            self.value
        );
        if let Some(layout) = &self.layout {
            // Writing to a String cannot fail.
            let _ = write!(text, " {layout:?}");
        }
        if let Some(passed) = &self.passed {
            let _ = write!(text, " {passed:?}");
        }
        text
    }
}
