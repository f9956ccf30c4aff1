//! Which addresses and URLs may be fetched at all. Pure: nothing is asked of the network.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

/// Whether the address is one of the public Internet, by the registries of special-purpose addresses (RFC 6890 and what followed it).
///
/// Of IPv6 only what is given out as global unicast counts, without what carries an IPv4 address inside: mapped, compatible,
/// translated (NAT64), 6to4 and Teredo ones, which lead wherever that address leads.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = match (a, b, c) {
        // This network, this host, private ones, shared ones of carriers.
        (0 | 10 | 127, ..) | (100, 64..=127, _) | (172, 16..=31, _) | (192, 168, _) => true,
        // Link-local, and with it the metadata of cloud machines.
        (169, 254, _) => true,
        // Protocol assignments, documentation, 6to4 relays, benchmarks.
        (192, 0, 0 | 2) | (192, 88, 99) | (198, 18..=19, _) | (198, 51, 100) | (203, 0, 113) => true,
        // Multicast, reserved, broadcast.
        (224.., ..) => true,
        _ => false,
    };
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    match address.segments() {
        // Protocol assignments (Teredo and ORCHID among them), documentation, 6to4.
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x2002, ..] | [0x3fff, 0..=0xfff, ..] => false,
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

/// A URL that may be asked for, as far as it says so itself.
///
/// `raw` is how it was written. A literal IPv4 host has one spelling here: what a lenient parser makes an address of (decimal, octal,
/// hexadecimal, short ones) is meant to get past somebody.
pub fn vet(raw: &str, url: &Url, ports: &[u16]) -> Result<(), &'static str> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err("only http and https are fetched");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("a URL with a user is not fetched");
    }
    if !url.port_or_known_default().is_some_and(|port| ports.contains(&port)) {
        return Err("its port is not among remote.allow_ports");
    }
    match url.host() {
        None => Err("it has no host"),
        Some(Host::Ipv4(address)) if !is_spelled(raw, address) => Err("its host is a disguised address"),
        // Whatever a resolver makes of them (RFC 6761 §6.3).
        Some(Host::Domain(name)) if is_local(name) => Err("its host is this machine"),
        Some(_) => Ok(()),
    }
}

fn is_local(name: &str) -> bool {
    let name = name.trim_end_matches('.');
    name == "localhost" || name.ends_with(".localhost")
}

/// Whether the address, where it stands in the URL at all, stands there as everybody writes it. A relative one names no host.
fn is_spelled(raw: &str, address: Ipv4Addr) -> bool {
    // What a parser takes for something else, or drops (WHATWG URL §4.4).
    let raw = raw.trim().replace('\\', "/");
    if raw.contains(['\t', '\n', '\r']) {
        return false;
    }
    let is_scheme = |text: &str| text.eq_ignore_ascii_case("http") || text.eq_ignore_ascii_case("https");
    let rest = match raw.split_once(':') {
        Some((scheme, rest)) if is_scheme(scheme) => rest,
        _ if raw.starts_with("//") => &raw,
        _ => return true,
    };
    let host = rest.strip_prefix("//").and_then(|rest| rest.split(['/', '?', '#', ':']).next());
    host == Some(address.to_string().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_address_that_leads_inside_is_public() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::ffff:127.0.0.1",
            "::ffff:8.8.8.8",
            "::8.8.8.8",
            "64:ff9b::7f00:1",
            "64:ff9b::808:808",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:10::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:808:808::",
            "3fff::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_public(address.parse().expect("an address")), "{address}");
        }
    }

    #[test]
    fn addresses_of_the_internet_are_public() {
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "223.255.255.255",
            "2001:4860:4860::8888",
            "2606:4700::1111",
            "2a00:1450::1",
            "2001:200::1",
        ] {
            assert!(is_public(address.parse().expect("an address")), "{address}");
        }
    }

    fn vetted(raw: &str) -> Result<(), &'static str> {
        vet(raw, &Url::parse(raw).expect("a URL"), &[80, 443])
    }

    #[test]
    fn a_url_says_by_itself_when_it_is_not_to_be_fetched() {
        for raw in [
            "ftp://example.com/",
            "file:///etc/passwd",
            "gopher://example.com/",
            "data:text/plain,x",
            "http://user@example.com/",
            "http://user:word@example.com/",
            "http://:word@example.com/",
            "http://example.com:8080/",
            "https://example.com:22/",
            "http://localhost/",
            "http://LOCALHOST./",
            "http://printer.localhost/",
        ] {
            assert!(vetted(raw).is_err(), "{raw}");
        }
        for raw in [
            "http://example.com",
            "https://example.com:443/a?b#c",
            "HTTP://EXAMPLE.com:80/",
            "http://8.8.8.8/x",
            "http://[2606:4700::1111]/",
        ] {
            assert_eq!(vetted(raw), Ok(()), "{raw}");
        }
    }

    #[test]
    fn an_address_has_one_spelling() {
        for raw in [
            "http://2130706433/",
            "http://134744072/",
            "http://0x7f000001/",
            "http://0x7f.0.0.1/",
            "http://0177.0.0.1/",
            "http://127.1/",
            "http://8.8.2056/",
            "http://010.8.8.8/",
            "http:\\\\134744072/",
            "http://8.8.8.8./",
            "http://%38.8.8.8/",
            "http://８.8.8.8/",
            "http:134744072",
            "http:/8.8.8.8/",
            "http:///8.8.8.8/",
            "ht\ttp://134744072/",
            "http:\n//134744072/",
        ] {
            assert!(vetted(raw).is_err(), "{raw}");
        }
    }

    #[test]
    fn a_redirect_that_names_no_host_stays_where_it_is() {
        let base = Url::parse("http://8.8.8.8/a/b").expect("a URL");
        for location in ["/c//d", "c", "?x=//y", "//8.8.8.8/c", "http://8.8.8.8/c", "../c"] {
            assert_eq!(vet(location, &base.join(location).expect("a URL"), &[80]), Ok(()), "{location}");
        }
        for location in ["//134744072/", "http://134744072/", "\\\\0x8080808", "//8.8.2056/", "//u@8.8.8.8/"] {
            assert!(vet(location, &base.join(location).expect("a URL"), &[80]).is_err(), "{location}");
        }
    }

    #[test]
    fn an_address_with_a_zone_is_no_url() {
        for raw in ["http://[fe80::1%25eth0]/", "http://[fe80::1%eth0]/", "http://[::1%25lo]/"] {
            assert!(Url::parse(raw).is_err(), "{raw}");
        }
    }
}
