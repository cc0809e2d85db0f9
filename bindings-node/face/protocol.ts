/** The MCP types of this package's API. */

/** @internal Oldest first. */
export const REVISIONS = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28'] as const;

/** A revision of the protocol. */
export type Revision = '2024-11-05' | '2025-03-26' | '2025-06-18' | '2025-11-25' | '2026-07-28';

/** A JSON Schema. */
export type JsonSchema = { readonly [keyword: string]: unknown };

export type ContentBlock =
    | { type: 'text'; text: string; [more: string]: unknown }
    | { type: 'image'; data: string; mimeType: string; [more: string]: unknown }
    | { type: 'audio'; data: string; mimeType: string; [more: string]: unknown }
    | { type: 'resource'; resource: ResourceContents; [more: string]: unknown }
    | { type: 'resource_link'; uri: string; name: string; mimeType?: string; [more: string]: unknown };

export interface ResourceContents {
    uri: string;
    mimeType?: string;
    text?: string;
    /** Bytes in base64. */
    blob?: string;
    [more: string]: unknown;
}

export interface CallToolResult {
    content: ContentBlock[];
    structuredContent?: unknown;
    isError?: boolean;
    [more: string]: unknown;
}

export interface Tool {
    name: string;
    title?: string;
    description?: string;
    inputSchema: JsonSchema;
    outputSchema?: JsonSchema;
    annotations?: ToolAnnotations;
    icons?: Icon[];
    /** Whether its calls may run as tasks (2025-11-25). */
    execution?: { taskSupport?: TaskSupport };
    [more: string]: unknown;
}

/** Whether the calls of a tool may run as tasks. */
export type TaskSupport = 'forbidden' | 'optional' | 'required';

/** Hints about a tool's behaviour; untrusted unless the server is trusted. */
export interface ToolAnnotations {
    title?: string;
    readOnlyHint?: boolean;
    destructiveHint?: boolean;
    idempotentHint?: boolean;
    openWorldHint?: boolean;
}

export interface Icon {
    src: string;
    mimeType?: string;
    sizes?: readonly string[];
    theme?: 'light' | 'dark';
}

/** The intended audience, and the priority from 0 to 1. */
export interface Annotations {
    audience?: readonly ('user' | 'assistant')[];
    priority?: number;
    lastModified?: string;
}

export interface Resource {
    uri: string;
    name: string;
    title?: string;
    description?: string;
    mimeType?: string;
    [more: string]: unknown;
}

export interface ResourceTemplate {
    uriTemplate: string;
    name: string;
    title?: string;
    description?: string;
    mimeType?: string;
    [more: string]: unknown;
}

export interface Prompt {
    name: string;
    title?: string;
    description?: string;
    arguments?: PromptArgument[];
    [more: string]: unknown;
}

export interface PromptArgument {
    name: string;
    title?: string;
    description?: string;
    required?: boolean;
}

export interface PromptMessage {
    role: 'user' | 'assistant';
    content: ContentBlock;
}

export interface GetPromptResult {
    description?: string;
    messages: PromptMessage[];
    [more: string]: unknown;
}

export interface Implementation {
    name: string;
    version: string;
    title?: string;
    [more: string]: unknown;
}

/** A client's description of itself: unverified, for display only. */
export interface ClientInfo {
    revision: Revision;
    /**
     * The number of its connection, unique within the server: use it as the key of per-client data until `onClosed`.
     * `undefined` where each request has a connection of its own (2026-07-28 on HTTP).
     */
    connection: number | undefined;
    /** Its name, version and more, if the client sent them. */
    info: Implementation | undefined;
    /** The capabilities that the client declared, by name. */
    capabilities: Record<string, unknown>;
}

export interface Progress {
    /** The progress so far. */
    progress: number;
    /** The total, if known. */
    total?: number;
    message?: string;
}

/**
 * Called with each message of a connection as it goes over the wire. The text is for display: secrets are masked and
 * long strings are cut, so it may differ from the message.
 */
export type Trace = (direction: 'in' | 'out', message: string) => void;

/** @internal In the order of the engine's numbers. */
export const DIRECTIONS = ['in', 'out'] as const;

export const LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const;

/** The severity of a log message, from least to most severe. */
export type LogLevel = (typeof LEVELS)[number];

export interface LogMessage {
    level: LogLevel;
    logger?: string;
    data: unknown;
}

/** A folder or a file that a client shows to servers: guidance, not access control. */
export interface Root {
    /** Begins with `file://`. */
    uri: string;
    name?: string;
    [more: string]: unknown;
}

export type SamplingBlock =
    | { type: 'text'; text: string; [more: string]: unknown }
    | { type: 'image'; data: string; mimeType: string; [more: string]: unknown }
    | { type: 'audio'; data: string; mimeType: string; [more: string]: unknown }
    | { type: 'tool_use'; id: string; name: string; input: Record<string, unknown>; [more: string]: unknown }
    | { type: 'tool_result'; toolUseId: string; content: ContentBlock[]; [more: string]: unknown };

export interface SamplingMessage {
    role: 'user' | 'assistant';
    /** Several blocks from 2025-11-25 on. */
    content: SamplingBlock | SamplingBlock[];
    [more: string]: unknown;
}

/** A conversation that the client's model is to continue. */
export interface SamplingRequest<Messages = SamplingMessage[]> {
    messages: Messages;
    /** The most tokens to generate. */
    maxTokens: number;
    systemPrompt?: string;
    temperature?: number;
    stopSequences?: string[];
    /** Which model the server would like: advice only. */
    modelPreferences?: {
        hints?: { name?: string }[];
        costPriority?: number;
        speedPriority?: number;
        intelligencePriority?: number;
    };
    /** Tools that the model may use, from 2025-11-25 on. */
    tools?: Tool[];
    toolChoice?: { mode?: 'auto' | 'required' | 'none' };
    [more: string]: unknown;
}

/** The model's answer. */
export interface SamplingResult {
    role: 'user' | 'assistant';
    content: SamplingBlock | SamplingBlock[];
    /** The model's name. */
    model: string;
    stopReason?: string;
    [more: string]: unknown;
}

/** A form that the user is asked to fill in. */
export interface FormRequest {
    /** Sent from 2025-11-25 on. */
    mode?: 'form';
    message: string;
    /** A flat object of strings, numbers, booleans and choices. */
    requestedSchema: JsonSchema;
}

/** A page that the user is asked to visit: show the whole URL, ask for consent, and open it outside this program. */
export interface PageRequest {
    mode: 'url';
    message: string;
    url: string;
    /** The id that the event `elicitationComplete` will name; absent from 2026-07-28 on. */
    elicitationId?: string;
}

/** The outcome of a form: submitted, declined, or dismissed. */
export type FormResult<Content = Record<string, unknown>> =
    | { action: 'accept'; content: Content }
    | { action: 'decline' | 'cancel'; content?: undefined };

/** The outcome of a page. */
export interface PageResult {
    action: 'accept' | 'decline' | 'cancel';
}

/** Values for an argument, best first. */
export interface Completions {
    values: string[];
    /** How many there are in all, if that is known. */
    total?: number;
    /** Whether there are more than these. */
    hasMore?: boolean;
}

/** The changes to listen for. */
export interface Interests {
    tools?: boolean;
    prompts?: boolean;
    resources?: boolean;
    /** URIs of the resources whose updates to listen for. */
    uris?: readonly string[];
}

/** A change that a server reports. */
export type Change =
    | { type: 'toolsChanged' }
    | { type: 'promptsChanged' }
    | { type: 'resourcesChanged' }
    | { type: 'resourceUpdated'; uri: string };
