//! Structs of constants with the default of each field next to its declaration.

/// Declares a public struct, each field with its default value, and implements `Default` for it.
#[macro_export]
macro_rules! with_defaults {
    (
        $(#[$about:meta])*
        pub struct $name:ident {
            $($(#[$doc:meta])* pub $field:ident: $type:ty = $value:expr,)*
        }
    ) => {
        $(#[$about])*
        pub struct $name {
            $($(#[$doc])* pub $field: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $value,)* }
            }
        }
    };
}
