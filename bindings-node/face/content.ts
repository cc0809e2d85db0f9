import type { ContentBlock, ResourceContents } from './protocol';

/** One block of content. The functions of this module create blocks. */
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

/** Audio. */
export function audio(data: Uint8Array, mimeType: string): Block {
    return new Block({ type: 'audio', data: base64(data), mimeType });
}

/** A resource with its contents, text or bytes. */
export function resource(uri: string, contents: string | Uint8Array, mimeType?: string): Block {
    return new Block({ type: 'resource', resource: contentsOf(uri, contents, mimeType) });
}

/** A link to a resource that the client may read. */
export function link(uri: string, name: string, mimeType?: string): Block {
    return new Block({ type: 'resource_link', uri, name, ...(mimeType && { mimeType }) });
}

/** A JSON text that is sent as it is; created by `json`. */
export class Json {
    /** @internal */
    constructor(readonly text: string) {}
}

/**
 * Wraps a text that is JSON already, for values that JavaScript cannot hold: integers beyond 2^53, long decimals. A
 * tool may return it as its whole structured content, and `callTool` and `request` accept it as arguments.
 *
 * @throws SyntaxError if the text is not valid JSON.
 */
export function json(text: string): Json {
    JSON.parse(text);
    // In valid JSON a raw line break is white space; on the wire it would end the message.
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

/** Creates messages of a prompt: `prompt.user('…')`, `prompt.assistant('…')`. */
export const prompt = {
    user: (content: string | Block) => ({ role: 'user' as const, content: blockOf(content) }),
    assistant: (content: string | Block) => ({ role: 'assistant' as const, content: blockOf(content) })
};

function blockOf(content: string | Block): ContentBlock {
    return typeof content === 'string' ? { type: 'text', text: content } : content.block;
}
