//! The laws of stores, for each store.

#[path = "shared/folder.rs"]
mod folder;

use std::fs;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use folder::Folder;
use futures::executor::block_on;
use mcpbolt_oauth::store::{CredentialStore, FileStore, KeyLock, MemoryStore, Stored};

fn files(folder: &Folder) -> FileStore {
    FileStore::at(folder.path().join("deep/inside"))
}

fn stores(folder: &Folder) -> [Arc<dyn CredentialStore>; 2] {
    [Arc::new(MemoryStore::default()), Arc::new(files(folder))]
}

fn is_pending(lock: &mut Stored<'_, KeyLock>) -> bool {
    let mut cx = Context::from_waker(Waker::noop());
    matches!(lock.as_mut().poll(&mut cx), Poll::Pending)
}

#[test]
fn a_document_is_what_was_saved_last() {
    let folder = Folder::new();
    for store in stores(&folder) {
        block_on(async {
            assert_eq!(store.load("a").await.unwrap(), None);
            store.remove("a").await.unwrap();
            for text in ["", "{}", "\u{0}\n\"ü\u{1F511}", &"x".repeat(100_000)] {
                store.save("a", text).await.unwrap();
                assert_eq!(store.load("a").await.unwrap().as_deref(), Some(text));
                assert_eq!(store.load("b").await.unwrap(), None);
            }
            store.save("b", "other").await.unwrap();
            store.remove("a").await.unwrap();
            assert_eq!(store.load("a").await.unwrap(), None);
            assert_eq!(store.load("b").await.unwrap().as_deref(), Some("other"));
        });
    }
}

#[test]
fn keys_are_any_texts_and_name_no_files() {
    let folder = Folder::new();
    let long = "k".repeat(10_000);
    let keys = [
        "",
        "/",
        "../../etc/passwd",
        "a\0b",
        "A",
        "a",
        "tokens https://as.example x",
        &long,
    ];
    for store in stores(&folder) {
        for (at, key) in keys.iter().enumerate() {
            block_on(store.save(key, &at.to_string())).unwrap();
        }
        for (at, key) in keys.iter().enumerate() {
            assert_eq!(
                block_on(store.load(key)).unwrap(),
                Some(at.to_string()),
                "{key:?}"
            );
        }
    }
    let found = fs::read_dir(files(&folder).folder()).unwrap();
    let names = found.map(|file| file.unwrap().file_name().into_string().unwrap());
    let names: Vec<_> = names.collect();
    assert_eq!(names.len(), keys.len(), "{names:?}");
    for name in names {
        let digest = name.strip_suffix(".json").unwrap();
        assert!(
            digest.len() == 32 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()),
            "{name}"
        );
    }
}

#[test]
fn a_lock_is_given_in_order_and_not_to_those_who_left() {
    let folder = Folder::new();
    for store in stores(&folder) {
        let held = block_on(store.lock("a")).unwrap();
        drop(block_on(store.lock("b")).unwrap());
        let mut waiting: Vec<_> = (0..5).map(|_| store.lock("a")).collect();
        assert!(waiting.iter_mut().rev().all(is_pending));
        drop(waiting.remove(1));
        drop(held);
        drop(waiting.pop());
        while !waiting.is_empty() {
            let held = block_on(waiting.remove(0)).unwrap();
            assert!(waiting.iter_mut().rev().all(is_pending));
            drop(held);
        }
        drop(block_on(store.lock("a")).unwrap());
    }
}

/// Two stores on one folder exclude each other as two processes do.
#[test]
fn a_lock_holds_against_other_stores_on_the_folder() {
    let folder = Folder::new();
    let (one, other) = (files(&folder), files(&folder));
    for round in 0..20 {
        let held = block_on(one.lock("a")).unwrap();
        let mut left = other.lock("a");
        assert!(is_pending(&mut left));
        if round % 2 == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(left);
        let mut lock = other.lock("a");
        assert!(is_pending(&mut lock));
        drop(block_on(other.lock("b")).unwrap());
        drop(held);
        let held = block_on(lock).unwrap();
        assert!(is_pending(&mut one.lock("a")));
        drop(held);
    }
}

