import type { ContentBlock } from './protocol';
/** One block of content, made by one of the functions of this module. */
export declare class Block {
    readonly block: ContentBlock;
    toJSON(): ContentBlock;
}
/** A block of text. */
export declare function text(value: string): Block;
/** An image. */
export declare function image(data: Uint8Array, mimeType: string): Block;
/** A sound. */
export declare function audio(data: Uint8Array, mimeType: string): Block;
/** A resource with its contents, text or bytes. */
export declare function resource(uri: string, contents: string | Uint8Array, mimeType?: string): Block;
/** A resource to be read by who wants it. */
export declare function link(uri: string, name: string, mimeType?: string): Block;
/** Messages of a prompt: `prompt.user('…')`, `prompt.assistant('…')`. */
export declare const prompt: {
    user: (content: string | Block) => {
        role: "user";
        content: ContentBlock;
    };
    assistant: (content: string | Block) => {
        role: "assistant";
        content: ContentBlock;
    };
};
