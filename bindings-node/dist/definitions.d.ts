import type { Completer } from './complete';
import type { Context } from './context';
import type { McpError } from './errors';
import type { Results } from './kept';
import type { Integers } from './numbers';
import type { Annotations, Icon, Implementation, PromptArgument, Revision, TaskSupport, ToolAnnotations, Trace } from './protocol';
import type { Schema } from './schema';
export interface ServerOptions<State = unknown> {
    /** What the server tells the model about itself. */
    instructions?: string;
    /** What is made before the first call and unmade after the last; `ctx.state` is what `start` gave. */
    lifespan?: {
        start: () => State | Promise<State>;
        stop?: (state: State) => unknown;
    };
    /**
     * The lists may change while clients are connected: tools, resources and prompts may be added and removed at any
     * time, and clients are told. Without it everything is added before the server runs.
     */
    listChanges?: boolean;
    /** Clients may subscribe to resources: see `resourceUpdated`. */
    subscriptions?: boolean;
    /** Items on a page of a list; all of them by default. */
    pageSize?: number;
    /** How long clients may keep lists, in ms, from 2026-07-28 on; `public` ones may be shown to other users. */
    cacheLists?: {
        ms: number;
        scope?: 'public' | 'private';
    };
    /** Extensions that it offers, from 2026-07-28 on: settings by name. */
    extensions?: Readonly<Record<string, object>>;
    /** How much is kept of tasks. */
    taskLimits?: TaskLimits;
    /** When answers of the action dialect refer to their data instead of holding them; never by default. */
    references?: References;
    /**
     * 32 bytes that sign what clients keep between the rounds of a call (see `Context.elicit`); random by default. Give
     * the same to processes that a client may reach in turn, and keep it secret.
     */
    stateKey?: Uint8Array;
    /**
     * Whose reading of the protocol is spoken up to 2025-11-25: documents that have codes, words and methods of their
     * own; `official` by default.
     */
    profile?: Profile;
    /** What clients may do, how often and for how long, what is masked and what is written down. */
    policy?: Policy;
    /**
     * Who is asked before a tool is called, by its name (`*` is every other tool): called with its name, the arguments,
     * which fit its schema, and the call, by which the user may be asked. `true` has the tool called. `false` is a failure
     * for the model to read; what it throws is told as if the tool had. What bounds the time of a tool bounds this, too.
     * A name that no tool has is an error when the server is served, unless there are `listChanges`.
     */
    approval?: Readonly<Record<string, Approve<State>>>;
    /**
     * The same for who cleans the arguments before anybody else sees them: gives an object, which has to fit the schema,
     * too, or throws. The audit is told what came.
     */
    sanitise?: Readonly<Record<string, Clean<State>>>;
    /** What is declared as `experimental`: settings by name. `batch` lets clients of `seed-003` send several requests as one. */
    experimental?: Readonly<Record<string, object>>;
    /**
     * What integers beyond 2^53 become in arguments and in what clients answer: see `Integers`; `number` by default.
     * Every `bigint` goes out as the integer that it is.
     */
    integers?: Integers;
    /** A client of a revision before 2026-07-28 has finished the handshake. */
    onInitialized?: (client: ClientInfo) => void;
    /** The roots of a client are others now: handlers learn them by `ctx.roots()`. */
    onRootsChanged?: (client: ClientInfo | undefined) => void;
    /** A connection has ended; the client is `undefined` when it had not introduced itself. */
    onClosed?: (reason: McpError, client: ClientInfo | undefined) => void;
    /** Told of what handlers throw; printed to stderr by default, `ToolError`s and `ProtocolError`s excepted. */
    onError?: (error: unknown, what: string) => void;
}
/** Whether a call may be made. */
export type Approve<State = any> = (tool: string, args: any, context: Context<State>) => boolean | Promise<boolean>;
/** The arguments of a call, cleaned. */
export type Clean<State = any> = (tool: string, args: any, context: Context<State>) => object | Promise<object>;
/** Documents that describe the protocol a little differently. */
export type Profile = 'official' | 'seed-001' | 'seed-002' | 'seed-003' | 'seed-004';
/** What is allowed, and what of it is denied. */
export interface Patterns {
    /** Without any, nothing is. */
    allowed?: readonly string[];
    /** Wins. */
    denied?: readonly string[];
}
/**
 * What a server allows, bounds, masks and writes down, whoever asks. What clients may not call or read is not there for
 * them: no list shows it. Credentials are masked in what handlers say of failures.
 */
