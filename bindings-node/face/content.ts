import type { ContentBlock, ResourceContents } from './protocol';

/** One block of content, made by one of the functions of this module. */
export class Block {
    /** @internal */
    constructor(readonly block: ContentBlock) {}

    toJSON(): ContentBlock {
        return this.block;
    }
}

/** A block of text. */
export function text(value: string): Block {
    return new Block({ type: 'text', text: value });
}

/** An image. */
export function image(data: Uint8Array, mimeType: string): Block {
    return new Block({ type: 'image', data: base64(data), mimeType });
}

/** A sound. */
export function audio(data: Uint8Array, mimeType: string): Block {
    return new Block({ type: 'audio', data: base64(data), mimeType });
}

/** A resource with its contents, text or bytes. */
export function resource(uri: string, contents: string | Uint8Array, mimeType?: string): Block {
    return new Block({ type: 'resource', resource: contentsOf(uri, contents, mimeType) });
}

/** A resource to be read by who wants it. */
export function link(uri: string, name: string, mimeType?: string): Block {
    return new Block({ type: 'resource_link', uri, name, ...(mimeType && { mimeType }) });
}

/** A value in JSON, sent as it stands: made by `json`. */
export class Json {
    /** @internal */
    constructor(readonly text: string) {}
}

/**
 * A value that is JSON already, for what JavaScript's own values cannot hold: integers beyond 2^53, long decimals. May
 * be given back by a tool, as its whole structured content, and given to `callTool` and `request` as the arguments.
 *
 * @throws SyntaxError when it is no JSON.
 */
export function json(text: string): Json {
    JSON.parse(text);
    // In valid JSON a raw line break is white space, and on the wire it ends the message.
    return new Json(text.replace(/[\r\n]+/g, ' '));
}

/** @internal */
export function contentsOf(uri: string, contents: string | Uint8Array, mimeType?: string): ResourceContents {
    const head = mimeType ? { uri, mimeType } : { uri };
    return typeof contents === 'string' ? { ...head, text: contents } : { ...head, blob: base64(contents) };
}

function base64(data: Uint8Array): string {
    return Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64');
}

/** Messages of a prompt: `prompt.user('…')`, `prompt.assistant('…')`. */
export const prompt = {
    user: (content: string | Block) => ({ role: 'user' as const, content: blockOf(content) }),
    assistant: (content: string | Block) => ({ role: 'assistant' as const, content: blockOf(content) })
};

function blockOf(content: string | Block): ContentBlock {
    return typeof content === 'string' ? { type: 'text', text: content } : content.block;
}
