import { Block, contentsOf, Json } from './content';
import type { Context } from './context';
import { ActionError, ProtocolError, ToolError } from './errors';
import { Outbound } from './link';
import { writeJson } from './numbers';
import type { CallToolResult, GetPromptResult, PromptMessage, ResourceContents } from './protocol';

/**
 * The result of a tool: text; bytes, as an embedded resource; one or several content blocks; a whole `CallToolResult`;
 * nothing; or any other JSON value, as structured content.
 */
export type ToolOutput =
    | string
    | number
    | boolean
    | bigint
    | null
    | undefined
    | void
    | Uint8Array
    | Block
    | readonly Block[]
    | CallToolResult
    | Json
    | object;

/** The result of a resource: text, bytes, or complete contents. */
export type ResourceOutput = string | Uint8Array | ResourceContents | readonly ResourceContents[];

/** The result of a prompt: one user message, messages, or a whole `GetPromptResult`. */
export type PromptOutput = string | readonly PromptMessage[] | GetPromptResult;

type Answer = [kind: Outbound, text: string];

/** @internal */
export function toolAnswer(value: unknown): Answer {
    switch (typeof value) {
        case 'string':
            if (!value.isWellFormed()) throw loneSurrogate();
            return [Outbound.Text, value];
        case 'undefined':
            return [Outbound.Object, '{"content":[]}'];
        case 'object':
            break;
        default:
            return [Outbound.Text, String(value)];
    }
    if (value === null) return [Outbound.Object, '{"content":[]}'];
    if (value instanceof Json) return [Outbound.Structured, value.text];
    if (value instanceof Uint8Array) return toolAnswer(bytesBlock(value));
    if (value instanceof Block) return [Outbound.Object, stringify({ content: [value] })];
    if (Array.isArray(value) && value.length > 0 && value.every(item => item instanceof Block))
        return [Outbound.Object, stringify({ content: value })];
    return [isResult(value) ? Outbound.Object : Outbound.Structured, stringify(value)];
}

/**
 * @internal Encodes the result of a tool with an output schema: text and other plain values are structured content,
 * too.
 */
export function structuredAnswer(value: unknown): Answer {
    if (value === undefined || (typeof value === 'object' && value !== null)) return toolAnswer(value);
    return [Outbound.Structured, stringify(value)];
}

/** @internal */
export function resourceAnswer(value: unknown, uri: string, mimeType?: string): Answer {
    const contents =
        typeof value === 'string' || value instanceof Uint8Array ? contentsOf(uri, value, mimeType) : value;
    return [Outbound.Contents, stringify(Array.isArray(contents) ? contents : [contents])];
}

/** @internal */
export function promptAnswer(value: unknown): Answer {
    const messages =
        typeof value === 'string' ? [{ role: 'user', content: { type: 'text', text: value } }] : value;
    return [Outbound.Object, stringify(Array.isArray(messages) ? { messages } : messages)];
}

/** @internal */
export function objectAnswer(value: unknown): Answer {
    const json = stringify(value);
    if (!json.startsWith('{')) throw new TypeError('an extension method must return an object');
    return [Outbound.Object, json];
}

/** In the order of `src/answers.rs`. */
const KINDS = ['internal', 'invalid params', 'not found', 'missing capability'];

/** @internal Answers with the failure of a handler, without its message unless the error is meant for clients. */
export function refuse(context: Context, error: unknown, isTool: boolean): void {
    if (error instanceof ProtocolError) {
        const { kind, message, data } = error;
        const json = writeJson({ message, data })!;
        if (typeof kind === 'number') return context.answer(Outbound.Error, json, kind);
        return context.answer(Outbound.Error, json, 0, KINDS.indexOf(kind));
    }
    if (error instanceof ActionError && isTool) return context.answer(Outbound.Object, typed(error));
    const message = error instanceof ToolError ? error.message : 'the handler failed unexpectedly';
    if (isTool) context.answer(Outbound.ToolError, message);
    else context.answer(Outbound.Error, JSON.stringify({ message }));
}

/** Encodes an error of the action dialect for the engine. */
function typed({ type, message, details, actionCode: code, helpUrl: help_url }: ActionError): string {
    const error = { type, message, details, code, help_url };
    return writeJson({ content: [{ type: 'text', text: message }], structuredContent: { error }, isError: true })!;
}

/** Recognizes a `CallToolResult`, as opposed to structured content, by its blocks. */
/** @internal */
export function isResult(value: object): value is CallToolResult {
    const { content } = value as { content?: unknown };
    return Array.isArray(content) && content.every(block => typeof block?.type === 'string' || block instanceof Block);
}

/** @internal */
export function bytesBlock(data: Uint8Array): Block {
    const mimeType = 'application/octet-stream';
    return new Block({ type: 'resource', resource: contentsOf(`data:${mimeType}`, data, mimeType) });
}

/** @internal */
export function stringify(value: unknown): string {
    const json = writeJson(value);
    if (json === undefined) throw new TypeError('the value is not JSON serializable');
    if (LONE_SURROGATE.test(json)) throw loneSurrogate();
    return json;
}

/** A lone surrogate as `JSON.stringify` writes it; it escapes no surrogate pairs. */
const LONE_SURROGATE = /(?<!\\)(?:\\\\)*\\ud[89a-f]/;

function loneSurrogate(): TypeError {
    return new TypeError('a string has a lone surrogate, which UTF-8 cannot represent');
}
