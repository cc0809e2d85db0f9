//! Connections to the server that are lost at any moment, with threads as they run.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use mcpbolt::chain::{ChainAnswer, ChainRequest, External, Front, Middleware, NextHop};
use mcpbolt::client::{Client, ClientBuilder, Notice, block_on};
use mcpbolt::connection::{Framing, Handle, OpeningMode};
use mcpbolt::io::{Workers, WorkersConfig};
use mcpbolt::mcp::{Revision, Revisions, meta};
use mcpbolt::model::{Resource, ResourceContents};
use mcpbolt::server::Server;
use serde_json::{Value, json};

use crate::rig::{Rig, stateless};

const CLIENTS: usize = 40;
const URI: &str = "note:1";

/// After how many microseconds the connection with that number is lost again: SplitMix64.
fn moment(seed: u64, number: usize) -> u64 {
    let mut z = seed.wrapping_add((number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (z ^ (z >> 31)) % 500
}

/// R-CHN-14: each connection is lost, and the one in its place is lost again as soon as it is open; every client hears of its
/// resource in the end.
#[test]
fn a_connection_that_is_lost_while_it_is_restored_is_restored_again() {
    let given = std::env::var("MCPBOLT_SEED").ok();
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let seed = given.map_or(clock.as_nanos() as u64, |seed| seed.parse().unwrap());
    println!("MCPBOLT_SEED={seed}");

    let resource = Resource::new(URI, "a note");
    let server = Server::builder("far", "1").subscriptions();
    let server = server.resource(resource, |uri, _| async {
        Ok(ResourceContents::text(uri, "text"))
    });
    let server = server.build().unwrap();
    let (opened, first) = (
        Arc::new(AtomicUsize::new(0)),
        Arc::<Mutex<Vec<Handle>>>::default(),
    );
    let (count, handles, far) = (opened.clone(), first.clone(), server.clone());
    let link = move |client: ClientBuilder| {
        let (count, handles, far) = (count.clone(), handles.clone(), far.clone());
        Box::pin(async move {
            let client = client.connect(&far).await?;
            let (number, handle) = (
                count.fetch_add(1, Ordering::Relaxed),
                client.handle().clone(),
            );
            match number {
                0..CLIENTS => handles.lock().unwrap().push(handle),
                _ if number < 2 * CLIENTS => drop(std::thread::spawn(move || {
                    let at = Instant::now() + Duration::from_micros(moment(seed, number));
                    while Instant::now() < at {
                        std::hint::spin_loop();
                    }
                    handle.close();
                })),
                _ => {}
            }
            Ok(client)
        }) as _
    };
    let old = Revisions::only(Revision::NEWEST_HANDSHAKE);
    let front = Front::new(External::new("far", link).revisions(old));
    let hosting = front.hosting(Arc::new(Workers::new(WorkersConfig::default())));
    let (tell, told) = mpsc::channel();
    let clients: Vec<Client> = (0..CLIENTS)
        .map(|number| {
            let tell = Mutex::new(tell.clone());
            let client = Client::builder("near", "1").opening(OpeningMode::Handshake);
            let client = client.revisions(old).on_notice(move |notice| {
                if let Notice::ResourceUpdated { .. } = notice {
                    let _ = tell.lock().unwrap().send(number);
                }
            });
            let client = block_on(client.connect_hosted(&*hosting)).unwrap();
            block_on(client.subscribe(URI)).unwrap();
            client
        })
        .collect();
    let lost = std::mem::take(&mut *first.lock().unwrap());
    assert_eq!(lost.len(), CLIENTS);
    lost.iter().for_each(Handle::close);
    let (mut deaf, begun) = (vec![true; CLIENTS], Instant::now());
    while deaf.contains(&true) {
        let left = deaf.iter().filter(|deaf| **deaf).count();
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "{left} clients hear nothing; {} connections",
            opened.load(Ordering::Relaxed)
        );
        server.resource_updated(URI);
        std::thread::sleep(Duration::from_millis(20));
        // Only what is heard after the second loss counts.
        let all_lost_twice = opened.load(Ordering::Relaxed) >= 3 * CLIENTS;
        for number in told.try_iter() {
            deaf[number] &= !all_lost_twice;
        }
    }
    drop(clients);
}

/// Holds the thread on which a request fails until the test goes on: the connection is closed then, and its end is not told yet.
struct Hold(mpsc::SyncSender<()>, Mutex<mpsc::Receiver<()>>);

impl Middleware for Hold {
    fn request<'a>(&'a self, request: ChainRequest, next: NextHop<'a>) -> ChainAnswer<'a> {
        Box::pin(async move {
            let answer = next.run(request).await;
            if answer.is_err() {
                self.0.send(()).unwrap();
                self.1.lock().unwrap().recv().unwrap();
            }
            answer
        })
    }
}

/// R-CHN-14, R-SUB-09: the next connection may be open before the end of the one before is told. The streams of the one before end, and
/// those of the next one go on, with resources of their own.
#[test]
fn streams_end_with_their_connection_when_a_newer_one_is_open() {
    let (fails, failed) = mpsc::sync_channel(0);
    let (go_on, goes_on) = mpsc::sync_channel(0);
    let hold = Arc::new(Hold(fails, Mutex::new(goes_on)));
    let old = Revision::NEWEST_HANDSHAKE;
    let mut rig = Rig::with(old, 1, |front| front.with(hold.clone()));
    let near = rig.connect(Framing::Line);
    let listen = |rig: &mut Rig, id: &str| {
        let filter = json!({"toolsListChanged": true, "resourceSubscriptions": [URI]});
        let params = json!({"notifications": filter});
        rig.say(
            near,
            &stateless(id, "subscriptions/listen", params, &json!({})),
        );
        let subscribe = rig.far_hears(0);
        assert_eq!(subscribe["method"], "resources/subscribe");
        rig.answer(0, &subscribe, &json!({}));
        let acknowledged = rig.hear(near);
        assert_eq!(acknowledged["params"]["notifications"], filter);
        assert_eq!(acknowledged["params"]["_meta"][meta::SUBSCRIPTION_ID], id);
    };
    listen(&mut rig, "lost");
    let call = stateless("call", "tools/call", json!({"name": "x"}), &json!({}));
    rig.say(near, &call);
    rig.far_hears(0);

    let mut far = rig.fars.lock().unwrap().remove(0);
    let closing = std::thread::spawn(move || {
        far.close();
        far
    });
    failed.recv().unwrap();
    listen(&mut rig, "next");
    go_on.send(()).unwrap();
    drop(closing.join().unwrap());

    let mut heard = [(); 2].map(|()| rig.hear(near));
    heard.sort_by_key(|heard| heard["id"].to_string());
    assert_eq!(heard[0]["error"]["data"]["upstream"], "far");
    assert_eq!(heard[1]["id"], "lost");
    assert_eq!(heard[1]["result"]["resultType"], "complete");
    for (what, params) in [
        ("resources/updated", json!({"uri": URI})),
        ("tools/list_changed", json!({})),
    ] {
        let method = format!("notifications/{what}");
        let told = json!({"jsonrpc": "2.0", "method": method, "params": params});
        rig.far_says(0, &told.to_string());
        let told: Value = rig.hear(near);
        assert_eq!(told["method"], method);
        assert_eq!(told["params"]["_meta"][meta::SUBSCRIPTION_ID], "next");
    }
    rig.assert_quiet();
}
