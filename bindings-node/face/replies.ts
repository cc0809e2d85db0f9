import { Made } from './attempt';
import { Block, contentsOf, Json } from './content';
import type { Context } from './context';
import { Outbound } from './link';
import { readJson } from './numbers';
import type { CallToolResult, ContentBlock, GetPromptResult, ResourceContents } from './protocol';
import { bytesBlock, isResult, stringify } from './results';

/**
 * Replies with parts that are made when something reads them; by reply, whether nothing has read or changed those that
 * are encoded otherwise than the value of the handler.
 */
const lazy = new WeakMap<object, () => boolean>();

/**
 * @internal Whether a reply is still as it was made of the value of a handler, which is encoded faster: once, and without
 * the text that stands beside structured content.
 */
export function standsFor(reply: any, value: unknown): boolean {
    if (typeof value === 'string') {
        const block = reply.content?.[0];
        const isOne = reply.content?.length === 1 && block.type === 'text' && block.text === value;
        return isOne && hasOnly(block, 2) && hasOnly(reply, 1);
    }
    const isUnread = typeof reply === 'object' && reply !== null ? lazy.get(reply) : undefined;
    return isUnread !== undefined && isUnread() && hasOnly(reply, 2);
}

function hasOnly(value: object, members: number): boolean {
    for (const _ in value) if (--members < 0) return false;
    return true;
}

/** @internal The result of a tool that a handler's value stands for. `hasSchema`: plain values are structured, too. */
export function toolReply(value: unknown, hasSchema: boolean, context: Context<any>): CallToolResult {
    if (value instanceof Made) {
        const { kind, text } = value.made;
        if (kind === Outbound.Text) return { content: [{ type: 'text', text }] };
        const read = () => readJson(text, context.integers);
        return kind === Outbound.Structured ? structured(text, read) : read();
    }
    if (value === undefined || value === null) return hasSchema && value === null ? structured('null', () => null) : { content: [] };
    if (typeof value !== 'object') return hasSchema ? plain(value) : { content: [{ type: 'text', text: String(value) }] };
    if (value instanceof Json) return structured(value.text, () => readJson(value.text, context.integers));
    if (value instanceof Uint8Array) return { content: [bytesBlock(value).block] };
    if (value instanceof Block) return { content: [value.block] };
    if (Array.isArray(value) && value.length > 0 && value.every(item => item instanceof Block)) return { content: value.map(({ block }) => block) };
    return isResult(value) ? { ...value, content: value.content.map(blockOf) } : plain(value);
}

function blockOf(block: ContentBlock | Block): ContentBlock {
    return block instanceof Block ? block.block : block;
}

/** The reply of a value that is encoded as it is at the end: only its text is made when it is read. */
function plain(value: unknown): CallToolResult {
    let blocks: ContentBlock[] | undefined;
    const reply = {
        get content() {
            return (blocks ??= [{ type: 'text', text: stringify(reply.structuredContent) }]);
        },
        set content(given) {
            blocks = given;
        },
        structuredContent: value
    } as CallToolResult;
    lazy.set(reply, () => blocks === undefined && reply.structuredContent === value);
    return reply;
}

/** The reply of structured content that is JSON already. */
function structured(text: string, read: () => unknown): CallToolResult {
    let blocks: ContentBlock[] | undefined;
    let value: { is: unknown } | undefined;
    const reply = {
        get content() {
            return (blocks ??= [{ type: 'text', text }]);
        },
        set content(given) {
            blocks = given;
        },
        get structuredContent() {
            return (value ??= { is: read() }).is;
        },
        set structuredContent(given) {
            value = { is: given };
        }
    } as CallToolResult;
    lazy.set(reply, () => blocks === undefined && value === undefined);
    return reply;
}

/** @internal */
export function resourceReply(value: unknown, uri: string, mimeType?: string): ResourceContents[] {
    const contents = typeof value === 'string' || value instanceof Uint8Array ? contentsOf(uri, value, mimeType) : value;
    return Array.isArray(contents) ? contents : [contents as ResourceContents];
}

/** @internal */
export function promptReply(value: unknown): GetPromptResult {
    const messages = typeof value === 'string' ? [{ role: 'user' as const, content: { type: 'text' as const, text: value } }] : value;
    return Array.isArray(messages) ? { messages } : (messages as GetPromptResult);
}
