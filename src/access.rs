//! Who is calling, and what they may do.
//!
//! A credential is an API key or a JWT of a configured issuer. The tenant comes from the credential alone: nothing in a path, a
//! query, a header or a body can change it. A scope is asked for in the handler's signature ([`crate::http::extract::Caller`]).

use std::collections::HashMap;

use mediakeep_storage::{TenantId, Timestamp};

use crate::config::{ConfigError, Settings};

mod api_key;
pub mod client;
mod issuer;
pub mod rate;
mod scope;

pub use api_key::{hash_secret, is_key_id, new_secret};
pub use scope::{Scope, Scopes};

use api_key::ApiKeys;
use issuer::Issuers;

/// Everybody who may call.
#[derive(Debug)]
pub struct Access {
    keys: ApiKeys,
    issuers: Issuers,
    suspended: HashMap<String, bool>,
    clock_skew: i64,
}

/// Somebody who may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// On whose behalf.
    pub tenant: TenantId,
    /// Who, for the audit log: the key's id, or the issuer and its subject. Never a credential.
    pub id: String,
    /// What.
    pub scopes: Scopes,
}

/// A credential that lets nobody in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Why.
    pub error: AuthError,
    /// Whose it is, if it is authentic.
    pub holder: Option<Principal>,
}

impl From<AuthError> for Refused {
    fn from(error: AuthError) -> Self {
        Self { error, holder: None }
    }
}

/// Why nobody may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// There is no credential.
    #[error("no credential")]
    Missing,
    /// There is one, and it is not valid.
    #[error("not a valid credential")]
    Invalid,
    /// A JWT past its time. To its sender it is as invalid as any other; the audit log knows whose it was.
    #[error("not a valid credential")]
    TokenExpired,
    /// An API key past its time.
    #[error("the API key has expired")]
    KeyExpired,
    /// An API key that was revoked.
    #[error("the API key was revoked")]
    KeyRevoked,
    /// Its tenant is suspended.
    #[error("the tenant is suspended")]
    TenantSuspended,
}

impl AuthError {
    /// What the audit log says.
    pub fn label(self) -> &'static str {
        match self {
            Self::Missing => "no_credential",
            Self::Invalid => "invalid_credential",
            Self::TokenExpired => "token_expired",
            Self::KeyExpired => "key_expired",
            Self::KeyRevoked => "key_revoked",
            Self::TenantSuspended => "tenant_suspended",
        }
    }
}

impl Access {
    /// Reads the settings and the key files that they name.
    pub fn from_settings(settings: &Settings) -> Result<Self, ConfigError> {
        Ok(Self {
            keys: ApiKeys::from_settings(&settings.access.api_keys)?,
            issuers: Issuers::from_settings(&settings.access.issuers)?,
            suspended: settings.tenants.iter().map(|tenant| (tenant.id.clone(), tenant.suspended)).collect(),
            clock_skew: settings.capabilities.clock_skew.as_secs(),
        })
    }

    /// Whether nobody could ever get in.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.issuers.is_empty()
    }

    /// Whose credential the `Authorization` header holds.
    pub fn authenticate(&self, authorization: Option<&str>, now: Timestamp) -> Result<Principal, Refused> {
        let header = authorization.ok_or(AuthError::Missing)?;
        let (scheme, credential) = header.split_once(' ').ok_or(AuthError::Invalid)?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(AuthError::Invalid.into());
        }
        let credential = credential.trim_matches(' ');
        let principal = match credential.strip_prefix("mk_") {
            Some(key) => self.keys.authenticate(key, now)?,
            None => self.issuers.authenticate(credential, now, self.clock_skew)?,
        };
        if self.is_suspended(&principal.tenant) {
            return Err(Refused { error: AuthError::TenantSuspended, holder: Some(principal) });
        }
        Ok(principal)
    }

    /// Whether the tenant is suspended: its credentials are refused and its capabilities open nothing.
    pub fn is_suspended(&self, tenant: &TenantId) -> bool {
        self.suspended.get(tenant.as_str()).copied().unwrap_or(false)
    }
}
