//! Each bound of `limits.rs` beside the test that tries to exceed it.
#![allow(clippy::unwrap_used, reason = "a test: panicking is the report")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// A limit, and the test that tries it.
const ROWS: &[(&str, &str)] = &[
    (
        "Limits::max_message_bytes",
        "bodies_are_bounded_in_size_and_time",
    ),
    ("Limits::max_depth", "messages_are_bounded_in_depth"),
    ("Limits::max_batch_len", "batches_are_bounded_in_length"),
    (
        "Limits::max_incoming",
        "requests_over_the_limit_wait_in_order_and_those_over_the_cap_are_refused_at_once",
    ),
    (
        "Limits::waiting_cap_bytes",
        "requests_over_the_limit_wait_in_order_and_those_over_the_cap_are_refused_at_once",
    ),
    (
        "Limits::max_outgoing",
        "requests_of_this_side_are_bounded_in_number",
    ),
    (
        "Limits::output_mark_bytes",
        "requests_wait_while_the_output_is_over_its_mark_and_begin_when_it_is_taken",
    ),
    (
        "Limits::output_cap_bytes",
        "a_notification_that_finds_the_output_full_ends_the_connection",
    ),
    (
        "Limits::stall_timeout",
        "a_slow_reader_gets_more_time_and_one_that_stopped_does_not",
    ),
    (
        "Limits::keepalive_interval",
        "a_silent_peer_is_asked_and_one_that_stays_silent_is_given_up",
    ),
    (
        "Limits::keepalive_timeout",
        "a_silent_peer_is_asked_and_one_that_stays_silent_is_given_up",
    ),
    (
        "Limits::idle_timeout",
        "an_idle_connection_is_closed_and_a_busy_one_is_not",
    ),
    ("Limits::request_timeout", "a_call_ends_in_time"),
    (
        "Limits::max_request_timeout",
        "progress_extends_the_soft_deadline_and_never_the_hard_one",
    ),
    (
        "Limits::handshake_timeout",
        "a_handshake_that_is_not_finished_ends",
    ),
    (
        "Limits::probe_timeout",
        "a_silent_server_gets_its_handshake_after_the_probe",
    ),
    ("Limits::request_rate", "requests_have_a_rate"),
    ("Limits::report_rate", "reports_have_a_rate"),
    ("Rate::burst", "requests_have_a_rate"),
    ("Rate::per_second", "requests_have_a_rate"),
    ("Quota::calls", "a_quota_is_used_up_by_calls"),
    ("Quota::period", "a_quota_is_used_up_by_calls"),
    (
        "TotalLimits::max_incoming",
        "all_connections_of_a_configuration_have_one_budget",
    ),
    ("TotalLimits::max_bytes", "all_carriers_have_one_budget"),
    (
        "ALLOCATOR_SHARE",
        "what_is_held_leaves_a_part_to_the_allocator",
    ),
    (
        "RESERVE_SHARE",
        "what_is_large_leaves_the_reserve_to_what_is_small",
    ),
    (
        "KEPT_SHARE",
        "what_is_kept_never_takes_the_place_of_what_is_under_way",
    ),
    (
        "SMALL_BYTES",
        "what_is_small_uses_everything_where_nothing_is_large",
    ),
    (
        "UNCOUNTED_BYTES",
        "a_block_counts_until_the_last_part_of_it_is_gone",
    ),
    (
        "MAX_INTRODUCTION_BYTES",
        "little_is_kept_of_a_long_introduction",
    ),
    ("MAX_ID_BYTES", "ids_are_bounded_in_length"),
    (
        "WAITING_REQUEST_BYTES",
        "requests_over_the_limit_wait_in_order_and_those_over_the_cap_are_refused_at_once",
    ),
    ("READ_BYTES", "a_block_counts_whole_when_it_has_grown"),
    (
        "KEEP_BYTES",
        "capacity_falls_after_a_run_of_small_messages_only",
    ),
    (
        "SHRINK_AFTER",
        "capacity_falls_after_a_run_of_small_messages_only",
    ),
    (
        "COPY_OUT_BYTES",
        "a_taken_block_keeps_its_bytes_and_leaves_the_rest",
    ),
    ("COPY_IN_BYTES", "order_is_kept_across_copies_and_segments"),
    ("MAX_LEFT_BYTES", "no_more_is_left_than_may_be"),
    ("MAX_REFERRED_BYTES", "no_more_is_kept_than_may_be"),
    ("MAX_REFERENCES", "no_more_is_kept_than_may_be"),
    ("MAX_KNOWN_SERVERS", "no_more_servers_are_known_than_may_be"),
    (
        "MAX_SUBSCRIPTIONS",
        "subscriptions_are_bounded_in_number_and_bytes",
    ),
    (
        "MAX_SUBSCRIPTION_BYTES",
        "subscriptions_are_bounded_in_number_and_bytes",
    ),
    (
        "MAX_LISTENS",
        "streams_of_subscriptions_are_bounded_in_number_and_bytes",
    ),
    ("MAX_CACHED_PAGES", "no_more_pages_are_kept_than_may_be"),
    ("MAX_CACHED_BYTES", "no_more_pages_are_kept_than_may_be"),
    (
        "MAX_MIRRORED_TOOLS",
        "no_more_tools_are_mirrored_than_may_be",
    ),
    ("MAX_TASKS", "what_is_kept_of_tasks_has_bounds"),
    ("MAX_TASKS_PER_OWNER", "one_owner_leaves_tasks_to_others"),
    ("MAX_AUDIT_EVENTS", "a_full_queue_drops_and_says_how_many"),
    (
        "WRONG_CREDENTIALS",
        "wrong_credentials_are_counted_and_written_down",
    ),
    ("MAX_TASK_BYTES", "what_is_kept_of_tasks_has_bounds"),
    ("MAX_TASK_TTL", "what_is_kept_of_tasks_has_bounds"),
    (
        "MAX_USED_STATES",
        "nothing_is_used_twice_however_much_is_used",
    ),
    ("TASK_POLL_INTERVAL", "clients_follow_tasks_by_themselves"),
    ("MAX_RATED_CLIENTS", "no_more_clients_are_kept_than_may_be"),
    ("MAX_CAPTURED_BYTES", "the_end_of_what_was_said_is_kept"),
    ("MAX_KEPT_RESULTS", "no_more_are_kept_than_may_be"),
    ("MAX_KEPT_BYTES", "they_take_no_more_bytes_than_they_may"),
    (
        "CHECK_HERE_BYTES",
        "large_arguments_are_checked_where_the_handler_runs",
    ),
];

