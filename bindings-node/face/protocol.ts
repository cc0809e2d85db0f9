/** The shapes of MCP that this package gives and takes. */

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
    [more: string]: unknown;
}

/** Hints on what a tool does; not to be trusted unless the server is. */
export interface ToolAnnotations {
    title?: string;
    readOnlyHint?: boolean;
    destructiveHint?: boolean;
    idempotentHint?: boolean;
    openWorldHint?: boolean;
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

export interface Progress {
    /** How far. */
    progress: number;
    /** Of how much, when known. */
    total?: number;
    message?: string;
}

/**
 * Shown each message of a connection as it goes over the wire, for people: secrets are masked and long strings cut,
 * so the text need not be the message any more.
 */
export type Trace = (direction: 'in' | 'out', message: string) => void;

export const LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const;

/** How severe a log message is. */
export type LogLevel = (typeof LEVELS)[number];

export interface LogMessage {
    level: LogLevel;
    logger?: string;
    data: unknown;
}
