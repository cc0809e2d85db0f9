import type { Call } from './call';
import type { Completer } from './complete';
import type { Context } from './context';
import type { McpError } from './errors';
import type { Logger } from './logger';
import type { Results } from './resultcache';
import type { Integers } from './numbers';
import type { Annotations, ClientInfo, Icon, PromptArgument, Revision, TaskSupport, ToolAnnotations, Trace } from './protocol';
import type { Schema } from './schema';
import type { Verifier } from './verifier';

export interface ServerOptions<State = unknown> {
    /** Instructions for the model on how to use the server. */
    instructions?: string;
    /**
     * `start` runs before the first call and `stop` after the last; `ctx.state` is the value that `start` returned. What `stop` throws reaches
     * who awaits the end of the server (`run`, `Serving.ended`), and else `onError`.
     */
    lifespan?: { start: () => State | Promise<State>; stop?: (state: State) => unknown };
    /**
     * Lets tools, resources and prompts be added and removed while clients are connected, and notifies clients. Without
     * it everything must be added before the server runs.
     */
    listChanges?: boolean;
    /** Lets clients subscribe to resources: see `resourceUpdated`. */
    subscriptions?: boolean;
    /** Items on a page of a list; by default all items are on one page. */
    pageSize?: number;
    /** How long clients may cache lists, in ms, from 2026-07-28 on. */
    cacheLists?: number;
    /** Whether cached lists may be shown to other users (`public`); `private` by default. */
    cacheScope?: 'public' | 'private';
    /** Extensions that the server offers, from 2026-07-28 on: settings by name. */
    extensions?: Readonly<Record<string, object>>;
    /** Limits on stored tasks. */
    taskLimits?: TaskLimits;
    /**
     * Memory that all connections may take together, over all addresses, in bytes: incomplete messages, calls in
     * progress, answers not yet taken by clients, and data kept after calls. A fifth is left to the allocator. 268435456
     * (256 MiB) by default; 1 GiB as long as the server is reached by stdin and stdout alone. An eighth of the rest is
     * reserved for messages of at most 64 KiB. When the bytes outside the reserve are used up, long messages are refused
     * at once: over HTTP with 503 and `Retry-After`, elsewhere with an overload error that has `retryAfter`.
     */
    maxBytes?: number;
    /** When the action dialect answers with a reference to the data instead of the data itself; never by default. */
    references?: References;
    /**
     * 32 bytes that sign the state that clients hold between the rounds of a call (see `Context.elicit`); random by
     * default. Workers, and processes with one store, have the same key by themselves; other processes that serve the same clients
     * need it. Keep it secret.
     */
    stateKey?: Uint8Array;
    /**
     * The variant of the protocol to speak up to 2025-11-25: some documents define codes, names and methods of their
     * own. `official` by default.
     */
    profile?: Profile;
    /** Permissions, rate and time limits, masking and audit. */
    policy?: Policy;
    /**
     * Approves calls before the handler runs, by tool name (`*` covers every other tool). Called with the tool's name,
     * the arguments, which already fit its schema, and the call's context, through which it can ask the user. `true`
     * runs the tool. `false` fails the call with an error that the model can read; an exception counts as thrown by the
     * tool. The time limits of a tool include this step. A name that no tool has is an error when the server is served,
     * unless `listChanges` is on.
     */
    approval?: Readonly<Record<string, Approve<State>>>;
    /**
     * Cleans arguments before `approval` and the handler see them, by tool name like `approval`. Returns an object,
     * which must fit the schema too, or throws. The audit gets the original arguments.
     */
    sanitise?: Readonly<Record<string, Clean<State>>>;
    /**
     * Capabilities declared as `experimental`: settings by name. `batch` lets clients of `extended` send several
     * requests as one.
     */
    experimental?: Readonly<Record<string, object>>;
    /**
     * Also answers requests of the action dialect, on the same addresses; each tool is an action. Off by default: such
     * a request is then an error.
     */
    actions?: boolean;
    /**
     * How integers beyond 2^53 appear in arguments and in clients' answers: see `Integers`; `number` by default. Every
     * `bigint` is sent as an exact integer.
     */
    integers?: Integers;
    /** Called when a client of a revision before 2026-07-28 has finished the handshake. */
    onInitialized?: (client: ClientInfo) => void;
    /** Called when the roots of a client changed: handlers read them with `ctx.roots()`. */
    onRootsChanged?: (client: ClientInfo | undefined) => void;
    /** Called when a connection has ended; the client is `undefined` if it had not introduced itself. */
    onClosed?: (reason: McpError, client: ClientInfo | undefined) => void;
    /**
     * Makes spans and metrics of all requests and sessions with the program's OpenTelemetry, its global tracer and meter, by the conventions
     * for MCP. Handlers run within the span of their call. Needs `@opentelemetry/api`; without it, `ERR_MCP_MISUSE` is thrown. Of a
     * mounted server this setting does not count.
     */
    telemetry?: boolean;
    /**
     * Where failures are logged, with the exception and its stack: a logger of pino, winston or bunyan, `console`, or a
     * function. Exceptions that are answers (`ToolError`, `ProtocolError`, `ActionError`) are not logged. By default
     * failures are printed to stderr, unless there is an `onError`.
     */
    logger?: Logger;
    /**
     * Called with each exception of a handler, a middleware, a completer, the verifier, a callback of these options, or
     * the creation of an endpoint; with what failed, and with the call, if one did. Also for the servers that this one
     * mounts. Answers (`ToolError`, `ProtocolError`, `ActionError`) are among them.
     */
    onError?: (error: unknown, what: string, call?: Call) => unknown;
    /** @internal Another library serves the calls: see `Server.attend` and `DelegateSettings` in `src/delegate.rs`. */
    delegate?: { capabilities: object; eras: 'handshake' | 'stateless' | 'both'; opens: boolean };
    /** @internal Replaces name and version in what clients are told. */
    implementation?: object;
}

