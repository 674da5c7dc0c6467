//! Memory that host code allocates and clears.

use super::launches::{base_name, enclosing};
use super::values::size_of;
use super::{Host, MAX_DEPTH, Scope};
use crate::expr::Expr;
use crate::tree::{self, Node, Source, named, visit};

/// Alignment of the rows of `cudaMallocPitch`, bytes.
const PITCH: i64 = 512;

/// Returns the arguments of a call of `cudaMallocPitch`: pointer, pitch, width in bytes, rows.
fn pitched<'t>(source: &Source, call: Node<'t>) -> Option<[Node<'t>; 4]> {
    let callee = call.child_by_field_name("function")?;
    let arguments = named(call.child_by_field_name("arguments")?);
    let is_it = base_name(source.node_text(callee)) == "cudaMallocPitch";
    arguments.try_into().ok().filter(|_| is_it)
}

impl<'u> Host<'u> {
    /// Reports whether the host clears the buffer of a pointer.
    pub(crate) fn zeroes(&self, scope: Scope<'u>, node: Node<'u>) -> bool {
        let Some(node) = tree::bare(node) else {
            return false;
        };
        let name = scope.source.node_text(node);
        let set = self
            .calls
            .iter()
            .filter(|(callee, _)| callee.starts_with("cudaMemset"));
        set.flat_map(|(_, calls)| calls).any(|(source, call)| {
            let arguments = call.child_by_field_name("arguments").map(named);
            let Some([target, value, ..]) = arguments.as_deref() else {
                return false;
            };
            let target = tree::bare(*target).map(|target| source.node_text(target));
            let same = source.path == scope.source.path && target == Some(name);
            let function = enclosing(*call).map(|function| function.start_byte());
            let here = scope.function.map(|function| function.start_byte());
            same && function == here && source.node_text(*value).trim() == "0"
        })
    }

    /// Translates the byte count of an allocation: its last argument, or of `cudaMallocPitch` the rows of a
    /// pitch.
    pub(super) fn allocated_bytes(
        &mut self,
        scope: Scope<'u>,
        bytes: Node<'u>,
        depth: usize,
    ) -> Option<Expr> {
        let call = bytes.parent().and_then(|list| list.parent());
        let Some([_, _, width, rows]) = call.and_then(|call| pitched(scope.source, call)) else {
            return self.express(scope, bytes, depth);
        };
        let rows = self.express(scope, rows, depth)?;
        Some(Expr::binary("*", self.padded(scope, width, depth)?, rows))
    }

    /// Translates the pitch that `cudaMallocPitch` writes to a variable.
    pub(super) fn pitch(&mut self, scope: Scope<'u>, name: &str, depth: usize) -> Option<Expr> {
        if depth > MAX_DEPTH {
            return None;
        }
        let mut found = None;
        visit(scope.function?, &mut |node| {
            if node.kind() == "call_expression"
                && let Some([_, pitch, width, _]) = pitched(scope.source, node)
                && tree::words(scope.source.node_text(pitch)).last() == Some(&name)
            {
                found.get_or_insert(width);
            }
            true
        });
        self.padded(scope, found?, depth + 1)
    }

    fn padded(&mut self, scope: Scope<'u>, width: Node<'u>, depth: usize) -> Option<Expr> {
        let width = self.express(scope, width, depth)?;
        let rows = Expr::call("ceil_div", vec![width, Expr::Number(PITCH)]);
        Some(Expr::binary("*", rows, Expr::Number(PITCH)))
    }

    /// Translates the byte count of `device_vector<T> name(count)`.
    pub(super) fn vector(&mut self, scope: Scope<'u>, name: &str, depth: usize) -> Option<Expr> {
        let (inner, value) = self.initialiser(scope, name)?;
        let declaration = scope.source.node_text(value.parent()?.parent()?);
        let (_, rest) = declaration.split_once("vector<")?;
        let size = size_of(rest.split('>').next()?);
        let count = self.express(inner, tree::first(value)?, depth + 1)?;
        Some(Expr::binary("*", count, size))
    }
}
