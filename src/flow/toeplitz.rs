//! The hash that selects an entry of the RSS table: Toeplitz, as Microsoft's RSS specification defines it ("Verifying
//! the RSS Hash Calculation" has its test values), and the kernel's transformations of its input (`RXH_XFRM_*`,
//! `Documentation/networking/scaling.rst`).

use std::net::IpAddr;

use crate::flow::ends::Flow;

/// Returns the hashed bytes in the order of the specification: source and destination address, then the ports, if
/// hashed.
pub(super) fn input(flow: &Flow, with_ports: bool, transform: u8) -> Vec<u8> {
    let octets = |address: IpAddr| match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let mut bytes = pair(
        transform,
        &octets(flow.source.ip()),
        &octets(flow.destination.ip()),
    );
    if with_ports {
        let [source, destination] =
            [flow.source, flow.destination].map(|end| end.port().to_be_bytes());
        bytes.extend(pair(transform, &source, &destination));
    }
    bytes
}

/// `RXH_XFRM_*`: a source and a destination field both become source XOR destination, so that both directions of a
/// connection have one hash; or the first becomes source OR destination, the second source XOR destination.
pub(super) const XOR: u8 = 1;
pub(super) const OR_XOR: u8 = 2;

fn pair(transform: u8, source: &[u8], destination: &[u8]) -> Vec<u8> {
    let zip = |combine: fn((&u8, &u8)) -> u8| source.iter().zip(destination).map(combine);
    let xor = || zip(|(a, b)| a ^ b);
    match transform {
        XOR => xor().chain(xor()).collect(),
        OR_XOR => zip(|(a, b)| a | b).chain(xor()).collect(),
        _ => [source, destination].concat(),
    }
}

/// Combines by XOR, for each set bit, the 32 bits of the key from the same position on. `None` if the key is too short.
pub fn toeplitz(key: &[u8], input: &[u8]) -> Option<u32> {
    let window = |bit: usize| -> Option<u32> {
        let wide = key
            .get(bit / 8..bit / 8 + 5)?
            .iter()
            .fold(0_u64, |wide, &byte| wide << 8 | u64::from(byte));
        u32::try_from(wide >> (8 - bit % 8) & 0xffff_ffff).ok()
    };
    (0..input.len() * 8)
        .filter(|bit| input[bit / 8] << (bit % 8) & 0x80 != 0)
        .try_fold(0, |hash, bit| Some(hash ^ window(bit)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::ends::Protocol;

    /// The key of the specification's test values.
    const KEY: [u8; 40] = [
        0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f,
        0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
        0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
    ];

    /// Source, destination, the hash of the addresses, and that with the ports.
    const VERIFICATION: [(&str, &str, u32, u32); 8] = [
        (
            "66.9.149.187:2794",
            "161.142.100.80:1766",
            0x323e_8fc2,
            0x51cc_c178,
        ),
        (
            "199.92.111.2:14230",
            "65.69.140.83:4739",
            0xd718_262a,
            0xc626_b0ea,
        ),
        (
            "24.19.198.95:12898",
            "12.22.207.184:38024",
            0xd2d0_a5de,
            0x5c2b_394a,
        ),
        (
            "38.27.205.30:48228",
            "209.142.163.6:2217",
            0x8298_9176,
            0xafc7_327f,
        ),
        (
            "153.39.163.191:44251",
            "202.188.127.2:1303",
            0x5d18_09c5,
            0x10e8_28a2,
        ),
        (
            "[3ffe:2501:200:1fff::7]:2794",
            "[3ffe:2501:200:3::1]:1766",
            0x2cc1_8cd5,
            0x4020_7d3d,
        ),
        (
            "[3ffe:501:8::260:97ff:fe40:efab]:14230",
            "[ff02::1]:4739",
            0x0f0c_461c,
            0xdde5_1bbf,
        ),
        (
            "[3ffe:1900:4545:3:200:f8ff:fe21:67cf]:44251",
            "[fe80::200:f8ff:fe21:67cf]:38024",
            0x4b61_e985,
            0x02d1_feef,
        ),
    ];

    #[test]
    fn the_specifications_test_values() {
        for (source, destination, addresses, ports) in VERIFICATION {
            let [source, destination] = [source, destination].map(|end| end.parse().unwrap());
            let flow = Flow::new(Protocol::Tcp, source, destination);
            let hash = |with_ports| toeplitz(&KEY, &input(&flow, with_ports, 0));
            assert_eq!(
                (hash(false), hash(true)),
                (Some(addresses), Some(ports)),
                "{source}"
            );
        }
    }

    #[test]
    fn a_short_key_hashes_nothing() {
        assert_eq!(toeplitz(&KEY[..15], &[0xff; 12]), None);
        assert_eq!(toeplitz(&KEY[..16], &[0xff; 12]).map(|_| ()), Some(()));
    }

    proptest::proptest! {
        #[test]
        fn symmetric_input_has_one_hash_for_both_directions(a: u32, b: u32, from: u16, to: u16, bits in 1..=2_u8) {
            let end = |address: u32, port| (std::net::Ipv4Addr::from(address), port).into();
            let (source, destination) = (end(a, from), end(b, to));
            let there = Flow::new(Protocol::Udp, source, destination);
            let back = Flow::new(Protocol::Udp, destination, source);
            let hash = |flow| toeplitz(&KEY, &input(flow, true, bits));
            proptest::prop_assert_eq!(hash(&there), hash(&back));
        }

        #[test]
        fn the_hash_is_linear(a: [u8; 36], b: [u8; 36]) {
            let both: Vec<u8> = a.iter().zip(b).map(|(a, b)| a ^ b).collect();
            let hash = |input: &[u8]| toeplitz(&KEY, input).unwrap();
            proptest::prop_assert_eq!(hash(&both), hash(&a) ^ hash(&b));
        }
    }
}
