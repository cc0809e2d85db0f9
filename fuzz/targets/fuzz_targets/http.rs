#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    // What is asked is chosen by the first bytes, and damaged by what follows.
    let (choice, bytes) = bytes.split_first_chunk().unwrap_or((&[0; 8], bytes));
    let mut random = mcpbolt_fuzz::random::Random::new(u64::from_le_bytes(*choice));
    mcpbolt_fuzz::http::conversation(bytes, &mut random);
});
