//! Each documented bound beside the test that tries to exceed it: those of `limits.rs`, the numbers
//! and times in the structs of options, and the constants whose name or documentation says that they
//! bound something ("MAX_…", "Maximum …", "… at most …").
#![allow(clippy::unwrap_used, reason = "a test: panicking is the report")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// A limit, and the test that tries it.
const ROWS: &[(&str, &str)] = &[
    (
        "MAX_SLEEPS",
        "sleeps_are_bounded_in_number_and_those_that_were_dropped_do_not_count",
    ),
    (
        "Limits::max_message_bytes",
        "bodies_are_bounded_in_size_and_time",
    ),
    (
        "PoolOptions::max_connections",
        "many_callers_share_few_connections_and_each_has_its_own_meanwhile",
    ),
    (
        "PoolOptions::max_total",
        "idle_connections_end_and_give_way_to_other_keys",
    ),
    (
        "PoolOptions::sharing",
        "connections_are_shared_up_to_a_number_unless_they_are_kept_apart",
    ),
    (
        "PoolOptions::wait_timeout",
        "a_caller_waits_in_vain_for_a_limited_time_and_a_closed_pool_has_nothing",
    ),
    (
        "PoolOptions::max_waiting",
        "a_caller_waits_in_vain_for_a_limited_time_and_a_closed_pool_has_nothing",
    ),
    (
        "PoolOptions::idle_timeout",
        "idle_connections_end_with_time_and_with_the_pool",
    ),
    (
        "io::http::server::consent::MAX_ANSWER_BYTES",
        "an_identity_provider_is_read_up_to_a_size_and_leads_nowhere",
    ),
    (
        "chain::given::MAX_STATES",
        "states_of_a_connection_are_remembered_up_to_a_number",
    ),
    (
        "chain::held::MAX_BYTES",
        "a_stream_that_had_to_leave_something_out_ends_after_its_acknowledgement",
    ),
    (
        "chain::rules::approval::MAX_ASKING",
        "approved_calls_whose_servers_ask_are_remembered_up_to_a_number_and_a_time",
    ),
    (
        "chain::rules::breaker::MAX_FAILURES",
        "failures_are_counted_up_to_a_number",
    ),
    (
        "chain::rules::masking::MAX_BYTES",
        "a_result_that_is_too_long_to_be_masked_is_not_passed_on",
    ),
    (
        "chain::rules::listed::MAX_PAGES",
        "a_list_without_end_is_given_up",
    ),
    (
        "chain::rules::pins::MAX_TOLD",
        "what_was_reported_is_remembered_up_to_a_number",
    ),
    (
        "chain::rules::listed::MAX_TOOLS",
        "connections_to_one_version_share_what_is_kept_up_to_a_number",
    ),
    (
        "chain::question::MAX_RETIRED",
        "calls_that_wait_for_their_clients_go_on_when_a_front_is_succeeded",
    ),
    (
        "chain::visits::MAX_FINISHED",
        "pages_are_remembered_up_to_a_number_and_a_length",
    ),
    (
        "chain::visits::MAX_ID_BYTES",
        "pages_are_remembered_up_to_a_number_and_a_length",
    ),
    (
        "chain::sessions::MAX_ELICITED",
        "the_pages_of_a_session_are_remembered_up_to_a_number",
    ),
    (
        "chain::rules::retry::MAX_REPEATS",
        "rules_are_described_and_wrong_ones_are_named",
    ),
    (
        "settings::rules::MAX_PATTERNS",
        "rules_are_described_and_wrong_ones_are_named",
    ),
    (
        "settings::rules::MAX_PATTERN_BYTES",
        "rules_are_described_and_wrong_ones_are_named",
    ),
    (
        "chain::front::MAX_HOPS",
        "a_request_that_goes_in_a_circle_is_refused",
    ),
    (
        "io::http::client::authorization::access::MAX_NONCES",
        "a_server_that_wants_more_and_more_is_given_up",
    ),
    (
        "io::http::client::authorization::access::MAX_STEP_UPS",
        "a_server_that_wants_more_and_more_is_given_up",
    ),
    (
        "io::http::client::authorization::hooks::MAX_OPEN",
        "the_oldest_of_too_many_addresses_is_closed",
    ),
    (
        "io::http::fetch::MAX_DOCUMENT_BYTES",
        "documents_are_bounded_in_length",
    ),
    (
        "io::login::callback::MAX_CONNECTIONS",
        "connections_are_bounded_in_number_and_requests_in_length",
    ),
    (
        "io::login::callback::MAX_HEAD_BYTES",
        "connections_are_bounded_in_number_and_requests_in_length",
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
        "progress_extends_no_request_beyond_the_limit",
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
    (
        "Rate::per_second",
        "a_burst_at_once_then_so_many_in_each_second",
    ),
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
    ("READ_BYTES", "a_buffer_is_no_larger_than_one_read"),
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
        "what_is_long_leaves_with_its_block_and_what_is_short_is_copied",
    ),
    ("COPY_IN_BYTES", "what_is_long_is_queued_without_a_copy"),
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
    ("MAX_TASKS", "tasks_are_bounded_by_default"),
    ("MAX_TASKS_PER_OWNER", "tasks_are_bounded_by_default"),
    (
        "MAX_AUDIT_EVENTS",
        "an_audit_has_room_for_so_many_by_default",
    ),
    (
        "WRONG_CREDENTIALS",
        "wrong_credentials_in_lines_are_counted",
    ),
    (
        "VERIFIER_TIMEOUT",
        "a_verification_has_a_time_limit_and_ends_with_its_request",
    ),
    (
        "MAX_VERIFICATIONS",
        "verifications_are_bounded_and_one_that_ends_makes_room",
    ),
    ("MAX_TASK_BYTES", "tasks_are_bounded_by_default"),
    ("MAX_TASK_TTL", "tasks_are_bounded_by_default"),
    (
        "MAX_USED_STATES",
        "nothing_is_used_twice_however_much_is_used",
    ),
    ("TASK_POLL_INTERVAL", "clients_follow_tasks_by_themselves"),
    ("MAX_RATED_CLIENTS", "no_more_rates_are_kept_than_may_be"),
    ("MAX_CAPTURED_BYTES", "the_end_of_what_was_said_is_kept"),
    ("MAX_KEPT_RESULTS", "no_more_are_kept_than_may_be"),
    ("MAX_KEPT_BYTES", "they_take_no_more_bytes_than_they_may"),
    (
        "CHECK_HERE_BYTES",
        "only_small_arguments_are_checked_on_the_drivers_thread",
    ),
];