/** Decides whether a call may run. */
export type Approve<State = any> = (tool: string, args: any, context: Context<State>) => boolean | Promise<boolean>;

/** Returns the cleaned arguments of a call. */
export type Clean<State = any> = (tool: string, args: any, context: Context<State>) => object | Promise<object>;

/** Variants of the protocol, each defined by a document of its own. */
export type Profile = 'official' | 'reference' | 'chain' | 'extended' | 'patterns';

/** Allowed names or URIs, and exceptions to them. */
export interface Patterns {
    /** What to allow; if it is empty or left out, nothing is allowed. */
    allowed?: readonly string[];
    /** Takes precedence over `allowed`. */
    denied?: readonly string[];
}

/**
 * A server's permissions, limits, masking and audit, for every client. Tools and resources that are not allowed are
 * left out of lists, and a request for one is answered as if it did not exist. Credentials are masked in the failure
 * messages of handlers.
 */
export interface Policy {
    permissions?: {
        /** Exact names; `*` allows all. */
        tools?: Patterns;
        /** URI patterns: `*` matches anything within one segment, `**` matches anything. */
        resources?: Patterns;
        /** Maximum size of a resource that is returned, in bytes. */
        maxResourceSize?: number;
        /** Maximum time that a tool may take, in ms. */
        maxToolExecutionTime?: number;
        /** Treats the names of tools as patterns, too. */
        toolPatterns?: boolean;
    };
    /**
     * Limits how often each client may send requests: `burst` at once, and `perSecond` each second. A client is
     * identified by its principal or else by its address, whatever sessions it opens; all clients on stdin and Unix
     * sockets count as one.
     */
    rate?: { burst: number; perSecond: number };
    /**
     * Limits how many tool calls each client may make in a period, in ms; an action beyond it fails with
     * `QUOTA_EXCEEDED`.
     */
    quota?: { calls: number; period: number };
    /** Maximum time that a call of any tool may take, in ms. */
    toolTimeout?: number;
    /** Maximum time by tool, in ms; overrides `toolTimeout`. */
    timeouts?: Readonly<Record<string, number>>;
    /**
     * The accepted API keys, with the client and the scopes of each. With `keys`, `jwt` or both, clients that are not
     * authenticated are refused. Over HTTP, with status 401; credentials come in `X-API-Key` or
     * `Authorization: Bearer`. Elsewhere they come in the `auth` of an action's metadata, or of the `_meta` of a
     * request: `{ type: 'api_key', key }` or `{ type: 'bearer', token }`.
     */
    keys?: Readonly<Record<string, Granted>>;
    /**
     * How bearer tokens are verified: `sub` is the client, `scope` its scopes. Handlers see the owner of an API key as
     * `key:NAME`, and the bearer of a token as `jwt:ISSUER#SUB`.
     */
    jwt?: Jwt;
    /**
     * The scopes that a tool requires, by tool name. A client that lacks one is told which: over HTTP with status 403.
     */
    scopes?: Readonly<Record<string, readonly string[]>>;
    /** The scopes that a resource requires, by pattern of URIs, as in `permissions`. */
    resourceScopes?: Readonly<Record<string, readonly string[]>>;
    /** The scopes that a prompt requires, by prompt name. */
    promptScopes?: Readonly<Record<string, readonly string[]>>;
    /** The narrower scopes that a scope implies, by the broader one. Scopes imply nothing by their names. */
    impliedScopes?: Readonly<Record<string, readonly string[]>>;
    /**
     * Whether lists omit the tools, resources and prompts for which the caller lacks scopes. By default they show them, so
     * that a client can see what it may ask for.
     */
    filterLists?: boolean;
    /**
     * Makes the server a resource server of OAuth. A `verifier` beside it verifies other credentials, and tokens, too,
     * unless the keys or the introspection of an issuer are set.
     */
    resource?: ResourceServer;
    /**
     * An authorization server as part of this server, in place of `resource`, in front of an identity provider that knows
     * no registration of clients. A `verifier` beside it verifies credentials other than tokens.
     */
    consentProxy?: ConsentProxy;
    /**
     * Says who a client is, in place of `keys` and `jwt`: called with the credentials of each request (of each connection,
     * where one message establishes them), at most 1000 at a time. It may be `async`; other requests go on meanwhile. An
     * exception goes to the log and to `onError`, and is no verdict: over HTTP the client gets status 503. Catch what a library
     * throws for a wrong token, and return nothing:
     *
     *     try { return jwt.verify(secret, key).sub; }
     *     catch (error) { if (!(error instanceof jwt.JsonWebTokenError)) throw error; }
     */
    verifier?: Verifier;
    /** How long `verifier` may take for a request, in ms; 10,000 by default. Then there is no verdict. */
    verifierTimeout?: number;
    /** Strings that are masked wherever they occur in errors, in failures of tools and in the audit. */
    secrets?: readonly string[];
    /** Adds arguments to audit events, with credentials masked. */
    auditArguments?: boolean;
    /** Called for each call, read, prompt, completion and subscription when it is answered. */
    audit?: (event: AuditEvent) => void;
    /** Limits the events that wait for `audit`. */
    auditQueue?: AuditQueue;
}

