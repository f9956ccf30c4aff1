//! Whether a JWT of a configured issuer is authentic, for us, and within its time.

use std::fmt;

use data_encoding::BASE64URL_NOPAD;
use jsonwebtoken::Validation;
use jsonwebtoken::errors::{Error as LibraryError, ErrorKind};
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use thiserror::Error;

use super::IssuerKey;
use crate::provider;

/// Longer strings are not looked at: it is more than an HTTP server takes in one header.
pub const MAX_JWT: usize = 16 * 1024;

/// Why a JWT is not accepted. To a caller they are all one 401; the difference is for metrics and the trail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum JwtError {
    /// It is longer than [`MAX_JWT`].
    #[error("longer than {MAX_JWT} bytes")]
    TooLong,
    /// It is not a JWS in compact form with JSON objects in it.
    #[error("not a JWT")]
    Malformed,
    /// Its `alg` is not that of the key that it names, or of any that we have.
    #[error("signed in another algorithm than its key is for")]
    WrongAlgorithm,
    /// Its `crit` asks for an extension; none is understood.
    #[error("asks for an extension that is not understood")]
    Critical,
    /// Its `kid` is none of the issuer's keys.
    #[error("signed with a key that is not configured")]
    UnknownKey,
    /// The signature is not of any key that it could be.
    #[error("the signature does not hold")]
    BadSignature,
    /// Its `iss` is another.
    #[error("of another issuer")]
    WrongIssuer,
    /// Its `aud` does not name us.
    #[error("for another audience")]
    WrongAudience,
    /// Its `exp` has come.
    #[error("expired")]
    Expired,
    /// Its `nbf` or `iat` is further ahead than two clocks may differ.
    #[error("not yet valid")]
    NotYetValid,
    /// A claim that must be there is missing, or one is of the wrong type.
    #[error("claim {0} is missing or of the wrong type")]
    BadClaim(&'static str),
}

impl JwtError {
    /// A label for a metric.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::TooLong => "too_long",
            Self::Malformed => "malformed",
            Self::WrongAlgorithm => "wrong_algorithm",
            Self::Critical => "critical",
            Self::UnknownKey => "unknown_key",
            Self::BadSignature => "bad_signature",
            Self::WrongIssuer => "wrong_issuer",
            Self::WrongAudience => "wrong_audience",
            Self::Expired => "expired",
            Self::NotYetValid => "not_yet_valid",
            Self::BadClaim(_) => "bad_claim",
        }
    }
}

/// The claims of a JWT that one of the keys signed, by that issuer, for that audience, at that time.
///
/// `exp` must be there and has no leeway: past from that instant on. `nbf` and `iat` may be `clock_skew` seconds ahead.
/// A `kid` in the header chooses among the keys that have a name; keys without one are always tried. Whatever else the
/// header offers as a key (`jwk`, `jku`, `x5u`, `x5c`) is not looked at.
pub fn verify_jwt(
    token: &str,
    keys: &[(Option<String>, IssuerKey)],
    issuer: &str,
    audience: &str,
    now: i64,
    clock_skew: i64,
) -> Result<Map<String, Value>, JwtError> {
    let claims = authentic(token, keys, issuer, audience)?;
    check_times(&claims, now, clock_skew)?;
    Ok(claims)
}

/// The claims of a JWT that is right in everything but that its time is past: they say whose it was, and let nobody in.
pub fn expired_jwt(
    token: &str,
    keys: &[(Option<String>, IssuerKey)],
    issuer: &str,
    audience: &str,
    now: i64,
    clock_skew: i64,
) -> Option<Map<String, Value>> {
    let claims = authentic(token, keys, issuer, audience).ok()?;
    (check_times(&claims, now, clock_skew) == Err(JwtError::Expired)).then_some(claims)
}

/// The claims of a JWT that one of the keys signed, by that issuer, for that audience, whatever the time.
fn authentic(
    token: &str,
    keys: &[(Option<String>, IssuerKey)],
    issuer: &str,
    audience: &str,
) -> Result<Map<String, Value>, JwtError> {
    provider::install();
    let header = Header::read(token)?;
    for key in header.candidates(keys)? {
        match jsonwebtoken::decode::<Claims>(token, &key.key, &validation(key, issuer, audience)) {
            Ok(data) => {
                let Claims(claims) = data.claims;
                check_issuer(&claims)?;
                return Ok(claims);
            }
            Err(error) if matches!(error.kind(), ErrorKind::InvalidSignature) => {}
            Err(error) => return Err(reason(&error)),
        }
    }
    Err(JwtError::BadSignature)
}

/// The `iss` that a token claims, unverified: good for choosing an issuer's keys, and for nothing else.
#[must_use]
pub fn peek_issuer(token: &str) -> Option<String> {
    let parts = split(token).ok()?;
    match object(parts[1]).ok()?.remove("iss")? {
        Value::String(issuer) => Some(issuer),
        _ => None,
    }
}

/// A JSON object that names no member twice: two readers of one token must not find two tenants in it.
struct Claims(Map<String, Value>);

impl<'de> Deserialize<'de> for Claims {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ClaimsVisitor)
    }
}

struct ClaimsVisitor;

