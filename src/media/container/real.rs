//! RealMedia and RealAudio: chunks of four letters and a size.

use crate::media::{
    Facts, Found, Kind, Provenance,
    reader::{Broken, Bytes, Fields, Walk},
};

pub(super) fn probe(bytes: &mut Bytes<'_>, head: &[u8]) -> Option<Found> {
    if head.starts_with(b".ra\xFD") {
        let mut found = Found::plain("audio/x-pn-realaudio");
        sound(head, &mut found.facts);
        return Some(found);
    }
    if !head.starts_with(b".RMF") {
        return None;
    }
    let mut found = Found::of("application/vnd.rn-realmedia");
    let walk = walk(bytes, &mut found.facts);
    found.facts.settle(walk);
    // The name does not say whether there is anything to see.
    if found.facts.width.is_none() && found.facts.channels.is_some() {
        found.kind = Kind::Audio;
    }
    Some(found)
}

fn walk(bytes: &mut Bytes<'_>, facts: &mut Facts) -> Walk {
    let mut at = 0;
    while at + 8 <= bytes.size() {
        bytes.step()?;
        let name: [u8; 4] = bytes.array(at)?;
        let length = u64::from(bytes.be32(at + 4)?);
        match &name {
            b"PROP" => facts.lasts_ticks(bytes.be32(at + 30)?.into(), 1000, Provenance::Container),
            b"MDPR" => stream(bytes, facts, at)?,
            b"DATA" if length == 0 => return Ok(()),
            b"DATA" | b"CONT" | b".RMF" | b"INDX" => {}
            _ if name.iter().all(u8::is_ascii_alphanumeric) => {}
            _ => return Err(Broken::Bad),
        }
        if length < 8 {
            return Err(Broken::Bad);
        }
        at += length;
        bytes.reaches(at)?;
    }
    Ok(())
}

/// A stream's type-specific data, behind two names of stated length.
fn stream(bytes: &mut Bytes<'_>, facts: &mut Facts, at: u64) -> Walk {
    let names = at + 40;
    let first = u64::from(bytes.u8(names)?);
    let second = u64::from(bytes.u8(names + 1 + first)?);
    let data = names + 1 + first + 1 + second;
    let header = bytes.peek(data + 4, 128).to_vec();
    if header.starts_with(b".ra\xFD") {
        sound(&header, facts);
    } else if header.has(4, b"VIDO") {
        facts.size(header.be16(12).unwrap_or(0).into(), header.be16(14).unwrap_or(0).into());
    }
    Ok(())
}

/// RealAudio's header, in the versions that state rate and channels.
fn sound(header: &[u8], facts: &mut Facts) {
    let (rate, channels) = match header.be16(4) {
        Some(3) => (Some(8_000), Some(1)),
        Some(4) => (header.be16(48), header.be16(54)),
        Some(5) => (header.be16(54), header.be16(60)),
        _ => return,
    };
    facts.sound(channels.unwrap_or(0).into(), rate.unwrap_or(0).into());
    facts.coded("realaudio");
}

#[cfg(test)]
mod tests {
    use crate::media::{Kind, tests::look};

    #[test]
    fn sound_alone_is_sound() {
        let mut stream = vec![0; 40];
        stream[..4].copy_from_slice(b"MDPR");
        // Two names of no length, the length of what follows, and RealAudio's header of version 4.
        stream.extend([0, 0, 0, 0, 0, 56]);
        stream.extend(b".ra\xFD\0\x04");
        stream.resize(46 + 56, 0);
        stream[46 + 48..46 + 50].copy_from_slice(&44_100u16.to_be_bytes());
        stream[46 + 55] = 2;
        stream[7] = stream.len() as u8;
        let found = look(&[b".RMF\0\0\0\x12\0\0\0\0\0\0\0\0\0\x01".as_slice(), &stream].concat());
        assert_eq!((found.kind, found.facts.channels, found.facts.sample_rate), (Kind::Audio, Some(2), Some(44_100)));
    }

    #[test]
    fn properties_tell_the_length() {
        let header = b".RMF\0\0\0\x12\0\0\0\0\0\0\0\0\0\x01";
        let mut prop = b"PROP\0\0\0\x32".to_vec();
        prop.resize(50, 0);
        prop[30..34].copy_from_slice(&2_500u32.to_be_bytes());
        let found = look(&[header.as_slice(), &prop].concat());
        assert_eq!(
            (found.mime_type.as_str(), found.facts.duration_seconds),
            ("application/vnd.rn-realmedia", Some(2.5))
        );
        assert!(found.facts.well_formed);
    }
}
