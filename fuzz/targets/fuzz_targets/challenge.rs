#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcpbolt_fuzz::challenge::headers(bytes));
