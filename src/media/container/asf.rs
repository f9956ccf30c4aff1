//! Stub.
use crate::media::{Found, reader::Bytes};
pub(super) fn probe(_: &mut Bytes<'_>, _: &[u8]) -> Option<Found> { None }
