//! Cursors: where the next page begins. They are opaque to callers, and one of another list, another tenant or another shape is refused.

use data_encoding::BASE64URL_NOPAD;
use mediakeep_storage::TenantId;
use ring::digest;

use crate::error::ApiError;

/// A list: whose, and of what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List<'t> {
    tenant: &'t TenantId,
    name: String,
}

/// So many bytes of a digest tell one list from all others. No secret hangs on them: whoever forges a cursor sees his own list.
const MARK: usize = 9;

impl<'t> List<'t> {
    /// The list of that name.
    pub fn new(tenant: &'t TenantId, name: impl Into<String>) -> Self {
        Self { tenant, name: name.into() }
    }

    /// A cursor behind the entry `last`.
    pub fn cursor(&self, last: &str) -> String {
        BASE64URL_NOPAD.encode(&[&self.mark(last), last.as_bytes()].concat())
    }

    /// The entry behind which the page begins.
    pub fn after<T>(&self, raw: Option<&str>, parse: impl Fn(&str) -> Option<T>) -> Result<Option<T>, ApiError> {
        let Some(raw) = raw else {
            return Ok(None);
        };
        let bytes = BASE64URL_NOPAD.decode(raw.as_bytes()).ok();
        let last = bytes.as_deref().and_then(|bytes| self.last(bytes));
        last.and_then(parse).map(Some).ok_or_else(|| ApiError::validation("cursor: not one of this list"))
    }

    fn last<'b>(&self, bytes: &'b [u8]) -> Option<&'b str> {
        let (mark, last) = bytes.split_at_checked(MARK)?;
        let last = std::str::from_utf8(last).ok()?;
        (mark == self.mark(last)).then_some(last)
    }

    fn mark(&self, last: &str) -> Vec<u8> {
        let text = format!("{}\n{}\n{last}", self.tenant, self.name);
        digest::digest(&digest::SHA256, text.as_bytes()).as_ref()[..MARK].to_vec()
    }
}

/// How many entries the page has.
pub fn limit(raw: Option<&str>, default: usize, most: usize) -> Result<usize, ApiError> {
    let Some(raw) = raw else {
        return Ok(default);
    };
    match raw.parse() {
        Ok(limit) if (1..=most).contains(&limit) => Ok(limit),
        _ => Err(ApiError::validation(format!("limit: 1 to {most}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_good_for_its_own_list_alone() {
        let tenant = |name: &str| TenantId::parse(name).expect("a tenant");
        let (acme, globex) = (tenant("acme"), tenant("globex"));
        let runs = List::new(&acme, "runs");
        let made = runs.cursor("run-7");
        let read = |list: &List<'_>, raw: &str| list.after(Some(raw), |last| Some(last.to_owned())).ok().flatten();

        assert_eq!(read(&runs, &made), Some("run-7".into()));
        assert_eq!(read(&List::new(&acme, "assets"), &made), None);
        assert_eq!(read(&List::new(&globex, "runs"), &made), None);
        for broken in ["", "!", "cnVucw", &made[1..], &made[..made.len() - 1]] {
            assert_eq!(read(&runs, broken), None, "{broken}");
        }
    }
}