/** An authorization server whose tokens are accepted. */
export interface Issuer {
    /** Its issuer identifier, a URL. */
    issuer: string;
    /**
     * The URL of the keys that verify its tokens. Without `jwks` and `introspection`, the verifier of the policy verifies
     * its tokens or, without one, the keys that its metadata name (RFC 8414, OpenID Connect Discovery).
     */
    jwks?: string;
    /**
     * Where it is asked about tokens (RFC 7662), and this server's client id and secret there. With `jwks` beside it, it
     * is asked about tokens that are not signed.
     */
    introspection?: { url: string; clientId: string; clientSecret: string };
}

/**
 * A resource server of OAuth 2.1: over HTTP, every request needs an access token of one of its issuers, for this resource.
 *
 * A token must be for this resource (`aud`), of an accepted issuer, and must not have ended. It is signed by RS256 to RS512,
 * PS256 to PS512, ES256, ES384 or EdDSA, or the issuer is asked about it. Its caller is `jwt:ISSUER#SUBJECT`, or
 * `client:ISSUER#ID` if the issuer's answer names a client and no user. The metadata (RFC 9728) is served at
 * `/.well-known/oauth-protected-resource`, with and without the path of the resource. Refusals say in `WWW-Authenticate`
 * where the metadata is, which scopes are needed and what is wrong. Times are in ms.
 */
