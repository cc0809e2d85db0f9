//! Leaves Node-API's symbols to the process that loads the module.

fn main() {
    napi_build::setup();
}
