import type { Policy } from './definitions';
import { McpError } from './errors';
import type { Failures } from './failures';

/** The credentials of a client, as its request brought them. */
export type Credentials =
    | { readonly kind: 'none' }
    /** `secret` is the token or the key. */
    | { readonly kind: 'bearer' | 'apiKey'; readonly secret: string }
    /** A name and a password; `secret` is the password. */
    | { readonly kind: 'basic'; readonly user: string; readonly secret: string }
    /** A certificate (DER) that the client proved by mutual TLS. */
    | { readonly kind: 'certificate'; readonly certificate: Uint8Array };

/** A verified client. */
export interface Principal {
    /**
     * Identifies the client: `ctx.principal`. A name that begins like those of other kinds, such as `key:`, gets `name:`
     * before it.
     */
    name: string;
    /** The scopes granted to it. */
    scopes?: readonly string[];
    /** When its credentials end, in seconds since 1970. Then its requests are refused, also on connections that are open. */
    expiresAt?: number;
    /**
     * The thumbprint of the key that its token is bound to (`cnf.jkt`, RFC 9449). A `resource` of the policy requires a
     * proof of that key with each request.
     */
    boundKey?: string;
    /**
     * The digest of the certificate that its token is bound to (`cnf.x5t#S256`, RFC 8705). A `resource` of the policy
     * requires a connection with that certificate.
     */
    boundCertificate?: string;
}

type Verdict = Principal | string | null | undefined;

/**
 * Says who a client is: a `Principal`, its name alone, or nothing to refuse the credentials. An exception says that there
 * is no verdict, since the credentials may be right: over HTTP the client gets status 503 and comes again, where refused
 * credentials get 401 and count as guesses. `signal` aborts when nobody waits for the verdict any more: the client has
 * gone or cancelled its request, or the time is over.
 */
export type Verifier = (credentials: Credentials, call: { readonly signal: AbortSignal }) => Verdict | Promise<Verdict>;

/** @internal Checks the verifier of a policy, and what it is given beside. */
export function checkVerifier({ verifier, verifierTimeout, keys, jwt }: Policy): void {
    const misuse = (why: string) => new McpError('ERR_MCP_MISUSE', `policy: ${why}`);
    if (verifier === undefined && verifierTimeout !== undefined) throw misuse('verifierTimeout limits a verifier; pass one');
    if (verifier === undefined) return;
    if (typeof verifier !== 'function') throw misuse('the verifier is not a function');
    if (keys || jwt) throw misuse('a verifier takes the place of keys and jwt; pass it alone');
}

/** What gets the verdicts. */
interface Native {
    verified(number: number, granted: string | undefined, failed: boolean): void;
}

/** @internal Calls the verifier of a policy for the engine. */
export class Verifying {
    /** What gets the verdicts: see `src/verifier.rs`. */
    native: Native | undefined;
    readonly #verifier: Verifier;
    readonly #failures: Failures;
    readonly #running = new Map<number, AbortController>();

    private constructor(verifier: Verifier, failures: Failures) {
        this.#verifier = verifier;
        this.#failures = failures;
    }

    /** Checks a policy; `undefined` if it has no verifier. */
    static of(policy: Policy, failures: Failures): Verifying | undefined {
        checkVerifier(policy);
        return policy.verifier && new Verifying(policy.verifier, failures);
    }

    /** The callback of the engine. It must be kept: see `weakly`. */
    readonly ask = (json: string): void => {
        const { number, certificate, ...brought } = JSON.parse(json);
        if (brought.kind === undefined) {
            this.#running.get(number)?.abort(new DOMException('nobody waits for the verdict', 'AbortError'));
            this.#running.delete(number);
            return;
        }
        void this.#verify(number, certificate ? { ...brought, certificate: Uint8Array.from(certificate) } : brought);
    };

    async #verify(number: number, credentials: Credentials): Promise<void> {
        const controller = new AbortController();
        this.#running.set(number, controller);
        try {
            const principal = checked(await this.#verifier(credentials, { signal: controller.signal }));
            this.native?.verified(number, principal && JSON.stringify(principal), false);
        } catch (error) {
            this.native?.verified(number, undefined, true);
            // A verifier that throws because it was aborted is not reported.
            if (!controller.signal.aborted) this.#failures.report(error, 'the verifier');
        } finally {
            this.#running.delete(number);
        }
    }
}

function checked(verdict: Verdict): Principal | undefined {
    if (verdict === undefined || verdict === null) return undefined;
    const principal = typeof verdict === 'string' ? { name: verdict } : verdict;
    const { name, scopes = [] } = principal;
    if (typeof name !== 'string' || name === '') throw new TypeError('the verifier returned no name; return a name, { name, scopes }, or nothing to refuse the credentials');
    if (!Array.isArray(scopes) || scopes.some(scope => typeof scope !== 'string')) throw new TypeError('the scopes of a principal are an array of names');
    const { expiresAt, boundKey, boundCertificate } = principal;
    if (expiresAt !== undefined && !Number.isFinite(expiresAt)) throw new TypeError('expiresAt is a number of seconds since 1970');
    for (const bound of [boundKey, boundCertificate])
        if (bound !== undefined && typeof bound !== 'string') throw new TypeError('boundKey and boundCertificate are digests in base64url');
    return principal;
}
