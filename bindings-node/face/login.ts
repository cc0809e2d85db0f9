import { guarded, McpError } from './errors';
import { native, type NativeLogin, type NativeLoginReplies } from './native';
import { settingsJson } from './numbers';

type Awaitable<T> = T | Promise<T>;

/** The page on which the user consents. */
export interface AuthorizationPage {
    /** The page. */
    readonly url: string;
    /** The address that the browser comes back to. */
    readonly redirectUri: string;
    /** The value of `state` with which it comes back. Other logins have other values. */
    readonly state: string;
}

/** A code that the user enters on another device. */
export interface DeviceCode {
    readonly userCode: string;
    /** The page on which the code is entered. */
    readonly verificationUri: string;
    /** The page with the code filled in. */
    readonly verificationUriComplete?: string;
    /** How long the code is valid, in ms. */
    readonly expiresIn: number;
}

/** The recipient of an assertion. */
export interface AssertionRequest {
    /** The issuer of the authorization server: the audience of the assertion. */
    readonly issuer: string;
    /** The MCP server. */
    readonly resource: string;
}

/**
 * Keeps credentials of logins: small secret documents by key. The texts of keys and documents are the login's own
 * concern. Keep documents where nobody else can read them.
 */
export interface CredentialStore {
    /** Returns the document of a key, or nothing. */
    load(key: string): Awaitable<string | null | undefined>;
    /** Replaces the document of a key: entirely, or not at all. */
    save(key: string, document: string): Awaitable<unknown>;
    /** Removes the document of a key, if there is one. */
    remove(key: string): Awaitable<unknown>;
    /**
     * Waits until nobody else holds the key, and returns the function that releases it. Other keys can be held
     * meanwhile. Needed by stores that several
     * processes share, where two might use a refresh token at the same time. Without it, keys are locked within one
     * login object.
     */
    lock?(key: string): Awaitable<() => unknown>;
}

/** Passed to each function of a login. `signal` aborts once the result is no longer needed. */
export interface LoginCall {
    readonly signal: AbortSignal;
}

/** Options of a login; see `oauth`. */
export interface OAuthOptions {
    /** The name that users see when they consent; `mcpbolt` by default. */
    clientName?: string;
    /**
     * How the access token is obtained:
     * - `code`, the default: the user consents in a browser.
     * - `device`: the user consents on another device; requires `onDeviceCode`.
     * - `clientCredentials`: the program acts for itself, with `clientSecret` or `signingKey`.
     * - `workload`: the program shows a signed token of its platform; requires `assertion`.
     * - `enterprise`: the identity provider of an enterprise vouches for the user; requires `identityProvider`, and
     *   `assertion` for the user's ID token.
     */
    grant?: 'code' | 'device' | 'clientCredentials' | 'workload' | 'enterprise';
    /** The client id, if the program was registered by hand. By default it registers itself. */
    clientId?: string;
    /** The secret of `clientId`. */
    clientSecret?: string;
    /**
     * The issuer of `clientId`: with any other authorization server the login fails. Without it, the secret goes to the
     * authorization servers that MCP servers name until one accepts it, and then to no other as long as the store lasts.
     */
    issuer?: string;
    /** The private key with which the client authenticates instead of a secret (`private_key_jwt`). */
    signingKey?: {
        /** PKCS #8 in PEM. */
        readonly pem: string;
        readonly algorithm: 'ES256' | 'ES384' | 'EdDSA' | 'RS256' | 'RS384' | 'RS512' | 'PS256' | 'PS384' | 'PS512';
        /** The `kid` of the key. */
        readonly keyId?: string;
    };
    /** The URL of a document about this client, used as its id by authorization servers that support such documents. */
    clientMetadataUrl?: string;
    /** Scopes to request in addition to those that the server names. */
    scopes?: readonly string[];
    /** Whether tokens are bound to a key (DPoP); by default, if the server asks for it. */
    dpop?: boolean;
    /** Whether a server on the internet may name authorization servers in a private network. */
    allowsPrivateAddresses?: boolean;
    /** The identity provider of an enterprise. */
    identityProvider?: { readonly tokenEndpoint: string; readonly clientId: string; readonly clientSecret?: string };
    /**
     * Where credentials are kept: until the process ends (`memory`, the default), in files that the programs of this
     * user share (`user`), in files in another folder, or in a store of the program.
     */
    store?: 'memory' | 'user' | { readonly folder: string } | CredentialStore;
    /** How long a function of this object, and thus the user, may take, in ms; 5 minutes by default. */
    timeout?: number;
    /**
     * Opens the page on which the user consents; by default, the user's browser does. If the program itself learns
     * with which address the browser came back, it returns that address, or its query.
     */
    onAuthorize?(page: AuthorizationPage, call: LoginCall): Awaitable<string | URL | void>;
    /**
     * The address that the browser comes back to; `onAuthorize` then returns the whole address. By default, a port of
     * this machine, which is open for one login.
     */
    redirectUri?: string | URL;
    /** Shows the user the code to enter on another device. */
    onDeviceCode?(code: DeviceCode, call: LoginCall): unknown;
    /** Returns the signed token of the workload, or the user's ID token. */
    assertion?(request: AssertionRequest, call: LoginCall): Awaitable<string>;
}

/** A login, made by `oauth`: pass it as `auth` to `Client.connect`. */
export class OAuth {
    readonly #native: NativeLogin;