export interface Policy {
    permissions?: {
        /** Named exactly; `*` is all of them. */
        tools?: Patterns;
        /** Patterns of URIs: `*` stands for anything within one segment, `**` for anything. */
        resources?: Patterns;
        /** Largest resource that is given out, in bytes. */
        maxResourceSize?: number;
        /** Longest that a tool may take, in ms. */
        maxToolExecutionTime?: number;
        /** Whether the names of tools are patterns, too. */
        toolPatterns?: boolean;
    };
    /** How often each client may ask: so often at once, and so often in each second. */
    rate?: {
        burst: number;
        perSecond: number;
    };
    /** How many calls of tools each client may make in a period, in ms; an action beyond it fails with `QUOTA_EXCEEDED`. */
    quota?: {
        calls: number;
        period: number;
    };
    /** Longest that a call of any tool may take, in ms. */
    toolTimeout?: number;
    /** The same by tool. */
    timeouts?: Readonly<Record<string, number>>;
    /**
     * The API keys that clients are known by, and what was granted to each. With these, with `jwt` or with both, who is
     * not known is refused: over HTTP with status 401, by `X-API-Key` and `Authorization: Bearer`; elsewhere by the `auth`
     * of an action's metadata, or of the `_meta` of a request: `{ type: 'api_key', key }`, `{ type: 'bearer', token }`.
     */
    keys?: Readonly<Record<string, Granted>>;
    /** The signed tokens that clients are known by: `sub` is who bears one, `scope` what was granted. */
    jwt?: Jwt;
    /** The scopes that a tool takes, by its name. Who lacks one is told which: over HTTP with status 403. */
    scopes?: Readonly<Record<string, readonly string[]>>;
    /** What is masked wherever it stands. */
    secrets?: readonly string[];
    /** Whether the audit is shown arguments, credentials masked. */
    auditArguments?: boolean;
    /** Called for each call, read, prompt, completion and subscription when it is answered. */
    audit?: (event: AuditEvent) => void;
}
/** Whose a key is, and what was granted. */
export interface Granted {
    client: string;
    scopes?: readonly string[];
}
/** What makes a signed token good (RFC 7519), beside that it has an end (`exp`), which is not yet; clocks may differ by 60 s. */
export interface Jwt {
    algorithm: 'HS256' | 'RS256' | 'ES256';
    /** The secret of HS256, or else the public key in PEM. */
    key: string;
    /** Who has to have issued it (`iss`). */
    issuer?: string;
    /** Whom it has to be for (`aud`); without it, nobody in particular. */
    audience?: string;
}
/** One request, and what came of it. */
export interface AuditEvent {
    method: string;
    /** The tool or prompt, or the URI. */
    name: string;
    /** Who asked, as the carrier has verified. */
    principal: string | null;
    /** The request's id, as it stands on the wire. */
    id: string;
    revision: Revision;
    outcome: 'done' | 'tool_failed' | 'failed' | 'denied' | 'limited' | 'timed_out' | 'cancelled';
    /** The code of the error, if it is one. */
    code: number | null;
    /** What was said of the failure, if it is one. */
    message: string | null;
    /** From when the request came to when it was answered. */
    seconds: number;
    /** The arguments in JSON, where they are kept. */
    arguments: string | null;
}
/** How much of its tasks a server keeps. */
export interface TaskLimits {
    /** Most tasks, the ended ones included; further calls are refused, or run without one. 1024 by default. */
    count?: number;
    /** Most bytes of all results; what would exceed it becomes an error. 64 MiB by default. */
    bytes?: number;
    /** How long a task is kept from its creation, in ms, at most; an hour by default. */
    ttlMs?: number;
    /** How often clients are told to ask how far a task is, in ms; 500 by default. */
    pollMs?: number;
}
/**
 * When answers of the action dialect refer to their data instead of holding them: clients have those in parts, by
 * `mcp.get_data`. At most 64 MiB are kept in all, the oldest give way; what is longer still, and what batches give, is
 * answered whole.
 */