/// A number or a time in a struct of options, and the test that tries it.
const OPTIONS: &[(&str, &str)] = &[
    (
        "RedisOptions::connect_timeout",
        "a_server_that_stands_still_is_given_up_and_found_again",
    ),
    (
        "RedisOptions::timeout",
        "a_server_that_stands_still_is_given_up_and_found_again",
    ),
    (
        "StoreLimits::bytes",
        "a_full_store_refuses_what_is_new_and_forgets_nothing",
    ),
    (
        "StoreLimits::entries",
        "a_full_store_refuses_what_is_new_and_forgets_nothing",
    ),
    ("ActOptions::timeout", "a_call_times_out"),
    ("Backoff::attempts", "what_never_opens_is_given_up"),
    ("Backoff::first", "waits_double_until_the_longest"),
    ("Backoff::longest", "waits_double_until_the_longest"),
    (
        "BreakerPolicy::failures",
        "after_so_many_failures_there_is_a_pause_then_one_call",
    ),
    (
        "BreakerPolicy::pause",
        "after_so_many_failures_there_is_a_pause_then_one_call",
    ),
    (
        "ConnectOptions::connect_timeout",
        "a_silent_server_is_given_up",
    ),
    ("ConnectOptions::heartbeat", "a_silent_server_is_given_up"),
    (
        "HttpClientOptions::connect_timeout",
        "what_cannot_be_reached_is_not_opened",
    ),
    (
        "HttpClientOptions::idle_timeout",
        "an_idle_connection_is_kept_for_its_time",
    ),
    (
        "HttpClientOptions::max_concurrent",
        "requests_beyond_the_limit_wait_and_answers_do_not",
    ),
    (
        "HttpClientOptions::max_redirects",
        "redirects_without_end_are_given_up",
    ),
    (
        "HttpClientOptions::read_timeout",
        "a_server_that_falls_silent_is_noticed_where_that_is_wanted",
    ),
    (
        "HttpOptions::action_ttl",
        "what_nobody_comes_back_for_is_given_up",
    ),
    (
        "HttpOptions::comment_interval",
        "a_standing_stream_is_alone_on_its_connection",
    ),
    ("HttpOptions::grace", "the_server_ends_within_its_grace"),
    (
        "HttpOptions::header_timeout",
        "who_asks_nothing_is_let_go_of",
    ),
    (
        "HttpOptions::heartbeat",
        "a_dead_peer_is_found_by_its_silence",
    ),
    (
        "HttpOptions::max_sessions",
        "sessions_are_bounded_in_number_and_time",
    ),
    (
        "HttpOptions::max_sessions_per_peer",
        "one_client_has_its_share_of_sessions",
    ),
    (
        "HttpOptions::replay_bytes",
        "what_is_kept_for_clients_that_come_back_is_bounded",
    ),
    (
        "HttpOptions::session_ttl",
        "sessions_are_bounded_in_number_and_time",
    ),
    (
        "Permissions::max_resource_size",
        "a_resource_that_is_too_large_is_not_given_out",
    ),
    (
        "Permissions::max_tool_execution_time",
        "a_tool_that_takes_too_long_is_answered_without_it",
    ),
    (
        "RelayOptions::max_event_bytes",
        "events_and_messages_of_a_relay_are_bounded_in_length",
    ),
    (
        "RelayOptions::max_message_bytes",
        "events_and_messages_of_a_relay_are_bounded_in_length",
    ),
    (
        "RelayOptions::unread_bytes",
        "reading_waits_for_a_host_that_does_not_look",
    ),
    (
        "RequestOptions::max_timeout",
        "a_long_timeout_is_not_cut_unless_the_call_says_so",
    ),
    (
        "RequestOptions::timeout",
        "a_timeout_tells_the_peer_and_a_late_answer_is_a_stray",
    ),
    ("RetryPolicy::base", "waits_double_within_their_bounds"),
    ("RetryPolicy::longest", "waits_double_within_their_bounds"),
    ("RetryPolicy::tries", "what_may_pass_is_tried_again"),
    (
        "SupervisorOptions::start_timeout",
        "a_replacement_that_is_never_ready_is_killed",
    ),
    (
        "SupervisorOptions::end_timeout",
        "a_replaced_worker_that_does_not_end_is_killed_and_the_next_one_follows",
    ),
    (
        "SupervisorOptions::workers",
        "workers_are_replaced_one_by_one",
    ),
    (
        "ServeOptions::max_connections",
        "no_more_connections_are_open_than_may_be",
    ),
    (
        "ServeOptions::max_connections_per_peer",
        "one_address_has_its_share_of_connections",
    ),
    (
        "StdioOptions::grace",
        "a_wedged_handler_holds_the_process_for_the_grace_period_only",
    ),
    ("TaskLimits::bytes", "what_is_kept_of_tasks_has_bounds"),
    ("TaskLimits::per_owner", "one_owner_leaves_tasks_to_others"),
    (
        "TaskLimits::poll_interval",
        "clients_follow_tasks_by_themselves",
    ),
    ("TaskLimits::tasks", "what_is_kept_of_tasks_has_bounds"),
    ("TaskLimits::ttl", "what_is_kept_of_tasks_has_bounds"),
    (
        "Waits::after_close",
        "each_step_waits_for_its_time_and_comes_once",
    ),
    (
        "Waits::after_terminate",
        "each_step_waits_for_its_time_and_comes_once",
    ),
    (
        "WorkersConfig::keep_alive",
        "no_more_threads_than_the_cap_and_they_go_when_idle",
    ),
    (
        "WorkersConfig::max_threads",
        "no_more_threads_than_the_cap_and_they_go_when_idle",
    ),
];