    /** @internal */
    constructor(options: OAuthOptions) {
        check(options);
        const { onAuthorize, onDeviceCode, assertion, redirectUri, store = 'memory', clientName = 'mcpbolt', ...rest } = options;
        const own = typeof store === 'object' && !('folder' in store) ? store : undefined;
        const settings = settingsJson({ ...rest, clientName, store: own ? undefined : store });
        const has = [
            ...Object.entries({ onAuthorize, onDeviceCode, assertion }).flatMap(([name, given]) => (given ? [name] : [])),
            ...(own ? ['store', ...(own.lock ? ['lock'] : [])] : [])
        ];
        const replies = new native.LoginReplies();
        // The engine refers to this function: it must not refer to the login, which would then never be collected.
        const ask = asking(functionsOf(options, own), replies);
        this.#native = guarded(() => new native.Login(settings, redirectUri === undefined ? undefined : String(redirectUri), has, replies, ask));
    }

    /** @internal */
    get native(): NativeLogin {
        return this.#native;
    }
}

/**
 * Creates a login for `auth` of `Client.connect`, on `http:` and `https:`. When a server asks for an access token, the
 * client finds its authorization server, registers there if necessary, obtains a token and repeats the request. Tokens
 * are refreshed when they end; if a request needs more scopes, the user is asked again. Clients that share a login
 * object share its tokens: one login per server.
 *
 * @example
 * ```js
 * const client = await Client.connect('https://example.com/mcp', { auth: oauth({ clientName: 'My program', store: 'user' }) });
 * ```
 */
export function oauth(options: OAuthOptions = {}): OAuth {
    return new OAuth(options);
}

function check({ grant = 'code', store, onDeviceCode, assertion, onAuthorize, redirectUri }: OAuthOptions): void {
    const misuse = (why: string) => new McpError('ERR_MCP_MISUSE', `oauth: ${why}`);
    for (const [name, given] of Object.entries({ onAuthorize, onDeviceCode, assertion }))
        if (given !== undefined && typeof given !== 'function') throw misuse(`${name} is not a function`);
    if (grant === 'device' && !onDeviceCode) throw misuse('the grant device shows the user a code; pass onDeviceCode');
    if ((grant === 'workload' || grant === 'enterprise') && !assertion) throw misuse(`the grant ${grant} needs a signed token; pass assertion`);
    if (redirectUri !== undefined && !onAuthorize) throw misuse('with a redirectUri, only the program learns when the browser comes back; pass onAuthorize');
    if (typeof store !== 'object' || 'folder' in store) return;
    for (const name of ['load', 'save', 'remove'] as const)
        if (typeof store?.[name] !== 'function') throw misuse(`the store has no function ${name}`);
}

type Asked = (params: any, call: LoginCall) => unknown;

/** The functions of the program by the names of the questions in `src/login.rs`. */
function functionsOf(options: OAuthOptions, store: CredentialStore | undefined): Readonly<Record<string, Asked>> {
    return {
        onAuthorize: (page, call) => options.onAuthorize!(page, call),
        onDeviceCode: async ({ verificationUriComplete, ...code }, call) =>
            void (await options.onDeviceCode!({ ...code, ...(verificationUriComplete && { verificationUriComplete }) }, call)),
        assertion: (request, call) => options.assertion!(request, call),
        load: ({ key }) => store!.load(key),
        save: async ({ key, document }) => void (await store!.save(key, document)),
        remove: async ({ key }) => void (await store!.remove(key)),
        lock: ({ key }) => store!.lock!(key)
    };
}

interface Question {
    number?: number;
    what?: string;
    params?: unknown;
    /** The number of a lock. */
    release?: number;
}

/** The function that the engine calls: see `src/login.rs`. */
function asking(functions: Readonly<Record<string, Asked>>, replies: NativeLoginReplies): (json: string) => void {
    const running = new Map<number, AbortController>();
    const locks = new Map<number, () => unknown>();
    const release = async (number: number) => {
        const held = locks.get(number);
        locks.delete(number);
        try {
            await held?.();
        } catch (error) {
            process.emitWarning(new Error('the store of credentials failed to release a lock', { cause: error }));
        }
    };
    const answer = async (number: number, what: string, params: unknown) => {
        const controller = new AbortController();
        running.set(number, controller);
        try {
            const result = await functions[what]!(params, { signal: controller.signal });
            if (what === 'lock') {
                if (typeof result !== 'function') throw new TypeError('it returned no function that releases the lock');
                locks.set(number, result as () => unknown);
                if (!replies.answer(number)) await release(number);
            } else replies.answer(number, result === undefined || result === null ? undefined : textOf(result));
        } catch (error) {
            replies.answer(number, undefined, `${what} failed: ${error instanceof Error ? error.message : 'it threw no Error'}`);
        } finally {
            running.delete(number);
        }
    };
    return json => {
        const { number, what, params, release: lock } = JSON.parse(json) as Question;
        if (lock !== undefined) void release(lock);
        else if (what !== undefined) void answer(number!, what, params);
        else running.get(number!)?.abort(new DOMException('nobody waits for the login any more', 'AbortError'));
    };
}

function textOf(result: unknown): string {
    if (typeof result === 'string') return result;
    if (result instanceof URL) return result.href;
    throw new TypeError(`it returned ${typeof result} instead of a string`);
}
