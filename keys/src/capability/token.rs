//! Claims to token and back. A token is accepted when it is the very string that minting its claims gives.

use data_encoding::BASE64URL_NOPAD;
use thiserror::Error;

use super::{Claims, payload};
use crate::key::{HEADER_HEAD, HEADER_TAIL};
use crate::{KeyError, Ring};

/// Longer strings are not looked at. The longest token that can be minted has under 1 KiB; the rest is room to grow.
pub const MAX_TOKEN: usize = 8 * 1024;

/// An HMAC-SHA-256, and its length in base64url.
const MAC_LEN: usize = 32;
const MAC_CHARS: usize = 43;

/// Why a string is not one of our tokens. To a caller they are all one 404; the difference is for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TokenError {
    /// It is longer than [`MAX_TOKEN`].
    #[error("longer than any token")]
    TooLong,
    /// It is not three parts of base64url with a tenant inside.
    #[error("not a token")]
    Malformed,
    /// Its header is ours, and the key that it names is not in the ring: retired, or never there.
    #[error("the ring has no such key")]
    UnknownKey,
    /// The MAC is not that key's for that tenant.
    #[error("the MAC does not hold")]
    BadMac,
    /// It says something in another way than we say it: another header, another claim, another spelling.
    #[error("not the one spelling of a token")]
    NonCanonical,
}

impl TokenError {
    /// A label for a metric.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::TooLong => "too_long",
            Self::Malformed => "malformed",
            Self::UnknownKey => "unknown_key",
            Self::BadMac => "bad_mac",
            Self::NonCanonical => "non_canonical",
        }
    }
}

impl Ring {
    /// The token for these claims under that key: the same string for the same claims, for as long as the key exists.
    ///
    /// Any key of the ring will do, also one that no longer signs: that is how a durable string is given out again.
    pub fn mint(&self, kid: &str, claims: &Claims) -> Result<String, KeyError> {
        let Some(key) = self.url_key(kid) else {
            return Err(KeyError::UnknownKid { kid: kid.to_owned() });
        };
        payload::check(claims).map_err(|member| KeyError::BadClaim { member })?;
        let json = payload::write(claims);
        let mut token = String::with_capacity(key.header().len() + json.len() * 4 / 3 + MAC_CHARS + 4);
        token.push_str(key.header());
        token.push('.');
        BASE64URL_NOPAD.encode_append(json.as_bytes(), &mut token);
        let mac = key.sign(&claims.tenant, token.as_bytes());
        token.push('.');
        BASE64URL_NOPAD.encode_append(mac.as_ref(), &mut token);
        Ok(token)
    }

    /// The claims of a token that this ring minted, and the name of the key that it hangs on.
    ///
    /// It tells authentic from not. Expiry, generation, revocation and whose request it is are for the caller.
    pub fn open(&self, token: &str) -> Result<(Claims, &str), TokenError> {
        if token.len() > MAX_TOKEN {
            return Err(TokenError::TooLong);
        }
        let (input, mac) = token.rsplit_once('.').ok_or(TokenError::Malformed)?;
        let (header, payload) = input.split_once('.').ok_or(TokenError::Malformed)?;
        let Some(key) = self.url_keys().find(|key| key.header() == header) else {
            return Err(why_not_ours(header));
        };
        let mac = decode_mac(mac).ok_or(TokenError::Malformed)?;
        let json = BASE64URL_NOPAD.decode(payload.as_bytes()).map_err(|_| TokenError::Malformed)?;
        let tenant = payload::tenant_of(&json).ok_or(TokenError::Malformed)?;
        if !key.verify(tenant, input.as_bytes(), &mac) {
            return Err(TokenError::BadMac);
        }
        // From here on whoever made the string held the key. That it is also the one spelling keeps every reader of
        // tokens, now and later, from disagreeing about what one says. The header was compared as it stands, and base64
        // has one spelling here, so what is left to compare is the payload.
        let claims = payload::read(&json).ok_or(TokenError::NonCanonical)?;
        if payload::write(&claims).as_bytes() != json {
            return Err(TokenError::NonCanonical);
        }
        Ok((claims, &key.kid))
    }
}

/// The decoder refuses padding, white space, other alphabets and spare bits, so a MAC has one spelling.
fn decode_mac(text: &str) -> Option<[u8; MAC_LEN]> {
    let mut mac = [0; MAC_LEN];
    if text.len() != MAC_CHARS {
        return None;
    }
    BASE64URL_NOPAD.decode_mut(text.as_bytes(), &mut mac).ok()?;
    Some(mac)
}

/// For the metric alone: a header of our form names a key that we lack; any other was never ours.
fn why_not_ours(header: &str) -> TokenError {
    let Ok(json) = BASE64URL_NOPAD.decode(header.as_bytes()) else {
        return TokenError::Malformed;
    };
    let kid = json.strip_prefix(HEADER_HEAD.as_bytes()).and_then(|rest| rest.strip_suffix(HEADER_TAIL.as_bytes()));
    match kid {
        Some(kid) if !kid.contains(&b'"') => TokenError::UnknownKey,
        Some(_) | None => TokenError::NonCanonical,
    }
}

#[cfg(test)]
mod tests;
