import { randomUUID } from 'node:crypto';

/** A middleware's authentication result is passed along in a header with a random name that no client can guess. */
const HEADER = `mcpbolt-auth-${randomUUID()}`;
const verified = new Map<string, unknown>();
let last = 0;

/** @internal Stores the authentication result of a request, until the returned function is called. */
export function noteAuth(auth: unknown, headers: string[]): () => void {
    if (auth === undefined) return () => {};
    const key = String(++last);
    verified.set(key, auth);
    headers.push(HEADER, key);
    return () => void verified.delete(key);
}

/** @internal Returns the authentication result of a request, and removes its header. */
export function takeAuth(headers: [string, string][]): unknown {
    const at = headers.findIndex(([name]) => name === HEADER);
    if (at < 0) return undefined;
    const [[, key]] = headers.splice(at, 1) as [[string, string]];
    return verified.get(key);
}
