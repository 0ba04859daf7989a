//! Compiles the `.proto` files without `protoc`.

use prost::Message;
use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let files = ["runs", "members", "peers"].map(|name| format!("hatebeam/v1/{name}.proto"));
    let set = protox::compile(files, ["proto"])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    // Write the file descriptors for the gRPC reflection service.
    std::fs::write(out.join("hatebeam.bin"), set.encode_to_vec())?;
    tonic_prost_build::configure()
        .bytes(".hatebeam.v1.SendRequest.batch")
        .compile_fds(set)?;
    Ok(())
}
