//! Tests of [`InFlight`].

use std::collections::HashMap;

use super::super::{InFlight, IncomingKey, Refused};
use super::support::{Random, rounds};

/// The simplest id that has a type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Id {
    Integer(u64),
    Text(&'static str),
}
use Id::{Integer, Text};

#[test]
fn ids_differ_by_type_and_none_is_special() {
    let mut table = InFlight::<Id, &str>::new(9);
    let ids = [Integer(9), Text("9"), Integer(0), Text("0"), Text("")];
    let keys: Vec<_> = ids
        .iter()
        .map(|id| table.insert(id.clone(), "").unwrap())
        .collect();
    for (id, key) in ids.iter().zip(&keys) {
        assert_eq!(table.find(id), Some(*key));
        assert_eq!(table.id(*key), Some(id));
    }
    assert_eq!(table.remove(keys[0]), Some((Integer(9), "")));
    assert_eq!(table.find(&Integer(9)), None);
    assert_eq!(table.find(&Text("9")), Some(keys[1]));
}

#[test]
fn a_duplicate_is_refused_and_the_first_is_untouched() {
    let mut table = InFlight::new(9);
    let first = table.insert(Integer(1), "first").unwrap();
    assert_eq!(
        table.insert(Integer(1), "second"),
        Err(Refused::Duplicate(first))
    );
    assert_eq!(table.get(first), Some(&"first"));
    assert_eq!(table.len(), 1);
}

#[test]
fn an_id_may_be_used_again_and_the_old_key_finds_nothing() {
    let mut table = InFlight::new(1);
    let first = table.insert(Integer(1), "first").unwrap();
    assert!(table.remove(first).is_some());
    let second = table.insert(Integer(1), "second").unwrap();
    assert_eq!(table.remove(first), None);
    assert_eq!(table.get_mut(first), None);
    assert_eq!((table.get(first), table.id(first)), (None, None));
    assert_eq!(table.find(&Integer(1)), Some(second));
}

#[test]
fn a_full_table_refuses_but_still_sees_duplicates() {
    let mut table = InFlight::new(1);
    let key = table.insert(Integer(1), ()).unwrap();
    assert_eq!(table.insert(Integer(2), ()), Err(Refused::Full));
    assert_eq!(table.insert(Integer(1), ()), Err(Refused::Duplicate(key)));
    table.remove(key);
    assert!(table.insert(Integer(2), ()).is_ok());
}

#[test]
fn draining_ends_every_request() {
    let mut table = InFlight::new(9);
    let keys: Vec<_> = (0..5)
        .map(|n| table.insert(Integer(n), n).unwrap())
        .collect();
    table.remove(keys[2]);
    let mut ended = Vec::new();
    table.drain(|id, data| ended.push((id, data)));
    assert_eq!(ended, [0, 1, 3, 4].map(|n| (Integer(n), n)));
    assert!(table.is_empty() && table.find(&Integer(0)).is_none());
    assert!(keys.iter().all(|&key| table.remove(key).is_none()));
}

#[test]
fn it_does_what_a_hash_map_does() {
    let mut random = Random::new();
    let texts = [
        "",
        "0",
        "9",
        "10",
        "\u{0}",
        "a longer id, as some peers like them",
    ];
    for _ in 0..rounds(200) {
        let max = 1 + random.below(40);
        let mut table = InFlight::new(max);
        let mut model = HashMap::<Id, (IncomingKey, u64)>::new();
        let mut keys = Vec::new();
        for step in 0..500 {
            let id = match random.below(2) {
                0 => Integer(random.next() % 30),
                _ => Text(random.pick(&texts).unwrap()),
            };
            match random.below(3) {
                0 => match (table.insert(id.clone(), step), model.get(&id)) {
                    (Err(Refused::Duplicate(key)), Some((first, _))) => assert_eq!(key, *first),
                    (Err(Refused::Full), None) => assert_eq!(model.len(), max),
                    (Ok(key), None) => {
                        model.insert(id, (key, step));
                        keys.push(key);
                    }
                    other => panic!("{other:?} for {id:?}"),
                },
                1 => assert_eq!(table.find(&id), model.get(&id).map(|found| found.0)),
                _ => {
                    let Some(&key) = random.pick(&keys) else {
                        continue;
                    };
                    let removed = table.remove(key);
                    let expected = table_entry(&mut model, key);
                    assert_eq!(removed, expected);
                }
            }
            assert_eq!(table.len(), model.len());
        }
        assert!(
            table
                .iter()
                .all(|(key, id, data)| model[id] == (key, *data))
        );
    }
}

fn table_entry(model: &mut HashMap<Id, (IncomingKey, u64)>, key: IncomingKey) -> Option<(Id, u64)> {
    let id = model.iter().find(|(_, found)| found.0 == key)?.0.clone();
    model.remove(&id).map(|(_, data)| (id, data))
}
