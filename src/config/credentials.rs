//! Amazon's credentials file, for a bucket whose keys do not stand in the environment: a secret that is mounted as a file, say.

use std::path::PathBuf;

use super::ConfigError;

/// The file, and the profile in it.
const FILE: &str = "AWS_SHARED_CREDENTIALS_FILE";
const PROFILE: &str = "AWS_PROFILE";

/// What the file's members are called in the environment.
const MEMBERS: [(&str, &str); 3] = [
    ("aws_access_key_id", "AWS_ACCESS_KEY_ID"),
    ("aws_secret_access_key", "AWS_SECRET_ACCESS_KEY"),
    ("aws_session_token", "AWS_SESSION_TOKEN"),
];

/// Adds the keys of the file that the environment names; keys in the environment itself win, as they do for Amazon's tools.
pub(super) fn add_from_file(environment: &mut Vec<(String, String)>) -> Result<(), ConfigError> {
    let value = |name: &str| environment.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    let Some(file) = value(FILE).map(PathBuf::from) else {
        return Ok(());
    };
    if value("AWS_ACCESS_KEY_ID").is_some() {
        return Ok(());
    }
    let profile = value(PROFILE).unwrap_or_else(|| "default".to_owned());
    let text = std::fs::read_to_string(&file)
        .map_err(|error| ConfigError(format!("{FILE}: {} cannot be read: {error}", file.display())))?;
    let keys = keys(&text, &profile);
    if !["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"].iter().all(|name| keys.iter().any(|(known, _)| known == name)) {
        let why = format!("{FILE}: {} has no keys under [{profile}]: add them, or set {PROFILE}", file.display());
        return Err(ConfigError(why));
    }
    environment.extend(keys);
    Ok(())
}

/// The keys of one profile, by the names that they have in the environment. Lines that are no `name = value` are comments to us.
fn keys(text: &str, profile: &str) -> Vec<(String, String)> {
    let mut here = false;
    let mut keys = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            here = name.trim() == profile;
            continue;
        }
        let Some((name, value)) = line.split_once('=').filter(|_| here) else {
            continue;
        };
        let known = MEMBERS.iter().find(|(member, _)| name.trim().eq_ignore_ascii_case(member));
        keys.extend(known.map(|(_, variable)| ((*variable).to_owned(), value.trim().to_owned())));
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "# ours\n[default]\naws_access_key_id = AKIA1\naws_secret_access_key=s=1\nregion = x\n\n[ other ]\naws_access_key_id = AKIA2\n";

    #[test]
    fn a_profile_has_its_own_keys() {
        let found = keys(TWO, "default");

        let expected = [("AWS_ACCESS_KEY_ID", "AKIA1"), ("AWS_SECRET_ACCESS_KEY", "s=1")];
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(keys(TWO, "other").len(), 1);
        assert!(keys(TWO, "nobody").is_empty());
    }

    #[test]
    fn keys_of_the_environment_win_and_a_file_without_any_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("credentials");
        std::fs::write(&file, TWO).expect("a file");
        let named = |more: &[(&str, &str)]| -> Vec<(String, String)> {
            let file = [(FILE, file.to_str().expect("a plain path"))];
            file.iter().chain(more).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };

        let mut from_file = named(&[]);
        add_from_file(&mut from_file).expect("keys");
        assert!(from_file.contains(&("AWS_ACCESS_KEY_ID".to_owned(), "AKIA1".to_owned())));

        let mut own = named(&[("AWS_ACCESS_KEY_ID", "mine")]);
        add_from_file(&mut own).expect("keys");
        assert_eq!(own.len(), 2);

        let refused = add_from_file(&mut named(&[(PROFILE, "other")])).expect_err("a profile without a secret");
        assert!(refused.to_string().contains("[other]") && !refused.to_string().contains("AKIA"));
    }
}
