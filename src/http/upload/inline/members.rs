//! What an inline body may hold, by name.

/// What a member of an inline body is for, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Carries the bytes.
    Payload,
    /// Names the tenant again.
    Tenant,
    /// Has a [`RawMembers::slot`](crate::assets::members::RawMembers::slot).
    Text,
}

/// Every name that an inline body knows.
pub(super) const KNOWN: [(&str, Kind); 18] = [
    ("base64", Kind::Payload),
    ("contentBase64", Kind::Payload),
    ("data", Kind::Payload),
    ("dataBase64", Kind::Payload),
    ("tenant", Kind::Tenant),
    ("tenantId", Kind::Tenant),
    ("mimeType", Kind::Text),
    ("name", Kind::Text),
    ("alt", Kind::Text),
    ("title", Kind::Text),
    ("nodeId", Kind::Text),
    ("envelopeId", Kind::Text),
    ("correlationId", Kind::Text),
    ("source", Kind::Text),
    ("sha256", Kind::Text),
    ("retainUntil", Kind::Text),
    ("delivery", Kind::Text),
    ("url", Kind::Text),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assets::members::RawMembers;

    #[test]
    fn every_text_member_has_a_place() {
        for (name, kind) in KNOWN {
            assert_eq!(RawMembers::default().slot(name).is_some(), kind == Kind::Text, "{name}");
        }
    }
}
