#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    // The first bytes seed the choice of requests; the rest may be the body of one.
    let (choice, bytes) = bytes.split_first_chunk().unwrap_or((&[0; 8], bytes));
    let mut random = mcpbolt_fuzz::random::Random::new(u64::from_le_bytes(*choice));
    mcpbolt_fuzz::http::conversation(bytes, &mut random);
});
