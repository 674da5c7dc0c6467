//! Rust types of a search space file: the input format, and the JSON Schema for editors.

use super::de::Spanned;
use super::fills::FillText;
use super::forms::{AnyForm, Forms, forms};
use super::node::Node;
use super::read::{Sections, sections};
use super::texts::{ReferenceWord, SizesText, TypeText, ValueText};
use super::vocabulary::{Role as RoleWords, schema};
use crate::{Diagnostic, SameValueWrites};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, DeserializeOwned, Deserializer, Unexpected};
use std::borrow::Cow;
use std::marker::PhantomData;
use tuner_core::plan::Role;
use tuner_core::target::ArchFeatures;
use tuner_core::value::Value;

sections! {
    /// A tunable kernel: its template, its parameters and how to run and judge it.
    #[derive(Debug, JsonSchema)]
    #[schemars(deny_unknown_fields, title = "search space")]
    Document {
        /// Version of this format: 1.
        #[schemars(range(min = 1, max = 1))]
        #[expect(
            dead_code,
            reason = "checked while the file is read; kept for the schema"
        )]
        version: Spanned<u64> = required value,
        /// The kernel's name in commands.
        kernel: Spanned<String> = required value,
        /// Description of the kernel, in one line.
        summary: Option<String> = optional value,
        /// The template, relative to this file.
        source: Spanned<String> = required value,
        /// Problems that are tuned and ranked, each with its sizes, and with its `weight` in the budget
        /// of a run (default: that of `metric`, else 1).
        problems: Ordered<Ordered<Scalar>> = required map,
        /// Problems for correctness only, never timed.
        check_problems: Option<Ordered<Ordered<Scalar>>> = optional map,
        /// Passing of sizes to the kernel: as macros (the default), or as scalar arguments.
        sizes: Option<SizesText> = optional value,
        /// Tunable parameters; each is a macro for the template. May be omitted or empty.
        parameters: Option<Ordered<ParameterText>> = optional map,
        /// Values computed from parameters and sizes, usable in every expression and as macros.
        derived: Option<Ordered<Formula>> = optional map,
        /// Conditions that valid configurations satisfy.
        constraints: Option<Vec<ConstraintText>> = optional list,
        /// The kernel's arguments, in order.
        arguments: Vec<ArgumentText> = required list,
        /// `__constant__` and `__device__` variables of the template that are set before the first
        /// launch, by name.
        variables: Option<Ordered<VariableText>> = optional map,
        /// The launches, in order.
        launches: Vec<LaunchText> = required list,
        /// Reference for the results; `none` checks for hazards only.
        reference: ReferenceWord = required value,
        /// Tolerances; without them the oracle's error model decides.
        gate: Option<GateText> = optional value,
        /// Work done, for throughput and physical limits.
        metric: Option<MetricText> = optional value,
        /// Known good points; omitted parameters have their defaults.
        seeds: Option<Vec<Ordered<Scalar>>> = optional list,
        /// Options for the compiler.
        compile: Option<CompileText> = optional value,
        /// An optional baseline to compare with.
        baseline: Option<BaselineText> = optional value,
        /// Description of the PyTorch package of `tuner export --torch`.
        torch: Option<TorchText> = optional value,
    }
}

sections! {
    /// A file with only parameters and constraints.
    #[derive(Debug, JsonSchema)]
    #[schemars(deny_unknown_fields, title = "bare space")]
    Bare {
        /// Version of this format: 1.
        #[expect(
            dead_code,
            reason = "checked while the file is read; kept for the schema"
        )]
        version: Option<Spanned<u64>> = optional value,
        /// The space's name.
        name: Option<String> = optional value,
        /// Tunable parameters.
        parameters: Ordered<ParameterText> = required filled_map,
        /// Values computed from parameters.
        derived: Option<Ordered<Formula>> = optional map,
        /// Conditions that valid configurations satisfy.
        constraints: Option<Vec<ConstraintText>> = optional list,
    }
}

