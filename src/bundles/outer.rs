//! The places of a bundle that mean something by where they stand: its run, its manifest, and whether it is the body or lies in one.

use std::ops::Range;

use super::found::{Found, MANIFEST};
use super::object::Frame;

/// The bundle is the body, or the member `bundle` of a body that has nothing beside it but `runId` and `scrub`: which of them is known at
/// the end, so what either would have is noted.
#[derive(Debug, Default)]
pub(super) struct Outer {
    others: bool,
    inner: Option<Range<u64>>,
    inner_is_empty: bool,
    manifest: Option<Range<u64>>,
    inner_manifest: Option<Range<u64>>,
    run: Option<String>,
    own_run: Option<String>,
    inner_run: Option<String>,
}

impl Outer {
    /// A member of the body has that name.
    pub(super) fn note_member(&mut self, name: &str) {
        self.others |= !matches!(name, "bundle" | "runId" | "scrub" | "tenant" | "tenantId");
    }

    /// A text stands at the place that these frames lead to.
    pub(super) fn note_text(&mut self, frames: &[Frame], text: Option<&str>) {
        let mut names = [""; 3];
        for (place, frame) in names.iter_mut().zip(frames) {
            *place = frame.name.as_str();
        }
        let place = match names.get(..frames.len()) {
            Some(["run", "runId"]) => &mut self.run,
            Some(["runId"]) => &mut self.own_run,
            Some(["bundle", "run", "runId"]) => &mut self.inner_run,
            Some(["bundle", "runId"]) if self.inner_run.is_none() => &mut self.inner_run,
            _ => return,
        };
        *place = Some(text.unwrap_or_default().to_owned());
    }

    /// A value that these frames lead to ended before `end`.
    pub(super) fn note_value(&mut self, frames: &[Frame], end: u64) {
        match frames {
            [root] if root.name == MANIFEST => self.manifest = Some(root.value_from..end),
            [root, inner] if root.name == "bundle" && !inner.is_array && inner.name == MANIFEST => {
                self.inner_manifest = Some(inner.value_from..end);
            }
            _ => {}
        }
    }

    /// An object ended before `end`, in these frames.
    pub(super) fn note_object(&mut self, object: &Frame, frames: &[Frame], end: u64, found: &mut Found) {
        match frames {
            [] => {
                found.bundle.end = end;
                found.is_empty = object.is_empty;
            }
            [root] if root.name == "bundle" && !object.is_array => {
                self.inner = Some(root.value_from..end);
                self.inner_is_empty = object.is_empty;
            }
            _ => {}
        }
    }

    /// Settles which of them is the bundle.
    pub(super) fn settle(self, found: &mut Found) {
        match self.inner.filter(|_| !self.others) {
            Some(inner) => {
                found.bundle = inner;
                found.is_empty = self.inner_is_empty;
                found.manifest = self.inner_manifest;
                found.run = self.inner_run.or(self.own_run);
                let paths = found.findings.iter_mut().map(|finding| &mut finding.path);
                for path in paths.chain(found.mentions.iter_mut().map(|mention| &mut mention.path)) {
                    if let Some(inside) = path.strip_prefix("/bundle") {
                        *path = inside.to_owned();
                    }
                }
            }
            None => {
                found.manifest = self.manifest;
                found.run = self.run.or(self.own_run);
            }
        }
    }
}
