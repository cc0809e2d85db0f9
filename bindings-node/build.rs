//! Leaves Node-API's symbols to the process that loads the module, and has napi-derive write the types of what
//! the module exports to `napi-types/` beside the built module, for `scripts/build.mjs`.

use std::path::Path;

fn main() {
    napi_build::setup();
    // `target/PROFILE/build/PACKAGE-HASH/out`
    let out = std::env::var("OUT_DIR").unwrap_or_default();
    if let Some(profile) = Path::new(&out).ancestors().nth(3) {
        let folder = profile.join("napi-types");
        let _ = std::fs::create_dir_all(&folder);
        println!(
            "cargo::rustc-env=NAPI_TYPE_DEF_TMP_FOLDER={}",
            folder.display()
        );
    }
}
