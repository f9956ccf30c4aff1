//! API keys: `mk_<keyId>_<secret>`. Only the secret's digest is ever stored.

use std::collections::HashMap;

use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use mediakeep_storage::{TenantId, Timestamp};
use ring::digest;
use ring::rand::{SecureRandom, SystemRandom};
use subtle::ConstantTimeEq;

use super::{AuthError, Principal, Refused, Scope, Scopes};
use crate::config::ConfigError;
use crate::config::settings::ApiKey;

/// The keys, by the part of them that may be seen.
#[derive(Debug)]
pub(super) struct ApiKeys(HashMap<String, Entry>);

#[derive(Debug)]
struct Entry {
    tenant: TenantId,
    scopes: Scopes,
    digest: [u8; 32],
    expires: Option<Timestamp>,
    revoked: bool,
}

impl ApiKeys {
    pub(super) fn from_settings(keys: &[ApiKey]) -> Result<Self, ConfigError> {
        let mut entries = HashMap::new();
        for key in keys {
            let id = &key.id;
            if !is_key_id(id) {
                return Err(ConfigError(format!("access.api_keys: {id:?} is not a key id: 1 to 64 of a-z 0-9 -")));
            }
            if entries.insert(id.clone(), entry(key)?).is_some() {
                return Err(ConfigError(format!(
                    "access.api_keys: {id} stands there twice; every key needs an id of its own"
                )));
            }
        }
        Ok(Self(entries))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whose key it is; `key` is what stands behind `mk_`.
    pub(super) fn authenticate(&self, key: &str, now: Timestamp) -> Result<Principal, Refused> {
        let (id, secret) = key.split_once('_').ok_or(AuthError::Invalid)?;
        let given = digest_of(secret);
        let entry = self.0.get(id);
        // An unknown id is compared too, so that the time tells nothing of which ids there are.
        let expected = entry.map_or([0; 32], |entry| entry.digest);
        let same = bool::from(given.ct_eq(&expected));
        let Some(entry) = entry.filter(|_| same) else {
            return Err(AuthError::Invalid.into());
        };
        let holder = Principal { tenant: entry.tenant.clone(), id: id.to_owned(), scopes: entry.scopes };
        if entry.revoked {
            return Err(Refused { error: AuthError::KeyRevoked, holder: Some(holder) });
        }
        if entry.expires.is_some_and(|at| at <= now) {
            return Err(Refused { error: AuthError::KeyExpired, holder: Some(holder) });
        }
        Ok(holder)
    }
}

/// What is stored of a secret.
pub fn hash_secret(secret: &str) -> String {
    HEXLOWER.encode(&digest_of(secret))
}

/// A secret that nobody has.
pub fn new_secret() -> String {
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes).expect("the system has randomness");
    BASE64URL_NOPAD.encode(&bytes)
}

fn entry(key: &ApiKey) -> Result<Entry, ConfigError> {
    let wrong = |what: String| ConfigError(format!("access.api_keys: {}: {what}", key.id));
    let tenant = TenantId::parse(&key.tenant).map_err(|_| wrong(format!("{:?} is not a tenant", key.tenant)))?;
    let digest = HEXLOWER.decode(key.secret_sha256.to_ascii_lowercase().as_bytes()).ok();
    let digest = digest.and_then(|digest| digest.try_into().ok());
    let scopes: Option<Scopes> =
        key.scopes.iter().map(|name| Scope::parse(name)).collect::<Option<Vec<_>>>().map(Scopes::from_iter);
    Ok(Entry {
        tenant,
        scopes: scopes.ok_or_else(|| wrong(format!("{:?} holds an unknown scope", key.scopes)))?,
        digest: digest
            .ok_or_else(|| wrong("secret_sha256 is not 64 hex digits; `mediakeep access hash-key` makes it".into()))?,
        expires: key.expires,
        revoked: key.revoked,
    })
}

/// Whether that may stand between `mk_` and the secret.
pub fn is_key_id(id: &str) -> bool {
    (1..=64).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

fn digest_of(secret: &str) -> [u8; 32] {
    let hash = digest::digest(&digest::SHA256, secret.as_bytes());
    hash.as_ref().try_into().expect("a digest is always 32 bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(change: impl FnOnce(&mut ApiKey)) -> ApiKeys {
        let mut key = ApiKey {
            id: "acme-host".into(),
            tenant: "acme".into(),
            scopes: vec!["assets:read".into()],
            secret_sha256: hash_secret("se_cret"),
            expires: None,
            revoked: false,
        };
        change(&mut key);
        ApiKeys::from_settings(&[key]).expect("a valid key")
    }

    /// Whose key it is, or why nobody gets in with it.
    fn tried(keys: &ApiKeys, key: &str, now: Timestamp) -> Result<String, AuthError> {
        keys.authenticate(key, now).map(|holder| holder.id).map_err(|refused| refused.error)
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time in range")
    }

    #[test]
    fn only_the_secret_opens() {
        let keys = keys(|_| {});
        assert_eq!(tried(&keys, "acme-host_se_cret", at(0)), Ok("acme-host".into()));
        for wrong in ["acme-host_se_cre", "acme-host_", "acme-host", "other_se_cret", "_se_cret", "ACME-HOST_se_cret"] {
            assert_eq!(tried(&keys, wrong, at(0)), Err(AuthError::Invalid), "{wrong}");
        }
    }

    #[test]
    fn a_key_says_that_it_is_over_only_to_its_holder() {
        let expired = keys(|key| key.expires = Some(at(10)));
        assert!(tried(&expired, "acme-host_se_cret", at(9)).is_ok());
        assert_eq!(tried(&expired, "acme-host_se_cret", at(10)), Err(AuthError::KeyExpired));
        assert_eq!(tried(&expired, "acme-host_wrong", at(10)), Err(AuthError::Invalid));
        let revoked = keys(|key| key.revoked = true);
        assert_eq!(tried(&revoked, "acme-host_se_cret", at(0)), Err(AuthError::KeyRevoked));
    }
}