impl<'de> Visitor<'de> for ClaimsVisitor {
    type Value = Claims;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Claims, A::Error> {
        let mut claims = Map::new();
        while let Some((name, value)) = members.next_entry::<String, Value>()? {
            if claims.insert(name, value).is_some() {
                return Err(A::Error::custom("a claim is there twice"));
            }
        }
        Ok(Claims(claims))
    }
}

/// What is read of the header before the signature holds.
struct Header {
    algorithm: String,
    kid: Option<String>,
}

impl Header {
    fn read(token: &str) -> Result<Self, JwtError> {
        let mut header = object(split(token)?[0])?;
        // The library understands `b64`; we have no use for it, and RFC 7515 §4.1.11 wants what is not understood refused.
        if header.contains_key("crit") {
            return Err(JwtError::Critical);
        }
        let Some(Value::String(algorithm)) = header.remove("alg") else {
            return Err(JwtError::Malformed);
        };
        let kid = match header.remove("kid") {
            None => None,
            Some(Value::String(kid)) => Some(kid),
            Some(_) => return Err(JwtError::Malformed),
        };
        Ok(Self { algorithm, kid })
    }

    /// The keys that the token can have been signed with, by name and then by algorithm.
    fn candidates<'a>(&self, keys: &'a [(Option<String>, IssuerKey)]) -> Result<Vec<&'a IssuerKey>, JwtError> {
        let named = |kid: &Option<String>| self.kid.is_none() || kid.is_none() || *kid == self.kid;
        let mut candidates: Vec<_> = keys.iter().filter(|(kid, _)| named(kid)).map(|(_, key)| key).collect();
        if candidates.is_empty() {
            return Err(JwtError::UnknownKey);
        }
        candidates.retain(|key| key.algorithm.name() == self.algorithm);
        if candidates.is_empty() {
            return Err(JwtError::WrongAlgorithm);
        }
        Ok(candidates)
    }
}

/// The library checks the signature, the issuer and the audience. Time is ours: it would ask the system's clock, allow a
/// minute after `exp`, and leave `nbf` alone. Naming an issuer or audience does not make it ask for one, so both are listed.
fn validation(key: &IssuerKey, issuer: &str, audience: &str) -> Validation {
    let mut validation = Validation::new(key.algorithm.of_header());
    validation.validate_exp = false;
    validation.validate_nbf = false;
    validation.set_required_spec_claims(&["exp", "iss", "aud"]);
    validation.set_issuer(&[issuer]);
    validation.set_audience(&[audience]);
    validation
}

/// The library takes a list of issuers that ours is among. RFC 7519 §4.1.1 knows one issuer, a string.
fn check_issuer(claims: &Map<String, Value>) -> Result<(), JwtError> {
    match claims.get("iss") {
        Some(Value::String(_)) => Ok(()),
        _ => Err(JwtError::BadClaim("iss")),
    }
}

/// A time may have a fraction (RFC 7519 §2), so they are compared as such; seconds are exact in an `f64` for 285 million years.
fn check_times(claims: &Map<String, Value>, now: i64, clock_skew: i64) -> Result<(), JwtError> {
    let expires_at = time(claims, "exp")?.ok_or(JwtError::BadClaim("exp"))?;
    if expires_at <= now as f64 {
        return Err(JwtError::Expired);
    }
    let latest = now.saturating_add(clock_skew.max(0)) as f64;
    for name in ["nbf", "iat"] {
        if time(claims, name)?.is_some_and(|time| time > latest) {
            return Err(JwtError::NotYetValid);
        }
    }
    Ok(())
}

/// A claim that is there and no number is refused, `null` included: taken for absent, it would never expire.
fn time(claims: &Map<String, Value>, name: &'static str) -> Result<Option<f64>, JwtError> {
    match claims.get(name) {
        None => Ok(None),
        Some(value) => value.as_f64().map(Some).ok_or(JwtError::BadClaim(name)),
    }
}

fn split(token: &str) -> Result<[&str; 3], JwtError> {
    if token.len() > MAX_JWT {
        return Err(JwtError::TooLong);
    }
    let parts: Vec<_> = token.splitn(4, '.').collect();
    parts.try_into().map_err(|_| JwtError::Malformed)
}

fn object(part: &str) -> Result<Map<String, Value>, JwtError> {
    let json = BASE64URL_NOPAD.decode(part.as_bytes()).map_err(|_| JwtError::Malformed)?;
    serde_json::from_slice(&json).map_err(|_| JwtError::Malformed)
}

fn reason(error: &LibraryError) -> JwtError {
    match error.kind() {
        ErrorKind::InvalidAlgorithm => JwtError::WrongAlgorithm,
        ErrorKind::InvalidIssuer => JwtError::WrongIssuer,
        ErrorKind::InvalidAudience => JwtError::WrongAudience,
        ErrorKind::MissingRequiredClaim(name) | ErrorKind::InvalidClaimFormat(name) => match name.as_str() {
            "exp" => JwtError::BadClaim("exp"),
            "iss" => JwtError::BadClaim("iss"),
            "aud" => JwtError::BadClaim("aud"),
            _ => JwtError::Malformed,
        },
        _ => JwtError::Malformed,
    }
}

#[cfg(test)]
mod tests;