/// A tunable parameter: `values` or `range`.
#[derive(Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ParameterText {
    /// The possible values, without repeats.
    pub(super) values: Option<Spanned<Vec<Spanned<Plain>>>>,
    /// The possible values, as a range.
    pub(super) range: Option<Spanned<RangeText>>,
    /// The default value; the first one if omitted.
    pub(super) default: Option<Scalar>,
    /// Meaning of the parameter.
    pub(super) doc: Option<String>,
}

/// Numbers from `from` to `to`; `to` is included if a step reaches it.
#[derive(Debug, Clone, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RangeText {
    /// First value.
    pub(super) from: Scalar,
    /// Last value.
    pub(super) to: Scalar,
    /// Distance between neighbours; default: 1.
    pub(super) step: Option<Scalar>,
}

/// A condition, and the explanation for a rejected configuration.
#[derive(Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ConstraintText {
    /// A Python expression that is true for valid configurations.
    pub(super) rule: Formula,
    /// Reason for the condition.
    pub(super) why: Option<String>,
}

/// One argument of the kernel.
#[derive(Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ArgumentText {
    /// Its name, for messages and `args` of launches.
    pub(super) name: Spanned<String>,
    /// The element type: a number, a vector of CUDA, or a struct by its fields.
    #[serde(rename = "type")]
    pub(super) ty: Spanned<TypeText>,
    /// The kernel may use another element type for the buffer, for example one chosen by a parameter.
    pub(super) any_type: Option<Spanned<bool>>,
    /// Use of the argument by the kernel.
    #[schemars(with = "RoleWords")]
    pub(super) role: Spanned<Role>,
    /// Its extents; not for scalars.
    pub(super) shape: Option<Spanned<Vec<Formula>>>,
    /// Initial contents of inputs and of arguments that change in place.
    pub(super) fill: Option<Spanned<FillText>>,
    /// Value of a scalar: a list for a vector, one value for each field of a struct.
    pub(super) value: Option<Spanned<ValueText>>,
    /// Of a tensor map, the buffer that it describes. `shape` is the tensor's; default: the buffer's.
    pub(super) of: Option<Spanned<String>>,
    /// Of a tensor map, the type of the tensor's elements if it is not the buffer's: `tf32`, `tf32_ftz`,
    /// `f32_ftz`, or a number type of the same size.
    pub(super) element: Option<Spanned<String>>,
    /// Of a tensor map, the extents of the box that a copy moves, outermost first.
    #[serde(rename = "box")]
    pub(super) boxes: Option<Spanned<Vec<Formula>>>,
    /// Of a tensor map, elements from one index to the next, for each dimension except the innermost;
    /// default: without gaps.
    pub(super) strides: Option<Spanned<Vec<Formula>>>,
    /// Of a tensor map, steps between the elements of the box, 1 to 8; default: 1.
    pub(super) steps: Option<Spanned<Vec<Formula>>>,
    /// Of an im2col map, the first coordinate of a filter's first pixel in each spatial dimension,
    /// outermost first: the negated padding. The box then has pixels and channels.
    pub(super) lower: Option<Spanned<Vec<Formula>>>,
    /// Of an im2col map, the last such coordinate minus the last of the tensor.
    pub(super) upper: Option<Spanned<Vec<Formula>>>,
    /// Of a tensor map, span in bytes within which 16-byte chunks are permuted: 0 (the default), 32, 64 or
    /// 128.
    pub(super) swizzle: Option<Formula>,
    /// Of a tensor map, bytes that a swizzle of 128 keeps together: 16 (the default), 32 or 64.
    pub(super) swizzle_atom: Option<Formula>,
    /// Of a tensor map, bytes of interleaved channels: 0 (the default), 16 or 32.
    pub(super) interleave: Option<Formula>,
    /// Of a tensor map, bytes that a miss loads into L2: 0 (the default), 64, 128 or 256.
    pub(super) l2_promotion: Option<Formula>,
    /// Of a tensor map, 1 if elements outside the tensor are NaN; default: 0, they are zero.
    pub(super) nan_fill: Option<Formula>,
    /// Its contents or value are a guess, as by `tuner adopt`: `tuner check` judges no hazards that it finds
    /// with them.
    pub(super) guessed: Option<bool>,
    /// Its shape is a guess: `tuner check` judges no access out of its bounds.
    pub(super) guessed_extent: Option<bool>,
}

