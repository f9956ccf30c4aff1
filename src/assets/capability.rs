//! Capabilities that were opened a moment ago.
//!
//! What is remembered is that a string is authentic and what it says: that stays true for as long as the ring has its key, so the
//! memory belongs to one reading of the ring and goes with it. Whether a token is revoked, within its time, and whose request it is in,
//! is looked at every time.

use std::sync::Arc;

use mediakeep_keys::{Claims, Ring};
use mediakeep_storage::{AssetId, TenantId};
use moka::sync::Cache;

/// What an authentic token says.
#[derive(Debug)]
pub struct Capability {
    /// Whose asset it opens.
    pub tenant: TenantId,
    /// Which.
    pub asset: AssetId,
    /// All that it says.
    pub claims: Claims,
}

/// Tokens that were opened under one ring, by their whole string.
#[derive(Clone)]
pub struct Opened(Cache<Box<str>, Arc<Capability>>);

/// So many are some 8 MB at the most.
const ENTRIES: u64 = 8_192;

impl Opened {
    /// None yet.
    pub fn new() -> Self {
        Self(Cache::new(ENTRIES))
    }

    /// What the token says; else the label of a metric, never a word to the caller.
    pub fn open(&self, ring: &Ring, token: &str) -> Result<Arc<Capability>, &'static str> {
        if let Some(capability) = self.0.get(token) {
            return Ok(capability);
        }
        let (claims, _) = ring.open(token).map_err(|reason| reason.label())?;
        let (Ok(tenant), Ok(asset)) = (TenantId::parse(&claims.tenant), AssetId::parse(&claims.asset)) else {
            return Err("unknown");
        };
        let capability = Arc::new(Capability { tenant, asset, claims });
        self.0.insert(token.into(), capability.clone());
        Ok(capability)
    }
}

impl Default for Opened {
    fn default() -> Self {
        Self::new()
    }
}

/// Without the tokens: whoever has one has the bytes.
impl std::fmt::Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opened").finish_non_exhaustive()
    }
}
