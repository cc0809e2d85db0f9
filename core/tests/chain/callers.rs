//! Servers of this process that a front passes requests on to: each request comes from the client that the front has verified.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use mcpbolt::chain::{External, Front, Isolation};
use mcpbolt::client::{Client, ClientBuilder, block_on};
use mcpbolt::connection::{Principal, RequestOptions, Response};
use mcpbolt::io::{Workers, WorkersConfig};
use mcpbolt::mcp::{Revision, Revisions};
use mcpbolt::model::Resource;
use mcpbolt::policy::{Credentials, Policy};
use mcpbolt::server::{Arguments, Context, HandlerError, Hosting, ResourceContents, Server, Tool};
use serde_json::json;

fn verified() -> Policy {
    Policy::new().verifier(|credentials: &Credentials<'_>| match credentials {
        Credentials::Bearer(name) => Ok::<_, String>(Principal::new(*name).with_scopes(["read"])),
        _ => Ok(Principal::new("anybody")),
    })
}

/// A server that says who calls and what is granted.
fn inner(policy: Option<Policy>) -> Server {
    let server = Server::builder("inner", "1").list_changes().tool(
        Tool::new("who"),
        |_: Arguments, context: Context| async move {
            let may_read = context.verified().is_some_and(|who| who.has_scope("read"));
            format!("{} {may_read}", context.principal().unwrap_or("nobody"))
        },
    );
    match policy {
        Some(policy) => server.policy(policy).build().unwrap(),
        None => server.build().unwrap(),
    }
}

/// What the server answers to clients that are so called, on one connection.
fn said(front: &Front, revision: Revision, names: &[&str]) -> Vec<String> {
    let builder = Client::builder("client", "1").revisions(mcpbolt::mcp::Revisions::only(revision));
    let client = block_on(builder.connect_chain(front)).unwrap();
    let asked = names.iter().map(|name| {
        let auth = json!({"auth": {"type": "bearer", "token": name}});
        let options = RequestOptions {
            meta: Some(auth.to_string().into()),
            timeout: Some(Duration::from_secs(60)),
            ..RequestOptions::default()
        };
        let params = r#"{"name":"who","arguments":{}}"#;
        client
            .handle()
            .request("tools/call", Some(params), options)
            .unwrap()
    });
    let asked: Vec<_> = asked.collect();
    let texts = asked.into_iter().map(|answer| {
        let answer = block_on(answer).unwrap();
        let answer: serde_json::Value =
            serde_json::from_str(answer.as_ref().result().unwrap()).unwrap();
        answer["content"][0]["text"].as_str().unwrap().to_owned()
    });
    texts.collect()
}

/// R-CHN-15: the server learns who the client is, and no credentials. The requests of several clients on one connection come from each.
#[test]
fn a_server_of_this_process_learns_who_sends_each_request() {
    for revision in [Revision::NEWEST_HANDSHAKE, Revision::NEWEST] {
        for isolation in [Isolation::Session, Isolation::Principal, Isolation::Shared] {
            for hops in [1, 2] {
                let external = External::server("inner", &inner(None)).isolation(isolation);
                let mut front = Front::new(external);
                for _ in 1..hops {
                    front = Front::new(External::chain("next", &front));
                }
                let names = ["ada", "bob", "ada", "cy"];
                let said = said(&front.policy(verified()), revision, &names);
                let expected = ["ada true", "bob true", "ada true", "cy true"];
                assert_eq!(said, expected, "{revision:?} {isolation:?} {hops}");
            }
        }
    }
}

/// A policy of the server takes the word of the front. Where the front has verified nobody, it verifies the caller itself.
#[test]
fn a_policy_of_the_server_takes_the_word_of_the_front() {
    let server = inner(Some(verified()));
    let front = || Front::new(External::server("inner", &server));
    for revision in [Revision::NEWEST_HANDSHAKE, Revision::NEWEST] {
        let known = said(&front().policy(verified()), revision, &["ada"]);
        assert_eq!(known, ["ada true"]);
        assert_eq!(said(&front(), revision, &["ada"]), ["anybody false"]);
    }
}

