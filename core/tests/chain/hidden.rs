//! What the policy of a front hides: entries of lists, and changes of resources.

use mcpbolt::chain::{Front, Prefix};
use mcpbolt::connection::{Framing, Principal};
use mcpbolt::mcp::Revision;
use mcpbolt::policy::{Credentials, Permissions, Policy};
use serde_json::{Value, json};

use crate::joined::{answers, names};
use crate::rig::{Rig, request, stateless};

const OLD: Revision = Revision::NEWEST_HANDSHAKE;
const NEW: Revision = Revision::NEWEST;

/// Denies some to all, and lets some be used with a scope, which ada has and bob lacks.
fn policy() -> Policy {
    let mut permissions = Permissions::all();
    permissions.tools.denied.push("a_denied".to_owned());
    permissions.resources.denied.push("u://a/denied".to_owned());
    Policy::new()
        .permissions(permissions)
        .scope("a_scoped", "s")
        .prompt_scope("a_scoped", "s")
        .resource_scope("u://a/scoped**", "s")
}

fn verified(policy: Policy) -> Policy {
    policy.verifier(|credentials| match credentials {
        Credentials::Bearer("ada") => Ok(Principal::new("ada").with_scopes(["s"])),
        Credentials::Bearer("bob") => Ok(Principal::new("bob")),
        _ => Err("who are you?".to_owned()),
    })
}

/// One server whose names have the prefix `a`, by middleware, and one of two.
fn rigs(far: Revision, change: impl Fn(Front) -> Front) -> [(Rig, &'static [&'static str]); 2] {
    let prefix = |front: Front| change(front.with(Prefix::new("a").unwrap()));
    [
        (Rig::with(far, 1, prefix), &["far"]),
        (
            Rig::joined_with(&[("a", far), ("b", far)], change),
            &["a", "b"],
        ),
    ]
}

fn by(who: &str, mut params: Value) -> Value {
    params["_meta"]["auth"] = json!({"type": "bearer", "token": who});
    params
}

/// R-PER-05, R-AUS-06: no list shows what is denied; and if the policy filters lists, what the caller lacks scopes for.
#[test]
fn lists_of_a_front_leave_out_what_the_policy_hides() {
    for (far, filters) in [(OLD, true), (NEW, true), (OLD, false), (NEW, false)] {
        let all = |front: Front| {
            let policy = verified(policy());
            front.policy(if filters {
                policy.filter_lists()
            } else {
                policy
            })
        };
        for (mut rig, servers) in rigs(far, all) {
            let near = rig.connect(Framing::Line);
            for (method, member, key, offered, denied) in [
                (
                    "tools/list",
                    "tools",
                    "name",
                    ["x", "denied", "scoped"],
                    true,
                ),
                (
                    "prompts/list",
                    "prompts",
                    "name",
                    ["x", "denied", "scoped"],
                    false,
                ),
                (
                    "resources/list",
                    "resources",
                    "uri",
                    ["u://x", "u://denied", "u://scoped"],
                    true,
                ),
                (
                    "resources/templates/list",
                    "resourceTemplates",
                    "uriTemplate",
                    ["u://{x}", "u://denied{x}", "u://scoped{x}"],
                    false,
                ),
            ] {
                for who in ["ada", "bob"] {
                    let line = stateless("id", method, by(who, json!({})), &json!({}));
                    rig.say(near, &line);
                    for (at, server) in servers.iter().enumerate() {
                        let entries = offered.map(|own| json!({key: own, "title": own}));
                        let entries = if at == 0 { &entries[..] } else { &[] };
                        let page = json!({member: entries, "resultType": "complete", "ttlMs": 0, "cacheScope": "public"});
                        answers(&mut rig, server, method, &page);
                    }
                    let page = rig.hear(near)["result"].take();
                    let shown = offered.iter().filter(|own| match () {
                        () if own.contains("denied") => !denied,
                        () if own.contains("scoped") => !filters || who == "ada",
                        () => true,
                    });
                    let shown: Vec<_> = shown
                        .map(|own| match own.strip_prefix("u://") {
                            Some(own) => format!("u://a/{own}"),
                            None => format!("a_{own}"),
                        })
                        .collect();
                    assert_eq!(
                        names(&page[member], key),
                        shown,
                        "{far} {filters} {who} {method}"
                    );
                    let is_public = far == NEW && !filters;
                    let scope = if is_public { "public" } else { "private" };
                    assert_eq!(page["cacheScope"], scope);
                }
            }
            rig.assert_quiet();
        }
    }
}

