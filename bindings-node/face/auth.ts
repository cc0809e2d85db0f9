import { randomUUID } from 'node:crypto';

/** What somebody before the endpoint has verified of a request goes along under a name that no client can know. */
const HEADER = `mcpbolt-auth-${randomUUID()}`;
const verified = new Map<string, unknown>();
let last = 0;

/** @internal Notes what is known of who sends a request, until the function that this gives is called. */
export function noteAuth(auth: unknown, headers: string[]): () => void {
    if (auth === undefined) return () => {};
    const key = String(++last);
    verified.set(key, auth);
    headers.push(HEADER, key);
    return () => void verified.delete(key);
}

/** @internal What was noted of a request, which is taken out of its headers. */
export function takeAuth(headers: [string, string][]): unknown {
    const at = headers.findIndex(([name]) => name === HEADER);
    if (at < 0) return undefined;
    const [[, key]] = headers.splice(at, 1) as [[string, string]];
    return verified.get(key);
}
