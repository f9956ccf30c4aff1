//! What a credential allows.

use std::fmt;

/// One thing that a credential may allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Scope {
    /// Ingest, PATCH, DELETE past the floor.
    AssetsWrite,
    /// Metadata, lists, manifests, bound content.
    AssetsRead,
    /// Capability URLs.
    AssetsMint,
    /// Artifacts and the content of what they name.
    ArtifactsRead,
    /// Runs and references.
    RunsWrite,
    /// Holds.
    HoldsWrite,
    /// Erasure.
    AssetsErase,
    /// The audit log.
    AuditRead,
}

impl Scope {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::AssetsWrite,
        Self::AssetsRead,
        Self::AssetsMint,
        Self::ArtifactsRead,
        Self::RunsWrite,
        Self::HoldsWrite,
        Self::AssetsErase,
        Self::AuditRead,
    ];

    /// Its name in credentials.
    pub fn name(self) -> &'static str {
        match self {
            Self::AssetsWrite => "assets:write",
            Self::AssetsRead => "assets:read",
            Self::AssetsMint => "assets:mint",
            Self::ArtifactsRead => "artifacts:read",
            Self::RunsWrite => "runs:write",
            Self::HoldsWrite => "holds:write",
            Self::AssetsErase => "assets:erase",
            Self::AuditRead => "audit:read",
        }
    }

    /// The scope of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.name() == name)
    }
}

/// A set of scopes.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Scopes(u8);

impl Scopes {
    /// All of them.
    pub const ALL: Self = Self(u8::MAX);

    /// Whether the set has it.
    pub fn has(self, scope: Scope) -> bool {
        self.0 & (1 << scope as u8) != 0
    }

    /// What both sets have.
    pub fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Self(scopes.into_iter().fold(0, |set, scope| set | 1 << scope as u8))
    }
}

impl fmt::Debug for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(Scope::ALL.into_iter().filter(|scope| self.has(*scope)).map(Scope::name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_was_put_in() {
        let set: Scopes = [Scope::AssetsRead, Scope::AuditRead].into_iter().collect();

        let has: Vec<_> = Scope::ALL.into_iter().filter(|scope| set.has(*scope)).collect();
        assert_eq!(has, [Scope::AssetsRead, Scope::AuditRead]);
        assert_eq!(format!("{set:?}"), r#"{"assets:read", "audit:read"}"#);
        assert!(Scope::ALL.into_iter().all(|scope| Scope::parse(scope.name()) == Some(scope)));
    }
}
