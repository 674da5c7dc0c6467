//! Sync objects.