/// A variable of the template: a number or a vector with `value`, an array with `shape` and `fill`,
/// or the address of an argument.
#[derive(Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct VariableText {
    /// The type of its elements.
    #[serde(rename = "type")]
    pub(super) ty: Option<Spanned<TypeText>>,
    /// Its extents, if it is an array.
    pub(super) shape: Option<Spanned<Vec<Formula>>>,
    /// Initial contents of an array.
    pub(super) fill: Option<Spanned<FillText>>,
    /// The value of a scalar or vector.
    pub(super) value: Option<Spanned<ValueText>>,
    /// The argument that it points to; excludes all other keys.
    pub(super) pointer: Option<Spanned<String>>,
}

/// One launch.
#[derive(Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LaunchText {
    /// The kernel function's name.
    pub(super) entry: Spanned<String>,
    /// Condition of the launch.
    pub(super) when: Option<Formula>,
    /// Its arguments by name; default: all.
    pub(super) args: Option<Vec<Spanned<String>>>,
    /// Blocks in x, y, z.
    pub(super) grid: Spanned<Vec<Formula>>,
    /// Threads per block in x, y, z.
    pub(super) block: Spanned<Vec<Formula>>,
    /// Dynamic shared memory per block, bytes.
    pub(super) shared: Option<Formula>,
    /// Blocks of a cluster in x, y, z, each a divisor of the grid; default: that of `__cluster_dims__`, or
    /// no clusters.
    pub(super) cluster: Option<Spanned<Vec<Formula>>>,
    /// A cooperative launch: all blocks are resident at once, and `grid.sync()` works.
    pub(super) cooperative: Option<bool>,
    /// Grid or block are guesses, as by `tuner adopt` for a kernel without a launch: `tuner check` judges
    /// no hazards.
    pub(super) guessed: Option<bool>,
}

/// `oracle`, `values`, or `source`, `entry`, `grid` and `block` of a reference kernel.
#[derive(Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReferenceText {
    /// A built-in reference, computed in float64 on the CPU.
    pub(super) oracle: Option<Spanned<String>>,
    /// Files with the correct contents of each output, by argument, relative to this file; `{problem}` in
    /// a path is replaced by the problem's name.
    pub(super) values: Option<Ordered<String>>,
    /// Name under which something else accepted the values, such as a test of the outputs of one configuration: results
    /// with this name rank together, whatever the values.
    pub(super) accepted_as: Option<String>,
    /// A CUDA file, relative to this file.
    pub(super) source: Option<Spanned<String>>,
    /// Its kernel function, which receives the kernel's arguments in order.
    pub(super) entry: Option<Spanned<String>>,
    /// Blocks in x, y, z.
    pub(super) grid: Option<Spanned<Vec<Formula>>>,
    /// Threads per block in x, y, z.
    pub(super) block: Option<Spanned<Vec<Formula>>>,
    /// Dynamic shared memory per block, bytes; default: 0.
    pub(super) shared: Option<Formula>,
    /// A cooperative launch.
    pub(super) cooperative: Option<bool>,
    /// A built-in reference, compared once with the reference kernel; adds adversarial inputs.
    pub(super) proven_by: Option<Spanned<String>>,
}

/// Comparison of results.
#[derive(Debug, Default, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GateText {
    /// Absolute tolerance.
    pub(super) atol: Option<Spanned<f64>>,
    /// Relative tolerance.
    pub(super) rtol: Option<Spanned<f64>>,
    /// Number of terms of the sum in an output element, if the metric does not show it: the tolerance
    /// relative to a reference kernel grows with it.
    pub(super) terms: Option<Formula>,
    /// Repeated runs must have equal bits; default: true.
    pub(super) deterministic: Option<bool>,
    /// Treatment of unordered plain stores of the same value: allowed, or a race (the default).
    pub(super) same_value_writes: Option<SameValueWrites>,
}

