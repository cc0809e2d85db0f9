//! Resource servers: the checks of access tokens and of proofs, and the metadata document. Nothing here reads a clock or sends a request.