/// What a front asks on its own behalf, such as for changes of lists, comes from no client that could prove who it is: a server grants it
/// lists alone.
#[test]
fn a_front_asks_a_server_of_this_process_without_credentials() {
    for isolation in [Isolation::Session, Isolation::Shared] {
        for (verifies, hops) in [(true, 1), (false, 1), (true, 2), (false, 2)] {
            hears_of_lists_alone(isolation, verifies, hops);
        }
    }
}

/// A client that has no credentials, before a server that wants some and a front that `verifies` nobody but knows everybody, or not.
fn hears_of_lists_alone(isolation: Isolation, verifies: bool, hops: usize) {
    let wrong = Arc::<AtomicUsize>::default();
    let counts = wrong.clone();
    let policy = Policy::new().verifier(move |credentials: &Credentials<'_>| match credentials {
        Credentials::Bearer(name) => Ok(Principal::new(*name)),
        _ => {
            counts.fetch_add(1, Ordering::SeqCst);
            Err("who is it?".to_owned())
        }
    });
    let server = Server::builder("inner", "1")
        .list_changes()
        .subscriptions()
        .resource(Resource::new(RESOURCE, "a"), |_, _| async {
            Err::<ResourceContents, _>(HandlerError::from("nobody reads it"))
        })
        .policy(policy)
        .build()
        .unwrap();
    let external = External::server("inner", &server)
        .revisions(Revisions::only(Revision::NEWEST))
        .isolation(isolation);
    let mut front = Front::new(external);
    for _ in 1..hops {
        front = Front::new(External::chain("next", &front).isolation(isolation));
    }
    if verifies {
        front = front.policy(verified());
    }
    let (told, hears) = mpsc::channel();
    let client = Client::builder("client", "1")
        .revisions(Revisions::only(Revision::NEWEST_HANDSHAKE))
        .on_raw_notice(move |method: &str, _: Option<&str>| drop(told.send(method.to_owned())));
    let client = block_on(client.connect_chain(&front)).unwrap();
    let subscribe = json!({"uri": RESOURCE}).to_string();
    let options = RequestOptions::default();
    let subscribed = client
        .handle()
        .request("resources/subscribe", Some(&subscribe), options);
    assert!(block_on(subscribed.unwrap()).is_ok());
    // The front listens once the session is open.
    let begun = Instant::now();
    for number in 0.. {
        let tool = Tool::new(format!("t{number}"));
        let added = server.change(|server| server.tool(tool, |_: Arguments, _| async { "" }));
        added.unwrap();
        server.resource_updated(RESOURCE);
        match hears.recv_timeout(Duration::from_millis(50)) {
            // The front's policy knows everybody, so the subscription is that of a client.
            Ok(method) if method == UPDATED => assert!(verifies),
            Ok(method) => {
                assert_eq!(method, "notifications/tools/list_changed");
                break;
            }
            Err(_) => {}
        }
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "no change was told: {isolation:?} {verifies} {hops}"
        );
    }
    drop(client);
    assert_eq!(wrong.load(Ordering::SeqCst), 0);
}

const RESOURCE: &str = "mem:a";
const UPDATED: &str = "notifications/resources/updated";

