import type { Policy } from './definitions';
import type { Failures } from './failures';

/** @internal The callback of the engine for the audit of a policy. Not a closure of what it audits, which it would keep alive. */
export function auditing({ audit }: Policy, failures: Failures): ((event: string) => void) | undefined {
    return audit && (event => failures.heed('the audit', () => audit(JSON.parse(event))));
}
