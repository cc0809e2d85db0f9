import type { ContentBlock } from './protocol';
/** One block of content. The functions of this module create blocks. */
export declare class Block {
    readonly block: ContentBlock;
    toJSON(): ContentBlock;
}
/** A block of text. */
export declare function text(value: string): Block;
/** An image. */
export declare function image(data: Uint8Array, mimeType: string): Block;
/** Audio. */
export declare function audio(data: Uint8Array, mimeType: string): Block;
/** A resource with its contents, text or bytes. */
export declare function resource(uri: string, contents: string | Uint8Array, mimeType?: string): Block;
/** A link to a resource that the client may read. */
export declare function link(uri: string, name: string, mimeType?: string): Block;
/** A JSON text that is sent as it is; created by `json`. */
export declare class Json {
    readonly text: string;
}
/**
 * Wraps a text that is JSON already, for values that JavaScript cannot hold: integers beyond 2^53, long decimals. A
 * tool may return it as its whole structured content, and `callTool` and `request` accept it as arguments.
 *
 * @throws SyntaxError if the text is not valid JSON.
 */
export declare function json(text: string): Json;
/** Creates messages of a prompt: `prompt.user('…')`, `prompt.assistant('…')`. */
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
