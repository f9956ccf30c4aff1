//! A public key out of a PEM: the three kinds that are used, and a name for everything else.
//!
//! `jsonwebtoken` reads PEM too, but takes a private key or a certificate for a public one, takes any curve with points of
//! 65 bytes for P-256, and has one error for everything. An operator with the wrong file deserves to hear which it is.

use data_encoding::BASE64;

/// A public key, as `ring` wants its bytes.
pub(super) enum PublicKey {
    Rsa { pkcs1: Vec<u8> },
    P256 { point: Vec<u8> },
    Ed25519 { point: Vec<u8> },
}

impl PublicKey {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Rsa { .. } => "an RSA public key",
            Self::P256 { .. } => "a P-256 public key",
            Self::Ed25519 { .. } => "an Ed25519 public key",
        }
    }
}

/// The public key in a PEM, or what the file holds instead.
pub(super) fn read(pem: &[u8]) -> Result<PublicKey, &'static str> {
    let block = Block::find(pem).ok_or("no PEM")?;
    if block.label != "PUBLIC KEY" {
        return Err(name_of(block.label));
    }
    if block.is_followed_by_another {
        return Err("more than one PEM block (several keys go into a jwks_file)");
    }
    let der = block.decode().ok_or("a PEM whose base64 is broken")?;
    read_spki(&der)
}

/// What a file is, if it is a PEM at all.
pub(super) fn describe(bytes: &[u8]) -> Option<&'static str> {
    Block::find(bytes).map(|block| name_of(block.label))
}

/// The content of each kind's AlgorithmIdentifier (RFC 3279, 5480, 8410): compared whole, curve included.
const RSA: &[u8] = &[0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00];
const P256: &[u8] = &[
    0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, // id-ecPublicKey
    0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, // prime256v1
];
const ANY_EC: &[u8] = &[0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const ED25519: &[u8] = &[0x06, 0x03, 0x2b, 0x65, 0x70];

fn read_spki(der: &[u8]) -> Result<PublicKey, &'static str> {
    let (algorithm, key) = split_spki(der).ok_or("a public key whose DER is broken")?;
    match algorithm {
        RSA => {
            let modulus = modulus_of(key).ok_or("an RSA public key whose DER is broken")?;
            check_modulus(modulus)?;
            Ok(PublicKey::Rsa { pkcs1: key.to_vec() })
        }
        P256 if key.len() == 65 && key[0] == 4 => Ok(PublicKey::P256 { point: key.to_vec() }),
        P256 => Err("a P-256 public key that is not an uncompressed point"),
        ED25519 if key.len() == 32 => Ok(PublicKey::Ed25519 { point: key.to_vec() }),
        other if other.starts_with(ANY_EC) => Err("an EC public key on another curve than P-256"),
        _ => Err("a public key of another kind"),
    }
}

/// The bounds of the verification that is used; a key outside them would refuse every token at run time.
pub(super) fn check_modulus(modulus: &[u8]) -> Result<(), &'static str> {
    let modulus = strip_zeros(modulus);
    let bits = modulus.len() * 8 - modulus.first().map_or(0, |first| first.leading_zeros() as usize);
    match bits {
        ..2048 => Err("an RSA public key under 2048 bits"),
        2048..=8192 => Ok(()),
        _ => Err("an RSA public key over 8192 bits"),
    }
}

/// A number without the zeros before it.
pub(super) fn strip_zeros(number: &[u8]) -> &[u8] {
    let first = number.iter().position(|&byte| byte != 0).unwrap_or(number.len());
    &number[first..]
}

/// SubjectPublicKeyInfo ::= SEQUENCE { AlgorithmIdentifier, BIT STRING }
fn split_spki(der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (spki, rest) = element(der, SEQUENCE)?;
    let (algorithm, bits) = element(spki, SEQUENCE)?;
    let (key, after) = element(bits, BIT_STRING)?;
    let whole_bytes = key.first() == Some(&0);
    (rest.is_empty() && after.is_empty() && whole_bytes).then(|| (algorithm, &key[1..]))
}

