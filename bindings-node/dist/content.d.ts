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
/** A value in JSON, sent as it stands: made by `json`. */
export declare class Json {
    readonly text: string;
}
/**
 * A value that is JSON already, for what JavaScript's own values cannot hold: integers beyond 2^53, long decimals. May
 * be given back by a tool, as its whole structured content, and given to `callTool` and `request` as the arguments.
 *
 * @throws SyntaxError when it is no JSON.
 */
export declare function json(text: string): Json;
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
