//! Secrets and tokens: the key ring, the capability tokens that it signs, and the JWTs of other issuers that it checks.
//!
//! This crate knows nothing of storage, HTTP, configuration, the environment or the clock. A path is read because it was
//! handed in, `now` is a parameter (unix seconds), and chance comes from the operating system by way of `ring`.
//!
//! # What the holder of a thing can do, and cannot
//!
//! | who holds | can | cannot |
//! | --- | --- | --- |
//! | a **durable token** | read that one asset for as long as the asset lives and its generation is current | read another asset, write, learn a key, make a token, use it in another tenant |
//! | a **delivery token** | the same until `exp`, or until its uses are taken | lengthen its life: `exp` lies under the MAC, and the clock skew never adds to it |
//! | many tokens | nothing more: a MAC tells nothing of its key | find the key of a tenant, or of a ring, from them |
//! | a **log**, a metric or a panic of this process | see `kid`s and the names of errors | see a token or a secret: no error and no `Debug` here holds one |
//! | the **derived key** of one tenant (a memory dump of its cache entry) | forge that tenant's URLs for one `kid` | forge another tenant's: HKDF does not run backwards |
//! | the **ring file**, or a backup with it | forge every URL and every audit signature | read bytes without a service that answers; go on with a key that is retired |
//! | an **issuer's public key** | verify that issuer's JWTs | sign one, in any algorithm: the key says which algorithm it is for, never the token |
//! | an **issuer's HS256 secret** | speak for the tenants that the configuration gives to that issuer | mint a capability: the ring is another secret |
//!
//! So the ring is kept apart from the store and its backups, with mode 0600; whoever may have read it is answered with
//! `rotate` (new URLs hang on the new key) and `retire` (every URL of the old one is dead). Whoever loses the ring loses
//! every durable URL in every run log: it must itself be backed up, under other hands than the bytes.
//!
//! A server may be shown any string as a token. It costs at most one decoding, one key derivation and one MAC;
//! [`capability::MAX_TOKEN`] is looked at first, and no parser of JSON sees a payload before its MAC holds. Only tokens whose
//! MAC held take a place in the cache of derived keys, so strangers cannot push tenants out of it.
//!
//! # What is deliberately absent
//!
//! - No key material in the code, and no default: a ring is generated or read, or there is none.
//! - No choice of algorithm by a token: one typ, one algorithm, one order of members, one spelling. A token is accepted
//!   when minting its claims again gives the same string.
//! - No encryption. A capability URL says its tenant and asset in plain base64url; what must stay unknown is not in it.
//! - No key taken from a token's header (`jwk`, `jku`, `x5u`) and nothing fetched.
//! - No clock: expiry is [`capability::Claims::check_life`] with a `now` from outside.
//! - No revocation, no uses, no generation check: those are facts of the index.
//! - No passphrase on the ring file: a service that restarts alone would keep it beside the ring.
//! - No locking of the ring file: rotating is an operator's act, and two at once lose one of the two new keys.
//!
//! Secrets that are ours are wiped on drop. `ring` does not wipe the contexts that it computes from them (derived MAC keys,
//! the Ed25519 pair), so a memory dump of a live or just ended process is as good as the ring file.
//!
//! The pages in reading order: the ring and its keys, the file they live in, the tokens, then other people's JWTs.

mod ring;

mod audit;
mod key;
mod secret;

mod file;
mod private_file;

pub mod capability;

pub mod issuer;
pub mod provider;

mod error;

pub use self::audit::AuditPublicKey;
pub use self::capability::{Claims, Class, Disposition, LifeError, TokenError};
pub use self::error::KeyError;
pub use self::issuer::{Algorithm, IssuerKey, JwtError, expired_jwt, peek_issuer, verify_jwt};
pub use self::private_file::read_key_file;
pub use self::ring::{KeyInfo, Ring, Role};
