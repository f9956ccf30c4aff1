//! JWTs of configured issuers: each may speak for stated tenants, and give stated scopes.

use mediakeep_keys::{Algorithm, IssuerKey, JwtError, expired_jwt, peek_issuer, read_key_file, verify_jwt};
use mediakeep_storage::{TenantId, Timestamp};
use serde_json::{Map, Value};

use super::{AuthError, Principal, Refused, Scope, Scopes};
use crate::config::ConfigError;
use crate::config::settings::Issuer as IssuerSettings;

/// The issuers, as configured; there are few.
#[derive(Debug)]
pub(super) struct Issuers(Vec<Issuer>);

#[derive(Debug)]
struct Issuer {
    name: String,
    audience: String,
    keys: Vec<(Option<String>, IssuerKey)>,
    tenants: Vec<String>,
    ceiling: Scopes,
}

/// The longest `sub` that is kept for the audit log.
const MAX_SUBJECT: usize = 256;

impl Issuers {
    pub(super) fn from_settings(issuers: &[IssuerSettings]) -> Result<Self, ConfigError> {
        issuers.iter().map(Issuer::from_settings).collect::<Result<_, _>>().map(Self)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whose token it is, or was.
    pub(super) fn authenticate(&self, token: &str, now: Timestamp, clock_skew: i64) -> Result<Principal, Refused> {
        let name = peek_issuer(token).ok_or(AuthError::Invalid)?;
        let mut refused = Refused::from(AuthError::Invalid);
        // One issuer may stand there more than once, with another audience or algorithm.
        for issuer in self.0.iter().filter(|issuer| issuer.name == name) {
            match issuer.authenticate(token, now, clock_skew) {
                Ok(principal) => return Ok(principal),
                Err(why) if why.holder.is_some() => refused = why,
                Err(_) => {}
            }
        }
        Err(refused)
    }
}

impl Issuer {
    fn from_settings(settings: &IssuerSettings) -> Result<Self, ConfigError> {
        let wrong = |what: String| ConfigError(format!("access.issuers: {}: {what}", settings.issuer));
        let algorithm = match settings.algorithm.as_str() {
            "HS256" => Algorithm::Hs256,
            "RS256" => Algorithm::Rs256,
            "ES256" => Algorithm::Es256,
            "EdDSA" => Algorithm::EdDsa,
            other => return Err(wrong(format!("{other:?} is not one of HS256, RS256, ES256, EdDSA"))),
        };
        let keys = match (&settings.key_file, &settings.jwks_file) {
            (Some(file), None) => {
                let bytes = read_key_file(file).map_err(|error| wrong(error.to_string()))?;
                let key = match algorithm {
                    Algorithm::Hs256 => IssuerKey::hs256(&bytes),
                    _ => IssuerKey::pem(algorithm, &bytes),
                };
                vec![(None, key.map_err(|error| wrong(error.to_string()))?)]
            }
            (None, Some(file)) => {
                let bytes = read_key_file(file).map_err(|error| wrong(error.to_string()))?;
                IssuerKey::jwks(algorithm, &bytes).map_err(|error| wrong(error.to_string()))?
            }
            _ => return Err(wrong("name either key_file or jwks_file".into())),
        };
        let ceiling = match &settings.scopes {
            None => Scopes::ALL,
            Some(names) => {
                let scopes: Option<Vec<Scope>> = names.iter().map(|name| Scope::parse(name)).collect();
                scopes.ok_or_else(|| wrong(format!("{names:?} holds an unknown scope")))?.into_iter().collect()
            }
        };
        Ok(Self {
            name: settings.issuer.clone(),
            audience: settings.audience.clone(),
            keys,
            tenants: settings.tenants.clone(),
            ceiling,
        })
    }

    fn authenticate(&self, token: &str, now: Timestamp, clock_skew: i64) -> Result<Principal, Refused> {
        let now = now.as_second();
        match verify_jwt(token, &self.keys, &self.name, &self.audience, now, clock_skew) {
            Ok(claims) => self.principal(&claims).ok_or_else(|| AuthError::Invalid.into()),
            Err(JwtError::Expired) => {
                let claims = expired_jwt(token, &self.keys, &self.name, &self.audience, now, clock_skew);
                let holder = claims.and_then(|claims| self.principal(&claims));
                Err(Refused { error: AuthError::TokenExpired, holder })
            }
            Err(_) => Err(AuthError::Invalid.into()),
        }
    }

    /// For whom the issuer speaks there, if it may.
    fn principal(&self, claims: &Map<String, Value>) -> Option<Principal> {
        let tenant = claims.get("tenant")?.as_str()?;
        if !self.tenants.iter().any(|pattern| speaks_for(pattern, tenant)) {
            return None;
        }
        Some(Principal {
            tenant: TenantId::parse(tenant).ok()?,
            id: principal_id(&self.name, claims),
            scopes: scopes_of(claims.get("scope"))?.and(self.ceiling),
        })
    }
}

/// Whether the pattern names the tenant: itself, or what its `*` at the end stands for.
fn speaks_for(pattern: &str, tenant: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => tenant.starts_with(beginning),
        None => pattern == tenant,
    }
}

/// Scopes in a string or an array; what we do not know is ignored, what is neither is no token of ours.
fn scopes_of(claim: Option<&Value>) -> Option<Scopes> {
    match claim {
        None | Some(Value::Null) => Some(Scopes::default()),
        Some(Value::String(names)) => Some(names.split(' ').filter_map(Scope::parse).collect()),
        Some(Value::Array(names)) => {
            let names: Option<Vec<&str>> = names.iter().map(Value::as_str).collect();
            Some(names?.into_iter().filter_map(Scope::parse).collect())
        }
        Some(_) => None,
    }
}

fn principal_id(issuer: &str, claims: &Map<String, Value>) -> String {
    let subject = claims.get("sub").and_then(Value::as_str).unwrap_or("");
    let subject: String = subject.chars().filter(|c| !c.is_control()).take(MAX_SUBJECT).collect();
    format!("{issuer}#{subject}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_issuer_speaks_for_its_tenants_alone() {
        for (pattern, tenant, right) in [
            ("acme", "acme", true),
            ("acme", "acme-eu", false),
            ("acme-*", "acme-eu", true),
            ("acme-*", "acme", false),
            ("*", "anybody", true),
            ("acme", "Acme", false),
        ] {
            assert_eq!(speaks_for(pattern, tenant), right, "{pattern} {tenant}");
        }
    }

    #[test]
    fn scopes_come_as_a_string_or_an_array() {
        let read: Scopes = [Scope::AssetsRead].into_iter().collect();
        assert_eq!(scopes_of(Some(&json!("assets:read openid"))), Some(read));
        assert_eq!(scopes_of(Some(&json!(["assets:read", "openid"]))), Some(read));
        assert_eq!(scopes_of(None), Some(Scopes::default()));
        assert_eq!(scopes_of(Some(&json!({"assets:read": true}))), None);
        assert_eq!(scopes_of(Some(&json!([1]))), None);
    }
}