#[test]
fn a_damaged_file_is_reported_and_stays() {
    let folder = Folder::new();
    let store = files(&folder);
    block_on(store.save("a", "SECRET")).unwrap();
    let file = fs::read_dir(store.folder())
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let whole = fs::read_to_string(&file).unwrap();
    let newer = whole.replace("\"version\":1", "\"version\":2,\"new\":[]");
    let of_other = whole.replace("\"key\":\"a\"", "\"key\":\"b\"");
    assert!(newer != whole && of_other != whole);
    let cases = [
        ("damaged", ""),
        ("damaged", "SECRET"),
        ("damaged", &whole[..whole.len() - 1]),
        ("damaged", &whole.replace("mcpbolt", "else")),
        ("damaged", "\u{0}\u{0}"),
        ("format 2", &newer),
        ("another login", &of_other),
    ];
    for (said, text) in cases {
        fs::write(&file, text).unwrap();
        let failures = [
            block_on(store.load("a")).unwrap_err(),
            block_on(store.save("a", "new")).unwrap_err(),
            block_on(store.remove("a")).unwrap_err(),
        ];
        for error in failures {
            let error = error.to_string();
            let names_it = error.contains(said) && error.contains(file.to_str().unwrap());
            assert!(names_it && !error.contains("SECRET"), "{error}");
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
        assert_eq!(fs::read_dir(store.folder()).unwrap().count(), 1);
    }
}

#[cfg(unix)]
#[test]
fn only_the_owner_reaches_the_files() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    let store = files(&folder);
    block_on(store.save("a", "x")).unwrap();
    let lock = block_on(store.lock("a")).unwrap();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let set = |path: &std::path::Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    assert_eq!(mode(store.folder()), 0o700);
    let mut document = None;
    for file in fs::read_dir(store.folder()).unwrap() {
        let path = file.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
        if path.extension().is_some_and(|ending| ending == "json") {
            document = Some(path);
        }
    }
    drop(lock);
    let document = document.unwrap();
    set(&document, 0o644);
    let said = block_on(store.load("a")).unwrap_err().to_string();
    assert!(said.contains("chmod 600"), "{said}");
    set(&document, 0o600);
    set(store.folder(), 0o755);
    for failed in [
        block_on(store.save("a", "y")),
        block_on(store.lock("a")).map(drop),
    ] {
        let said = failed.unwrap_err().to_string();
        assert!(said.contains("chmod 700"), "{said}");
    }
    set(store.folder(), 0o700);
    assert_eq!(block_on(store.load("a")).unwrap().as_deref(), Some("x"));
}

/// What a process that died left behind goes with the next save, and nothing else does.
#[test]
fn abandoned_files_go() {
    let folder = Folder::new();
    let store = files(&folder);
    block_on(store.save("a", "x")).unwrap();
    let document = fs::read_dir(store.folder())
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let left = |number: u32, age: u64| {
        let path = document.with_extension(format!("{number:08x}.new"));
        fs::write(&path, "half").unwrap();
        let written = std::time::SystemTime::now() - Duration::from_secs(age);
        fs::File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(written)
            .unwrap();
        path
    };
    let (old, young) = (left(1, 3600), left(2, 0));
    let other = store.folder().join("other.00000001.new");
    fs::rename(left(3, 3600), &other).unwrap();
    block_on(store.save("a", "y")).unwrap();
    assert_eq!(
        [&old, &young, &other].map(|path| path.exists()),
        [false, true, true]
    );
}

#[test]
fn stores_show_nothing() {
    let folder = Folder::new();
    for store in stores(&folder) {
        block_on(store.save("key", "SECRET")).unwrap();
    }
    let memory = MemoryStore::default();
    block_on(memory.save("key", "SECRET")).unwrap();
    let shown = format!("{memory:?} {:?}", files(&folder));
    assert!(
        !shown.contains("SECRET") && !shown.contains("key"),
        "{shown}"
    );
}