/// Work of one run.
#[derive(Debug, Default, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MetricText {
    /// Floating-point operations.
    pub(super) flops: Option<Formula>,
    /// Minimum number of bytes moved.
    pub(super) bytes: Option<Formula>,
    /// Default weight of a problem's gain in the budget of a run; 1 if omitted.
    pub(super) weight: Option<Formula>,
}

/// Options for the compiler.
#[derive(Debug, Default, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CompileText {
    /// Added to the command line; `{NAME}` is replaced by the value of that macro.
    pub(super) options: Option<Vec<Spanned<String>>>,
    /// Features of the device's architecture that its portable target lacks.
    #[schemars(with = "Option<super::vocabulary::ArchFeatures>")]
    pub(super) arch_features: Option<ArchFeatures>,
    /// Folders searched for included files, relative to this file.
    pub(super) include: Option<Vec<String>>,
}

/// A program that times a peer implementation.
#[derive(Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BaselineText {
    /// Program and arguments.
    pub(super) command: Spanned<Vec<String>>,
}

/// Settings of the PyTorch package.
#[derive(Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TorchText {
    /// Python expression over `torch`, the inputs and the sizes, which computes the outputs if no
    /// variant fits, on the CPU, and if gradients are needed.
    pub(super) fallback: Spanned<String>,
}

/// A parameter value.
#[derive(Debug, Clone, PartialEq, serde::Deserialize)]
#[serde(transparent)]
pub(super) struct Plain(pub(super) Value);

schema!(Plain, "Value", _generator => json_schema!({
    "description": "An integer, a float, a boolean or a string.",
    "type": ["integer", "number", "boolean", "string"],
}));

/// A value with its position.
pub(super) type Scalar = Spanned<Plain>;

/// The text of an expression: a string, or a number or boolean literal.
#[derive(Debug, Clone)]
pub(super) struct FormulaText(pub(super) String);

/// An expression with its position.
pub(super) type Formula = Spanned<FormulaText>;

impl Forms for FormulaText {
    const EXPECTED: &'static str = "an expression (text or a number)";

    fn word<E: de::Error>(value: &str) -> Result<Self, E> {
        Ok(Self(value.to_owned()))
    }

    fn number<E: de::Error>(value: String, _: Unexpected<'_>) -> Result<Self, E> {
        Ok(Self(value))
    }
}

forms!(FormulaText);

schema!(FormulaText, "Expression", _generator => json_schema!({
    "description": "A Python expression over parameters, derived values, problem sizes \
        and DEVICE_SM_COUNT, DEVICE_SHARED_BYTES, DEVICE_CC, DEVICE_MAX_THREADS.",
    "type": ["string", "integer", "number", "boolean"],
}));

/// A mapping whose order is significant.
#[derive(Debug, Clone)]
pub(super) struct Ordered<T>(pub(super) Vec<(Spanned<String>, T)>);

impl<T> Default for Ordered<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// A mapping's key: a name even if it looks like a number.
pub(super) struct Key(String);

impl Forms for Key {
    const EXPECTED: &'static str = "a name";

    fn word<E: de::Error>(name: &str) -> Result<Self, E> {
        Ok(Self(name.to_owned()))
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_identifier(AnyForm(PhantomData))
    }
}

impl<T: DeserializeOwned> Forms for Ordered<T> {
    const EXPECTED: &'static str = "a mapping from names";

    fn map<'de, A: de::MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut pairs = Vec::new();
        while let Some(key) = map.next_key::<Spanned<Key>>()? {
            let name = Spanned {
                value: key.value.0,
                at: key.at,
            };
            pairs.push((name, map.next_value()?));
        }
        Ok(Self(pairs))
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Ordered<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyForm(PhantomData))
    }
}

impl<T: JsonSchema> JsonSchema for Ordered<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("Named_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let each = generator.subschema_for::<T>();
        json_schema!({ "type": "object", "additionalProperties": each })
    }
}

impl<T: JsonSchema> JsonSchema for Spanned<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

/// Returns the JSON Schema of search space files, for editors.
#[must_use]
pub fn json_schema() -> serde_json::Value {
    schemars::schema_for!(Document).to_value()
}