export interface References {
    /** Data of more bytes than this are referred to. */
    overBytes: number;
    /** How long they are kept, in ms; 60,000 by default. */
    ttlMs?: number;
}
/** What a client said of itself: for display only. */
export interface ClientInfo {
    revision: Revision;
    /**
     * The number of its connection, which no other connection of the server has: what is kept for a client until
     * `onClosed` is kept by it. `undefined` where each request has a connection of its own (2026-07-28 on HTTP).
     */
    connection: number | undefined;
    /** Its name, version and more, if it named them. */
    info: Implementation | undefined;
    /** What it offers, by name. */
    capabilities: Record<string, unknown>;
}
/** What clients of the action dialect are told of an action besides its description and its schemas. */
export interface ActionNotes {
    /** Requests and responses. */
    examples?: readonly object[];
    /** The types of the errors that it may answer with. */
    errors?: readonly string[];
    help_url?: string;
    /** A notice that it will go. */
    deprecated?: string;
    /** Whether it is undone where it fails. */
    atomic?: boolean;
    [more: string]: unknown;
}
export interface ToolDefinition<Args = any> {
    /** A name for people. */
    title?: string;
    /** What it does, for the model. */
    description?: string;
    /** What its arguments look like: a JSON Schema, or a schema object of zod and the like. */
    inputSchema?: Schema<Args>;
    /** What its structured content looks like: what it gives back is held against it before it is sent. */
    outputSchema?: Schema<any>;
    annotations?: ToolAnnotations;
    /**
     * Whether its calls may go on as tasks: those whose client can follow them, or also no others (`required`). See
     * `Context.beginTask`.
     */
    taskSupport?: TaskSupport;
    /** What `mcp.get_schema` of the action dialect shows of it besides. */
    action?: ActionNotes;
    /** Whether it is undone where it fails: its handler notes each step with how it is taken back. See `Steps`. */
    atomic?: boolean;
    /**
     * Where its results are kept: the same call gets the same answer until its time is over or it is forgotten, without
     * the handler. Failures are not kept.
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
    /** How many bytes it has. */
    size?: number;
    annotations?: Annotations;
    icons?: readonly Icon[];
    _meta?: Readonly<Record<string, unknown>>;
}
export interface ResourceTemplateDefinition<State = any> extends ResourceDefinition {
    /** By the template's variables: what values they may take. */
    complete?: Readonly<Record<string, Completer<State>>>;
}
export interface PromptDefinition<State = any> {
    title?: string;
    description?: string;
    arguments?: readonly (PromptArgument & {
        /** What values it may take. */
        complete?: Completer<State>;
    })[];
    icons?: readonly Icon[];
    _meta?: Readonly<Record<string, unknown>>;
}
export interface RunOptions {
    /** How long what is in flight may still be answered after the end of stdin or a signal, in ms; 5000 by default. */
    graceMs?: number;
    /** Take SIGTERM, SIGINT and SIGHUP while the server runs; by default when nobody listens for them. */
    signals?: boolean;
    /** Shown each message. */
    trace?: Trace;
}
/** How a server's run ended. */
export interface RunReport {
    /** Calls whose handlers had not ended in time. */
    unanswered: number;
    reason: 'end of input' | 'signal' | 'parent died' | 'broken pipe' | 'stopped' | 'closed';
    signal?: number;
}
