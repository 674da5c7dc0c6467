//! Arguments of a plan, and the variables of its code.

use crate::element::Element;
use crate::fill::Fill;
use crate::layout::{Field, Layout};
use crate::named::named;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Write as _};
use std::sync::Arc;

named! {
    /// Role of an argument.
    pub enum Role {
        /// Read by the kernel, never written.
        Input,
        /// Written by the kernel: every element.
        Output,
        /// Filled before the first launch, and changed by the kernel.
        Inout,
        /// Scratch memory, unwritten before the first launch.
        Scratch,
        /// Passed by value.
        Scalar,
    }
}

/// Properties of a role.
struct RoleFacts {
    filled: bool,
    compared: bool,
    meaning: &'static str,
}

impl Role {
    /// Reports whether the buffer is filled before the first launch.
    #[must_use]
    pub fn is_filled(self) -> bool {
        self.facts().filled
    }

    /// Reports whether the buffer's content after the last launch is a result.
    #[must_use]
    pub fn is_compared(self) -> bool {
        self.facts().compared
    }

    /// Reports whether the kernel changes a filled buffer, so that another launch needs its initial content
    /// again.
    #[must_use]
    pub fn is_updated(self) -> bool {
        self.is_filled() && self.is_compared()
    }

    /// Returns the meaning in a search space, as a sentence.
    #[must_use]
    pub fn describe(self) -> &'static str {
        self.facts().meaning
    }

    fn facts(self) -> RoleFacts {
        let (filled, compared, meaning) = match self {
            Self::Input => (true, false, "A buffer it reads and must not change."),
            Self::Output => (
                false,
                true,
                "A buffer it writes completely; compared with the reference.",
            ),
            Self::Inout => (
                true,
                true,
                "A buffer that is filled, and that the kernel changes in place; compared with the \
                 reference, which begins with the same content.",
            ),
            Self::Scratch => (false, false, "A buffer for temporary data; not compared."),
            Self::Scalar => (false, false, "A number passed by value."),
        };
        RoleFacts {
            filled,
            compared,
            meaning,
        }
    }
}

/// One kernel argument.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanArgument {
    /// Name in the space file.
    pub name: String,
    /// Element type.
    pub element: Element,
    /// Role.
    pub role: Role,
    /// Extents, outermost first; empty for scalars.
    pub shape: Vec<u64>,
    /// Fill of a buffer before the first launch.
    pub fill: Fill,
    /// Whole numbers without a limiting fill, so any number of the type may occur.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub any_value: bool,
    /// The value of a scalar.
    pub value: f64,
    /// Fields of a buffer of structs. Its elements are bytes, the last extent is the struct size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<Layout>,
    /// The passed bytes of a scalar that `value` cannot express: a vector, a struct, a large
    /// number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed: Option<Passed>,
}

/// A value of several numbers, little endian, in C++ layout.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Passed {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Pointers in it: the byte offset of each, and the argument that it points to.
    pub addresses: Vec<(u64, usize)>,
    /// The bytes are a tensor map in the virtual GPU's encoding, which must be re-encoded for a driver.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tensor_map: bool,
}

/// Stored identities are computed from this text: a field added by a later version is included only
/// if it is not at its default.
impl fmt::Debug for Passed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("Passed");
        text.field("bytes", &self.bytes)
            .field("addresses", &self.addresses);
        if self.tensor_map {
            text.field("tensor_map", &self.tensor_map);
        }
        text.finish()
    }
}

impl Passed {
    /// Returns the bytes with the addresses of buffers inserted; `None` if a buffer has no address.
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
    /// Content: a buffer's data (role `input`) or a value, which may be the address of an argument (role
    /// `scalar`). Its name is the variable's.
    pub holds: PlanArgument,
}

impl PlanVariable {
    /// Returns its bytes; `index` is its number among the plan's variables.
    ///
    /// # Errors
    /// The fill data cannot be used, with the reason.
    pub fn bytes(
        &self,
        seed: u64,
        index: usize,
        address: impl Fn(usize) -> Option<u64>,
    ) -> Result<Arc<[u8]>, String> {
        if self.holds.role == Role::Scalar {
            let placed = self.holds.scalar_at(address);
            return placed
                .map(Arc::from)
                .ok_or_else(|| format!("`{}` points to nothing", self.holds.name));
        }
        // Random streams are separate from those of the arguments.
        self.holds.content(seed, (1 << 48) + index as u64)
    }
}

impl PlanArgument {
    /// Creates a buffer of normal numbers, or a scalar that is zero.
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
            any_value: false,
            value: 0.0,
            layout: None,
            passed: None,
        }
    }

    /// Returns the fills of its numbers or fields.
    pub fn fills_mut(&mut self) -> impl Iterator<Item = &mut Fill> {
        let fields = self.layout.iter_mut().flat_map(|layout| &mut layout.fields);
        std::iter::once(&mut self.fill).chain(fields.map(|field| &mut field.fill))
    }

    /// Returns the number of elements; 1 for a scalar.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.shape.iter().product()
    }

    /// Returns the size in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.count().saturating_mul(self.element.size() as u64)
    }

    /// Returns the number of numbers: those of all fields if elements are structs.
    #[must_use]
    pub fn numbers(&self) -> u64 {
        let Some(layout) = &self.layout else {
            return self.count();
        };
        let each: u64 = layout.fields.iter().map(|field| field.count).sum();
        (self.count() / layout.size.max(1)).saturating_mul(each)
    }

    /// Returns the content of a filled buffer, the `buffer`-th of its plan. The data of a generator
    /// ([`Fill::Kernel`]) are produced on the device: here they are zeros.
    ///
    /// # Errors
    /// The file cannot be used, with the reason.
    pub fn content(&self, seed: u64, buffer: u64) -> Result<Arc<[u8]>, String> {
        Ok(match (&self.layout, &self.fill) {
            (Some(layout), Fill::File(file)) => file
                .read(Element::U8, self.count())
                .map_err(|why| format!("{why} (structs of {} bytes)", layout.size))?
                .into(),
            (None, Fill::File(file)) => file.read(self.element, self.count())?.into(),
            (Some(layout), _) => layout
                .content(seed, buffer, self.count() / layout.size.max(1))
                .into(),
            (None, fill) => fill.bytes(self.element, seed, buffer, self.count()),
        })
    }

    /// Returns the fields of a buffer of structs, each as a separate buffer.
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

    /// Returns a scalar's value as passed to the kernel, without addresses.
    #[must_use]
    pub fn scalar_bytes(&self) -> Vec<u8> {
        if let Some(passed) = &self.passed {
            return passed.bytes.clone();
        }
        let mut bytes = Vec::with_capacity(8);
        self.element.encode(self.value, &mut bytes);
        bytes
    }

    /// Returns a scalar's value with the addresses of the buffers that it points to; `None` if one
    /// is missing.
    #[must_use]
    pub fn scalar_at(&self, address: impl Fn(usize) -> Option<u64>) -> Option<Vec<u8>> {
        match &self.passed {
            Some(passed) => passed.placed(address),
            None => Some(self.scalar_bytes()),
        }
    }

    /// Returns the text from which stored identities are computed. Its form must not change: later
    /// additions are appended, and only if they are present.
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
        if self.any_value {
            text.push_str(" any_value");
        }
        text
    }
}
