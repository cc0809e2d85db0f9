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
