//! Keys sort as they must, and read back.

use proptest::prelude::*;

use super::*;

fn tenant(name: &str) -> TenantId {
    TenantId::parse(name).expect("a tenant")
}

#[test]
fn the_range_of_a_tenant_has_nothing_of_another() {
    let own = Key::of(Space::Assets, &tenant("a"));
    for other in ["ab", "a-", "a.", "A", "b"] {
        let key = Key::asset(&tenant(other), AssetId::from_bytes([0xff; 16]));
        assert!(key.as_bytes() < own.as_bytes() || key.as_bytes() >= own.end().as_slice(), "{other}");
    }
    let inside = Key::asset(&tenant("a"), AssetId::from_bytes([0xff; 16]));
    assert!(inside.as_bytes() >= own.as_bytes() && inside.as_bytes() < own.end().as_slice());
}

#[test]
fn the_newest_reference_comes_first() {
    let (tenant, asset) = (tenant("a"), AssetId::from_bytes([7; 16]));
    let run = |name: &str| RunId::parse(name).expect("a run");

    let older = Key::asset_run(&tenant, asset, 0, &run("a"));
    let newer = Key::asset_run(&tenant, asset, 1, &run("b"));
    assert!(newer.as_bytes() < older.as_bytes());
}

#[test]
fn the_last_key_of_a_space_is_before_its_end() {
    let space = Key::space(Space::Waiting);
    assert!(Key::waiting(u64::MAX).as_bytes() < space.end().as_slice());
    assert_eq!(Key(vec![b'A', 0xff, 0xff]).end(), vec![b'B']);
}

fn times() -> impl Strategy<Value = Timestamp> {
    let (least, most) = (Timestamp::MIN.as_nanosecond(), Timestamp::MAX.as_nanosecond());
    prop_oneof![Just(least), Just(most), least..=most]
        .prop_map(|nanos| Timestamp::from_nanosecond(nanos).expect("a time in range"))
}

proptest! {
    #[test]
    fn looks_sort_by_time_and_read_back(one in times(), other in times(), id in any::<[u8; 16]>(), run in "[a-z~:]{1,9}") {
        let asset = Look { tenant: tenant("acme"), at: LookAt::Asset(AssetId::from_bytes(id)), due: one };
        let run = Look { tenant: tenant("b"), at: LookAt::Run(RunId::parse(&run).expect("a run")), due: other };
        let keys = [&asset, &run].map(|look| Key::look(look.due, &look.tenant, &look.at));

        if one != other {
            prop_assert_eq!(keys[0].as_bytes() < keys[1].as_bytes(), one < other);
        }
        prop_assert_eq!(Parts::of(keys[0].as_bytes()).look().expect("our own key reads"), asset);
        prop_assert_eq!(Parts::of(keys[1].as_bytes()).look().expect("our own key reads"), run);
    }
}
