/** The native module: private to this package. See `src/` for what each function does. */
export {};
