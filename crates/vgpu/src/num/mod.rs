//! Pure numerics of the number formats that PTX computes with.
