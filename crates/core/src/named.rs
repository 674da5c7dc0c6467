//! Enumerations whose variants have one name in all representations.

/// Declares an enumeration with named variants: the names are equal in JSON, the database, tables and
/// messages.
macro_rules! named {
    ($(#[$about:meta])* pub enum $name:ident $variants:tt) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
        #[derive(strum::Display, strum::EnumString, strum::IntoStaticStr, strum::VariantArray)]
        #[serde(rename_all = "snake_case")]
        #[strum(serialize_all = "snake_case")]
        pub enum $name $variants

        impl $name {
            /// All variants, in order.
            pub const ALL: &[Self] = <Self as strum::VariantArray>::VARIANTS;

            /// Returns the name.
            #[must_use]
            pub fn name(self) -> &'static str {
                self.into()
            }
        }
    };
}
pub(crate) use named;
