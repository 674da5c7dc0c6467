//! Sizes and the kernel's arguments.

use super::{Argument, KernelContext, Plan};
use crate::expr::{Expr, not_reserved};
use crate::host::Host;
use crate::kernel::{self, pointer};
use crate::tree;
use crate::types;
use tuner_core::plan::Role;

impl Plan {
    /// Makes sizes from the integers that the launch passes.
    pub(super) fn scalars<'u>(&mut self, known: &KernelContext<'u>, host: &mut Host<'u>) {
        let Some(scope) = known.scope() else {
            return;
        };
        for (at, parameter) in known.parameters.iter().enumerate() {
            let Some(node) = known.given(at).and_then(tree::bare) else {
                continue;
            };
            if pointer(&parameter.ty).0 || types::is_pointer_alias(known.unit, &parameter.ty) {
                continue;
            }
            if !is_whole(&parameter.ty) {
                host.passes(scope, scope.source.node_text(node), &parameter.name);
                continue;
            }
            if !matches!(node.kind(), "identifier" | "field_expression") {
                continue;
            }
            // On `host` itself the translation would record a size before it is known to be needed.
            let mut trial = host.trial();
            let meaning = trial.express(scope, node, 0);
            // A parameter or an expression over names already has a value.
            let made = match &meaning {
                Some(Expr::Name(name)) => !trial.invented.iter().any(|(known, _)| known == name),
                Some(Expr::Number(_)) | None => false,
                Some(_) => true,
            };
            if made {
                continue;
            }
            let value = host.express(scope, node, 0).and_then(|it| it.number());
            let name = self.size_name(&parameter.name);
            if !self.sizes.iter().any(|(known, _)| *known == name) {
                self.sizes.push((name.clone(), value));
            }
            host.bind(scope, scope.source.node_text(node), &name);
        }
    }

    /// Returns a name that is not a parameter and is valid in an expression.
    pub(crate) fn size_name(&self, name: &str) -> String {
        if self.parameters.iter().any(|each| each.name == name) {
            format!("{name}_size")
        } else {
            not_reserved(name)
        }
    }

    /// Adds the kernel's parameters in their order.
    pub(super) fn take<'u>(&mut self, known: &KernelContext<'u>, host: &mut Host<'u>) {
        let roles = kernel::roles(known.unit, known.own);
        let multipliers = kernel::multipliers(known.unit, known.own);
        for (at, parameter) in known.parameters.iter().enumerate() {
            let given = known.given(at).zip(known.scope());
            let mut argument = Argument::new(&parameter.name, &parameter.ty, Role::Scalar);
            argument.parameter = Some(at);
            let is_alias = types::is_pointer_alias(known.unit, &parameter.ty);
            if is_alias || pointer(&parameter.ty).0 {
                host.invent = true;
                argument.shape = given.and_then(|(node, scope)| host.allocation(scope, node, 0));
                host.invent = false;
                argument.multiplier = multipliers.get(&parameter.name).copied().unwrap_or(1);
                // An included file may write, as through an alias.
                let is_partial = known.unit.text(known.own).contains("#include");
                let unread = if is_alias { Role::Inout } else { Role::Input };
                argument.role = roles.get(&parameter.name).copied().unwrap_or(unread);
                if is_partial && !pointer(&parameter.ty).1 {
                    argument.role = Role::Inout;
                }
                argument.zeroed = given.is_some_and(|(node, scope)| host.zeroes(scope, node));
                // The kernel may add to the cleared buffer; an output would start as NaN.
                if argument.zeroed && argument.role == Role::Output {
                    argument.role = Role::Inout;
                }
            } else {
                let name = self.size_name(&parameter.name);
                if self.sizes.iter().any(|(known, _)| *known == name) {
                    argument.value = Some(Expr::Name(name));
                } else {
                    host.invent = is_whole(&parameter.ty);
                    argument.value = given.and_then(|(node, scope)| host.express(scope, node, 0));
                    host.invent = false;
                    // A launch may omit an argument with a default.
                    if given.is_none()
                        && known.launch.is_some()
                        && let Some(text) = &parameter.default
                    {
                        argument.value = host.of_text(known.scope(), text);
                    }
                    if is_whole(&parameter.ty) {
                        argument.value = argument.value.as_ref().map(Expr::floored);
                    }
                    if let Some((branch, proposed)) = &known.branch
                        && argument.value == Some(Expr::Number(branch.value))
                    {
                        argument.value = Some(Expr::Name(proposed.clone()));
                    }
                    if argument.value.is_none() && is_whole(&parameter.ty) {
                        self.sizes.push((name.clone(), None));
                        argument.value = Some(Expr::Name(name));
                    }
                }
            }
            self.arguments.push(argument);
        }
    }
}

/// Reports whether a type is an integer type.
pub(crate) fn is_whole(ty: &str) -> bool {
    let words = tree::words(ty);
    !words.iter().any(|word| {
        matches!(
            *word,
            "float" | "double" | "half" | "__half" | "bool" | "__nv_bfloat16"
        )
    }) && words.iter().any(|word| {
        matches!(
            *word,
            "int" | "unsigned" | "size_t" | "long" | "short" | "uint" | "index_t"
        ) || (word.starts_with("int") || word.starts_with("uint")) && word.ends_with("_t")
    })
}
