//! What a fuzzer asks of the rules, and the same questions for every seed and finding in the ordinary tests.
//!
//! Promised: any bytes get the same answer twice, within the budget, with facts that can be. A group's inputs begin with a signature of
//! that group, so that its parsers are reached at once. Deliberately absent: the libraries; they are not ours, and are asked behind a
//! deadline.

use std::io::Cursor;

use super::{Found, by_rules, reader::Bytes};

/// Signatures of one group of parsers. Its name is that of the fuzzer's target.
#[derive(Debug, Clone, Copy)]
pub struct Group {
    /// The target's name.
    pub name: &'static str,
    signatures: &'static [&'static [u8]],
}

/// Every group; the first lets bytes be what they are.
pub const GROUPS: &[Group] = &[
    Group { name: "sniff", signatures: &[] },
    Group {
        name: "pictures",
        signatures: &[
            b"\x89PNG\r\n\x1A\n",
            b"\xFF\xD8\xFF",
            b"GIF89a",
            b"BM",
            b"\0\0\x01\0\x01\0",
            b"8BPS\0\x01",
            b"icns\0\0",
            b"\x76\x2F\x31\x01",
            b"P6 ",
            b"#?RADIANCE\n",
            b"\xAB\x4B\x54\x58\x20\x31\x31\xBB",
            b"AT&TFORM\0\0\xFF\0DJVM",
        ],
    },
    Group {
        name: "directories",
        signatures: &[b"II*\0\x08\0\0\0", b"MM\0*\0\0\0\x08", b"II+\0\x08\0\0\0", b"II\xBC\x01"],
    },
    Group {
        name: "boxes",
        signatures: &[
            b"\0\0\0\x14ftypisom\0\0\0\0isom",
            b"\0\0\0\x14ftypqt  \0\0\0\0qt  ",
            b"\0\0\0\x14ftypavif\0\0\0\0mif1",
            b"\0\0\0\x14ftypheic\0\0\0\0mif1",
            b"\0\0\0\x08wide\0\0\0\x08free",
            b"\0\0\0\x0CJXL \r\n\x87\n",
            b"\0\0\0\x0CjP  \r\n\x87\n",
            b"\xFF\x0A",
        ],
    },
    Group {
        name: "matroska",
        signatures: &[
            b"\x1A\x45\xDF\xA3\x87\x42\x82\x84webm\x18\x53\x80\x67\x01\xFF\xFF\xFF\xFF\xFF\xFF\xFF",
            b"\x1A\x45\xDF\xA3\x8B\x42\x82\x88matroska",
        ],
    },
    Group { name: "ogg", signatures: &[b"OggS\0\x02", b"OggS\0\x06"] },
    Group {
        name: "chunks",
        signatures: &[
            b"RIFF\xFF\xFF\0\0WAVEfmt ",
            b"RF64\xFF\xFF\xFF\xFFWAVEds64",
            b"RIFX\0\0\xFF\xFFWAVEfmt ",
            b"RIFF\xFF\xFF\0\0WEBPVP8X",
            b"RIFF\xFF\xFF\0\0AVI LIST",
            b"FORM\0\0\xFF\xFFAIFFCOMM",
            b"FORM\0\0\xFF\xFFAIFCCOMM",
            b"caff\0\x01\0\0desc",
            b"riff\x2E\x91\xCF\x11\xA5\xD6\x28\xDB\x04\xC1\0\0",
        ],
    },
    Group {
        name: "sound",
        signatures: &[
            b"\xFF\xFB\x90\0",
            b"ID3\x04\0\0",
            b"\xFF\xF1\x50\x80",
            b"\x0B\x77",
            b"\x56\xE0",
            b"fLaC\0\0\0\x22",
            b"#!AMR\n",
            b".snd\0\0\0\x18",
            b"MThd\0\0\0\x06",
            b"Creative Voice File\x1A",
            b"wvpk",
            b"MAC \x96\x0F",
            b"MPCKSH",
            b"TTA1\x01\0",
            b"FRM8\0\0\0\0\0\0\xFF\0DSD ",
            b"IMPM",
            b"Extended Module: ",
        ],
    },
    Group {
        name: "streams",
        signatures: &[
            b"\0\0\x01\xBA\x44",
            b"\x47\x40\0\x10\0\0\xB0\x0D",
            b"FLV\x01\x05\0\0\0\x09\0\0\0\0",
            b"\x30\x26\xB2\x75\x8E\x66\xCF\x11\xA6\xD9\0\xAA\0\x62\xCE\x6C",
            b".RMF\0\0\0\x12",
            b"\x06\x0E\x2B\x34\x02\x05\x01\x01\x0D\x01\x02\x01\x01\x02\x04\0",
            b"\0\0\x01\xB3",
        ],
    },
    Group {
        name: "packed",
        signatures: &[b"PK\x03\x04", b"PK\x05\x06", b"7z\xBC\xAF\x27\x1C", b"MSCF\0\0\0\0", b"\xFD7zXZ\0"],
    },
    Group { name: "documents", signatures: &[b"%PDF-1.7\n", b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1", b"{\\rtf1", b"%!PS"] },
    Group {
        name: "text",
        signatures: &[
            b"<svg ",
            b"<?xml ",
            b"<!DOCTYPE ",
            b"{\"",
            b"[",
            b"a,b\n",
            b"\xFF\xFE",
            b"\xEF\xBB\xBF",
            b"1\n00:00:",
            b"From: ",
        ],
    },
];

impl Group {
    /// The group of a target.
    pub fn of(name: &str) -> Option<&'static Self> {
        GROUPS.iter().find(|group| group.name == name)
    }

    /// Asks the rules about these bytes, made to begin as the group's do. Panics where something is not as it has to be.
    pub fn ask(&self, data: &[u8]) {
        let begins = self.signatures.iter().any(|signature| data.starts_with(signature));
        let Some(signature) = self.signatures.get(data.len() % self.signatures.len().max(1)).filter(|_| !begins) else {
            return check(data);
        };
        let rest = data.get(signature.len()..).unwrap_or_default();
        check(&[signature, rest].concat());
    }
}

fn check(data: &[u8]) {
    let found = look(data);
    assert_eq!(found, look(data), "the same bytes, another answer");
    let facts = &found.facts;
    assert_eq!(facts.width.is_some(), facts.height.is_some(), "half a size: {facts:?}");
    assert!(
        facts.width != Some(0) && facts.height != Some(0) && facts.frames != Some(0),
        "nothing as a fact: {facts:?}"
    );
    assert!(facts.duration_seconds.is_none_or(|seconds| seconds.is_finite() && seconds >= 0.0), "{facts:?}");
    assert!(found.mime_type.contains('/'), "{found:?}");
}

/// Not `identify`, which would hide a panic.
fn look(data: &[u8]) -> Found {
    let mut source = Cursor::new(data);
    by_rules(&mut Bytes::new(&mut source, data.len() as u64), None)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Our own samples, and what fuzzers once found.
    fn seeds() -> Vec<Vec<u8>> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
        let files = ["fixtures/media", "fuzz/findings"].into_iter().flat_map(|folder| {
            let folder = root.join(folder);
            std::fs::read_dir(&folder).unwrap_or_else(|error| unreachable!("{}: {error}", folder.display()))
        });
        files.map(|file| std::fs::read(file.expect("a file").path()).expect("its bytes")).collect()
    }

    #[test]
    fn every_seed_and_finding_gets_an_answer_from_every_group() {
        let seeds = seeds();
        assert!(seeds.len() > 20, "{}", seeds.len());
        for group in GROUPS {
            seeds.iter().for_each(|seed| group.ask(seed));
        }
    }

    #[test]
    fn every_target_is_a_group() {
        let targets = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/targets");
        for group in GROUPS {
            assert!(targets.join(group.name).with_extension("rs").exists(), "{}", group.name);
        }
        let count = std::fs::read_dir(&targets).expect("a folder").count();
        assert_eq!(count, GROUPS.len());
    }

    /// Every so many of a file's beginnings, and the last few; fuzzers try the rest.
    #[test]
    fn a_seed_cut_anywhere_gets_an_answer() {
        for seed in seeds() {
            let every = (seed.len() / 100).max(1);
            let last = seed.len().saturating_sub(16)..seed.len();
            for length in (0..seed.len()).step_by(every).chain(last) {
                look(&seed[..length]);
            }
        }
    }

    #[test]
    fn a_seed_with_a_wrong_byte_gets_an_answer() {
        for mut seed in seeds() {
            let every = (seed.len() / 30).max(1);
            // Headers say more than what follows them.
            let places: Vec<usize> = (0..seed.len().min(60)).chain((60..seed.len()).step_by(every)).collect();
            for at in places {
                let right = seed[at];
                for wrong in [0, 0x7F, 0xFF] {
                    seed[at] = wrong;
                    look(&seed);
                }
                seed[at] = right;
            }
        }
    }
}