/// Who subscribed to the resource at the server, and whether that was allowed, as its audit has it.
type Subscribed = Arc<Mutex<Vec<(Option<String>, &'static str)>>>;

/// A server whose resource only those hear of who may read.
fn watched(revision: Revision) -> (Server, Subscribed) {
    let subscribed = Subscribed::default();
    let log = subscribed.clone();
    let policy = verified()
        .resource_scope(RESOURCE, "read")
        .audit(move |event| {
            if event.method == "resources/subscribe" {
                let who = event.principal.map(str::to_owned);
                log.lock().unwrap().push((who, event.outcome.name()));
            }
        });
    let server = Server::builder("inner", "1")
        .revisions(Revisions::only(revision))
        .list_changes()
        .subscriptions()
        .resource(Resource::new(RESOURCE, "a"), |_, _| async {
            Err::<ResourceContents, _>(HandlerError::from("nobody reads it"))
        })
        .policy(policy);
    (server.build().unwrap(), subscribed)
}

/// A client that is told of changes, and its only request, for those of the resource.
struct Watching {
    _client: Client,
    _asked: Option<Response>,
    hears: mpsc::Receiver<String>,
}

fn watch(hosting: &dyn Hosting, revision: Revision, who: &str) -> Watching {
    let (told, hears) = mpsc::channel();
    let client = Client::builder("client", "1")
        .revisions(Revisions::only(revision))
        .on_raw_notice(move |method: &str, _: Option<&str>| drop(told.send(method.to_owned())));
    let client = block_on(client.connect_hosted(hosting)).unwrap();
    let auth = json!({"auth": {"type": "bearer", "token": who}});
    let options = RequestOptions {
        meta: Some(auth.to_string().into()),
        timeout: Some(Duration::from_secs(60)),
        ..RequestOptions::default()
    };
    let is_newer = revision == Revision::NEWEST;
    let (method, params) = match is_newer {
        true => (
            "subscriptions/listen",
            json!({"notifications": {"resourceSubscriptions": [RESOURCE]}}),
        ),
        false => ("resources/subscribe", json!({"uri": RESOURCE})),
    };
    let asked = client
        .handle()
        .request(method, Some(&params.to_string()), options)
        .unwrap();
    let asked = match is_newer {
        true => Some(asked),
        false => {
            // The server may refuse it.
            let _ = block_on(asked);
            None
        }
    };
    Watching {
        _client: client,
        _asked: asked,
        hears,
    }
}

/// The client is told of a change of the resource.
#[track_caller]
fn hears(server: &Server, watching: &Watching) {
    let begun = Instant::now();
    loop {
        server.resource_updated(RESOURCE);
        let heard = watching.hears.recv_timeout(Duration::from_millis(20));
        if heard.is_ok_and(|method| method == UPDATED) {
            return;
        }
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "no update was told"
        );
    }
}

/// R-CHN-07, R-CHN-15: a subscription that a front makes for a client, as the other era has it or again on a new connection, comes from
/// that client. Another one that shares the connection gets nothing by it.
#[test]
fn a_subscription_comes_from_the_client_that_asked_for_it() {
    let (old, new) = (Revision::NEWEST_HANDSHAKE, Revision::NEWEST);
    for (near, far) in [(old, old), (old, new), (new, old), (new, new)] {
        for isolation in [Isolation::Session, Isolation::Principal, Isolation::Shared] {
            for hops in [1, 2] {
                let case = format!("{near:?} {far:?} {isolation:?} {hops}");
                let (server, subscribed) = watched(far);
                // The last connection to the server.
                let last = Arc::<Mutex<Option<Client>>>::default();
                let (link, kept) = (server.clone(), last.clone());
                let link = move |client: ClientBuilder| {
                    let (server, kept) = (link.clone(), kept.clone());
                    Box::pin(async move {
                        let client = client.connect(&server).await?;
                        *kept.lock().unwrap() = Some(client.clone());
                        Ok(client)
                    }) as _
                };
                let mut front = Front::new(External::new("inner", link).isolation(isolation));
                for _ in 1..hops {
                    front = Front::new(External::chain("next", &front).isolation(isolation));
                }
                let policy = Policy::new().verifier(|credentials: &Credentials<'_>| {
                    Ok::<_, String>(match credentials {
                        Credentials::Bearer("ada") => Principal::new("ada").with_scopes(["read"]),
                        Credentials::Bearer(name) => Principal::new(*name),
                        _ => Principal::new("anybody"),
                    })
                });
                let workers = Arc::new(Workers::new(WorkersConfig::default()));
                let hosting = front.policy(policy).hosting(workers);
                let eve = watch(&*hosting, near, "eve");
                let ada = watch(&*hosting, near, "ada");
                println!("{case}");
                hears(&server, &ada);
                if near == old {
                    let connection = last.lock().unwrap().take().unwrap();
                    connection.close();
                    while ada.hears.try_recv().is_ok() {}
                    hears(&server, &ada);
                }
                let told = eve.hears.try_iter().filter(|method| method == UPDATED);
                assert_eq!(told.count(), 0, "{case}");
                for (who, outcome) in &*subscribed.lock().unwrap() {
                    let expected = match who.as_deref() {
                        Some("ada") => "done",
                        Some("eve") => "denied",
                        _ => panic!("{case}: {who:?}"),
                    };
                    assert_eq!(*outcome, expected, "{case}");
                }
                assert_eq!(subscribed.lock().unwrap().is_empty(), far == new, "{case}");
            }
        }
    }
}