/// What a client may not read it may not watch.
#[test]
fn streams_and_subscriptions_leave_out_what_the_client_may_not_read() {
    let all = ["u://a/x", "u://a/denied", "u://a/scoped"];
    for who in ["ada", "bob"] {
        for (mut rig, _) in rigs(OLD, |front| front.policy(verified(policy()))) {
            let near = rig.connect(Framing::Line);
            let params = json!({"notifications": {"resourceSubscriptions": all}});
            rig.say(
                near,
                &stateless(1, "subscriptions/listen", by(who, params), &json!({})),
            );
            let expected = match who {
                "ada" => vec![all[0], all[2]],
                _ => vec![all[0]],
            };
            for _ in &expected {
                let subscribe = rig.far_hears(0);
                let uri = subscribe["params"]["uri"].as_str().unwrap();
                let outer = uri.replace("u://", "u://a/");
                assert!(expected.contains(&&*outer), "{uri}");
                rig.answer(0, &subscribe, &json!({}));
            }
            let granted = rig.hear(near)["params"]["notifications"]["resourceSubscriptions"].take();
            let mut granted: Vec<Value> = granted.as_array().unwrap().clone();
            granted.sort_by_key(|uri| all.iter().position(|one| uri == one));
            assert_eq!(json!(granted), json!(expected));
            // If nothing is left, the server is not asked for anything.
            let params = json!({"notifications": {"resourceSubscriptions": [all[1]]}});
            rig.say(
                near,
                &stateless(2, "subscriptions/listen", by(who, params), &json!({})),
            );
            assert_eq!(rig.hear(near)["params"]["notifications"], json!({}));
            rig.assert_quiet();
        }
    }
    for (mut rig, servers) in rigs(OLD, |front| front.policy(policy())) {
        let near = rig.open(OLD, &json!({}));
        for (uri, is_refused) in all.iter().zip([false, true, true]) {
            rig.say(
                near,
                &request(1, "resources/subscribe", &json!({"uri": uri})),
            );
            if is_refused {
                assert!(rig.hear(near)["error"]["code"].is_i64(), "{uri}");
            } else {
                answers(&mut rig, servers[0], "resources/subscribe", &json!({}));
                assert_eq!(rig.hear(near)["result"], json!({}));
            }
        }
        rig.assert_quiet();
    }
}

/// R-PER-05: a skill is read as a resource, so what hides resources hides skills.
#[test]
fn lists_of_skills_leave_out_what_the_policy_hides() {
    let policy = || verified(policy()).filter_lists();
    let mut rig = Rig::with(NEW, 1, |front| {
        front.with(Prefix::new("a").unwrap()).policy(policy())
    });
    let near = rig.connect(Framing::Line);
    let skill = |uri: &str| json!({"uri": uri, "name": "n", "description": "d"});
    let uris = ["u://x", "u://denied", "u://scoped"];
    for (who, sees) in [
        ("ada", vec!["u://a/x", "u://a/scoped"]),
        ("bob", vec!["u://a/x"]),
    ] {
        let line = stateless("id", "skills/list", by(who, json!({})), &json!({}));
        rig.say(near, &line);
        let page = json!({"skills": uris.map(skill), "resultType": "complete"});
        answers(&mut rig, "far", "skills/list", &page);
        let told = rig.hear(near)["result"].take();
        assert_eq!(names(&told["skills"], "uri"), sees, "{who}");
    }
}
