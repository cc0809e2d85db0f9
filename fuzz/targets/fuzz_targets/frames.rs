#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut random = mcpbolt_fuzz::random::Random::new(bytes.len() as u64);
    mcpbolt_fuzz::carried::frames(bytes, &mut random);
});