/// RSAPublicKey ::= SEQUENCE { INTEGER n, INTEGER e }
fn modulus_of(pkcs1: &[u8]) -> Option<&[u8]> {
    let (numbers, rest) = element(pkcs1, SEQUENCE)?;
    let (modulus, exponent) = element(numbers, INTEGER)?;
    let (_, after) = element(exponent, INTEGER)?;
    (rest.is_empty() && after.is_empty()).then_some(modulus)
}

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const SEQUENCE: u8 = 0x30;

/// One DER element with that tag: its content, and what follows it. Lengths beyond two bytes are no key's.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (length, body) = match der {
        [found, length @ 0..=0x7f, body @ ..] if *found == tag => (usize::from(*length), body),
        [found, 0x81, length, body @ ..] if *found == tag => (usize::from(*length), body),
        [found, 0x82, high, low, body @ ..] if *found == tag => (usize::from(u16::from_be_bytes([*high, *low])), body),
        _ => return None,
    };
    body.split_at_checked(length)
}

fn name_of(label: &str) -> &'static str {
    match label {
        "PUBLIC KEY" => "a public key",
        "RSA PUBLIC KEY" => {
            "an RSA public key in the form of PKCS #1 (`openssl rsa -RSAPublicKey_in -pubout` converts it)"
        }
        "CERTIFICATE" => "a certificate (`openssl x509 -pubkey -noout` takes the key out of it)",
        _ if label.ends_with("PRIVATE KEY") => "a private key (`openssl pkey -pubout` gives its public half)",
        _ => "a PEM of another kind",
    }
}

/// The first block of a PEM file (RFC 7468); text before it is passed over, as every reader of PEM does.
struct Block<'a> {
    label: &'a str,
    body: &'a str,
    is_followed_by_another: bool,
}

impl<'a> Block<'a> {
    fn find(pem: &'a [u8]) -> Option<Self> {
        const BEGIN: &str = "-----BEGIN ";
        let text = std::str::from_utf8(pem).ok()?;
        let (_, after) = text.split_once(BEGIN)?;
        let (label, after) = after.split_once("-----")?;
        let (body, after) = after.split_once("-----END ")?;
        after.strip_prefix(label)?.strip_prefix("-----")?;
        Some(Self { label, body, is_followed_by_another: after.contains(BEGIN) })
    }

    fn decode(&self) -> Option<Vec<u8>> {
        let base64: Vec<u8> = self.body.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        BASE64.decode(&base64).ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PEM: &str = include_str!("../../fixtures/rsa_public.pem");

    #[test]
    fn line_ends_and_text_around_the_block_do_not_matter() {
        for pem in [PEM.replace('\n', "\r\n"), format!("our key:\n{PEM}\n# end"), PEM.trim_end().to_owned()] {
            assert!(read(pem.as_bytes()).is_ok(), "{pem}");
        }
    }

    #[test]
    fn two_keys_in_one_file_are_refused() {
        let error = read(format!("{PEM}{PEM}").as_bytes()).err();
        assert!(error.expect("there are two").contains("more than one"));
    }

    #[test]
    fn a_block_that_is_cut_or_changed_is_refused() {
        for length in 0..PEM.trim_end().len() {
            assert!(read(&PEM.as_bytes()[..length]).is_err(), "{length}");
        }
        let block = Block::find(PEM.as_bytes()).expect("it is a PEM");
        let der = block.decode().expect("it is whole");
        for length in 0..der.len() {
            assert!(read_spki(&der[..length]).is_err(), "{length}");
        }
        let longer = [der.as_slice(), &[0]].concat();
        assert!(read_spki(&longer).is_err());
    }

    #[test]
    fn bits_are_counted_from_the_first_that_is_set() {
        let number = |first: u8, rest: usize| [vec![0, first], vec![0xff; rest]].concat();
        for (modulus, good) in [
            (number(0x80, 255), true),
            (number(0x7f, 255), false),
            (number(0xff, 1023), true),
            (number(0x01, 1024), false),
            (vec![], false),
            (vec![0; 300], false),
        ] {
            assert_eq!(check_modulus(&modulus).is_ok(), good);
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..128)) {
            let _ = (read(&bytes).is_ok(), read_spki(&bytes).is_ok());
        }
    }
}
