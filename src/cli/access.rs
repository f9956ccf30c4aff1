//! `access hash-key`: a new API key, and the lines that let it in.

use clap::Subcommand;
use mediakeep::access::{Scope, hash_secret, is_key_id, new_secret};
use mediakeep_storage::TenantId;

use crate::Failure;

#[derive(Debug, Subcommand)]
pub(crate) enum Access {
    /// Make an API key. It is shown once, on stderr; the lines for the settings file go to stdout.
    HashKey {
        /// The part of the key that may be seen: 1 to 64 of a-z 0-9 -.
        #[arg(long)]
        id: String,
        /// Whose key it is.
        #[arg(long)]
        tenant: String,
        /// What it allows, separated by commas.
        #[arg(long, value_delimiter = ',', required = true)]
        scopes: Vec<String>,
    },
}

impl Access {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let Self::HashKey { id, tenant, scopes } = self;
        if !is_key_id(&id) {
            return Err(Failure::BadUse(format!("{id:?} is not a key id: 1 to 64 of a-z 0-9 -")));
        }
        if TenantId::parse(&tenant).is_err() {
            return Err(Failure::BadUse(format!("{tenant:?} is not a tenant")));
        }
        if let Some(unknown) = scopes.iter().find(|name| Scope::parse(name).is_none()) {
            let known: Vec<&str> = Scope::ALL.into_iter().map(Scope::name).collect();
            return Err(Failure::BadUse(format!("{unknown:?} is not a scope; they are {}", known.join(", "))));
        }
        let secret = new_secret();
        eprintln!("mk_{id}_{secret}");
        println!("[[access.api_keys]]");
        println!("id = {id:?}\ntenant = {tenant:?}\nscopes = {scopes:?}");
        println!("secret_sha256 = {:?}", hash_secret(&secret));
        Ok(())
    }
}