export interface ResourceServer {
    /** The URL at which clients reach the server: the audience that tokens must have. */
    url: string;
    /** The authorization servers, each with its settings or by its identifier. */
    issuers: readonly (Issuer | string)[];
    /** The scopes that every request requires, and that a client without a token is asked to get. */
    scopes?: readonly string[];
    /** Further audiences that are accepted. */
    audience?: string | readonly string[];
    /**
     * Accepts tokens for any audience or none. This includes tokens issued for another server, which that server can then
     * use here.
     */
    anyAudience?: boolean;
    /** The tolerated difference between the clocks of issuer and server; 60,000 by default. */
    leeway?: number;
    /**
     * How long an answer about a token is used again; 5,000 by default for introspection. Verdicts of the policy's verifier
     * are used again only if this is set.
     */
    cachedFor?: number;
    /** The age at which keys are fetched again; 600,000 by default. */
    keyRefresh?: number;
    /** The shortest time between two fetches of keys; 30,000 by default. */
    keyCooldown?: number;
    /**
     * Whether clients prove that they hold the key of their token (DPoP, RFC 9449): `off`, the default; `accepted` for tokens
     * that are bound to a key; or `required`.
     */
    proofs?: 'off' | 'accepted' | 'required';
    /** How far the time of a proof may be from now; 300,000 by default. */
    proofAge?: number;
    /**
     * Each proof must have a nonce of this server, which changes every period. The secret has 32 characters or more;
     * processes that share it accept each other's nonces.
     */
    proofNonces?: { secret: string; period: number };
    /** The name for people in the metadata. */
    name?: string;
    /** The URL of a page for developers in the metadata. */
    documentation?: string;
    /** Certificates (PEM) that are trusted for issuers in addition to those of the system. */
    rootCertificates?: string | readonly string[];
    /** The URL of an HTTP proxy for requests to issuers; empty for none. By default the proxy that the environment names. */
    proxy?: string;
}

/** An identity provider that knows a server as one application. */
export interface Upstream {
    /** The URL where users log in. */
    authorizationEndpoint: string;
    /** The URL where codes become tokens. */
    tokenEndpoint: string;
    /** The id that the provider gave this server. */
    clientId: string;
    /** The secret that the provider gave this server. */
    clientSecret?: string;
    /** The URL where tokens are revoked, if the provider has one. */
    revocationEndpoint?: string;
    /** The provider's issuer identifier, if it sends one with its answers (RFC 9207). Answers of others are refused. */
    issuer?: string;
    /** The scopes asked of the provider; `openid` by default, which gives users a name. */
    scopes?: readonly string[];
    /** Further parameters of the request for authorization, such as `{ access_type: 'offline' }`. */
    parameters?: Readonly<Record<string, string>>;
}

/**
 * An authorization server that is part of a server: clients register there and log in, and the login itself is at an
 * identity provider that knows no registration.
 *
 * Over HTTP, its paths are answered beside the endpoint: `/register`, `/authorize`, `/token` and others beneath `issuer`.
 * The user is asked about each client. Clients get tokens of the proxy for this server alone; the server is a resource
 * server that accepts them, with callers `jwt:ISSUER#SUBJECT`. Times are in ms.
 */