/// A constant that bounds something beside `limits.rs`, by its module, and the test that tries it.
const CONSTANTS: &[(&str, &str)] = &[
    (
        "server::tasks::record::MAX_RECORD_BYTES",
        "a_task_fails_whose_result_is_too_long_for_the_store",
    ),
    (
        "server::tasks::shared::MAX_RUNS",
        "a_task_is_run_three_times_at_most",
    ),
    (
        "server::tasks::shared::MAX_LISTED",
        "a_log_is_bounded_and_read_from_anywhere",
    ),
    (
        "io::http::server::shared_sessions::MAX_ENDED",
        "a_log_is_bounded_and_read_from_anywhere",
    ),
    (
        "io::http::server::shared_events::MAX_BATCHES",
        "a_log_is_bounded_and_read_from_anywhere",
    ),
    (
        "io::http::server::shared_events::MAX_RESUMED",
        "a_log_is_bounded_and_read_from_anywhere",
    ),
    (
        "io::http::server::session_wishes::MAX_MESSAGE_BYTES",
        "the_wishes_of_a_session_are_bounded",
    ),
    (
        "io::http::server::hop_body::MAX_COPIED_BYTES",
        "a_short_body_is_sent_again",
    ),
    (
        "server::subscriptions::feed::MAX_UPDATED",
        "changes_are_told_together_and_are_everything_beyond_a_bound",
    ),
    (
        "server::subscriptions::feed::MAX_UPDATED_BYTES",
        "changes_are_told_together_and_are_everything_beyond_a_bound",
    ),
    (
        "io::http::server::session_facts::MAX_ID_BYTES",
        "an_introduction_that_is_too_long_is_in_no_id",
    ),
    (
        "io::redis::link::LONGEST_WAIT",
        "a_server_that_comes_later_is_found",
    ),
    (
        "telemetry::host::MAX_RECORDS",
        "records_are_bounded_in_number_except_those_that_a_host_waits_for",
    ),
    (
        "telemetry::otel::MAX_TITLES",
        "names_of_spans_are_kept_while_there_are_few",
    ),
    (
        "telemetry::series::MAX_NAMES",
        "names_are_told_apart_once_they_are_good_and_while_there_are_few",
    ),
    (
        "telemetry::series::MAX_SERIES",
        "a_client_of_very_many_servers_adds_a_bounded_number_of_series",
    ),
    (
        "telemetry::series::MAX_NAME_BYTES",
        "names_are_told_apart_once_they_are_good_and_while_there_are_few",
    ),
    (
        "telemetry::names::MAX_ERRORS",
        "errors_of_a_series_are_told_apart_while_there_are_few",
    ),
    (
        "connection::observer::MAX_TEXT_BYTES",
        "long_texts_of_a_peer_are_cut",
    ),
    ("store::bounds::MAX_NAME_BYTES", "arguments_have_bounds"),
    ("store::bounds::MAX_VALUE_BYTES", "arguments_have_bounds"),
    ("store::bounds::MAX_NOTE_BYTES", "arguments_have_bounds"),
    ("store::bounds::MAX_CALLS", "what_is_no_quota_is_refused"),
    ("store::bounds::MAX_KEEP", "arguments_have_bounds"),
    ("store::bounds::MAX_LOG_ENTRIES", "arguments_have_bounds"),
    ("store::bounds::MAX_LOG_BYTES", "arguments_have_bounds"),
    (
        "store::bounds::MAX_PAGE_BYTES",
        "a_page_of_a_log_is_bounded_in_bytes",
    ),
    (
        "chain::attempts::LONGEST_WAIT",
        "attempts_wait_twice_as_long_after_each_failure_and_one_at_a_time",
    ),
    (
        "chain::trip::MAX_ROUNDS",
        "a_server_that_demands_input_without_end_is_given_up",
    ),
    (
        "chain::health::MAX_BYTES",
        "no_error_and_no_description_is_kept_beyond_its_limit",
    ),
    (
        "chain::list_cache::MAX_CACHE_BYTES",
        "kept_lists_have_no_more_bytes_than_they_may",
    ),
    (
        "chain::list_cache::MAX_TTL",
        "a_list_is_kept_for_its_time_and_says_what_is_left_of_it",
    ),
    (
        "io::http::server::hop_pool::MAX_IDLE",
        "few_connections_to_a_worker_are_kept",
    ),
    (
        "chain::external::MAX_CONNECTIONS",
        "connections_to_a_server_are_bounded_in_number",
    ),
    (
        "io::links::MAX_CHILDREN",
        "connections_to_a_server_are_bounded_in_number",
    ),
    (
        "chain::executor::MAX_SETS",
        "a_client_with_many_sets_of_capabilities_has_few_connections_at_a_time",
    ),
    (
        "chain::handoff::MAX_HELD",
        "an_answer_does_not_overtake_notifications",
    ),
    (
        "chain::lanes::MAX_LANES",
        "connections_for_one_call_at_a_time_are_bounded_in_number",
    ),
    (
        "chain::listen::MAX_SUBSCRIPTIONS",
        "a_stream_listens_to_no_more_resources_than_may_be",
    ),
    (
        "chain::prefix::MAX_NAME_LEN",
        "tools_whose_names_are_too_long_with_the_prefix_are_left_out",
    ),
    (
        "chain::question::MAX_PARKED",
        "calls_whose_clients_do_not_come_back_are_bounded_in_number",
    ),
    ("client::cursor::MAX_MESSAGES", "a_list_has_an_end"),
    ("client::cursor::MAX_PAGES", "a_list_has_an_end"),
    (
        "model::icon::MAX_ICON_BYTES",
        "an_image_is_what_its_bytes_say",
    ),
    (
        "client::rounds::MAX_ROUNDS",
        "a_call_has_no_more_rounds_than_may_be",
    ),
    (
        "connection::actions::batch::MAX_AUTH_BYTES",
        "what_a_batch_says_of_who_asks_is_short",
    ),
    (
        "connection::trace::MAX_DEPTH",
        "what_is_nested_deeply_is_neither_shown_nor_called_broken",
    ),
    (
        "connection::trace::MAX_STRING_BYTES",
        "long_strings_are_cut_and_what_is_no_json_is_counted",
    ),
    (
        "correlate::key::MAX_GENERATION",
        "a_slot_whose_generations_are_used_up_is_retired",
    ),
    (
        "correlate::key::MAX_SLOTS",
        "a_table_has_no_more_slots_than_may_be",
    ),
    (
        "frame::length::MAX_DETECTABLE_LEN",
        "the_first_byte_tells_the_framing",
    ),
    (
        "frame::websocket::MAX_CONTROL_BYTES",
        "frames_are_taken_or_refused_as_the_rfc_says",
    ),
    (
        "frame::whole::TRUSTED_BYTES",
        "the_limit_holds_before_growth_and_claims_reserve_little",
    ),
    (
        "io::blocking::CHUNKS",
        "a_slow_end_slows_the_other_one_down",
    ),
    (
        "io::blocking::CHUNK_BYTES",
        "a_slow_end_slows_the_other_one_down",
    ),
    (
        "io::stderr::BUDGET_BYTES",
        "a_stream_without_end_is_read_for_a_while_only",
    ),
    (
        "io::stderr::LAST_BYTES",
        "a_stream_without_end_is_read_for_a_while_only",
    ),
    (
        "io::http::client::transport::MAX_REPEATS",
        "what_a_server_has_not_looked_at_is_sent_again",
    ),
    (
        "io::http::client::response::MAX_ERROR_BODY_BYTES",
        "answers_without_end_are_given_up",
    ),
    (
        "io::http::client::event_reader::MAX_POSITION_BYTES",
        "ids_of_events_are_bounded_in_length",
    ),
    (
        "io::http::client::failure::WHY_CHARS",
        "little_is_quoted_of_a_refusal",
    ),
    (
        "io::http::client::message_headers::MAX_INTEGER",
        "arguments_are_said_in_words",
    ),
    (
        "io::http::client::options::LONGEST_ASKED",
        "a_server_does_not_put_a_stream_off_for_longer_than_may_be",
    ),
    (
        "io::http::server::collect::BELIEVED",
        "little_is_allocated_for_a_length_alone",
    ),
    (
        "io::http::server::collect::FIRST_BYTES",
        "little_is_allocated_for_a_length_alone",
    ),
    (
        "io::http::server::serve::MAX_HEAD_BYTES",
        "heads_are_bounded_in_length",
    ),
    (
        "io::http::server::serve::MAX_HOP_HEAD_BYTES",
        "the_head_of_another_worker_may_be_longer_than_that_of_a_client",
    ),
    (
        "io::http::server::serve::MAX_HOP_HEADERS",
        "the_head_of_another_worker_may_be_longer_than_that_of_a_client",
    ),
    (
        "io::http::server::serve::MAX_STREAMS",
        "a_connection_has_no_more_streams_than_may_be",
    ),
    (
        "io::http::server::exchange_pool::MOST",
        "no_more_are_spared_than_may_be",
    ),
    (
        "io::http::server::chunked_events::UNHEARD_BYTES",
        "a_client_that_is_not_heard_says_little",
    ),
    (
        "io::http::server::chunked_events::WAITING_BYTES",
        "a_client_that_reads_nothing_is_written_little",
    ),
    (
        "io::lines::MAX_LINE_BYTES",
        "an_endless_line_comes_in_pieces_and_is_not_kept",
    ),
    ("io::task::LINGER_BYTES", "no_more_is_discarded_than_may_be"),
    (
        "io::net::websocket::PONG_MARK_BYTES",
        "a_peer_that_reads_nothing_is_owed_few_pongs",
    ),
    (
        "json::materialise::MAX_DEPTH",
        "every_value_is_what_serde_json_makes_of_it",
    ),
    (
        "json::walk::MAX_DEPTH",
        "nesting_is_counted_exactly_and_ends_at_the_limit",
    ),
    (
        "model::sampling::MAX_TOOL_ROUNDS",
        "a_loop_of_tools_has_an_end",
    ),
    (
        "message::encode::MAX_SENTENCE_CHARS",
        "errors_are_one_sentence",
    ),
    (
        "schema::compiled::MAX_SENTENCE_BYTES",
        "an_error_does_not_repeat_what_is_long",
    ),
    (
        "schema::cost::LONGEST_PATTERN",
        "patterns_share_what_they_may_take",
    ),
    ("schema::cost::MAX_COST", "hostile_schemas_cost_little"),
    (
        "schema::cost::MAX_DEPTH",
        "what_doubles_is_seen_and_what_refers_to_itself_has_an_end",
    ),
    (
        "schema::cost::MAX_RESOURCES",
        "what_doubles_is_seen_and_what_refers_to_itself_has_an_end",
    ),
    (
        "schema::cost::PATTERN_BYTES",
        "patterns_share_what_they_may_take",
    ),
    (
        "model::completion::MAX_VALUES",
        "arguments_of_prompts_and_templates_are_completed",
    ),
    (
        "model::validity::MAX_DEPTH",
        "definitions_are_bounded_in_depth",
    ),
    (
        "server::registry::lints::MAX_WARNINGS",
        "no_more_warnings_are_kept_than_may_be",
    ),
    (
        "server::skills::MAX_BYTES",
        "skills_are_bounded_in_files_and_bytes",
    ),
    (
        "server::skills::MAX_FILES",
        "skills_are_bounded_in_files_and_bytes",
    ),
];

