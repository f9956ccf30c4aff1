//! Which address a request comes from, behind proxies or not.

use std::net::{IpAddr, SocketAddr};

/// The client's address: the peer's, or, if the peer is a proxy that is trusted, the right-most one of `X-Forwarded-For` that is none.
/// Each proxy adds on the right whom it spoke to; what stands further left is anybody's word.
pub fn address<'a>(peer: IpAddr, forwarded: impl DoubleEndedIterator<Item = &'a str>, trusted: &[IpAddr]) -> IpAddr {
    let is_trusted = |address: &IpAddr| trusted.contains(address);
    let mut client = peer.to_canonical();
    let mut hops = forwarded.rev().flat_map(|line| line.rsplit(','));
    while is_trusted(&client) {
        // A trusted proxy that names nobody, or nonsense, is itself the client.
        let Some(hop) = hops.next().and_then(parse) else {
            break;
        };
        client = hop;
    }
    client
}

/// An address, with or without a port.
fn parse(hop: &str) -> Option<IpAddr> {
    let hop = hop.trim();
    let bare = hop.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(hop);
    let address = bare.parse::<IpAddr>().ok().or_else(|| Some(hop.parse::<SocketAddr>().ok()?.ip()));
    address.map(|address| address.to_canonical())
}

/// By what clients are told apart: an IPv4 address, or the network of an IPv6 one, since who has one address there has all of /64.
pub fn network(address: IpAddr) -> u128 {
    match address.to_canonical() {
        IpAddr::V4(v4) => u128::from(v4.to_bits()),
        IpAddr::V6(v6) => v6.to_bits() >> 64 << 64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_is_the_right_most_address_that_is_no_trusted_proxy() {
        for (peer, forwarded, client) in [
            ("203.0.113.9", &["198.51.100.1"][..], "203.0.113.9"),
            ("10.0.0.1", &[], "10.0.0.1"),
            ("10.0.0.1", &["198.51.100.1"], "198.51.100.1"),
            ("10.0.0.1", &["192.0.2.7, 198.51.100.1"], "198.51.100.1"),
            ("10.0.0.1", &["192.0.2.7, 198.51.100.1,10.0.0.2"], "198.51.100.1"),
            ("10.0.0.1", &["192.0.2.7", "198.51.100.1", "10.0.0.2"], "198.51.100.1"),
            ("10.0.0.1", &["198.51.100.1:4711"], "198.51.100.1"),
            ("10.0.0.1", &["[2001:db8::1]:4711"], "2001:db8::1"),
            ("10.0.0.1", &["[2001:db8::1]"], "2001:db8::1"),
            ("10.0.0.1", &["198.51.100.1, unknown"], "10.0.0.1"),
            ("10.0.0.1", &["198.51.100.1, unknown, 10.0.0.2"], "10.0.0.2"),
            ("10.0.0.1", &["10.0.0.2"], "10.0.0.2"),
            ("::ffff:10.0.0.1", &["::ffff:198.51.100.1"], "198.51.100.1"),
        ] {
            let trusted = ["10.0.0.1", "10.0.0.2"].map(|address| address.parse().expect("an address"));
            let found = address(peer.parse().expect("an address"), forwarded.iter().copied(), &trusted);
            assert_eq!(found, client.parse::<IpAddr>().expect("an address"), "{peer} {forwarded:?}");
        }
    }

    #[test]
    fn a_client_is_an_ipv4_address_or_an_ipv6_network() {
        let of = |address: &str| network(address.parse().expect("an address"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
        assert_eq!(of("192.0.2.1"), of("::ffff:192.0.2.1"));
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
    }
}