export interface ConsentProxy {
    /**
     * The URL of this authorization server: the origin of the server, or a path there. Enter `ISSUER/callback` at the
     * provider.
     */
    issuer: string;
    /** The URL at which clients reach the server. */
    resource: string;
    /**
     * 32 random characters or more, for example of `openssl rand -hex 32`: the same in every process and after a restart, or
     * else all logins are over.
     */
    secret: string;
    /** The identity provider. */
    upstream: Upstream;
    /** The name of the server on the page that asks for consent; the resource by default. */
    name?: string;
    /** The scopes that clients may ask for. A client that asks for none gets all of them. */
    scopes?: readonly string[];
    /**
     * Where clients may have answers sent, besides to the user's own machine: hosts, or `*.example.com` for those beneath. By
     * default any host: the page shows it, and the user decides.
     */
    redirectHosts?: readonly string[];
    /** The longest time that an access token is good; 3,600,000 by default. */
    tokenLifetime?: number;
    /** How long a refresh token may be used; 30 days by default. */
    refreshLifetime?: number;
}

/** The queue between the engine and `audit`. */
export interface AuditQueue {
    /** How many events may wait; 10,000 by default. */
    events?: number;
    /**
     * The behaviour when the queue is full. `wait`, the default: engine threads wait, and no event is lost.
     * JavaScript's own thread cannot wait for itself: it continues, and adds the events of the calls that it answers in
     * one turn. `drop`: events are dropped, and `dropped` of the next event says how many. `refuse`: new requests are
     * refused as overloaded until there is room; requests in progress are still answered.
     */
    whenFull?: 'wait' | 'drop' | 'refuse';
}

/** The client that an API key belongs to, and its scopes. */
export interface Granted {
    client: string;
    scopes?: readonly string[];
}

/** A key that verifies signed tokens. */
export interface JwtKey {
    algorithm: 'HS256' | 'HS384' | 'HS512' | 'RS256' | 'RS384' | 'RS512' | 'ES256' | 'ES384' | 'EdDSA';
    /** The secret, of at least 32 bytes for HS256, 48 for HS384, 64 for HS512; otherwise the public key in PEM. */
    key: string;
}

/**
 * How signed tokens are verified (RFC 7519). A token needs an expiry (`exp`) that has not passed, and the issuer and
 * the audience that are named here. `exp`, `nbf` and `iat` must be numbers. Clocks may differ by 60 s.
 */
export interface Jwt extends Partial<JwtKey> {
    /** Further keys by their id: a token is verified with the key of its `kid`, or else with `key`, if there is one. */
    keys?: Readonly<Record<string, JwtKey>>;
    /** The issuer (`iss`) that tokens must have; with several, any one of them. */
    issuer?: string | readonly string[];
    /** Accepts tokens of any issuer, and tokens without one. */
    anyIssuer?: boolean;
    /**
     * The audience (`aud`) that tokens must have; with several, any one of them. Usually the address by which clients
     * know this server.
     */
    audience?: string | readonly string[];
    /**
     * Accepts tokens for any audience, and tokens without one: also tokens issued for another server, which can then
     * use them here.
     */
    anyAudience?: boolean;
}

/** One request and its outcome. */
export interface AuditEvent {
    method: string;
    /** The name of the tool or prompt, or the URI. */
    name: string;
    /** The verified principal of the caller. */
    principal: string | null;
    /** The request's id, as on the wire. */
    id: string;
    revision: Revision;
    outcome: 'done' | 'tool_failed' | 'failed' | 'denied' | 'limited' | 'timed_out' | 'cancelled';
    /** The error code, if the request failed with an error. */
    code: number | null;
    /** The failure message, if the request failed. */
    message: string | null;
    /** Seconds from the arrival of the request to its answer. */
    seconds: number;
    /** The arguments as JSON, with `auditArguments`. */
    arguments: string | null;
    /** How many events were dropped before this one because the queue was full. */
    dropped: number;
}

/** Limits on the tasks that a server stores. */
export interface TaskLimits {
    /**
     * Maximum number of tasks, ended ones included; 1024 by default. Calls beyond it are refused, or run without a
     * task.
     */
    tasks?: number;
    /**
     * Maximum number of tasks of one principal or, without a verified principal, of one address; 256 by default. Their
     * results may take the same share of `bytes`.
     */
    perOwner?: number;
    /** Maximum size of all results in bytes; 64 MiB by default. A result that does not fit becomes an error. */
    bytes?: number;
    /** Maximum time that a task is kept after its creation, in ms; an hour by default. */
    ttl?: number;
    /** How often clients are told to poll a task, in ms; 500 by default. */
    pollInterval?: number;
}