/// Constants that look like bounds and have no test of their own, and why.
const NO_BOUNDS: &[(&str, &str)] = &[
    (
        "ServeOptions::threads",
        "so many are started, no more and no fewer",
    ),
    ("WorkersConfig::stack_bytes", "passed to the system"),
    (
        "connection::operation::MAX_NUMBER",
        "follows from the width of a number",
    ),
    (
        "connection::params::MAX_DEPTH",
        "`Limits::max_depth` of what the program itself sends",
    ),
    ("connection::params::TRAILER_BYTES", "reserved"),
    (
        "io::http::server::message_log::ENTRY_BYTES",
        "the rest goes into the next entry",
    ),
    (
        "io::http::server::shared_events::AHEAD",
        "the rest waits in the store",
    ),
    (
        "io::http::server::shared_events::LONGEST_RETRY",
        "a pause, not what a peer may exceed",
    ),
    (
        "io::http::server::shared_events::PAGE",
        "the rest is read next",
    ),
    (
        "frame::websocket::write::MAX_HEAD",
        "the length of an array",
    ),
    ("frame::websocket::write::RESERVED", "reserved"),
    ("io::driver::MAX_SLICES", "the length of an array"),
    (
        "io::driver::READ_BUDGET_BYTES",
        "a turn, after which others have theirs",
    ),
    (
        "io::driver::WRITE_BUDGET_BYTES",
        "a turn, after which others have theirs",
    ),
    (
        "io::http::server::response::KEPT_HEADERS",
        "a map with more room is freed",
    ),
    (
        "io::http::server::response::ERROR_BYTES",
        "a shortcut: longer answers are not searched",
    ),
    (
        "io::http::client::relay::state::MAX_DEPTH",
        "`Limits::max_depth`",
    ),
    (
        "io::http::server::collect::TURN_BYTES",
        "a turn, after which others have theirs",
    ),
    (
        "io::http::server::gzip::TURN_BYTES",
        "a turn, after which others have theirs",
    ),
    (
        "io::http::server::sse::TURN_BYTES",
        "a turn, after which others have theirs",
    ),
    (
        "io::http::server::chunked_events::SLICES",
        "the length of an array",
    ),
    ("io::task::MAX_SLICES", "the length of an array"),
    (
        "io::task::READ_BUDGET_BYTES",
        "a turn, after which others have theirs",
    ),
    (
        "io::task::WRITE_BUDGET_BYTES",
        "a turn, after which others have theirs",
    ),
    ("io::net::listen::BACKLOG", "passed to the system"),
    ("io::net::unix::BACKLOG", "passed to the system"),
    ("io::runtime::MAX_THREADS", "passed to the runtime"),
    ("json::materialise::ESCAPE_EVERY", "chooses the faster way"),
    ("json::string::SHORT", "chooses the faster way"),
    ("json::walk::string::LONG_STRING", "chooses the faster way"),
    ("json::writer::SHORT", "chooses the faster way"),
    ("message::owned_id::INLINE_BYTES", "the length of an array"),
    ("scan::escape::ROOM", "the length of an array"),
    ("scan::text::SHORT_BYTES", "chooses the faster way"),
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

/// How the documentation of a constant that bounds something may begin.
const BOUNDS: [&str; 6] = [
    "Most ", "Longest ", "Maximum ", "Deepest ", "Largest ", "Bytes ",
];

/// The bounds in a source beside `limits.rs`: constants whose name or documentation says so, by their
/// module, and public numbers and times in structs of options.
fn stated(source: &str, module: &str) -> BTreeSet<String> {
    const OPTIONS: [&str; 7] = [
        "Options",
        "Config",
        "Limits",
        "Policy",
        "Backoff",
        "Permissions",
        "Waits",
    ];
    const NUMBERS: [&str; 5] = ["usize", "u32", "u64", "Duration", "NonZeroUsize"];
    let mut found = BTreeSet::new();
    let (mut within, mut doc) = ("", String::new());
    for line in source.lines().map(str::trim) {
        let words = line.split_once("pub ").map_or(line, |(_, rest)| rest);
        if let Some(text) = line.strip_prefix("/// ") {
            doc = doc + text + " ";
            continue;
        }
        if line.starts_with("#[") {
            continue;
        }
        let doc = std::mem::take(&mut doc);
        if let Some(name) = words.strip_prefix("struct ") {
            let is_options = OPTIONS
                .iter()
                .any(|kind| name.trim_end_matches(" {").ends_with(kind));
            within = if is_options {
                name.trim_end_matches(" {")
            } else {
                ""
            };
        } else if line == "}" {
            within = "";
        } else if let Some((name, kind)) =
            line.strip_prefix("pub ").and_then(|it| it.split_once(": "))
            && !within.is_empty()
            && NUMBERS.iter().any(|number| {
                let kind = kind.trim_end_matches(',');
                kind == *number || kind == format!("Option<{number}>")
            })
        {
            found.insert(format!("{within}::{name}"));
        }
        let constant = line
            .split_once("const ")
            .filter(|(before, _)| before.is_empty() || before.starts_with("pub"))
            .and_then(|(_, rest)| rest.split_once(':'));
        if let Some((name, _)) = constant
            && (name.starts_with("MAX_")
                || doc.contains(" at most")
                || BOUNDS.iter().any(|word| doc.starts_with(word)))
        {
            found.insert(format!("{module}::{name}"));
        }
    }
    found
}

/// The bounds in all sources in `folder`.
fn all_stated(folder: &Path, module: &str, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let inner = match (module, name) {
            (_, "mod") => module.to_owned(),
            ("", _) => name.to_owned(),
            _ => format!("{module}::{name}"),
        };
        if path.is_dir() {
            all_stated(&path, &inner, found);
        } else if inner != "limits" {
            found.extend(stated(&fs::read_to_string(&path).unwrap(), &inner));
        }
    }
}

fn tests(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            tests(&path, found);
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            let source = fs::read_to_string(&path).unwrap();
            let parts = source.split("test]\n").skip(1);
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
    let mut limits = BTreeSet::new();
    for crate_of in ["src", "codec/src"].map(|sources| folder.join(sources)) {
        limits.extend(named(
            &fs::read_to_string(crate_of.join("limits.rs")).unwrap(),
        ));
        all_stated(&crate_of, "", &mut limits);
    }
    let tried = [ROWS, OPTIONS, CONSTANTS].concat();
    let all = [&tried, NO_BOUNDS].concat();
    let rows: BTreeSet<_> = all.iter().map(|(limit, _)| (*limit).to_owned()).collect();
    assert_eq!(rows.len(), all.len(), "a limit has one row");
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
    tests(&folder.join("codec/src"), &mut known);
    tests(&folder.join("tests"), &mut known);
    let absent = tried.iter().filter(|(_, test)| !known.contains(*test));
    let absent: Vec<_> = absent.collect();
    assert!(absent.is_empty(), "tests that there are not: {absent:?}");
}