/// The limits that a source names: public constants, and public fields by their type.
fn named(source: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut within = "";
    for line in source.lines() {
        let word = |rest: &str| {
            let end = rest.find(|c: char| c != '_' && !c.is_ascii_alphanumeric());
            rest[..end.unwrap_or(rest.len())].to_owned()
        };
        if let Some(rest) = line.strip_prefix("pub struct ") {
            within = rest.trim_end_matches(" {");
        } else if let Some(rest) = line.strip_prefix("pub const ") {
            found.insert(word(rest));
        } else if let Some(rest) = line.strip_prefix("    pub ")
            && !rest.contains('(')
            && !rest.starts_with("const ")
        {
            found.insert(format!("{within}::{}", word(rest)));
        }
    }
    found
}

fn tests(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            tests(&path, found);
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            let source = fs::read_to_string(&path).unwrap();
            let parts = source.split("#[test]").skip(1);
            found.extend(parts.filter_map(|part| {
                let name = part.split_once("fn ")?.1;
                Some(name.split_once('(')?.0.to_owned())
            }));
        }
    }
}

#[test]
fn each_limit_has_a_test_that_tries_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = fs::read_to_string(folder.join("src/limits.rs")).unwrap();
    let limits = named(&source);
    let rows: BTreeSet<_> = ROWS.iter().map(|(limit, _)| (*limit).to_owned()).collect();
    assert_eq!(rows.len(), ROWS.len(), "a limit has one row");
    let missing: Vec<_> = limits.difference(&rows).collect();
    assert!(
        missing.is_empty(),
        "limits without a test: {missing:?}; write one that tries to exceed it"
    );
    let gone: Vec<_> = rows.difference(&limits).collect();
    assert!(
        gone.is_empty(),
        "rows of limits that there are not: {gone:?}"
    );
    let mut known = BTreeSet::new();
    tests(&folder.join("src"), &mut known);
    tests(&folder.join("tests"), &mut known);
    let absent = ROWS.iter().filter(|(_, test)| !known.contains(*test));
    let absent: Vec<_> = absent.collect();
    assert!(absent.is_empty(), "tests that there are not: {absent:?}");
}