/**
 * When the action dialect answers with a reference to the data instead of the data itself: clients then fetch the data
 * in parts with `mcp.get_data`. At most 64 MiB are stored in all; the oldest data are evicted first. Larger data, and
 * the answers of batches, are sent whole.
 */
export interface References {
    /** Data of more bytes than this are sent by reference. */
    overBytes: number;
    /** How long the data are stored, in ms; 60,000 by default. */
    ttl?: number;
}

/** Documentation of an action for clients of the action dialect, besides its description and its schemas. */
export interface ActionNotes {
    /** Example requests and responses. */
    examples?: readonly object[];
    /** The types of the errors that the action may answer with. */
    errors?: readonly string[];
    help_url?: string;
    /** A deprecation notice. */
    deprecated?: string;
    /** Whether a failed call is undone. */
    atomic?: boolean;
    [more: string]: unknown;
}

export interface ToolDefinition {
    /** A name for display. */
    title?: string;
    /** A description of the tool, for the model. */
    description?: string;
    /**
     * The schema of the arguments: a JSON Schema (TypeBox makes one), a schema object of Zod, Valibot, ArkType or a similar
     * library, or an object of such schemas, one for each argument. `ERR_MCP_SCHEMA` says what to install where a library
     * leaves the conversion to JSON Schema to another package.
     */
    inputSchema?: Schema;
    /** The schema of the structured content. Results are validated against it before they are sent. */
    outputSchema?: Schema;
    annotations?: ToolAnnotations;
    /**
     * Whether calls may run as tasks: `optional` for clients that support tasks, `required` for those clients only. See
     * `Context.beginTask`.
     */
    taskSupport?: TaskSupport;
    /** Additional documentation that `mcp.get_schema` of the action dialect returns. */
    action?: ActionNotes;
    /**
     * Lets a GET call the tool, in the action dialect over HTTP: `GET …/stream?action=NAME`. A web page can make a
     * browser send a GET that does not reveal its origin, so this is for tools whose annotations have `readOnlyHint`;
     * for any other tool it is an error.
     */
    onGet?: boolean;
    /** Whether a failed call is undone: the handler notes for each step how to undo it. See `Steps`. */
    atomic?: boolean;
    /**
     * Caches results: the same call gets the cached result, without running the handler, until the result expires or is
     * forgotten. Failures are not cached.
     */
    kept?: Results;
    icons?: readonly Icon[];
    _meta?: Readonly<Record<string, unknown>>;
}

export interface ResourceDefinition {
    name?: string;
    title?: string;
    description?: string;
    mimeType?: string;
    /** Its size in bytes. */
    size?: number;
    annotations?: Annotations;
    icons?: readonly Icon[];
    _meta?: Readonly<Record<string, unknown>>;
}

export interface ResourceTemplateDefinition<State = any> extends ResourceDefinition {
    /** Completers by template variable: they suggest values. */
    complete?: Readonly<Record<string, Completer<State>>>;
}

export interface PromptDefinition<State = any> {
    title?: string;
    description?: string;
    arguments?: readonly (PromptArgument & {
        /** Suggests values. */
        complete?: Completer<State>;
    })[];
    icons?: readonly Icon[];
    _meta?: Readonly<Record<string, unknown>>;
}

export interface RunOptions {
    /** How long calls in flight may take after the end of stdin or a signal, in ms; 5000 by default. */
    grace?: number;
    /** Handle SIGTERM, SIGINT and SIGHUP while the server runs; by default if nothing else listens for them. */
    signals?: boolean;
    /** Called with each message. */
    trace?: Trace;
}

/** How a server's run ended. */
export interface RunReport {
    /** Calls whose handlers had not ended in time. */
    unanswered: number;
    reason: 'end of input' | 'signal' | 'parent died' | 'broken pipe' | 'stopped' | 'closed';
    signal?: number;
}
